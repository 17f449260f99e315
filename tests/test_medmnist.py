"""MedMNIST's files: the splits, the question of a multi-label one, and files that are broken or hostile."""

import io
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook import datasets, npfiles
from relook.datasets import medmnist
from relook.datasets.medmnist import FINDINGS, chest, pneumonia
from relook.errors import BadInput
from tests.malformed import read_or_refused
from tests.watched import watched

SIZES = {"train": 5, "val": 2, "test": 3}


def arrays(columns: int = 1, **changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    made: dict[str, Any] = {}
    for split, size in SIZES.items():
        made[f"{split}_images"] = rng.integers(0, 256, (size, 28, 28), np.uint8)
        made[f"{split}_labels"] = rng.integers(0, 2, (size, columns), np.uint8)
    return made | changes


def save(folder: Path, name: str, made: Mapping[str, Any], *, packed: bool = True) -> Path:
    (folder / name).mkdir(exist_ok=True)
    path = folder / name / f"{name}.npz"
    (np.savez_compressed if packed else np.savez)(path, **made)
    return path


class TestPneumonia:
    def test_real(self, data_dir: Path) -> None:
        """The file in the folder of data holds 3,882 of the 4,708 published training images; see its report."""
        sizes = {split: len(pneumonia(data_dir, split=split)) for split in medmnist.SPLITS}
        assert (sizes["val"], sizes["test"]) == (524, 624)
        full = pneumonia(data_dir)
        assert len(full) == sum(sizes.values())
        assert full.images is not None
        assert full.images[0].shape == (28, 28)
        assert 0.5 < full.true_class.mean() < 0.9

    def test_splits(self, tmp_path: Path) -> None:
        made = arrays()
        save(tmp_path, "pneumoniamnist", made)
        val = datasets.load("pneumoniamnist", tmp_path, settings={"split": "val"})
        assert (val.ids, val.classes, val.name) == (("val/0", "val/1"), ("normal", "pneumonia"), "pneumoniamnist-val")
        full = pneumonia(tmp_path)
        assert full.ids[4:6] == ("train/4", "val/0")
        assert full.images is not None
        assert np.array_equal(full.images[9], made["test_images"][2])
        assert np.array_equal(full.true_class, np.concatenate([made[f"{split}_labels"][:, 0] for split in SIZES]))

    def test_unpacked_and_by_columns(self, tmp_path: Path) -> None:
        made = arrays()
        save(tmp_path, "pneumoniamnist", made | {"val_images": np.asfortranarray(made["val_images"])}, packed=False)
        images = pneumonia(tmp_path, split="val").images
        assert images is not None
        assert np.array_equal(images[1], made["val_images"][1])


class TestChest:
    def test_one_finding_is_asked_for(self, tmp_path: Path) -> None:
        made = arrays(14)
        save(tmp_path, "chestmnist", made)
        found = datasets.load("chestmnist", tmp_path, settings={"question": "effusion", "split": "train"})
        assert found.classes == ("no effusion", "effusion")
        assert found.given.given.tolist() == made["train_labels"][:, FINDINGS.index("effusion")].tolist()
        assert found.truth is None, "labels mined from reports are no truth"

    def test_a_question_is_needed(self, tmp_path: Path) -> None:
        with pytest.raises(
            BadInput, match="dataset chestmnist: the setting 'question' was needed, but it did not come"
        ):
            datasets.load("chestmnist", tmp_path)
        with pytest.raises(
            BadInput, match=r"a question was needed \(atelectasis, .+hernia\), but 'flu' came; name one"
        ):
            chest(tmp_path, question="flu")


class TestBad:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (
                {"val_images": np.zeros((2, 64, 64), np.uint8)},
                r"were needed as val, but shapes \(2, 64, 64\) and \(2, 1",
            ),
            ({"val_labels": np.zeros((3, 1), np.uint8)}, r"were needed as val, but shapes \(2, 28, 28\) and \(3, 1\)"),
            ({"val_labels": np.full((2, 1), 7, np.uint8)}, "labels 0 and 1 were needed, but val/0 has 7; get it again"),
            (
                {"val_labels": np.zeros((2, 1))},
                r"unsigned bytes were needed as val_labels, but float64 came",
            ),
            (
                {"val_labels": np.array([[None], [{}]])},
                r"pneumoniamnist\.npz: numbers or text were needed, but it holds Python objects",
            ),
            ({"val_labels": np.zeros((0, 1), np.uint8)}, r"were needed as val, but shapes \(2, 28, 28\) and \(0, 1\)"),
        ],
    )
    def test_arrays(self, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
        save(tmp_path, "pneumoniamnist", arrays(**changes))
        with watched() as seen, pytest.raises(BadInput, match=message):
            pneumonia(tmp_path)
        assert seen == []

    def test_an_array_is_missing(self, tmp_path: Path) -> None:
        made = arrays()
        del made["test_images"]
        save(tmp_path, "pneumoniamnist", made)
        with pytest.raises(BadInput, match=r"an array test_images was needed, but it holds .+; get it again"):
            pneumonia(tmp_path)

    def test_no_file_and_no_split(self, tmp_path: Path) -> None:
        with pytest.raises(
            BadInput, match=r"pneumoniamnist\.npz was needed, but there is no such file; get pneumoniam"
        ):
            pneumonia(tmp_path)
        with pytest.raises(BadInput, match="the split must be train, val, test or all, but 'valid' came; name one"):
            pneumonia(tmp_path, split="valid")

    @pytest.mark.parametrize("shape", ["(4000000000, 28, 28)", "(70000, 1000)"])
    def test_a_header_that_lies(self, tmp_path: Path, shape: str) -> None:
        header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
        path = save(tmp_path, "pneumoniamnist", arrays())
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("train_images.npy", b"\x93NUMPY\1\0v\0" + header.encode())
        with pytest.raises(
            BadInput, match=r"packed ones of at most 67,108,864 bytes, were needed, but train_images \(uint8, .+\) came"
        ):
            pneumonia(tmp_path)

    def test_a_bomb(self, tmp_path: Path) -> None:
        path = save(tmp_path, "pneumoniamnist", arrays())
        stream = io.BytesIO()
        np.save(stream, np.zeros((60_000, 28, 28), np.uint8))
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("train_images.npy", stream.getvalue() + b"\0" * 10**8)
        began = time.process_time()
        with pytest.raises(BadInput, match="train_images has another length than it says"):
            pneumonia(tmp_path)
        assert time.process_time() - began < 5


# Whatever the bytes: a data set, or one kind of refusal.


def _corpus() -> list[bytes]:
    found = []
    for packed in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", packed) as archive:
            for name, array in arrays().items():
                member = io.BytesIO()
                np.save(member, array[:, :1, :1] if array.ndim == 3 else array)
                archive.writestr(f"{name}.npy", member.getvalue())
        found.append(stream.getvalue())
    return found


_CORPUS = _corpus()
_HEADERS = st.builds(
    lambda kind, order, shape, rest: f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}{rest}}}\n",
    st.sampled_from(
        ["'|u1'", "'|O'", "'<f8'", "[('a', '|O')]", "None", "'|V9999999999'", "'u1', 'x': 1", "__import__"]
    ),
    st.sampled_from(["False", "True", "7", "None"]),
    st.sampled_from(
        ["()", "(3, 28, 28)", "(-1, 28, 28)", "(2**70,)", "3", "(True, 1)", "(9999999999999999999999,)", "''"]
    ),
    st.sampled_from(["", ",", ", ", ", 'more': 1", "(" * 300, "\0", "\nimport os"]),
)


