"""Models that torch has saved, in either form, are read as data: the same tensors come out, and nothing is run."""

import hashlib
import os
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relook import pickledfiles
from relook.errors import BadInput
from relook.pickledfiles import tensors
from tests.malformed import read_or_refused

FORMS = ("zip", "in a row")


def state() -> dict[str, Any]:
    """Tensors of many kinds: one is a view, two share their content, one has nothing in it, one is a parameter."""
    large = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    return {
        **network.state_dict(),
        "view": large.t()[1:3, ::2],
        "whole": large,
        "none": torch.zeros(0, 3),
        "one": torch.tensor(7.5, dtype=torch.float64),
        "half": torch.tensor([1.5], dtype=torch.float16),
        "said": torch.tensor([True, False]),
        "bytes": torch.arange(3, dtype=torch.uint8),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }


def saved(path: Path, *, form: str, found: Any = None) -> Path:
    torch.save(state() if found is None else found, path, _use_new_zipfile_serialization=form == "zip")
    return path


@pytest.mark.parametrize("form", FORMS)
def test_what_torch_saved_comes_out(tmp_path: Path, form: str) -> None:
    path = saved(tmp_path / "m.pth", form=form)
    found, wanted = tensors(path), torch.load(path, weights_only=True)
    assert list(found) == list(wanted)
    for name, tensor in wanted.items():
        assert found[name].shape == tuple(tensor.shape)
        assert found[name].dtype == tensor.detach().numpy().dtype
        assert np.array_equal(found[name], tensor.detach().numpy()), name


def test_other_bytes_than_the_published_ones_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.pth", form="in a row")
    known = hashlib.sha256(path.read_bytes()).hexdigest()
    assert "view" in tensors(path, sha256=known)
    with pytest.raises(BadInput, match="the published weights were needed, but other bytes came; install the package"):
        tensors(path, sha256="0" * 64)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_no_model(tmp_path: Path, form: str) -> None:
    path = saved(tmp_path / "m.pth", form=form, found={"epoch": 3})
    with pytest.raises(
        BadInput, match="tensors by their names were needed, but something else came; save a state_dict"
    ):
        tensors(path)


def test_a_pickle_of_python(tmp_path: Path) -> None:
    path = tmp_path / "m.pth"
    path.write_bytes(pickle.dumps([], protocol=2) * 5)
    with pytest.raises(BadInput, match=r"was needed in it, but it is broken \(another pickle came\); get it again"):
        tensors(path)


def test_a_model_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickledfiles, "MOST_MODEL", 100)
    with pytest.raises(BadInput, match="GiB was needed, but more came; is it another"):
        tensors(saved(tmp_path / "m.pth", form="zip"))


def test_content_that_ends_early(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.pth", form="in a row")
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(BadInput, match=r"bytes were announced, but .+ came"):
        tensors(path)


@pytest.mark.parametrize(("sound", "broken"), [(b"K\0K\4\x85", b"K\7K\4\x85"), (b"K\1\x85", b"K\2\x85")])
def test_a_tensor_that_looks_beyond_its_content(tmp_path: Path, sound: bytes, broken: bytes) -> None:
    path = saved(tmp_path / "m.pth", form="in a row", found={"a": torch.zeros(4)})
    content = path.read_bytes()
    assert len(re.findall(re.escape(sound), _without_notes(content))) == 1
    path.write_bytes(_without_notes(content).replace(sound, broken))
    with pytest.raises(BadInput, match="it looks beyond its content"):
        tensors(path)


def _without_notes(content: bytes) -> bytes:
    """Return a pickle without the steps that note a value for later."""
    return re.sub(rb"(?<=\x85)q.", b"", content)


class Runs:
    def __reduce__(self) -> Any:
        return os.system, ("echo ran",)


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_run(tmp_path: Path, form: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path / "m.pth", form=form, found={"a": torch.zeros(2), "b": Runs()})
    with pytest.raises(BadInput, match=r"it asks for '(posix|nt).system'"):
        tensors(path)
    assert capfd.readouterr().out == ""


def test_what_lies_elsewhere_is_for_models_alone(tmp_path: Path) -> None:
    path = tmp_path / "human.pt"
    path.write_bytes(b"\x80\2)Q.")
    with pytest.raises(BadInput, match="it keeps content in another place"):
        pickledfiles.unpickled(path)


def test_packed_content_is_not_unpacked(tmp_path: Path) -> None:
    path, bomb = saved(tmp_path / "m.pth", form="zip", found={"a": torch.zeros(1 << 16)}), tmp_path / "b.pth"
    with zipfile.ZipFile(path) as sound, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        for part in sound.infolist():
            packed.writestr(part.filename, sound.read(part))
    with pytest.raises(BadInput, match="but it is broken"):
        tensors(bomb)


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "m.pth"
    for form in FORMS:
        sound = saved(tmp_path / "sound.pth", form=form, found={"a": torch.arange(6).reshape(2, 3)}).read_bytes()
        for _ in range(150):
            damaged = bytearray(sound)
            damaged[rng.integers(len(damaged))] = rng.integers(256)
            path.write_bytes(damaged)
            read_or_refused(lambda: tensors(path), path)
