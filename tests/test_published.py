"""What is published is told right: every set that is read is listed, and its files are known where they lie."""

from pathlib import Path

import pytest

from relook import datasets
from relook.download import HOSTS
from relook.errors import BadInput
from relook.imported import source_file
from relook.published import PUBLISHED, data_folder, named


def test_every_set_of_a_folder_is_told_of() -> None:
    assert set(PUBLISHED) == set(datasets.IN_FOLDER)


@pytest.mark.parametrize("name", PUBLISHED)
def test_is_told_whole(name: str) -> None:
    found = PUBLISHED[name]
    assert found.licence
    assert found.bibtex.startswith("@")
    for file in found.files:
        assert file.page
        if not file.by_hand:
            assert file.url is not None
            assert file.url.split("/")[:3] in [["https:", "", host] for host in HOSTS]
            method, _, digits = (file.digest or "").partition(":")
            assert len(digits) == {"md5": 32, "sha256": 64}[method]
            assert 0 < file.most <= 200_000_000


def test_state(tmp_path: Path) -> None:
    found = PUBLISHED["cifar10n"]
    assert found.state(tmp_path) == "no"
    (tmp_path / "cifar10n").mkdir()
    (tmp_path / "cifar10n" / "CIFAR-10_human.pt").touch()
    assert found.state(tmp_path) == "in part"
    (tmp_path / "cifar10n" / "image_order_c10.npy").touch()
    (tmp_path / "side_info_cifar10N.csv").touch()
    assert found.state(tmp_path) == "there"
    assert found.place(tmp_path, "side_info_cifar10N.csv") == tmp_path / "side_info_cifar10N.csv"
    (tmp_path / "cifar10" / "cifar-10-batches-py").mkdir(parents=True)
    assert PUBLISHED["cifar10"].state(tmp_path) == "there", "another layout does as well"


def test_where_to_get_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"no such file; get CIFAR-10_human\.pt from .+, or with relook datasets get cif"
    ):
        PUBLISHED["cifar10n"].needed(tmp_path, "CIFAR-10_human.pt")
    with pytest.raises(BadInput, match=r"get stage_2_train_labels\.csv from kaggle\.com/c/rsna-pneumonia-detection-ch"):
        PUBLISHED["noisy_cxr"].needed(tmp_path, "stage_2_train_labels.csv")


def test_unknown_set() -> None:
    with pytest.raises(BadInput, match=r"the name of a published set was needed \(cifar10, .+\), but 'mnist' came"):
        named("mnist")


def test_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELOOK_DATA", str(tmp_path))
    assert data_folder(None, what="x") == tmp_path
    assert data_folder("here", what="x") == Path("here")
    monkeypatch.delenv("RELOOK_DATA")
    with pytest.raises(BadInput, match="x: a folder was needed, but none was given; name it, or set RELOOK_DATA to it"):
        data_folder(None, what="x")


def test_sums_are_those_of_the_real_files(data_dir: Path) -> None:
    """All but PneumoniaMNIST's, whose file in the folder of data is not the publisher's: it lacks training images."""
    checked = []
    for found in PUBLISHED.values():
        for file in found.files:
            path = found.place(data_dir, file.name)
            if path is not None and (file.digest or "").startswith("sha256:"):
                assert f"sha256:{source_file(path).hash}" == file.digest
                assert path.stat().st_size <= file.most
                checked.append(file.name)
    assert len(checked) == 4
