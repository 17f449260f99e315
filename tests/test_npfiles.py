"""Headers of arrays are believed only as far as the bytes behind them go, and an archive unpacks into what it says."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relook import npfiles
from relook.datasets import arrays
from relook.errors import BadInput
from relook.npfiles import parts
from tests.test_parquet import read_apart


def header(shape: str, descr: str = "'<i8'", *, columnwise: bool = False, more: str = "") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {columnwise}, 'shape': {shape}, {more}}}".encode()
    text += b" " * (64 - (len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def zipped(entries: dict[str, bytes], path: Path, how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def saved(folder: Path, content: bytes) -> Path:
    (folder / "x.npy").write_bytes(content)
    return folder / "x.npy"


ARRAYS = [
    np.arange(6),
    np.arange(6).reshape(2, 3),
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.array(["a", "bc"]),
    np.zeros((2, 0)),
    np.array(7.5, ">f4"),
]


@pytest.mark.parametrize("array", ARRAYS, ids=str)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_read(tmp_path: Path, array: Any, save: Any) -> None:
    np.save(tmp_path / "x.npy", array)
    save(tmp_path / "x.npz", one=array, other=[1])
    for found in (parts(tmp_path / "x.npy")["arr_0"], parts(tmp_path / "x.npz")["one"]):
        assert (found.array().tolist(), found.array().dtype) == (array.tolist(), array.dtype)
        if array.ndim:
            assert [row.tolist() for row in found.rows()] == array.tolist()


def test_arrays_of_old_versions_are_read(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.arange(3), version=(2, 0))
    assert parts(saved(tmp_path, content.getvalue()))["arr_0"].array().tolist() == [0, 1, 2]
    old = header("(3L,)") + np.arange(3).tobytes()
    assert parts(saved(tmp_path, old))["arr_0"].array().tolist() == [0, 1, 2]


def pickled() -> bytes:
    content = io.BytesIO()
    np.save(content, np.array([{}], object), allow_pickle=True)
    return content.getvalue()


BROKEN: dict[str, tuple[bytes, str]] = {
    "longer than it says": (header("(2,)") + bytes(24), "it has another length than it says"),
    "shorter than it says": (header("(2,)") + bytes(8), "it has another length than it says"),
    "a shape beyond all bytes": (header("(1000000000000,)") + bytes(8), "arr_0 has shape"),
    "a shape below zero": (header("(-1,)") + bytes(8), "arr_0 has shape"),
    "a shape of truths": (header("(True,)") + bytes(8), "arr_0 has shape"),
    "a shape of texts": (header("('x',)"), "the file is broken"),
    "values of no length": (header("(1000000000,)", "'<U0'"), "arr_0 has values of no length"),
    "code for a header": (header("__import__('os').system('true')"), "the file is broken"),
    "a deep header": (header("(" * 90 + "1" + ",)" * 90), "the file is broken"),
    "a kind that is none": (header("(1,)", "'<x8'"), "the file is broken"),
    "a version that is none": (b"\x93NUMPY\x09\x00" + bytes(99), "the file is broken"),
    "objects": (pickled(), "it holds Python objects, which are not opened"),
    "objects in records": (header("(1,)", "[('a', '|O')]") + b"x" * 8, "it holds Python objects, which are not opened"),
    "a pickle": (b"\x80\x04cposix\nsystem\n", "this is no npy file"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_headers(tmp_path: Path, what: str) -> None:
    content, sentence = BROKEN[what]
    with pytest.raises(BadInput, match=sentence):
        arrays.collection(saved(tmp_path, content))


def test_an_archive_is_checked_like_its_arrays(tmp_path: Path) -> None:
    for content, sentence in BROKEN.values():
        if content.startswith(b"\x93NUMPY"):
            with pytest.raises(BadInput, match=sentence.replace("arr_0", "labels").replace("it has", "has")):
                arrays.collection(zipped({"labels.npy": content}, tmp_path / "x.npz"))


ENTRIES: dict[str, tuple[dict[str, bytes], str]] = {
    "a pickle": (
        {"labels.npy": b"\x80\x04cposix\nsystem\n"},
        "arrays were needed, but 'labels.npy' in it is none; save",
    ),
    "a script": ({"setup.py": b"print(1)"}, "arrays were needed, but 'setup.py' in it is none; save it with numpy"),
    "a path outside": ({"../labels.npy": b"x"}, "arrays were needed, but '../labels.npy' in it is none"),
    "too many": ({f"{number}.npy": b"" for number in range(1001)}, "1,000 arrays at most were needed, but more came"),
}


@pytest.mark.parametrize("what", ENTRIES)
def test_archives_of_other_things(tmp_path: Path, what: str) -> None:
    entries, sentence = ENTRIES[what]
    with pytest.raises(BadInput, match=sentence):
        arrays.collection(zipped(entries, tmp_path / "x.npz"))


def test_a_name_that_comes_twice(tmp_path: Path) -> None:
    array = header("(1,)") + bytes(8)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("labels.npy", array)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("labels.npy", array)
    with pytest.raises(BadInput, match="arrays must differ in name, but 'labels' comes twice; save it again"):
        parts(tmp_path / "x.npz")


def test_an_array_of_another_length_than_it_says_is_noticed_as_it_comes(tmp_path: Path) -> None:
    for length in (8, 24):
        path = zipped({"images.npy": header("(2, 1, 1)", "'|u1'") + bytes(length)}, tmp_path / "x.npz")
        with pytest.raises(BadInput, match="images has another length than it says"):
            parts(path)["images"].array()
        with pytest.raises(BadInput, match="images has another length than it says"):
            list(parts(path)["images"].rows())


# Archives of a few bytes that unpack into much; each is read in a process of its own, whose memory is measured.


def zeros(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("labels.npy", "w") as file:
        file.write(header("(50000000,)"))
        for _ in range(50):
            file.write(bytes(8_000_000))


def no_entries(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(30_000):
            archive.writestr(str(number), b"")


def longer_than_it_says(path: Path) -> None:
    """Say of a bomb that it holds one label."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("labels.npy", "w") as file:
        file.write(header("(1,)"))
        for _ in range(50):
            file.write(bytes(8_000_000))


BOMBS: dict[str, tuple[Callable[[Path], object], str]] = {
    "zeros": (zeros, "256 MB at most were needed from"),
    "many empty entries": (no_entries, "1,000 arrays at most were needed, but more came; save those you need"),
    "more than it says": (longer_than_it_says, "labels has another length than it says"),
}


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_refused_in_seconds(tmp_path: Path, bomb: str) -> None:
    make, sentence = BOMBS[bomb]
    make(tmp_path / "x.npz")
    said, seconds, megabytes = read_apart(tmp_path / "x.npz")
    assert sentence in said
    assert seconds < 5
    assert megabytes < 300


def test_a_planted_reader_that_believes_its_header_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npfiles.Stored, "_check_end", lambda *_: None)
    path = zipped({"labels.npy": header("(1,)") + bytes(16)}, tmp_path / "x.npz")
    assert parts(path)["labels"].array().tolist() == [0]