@st.composite
def _files(draw: st.DrawFn) -> bytes:
    if draw(st.booleans()):
        content = bytearray(draw(st.sampled_from(_CORPUS)))
        for _ in range(draw(st.integers(1, 10))):
            at = draw(st.integers(0, len(content) - 1))
            if draw(st.booleans()):
                content[at] = draw(st.integers(0, 255))
            else:
                del content[at : at + draw(st.integers(1, 40))]
        return bytes(content)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for split in SIZES:
            for what in ("images", "labels"):
                header = draw(_HEADERS).encode()
                magic = draw(
                    st.sampled_from([b"\x93NUMPY\1\0", b"\x93NUMPY\2\0", b"\x93NUMPY\3\0", b"\x80\2cos\nsystem"])
                )
                size = draw(st.sampled_from([len(header), 0, 2**15]))
                length = size.to_bytes(2 if magic[6:7] == b"\1" else 4, "little")
                archive.writestr(f"{split}_{what}.npy", magic + length + header + draw(st.binary(max_size=40)))
    return stream.getvalue()


def check(content: bytes, folder: Path) -> None:
    path = folder / "pneumoniamnist.npz"
    path.write_bytes(content)
    read_or_refused(lambda: pneumonia(folder), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.slow
@settings(max_examples=2_000)
@given(content=_files())
def test_two_thousand_malformed_or_hostile_files(folder: Path, content: bytes) -> None:
    check(content, folder)


def test_planted_fault_fails_the_check(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npfiles, "BROKEN", ())
    with pytest.raises(zipfile.BadZipFile):
        check(b"PK no archive", folder)
