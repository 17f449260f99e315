"""Arrays come out as numpy wrote them; headers are believed only as far as the bytes behind them go, nothing is run.

An archive unpacks into what it says, and one of many entries costs nothing.
"""

import io
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as drawn

from relook import npfiles
from relook.datasets import arrays
from relook.errors import BadInput
from relook.npfiles import archive, parts, single
from tests.malformed import mutations, outcome
from tests.test_parquet import read_apart
from tests.watched import watched


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


@settings(max_examples=40)
@given(drawn.arrays(st.sampled_from(["<i8", ">u2", "<f4", "|b1", "|u1"]), drawn.array_shapes(min_dims=0, min_side=0)))
def test_comes_out_as_it_went_in(tmp_path_factory: pytest.TempPathFactory, array: np.ndarray) -> None:
    folder = tmp_path_factory.getbasetemp()
    for each in (array, np.asfortranarray(array)):
        np.save(folder / "a.npy", each)
        np.savez_compressed(folder / "a.npz", each)
        for name in ("a.npy", "a.npz"):
            found = single(folder / name).numbers()
            assert (found.dtype, found.shape) == (each.dtype, each.shape)
            assert found.tobytes() == array.tobytes()


def test_an_npy_file_stays_on_the_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    assert isinstance(single(tmp_path / "a.npy").array(), np.memmap)
    assert isinstance(single(tmp_path / "a.npy").numbers(), np.memmap)


def test_a_single_array_is_one(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=[1], b=[2])
    with pytest.raises(BadInput, match=r"a single array was needed, but it holds a, b; save one with numpy\.save"):
        single(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz")
    with pytest.raises(BadInput, match="a single array was needed, but it holds none"):
        single(tmp_path / "a.npz")


def test_numbers_are_plain_and_not_too_many(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ["a"])
    with pytest.raises(
        BadInput,
        match=r"plain numbers, packed ones of at most 67,108,864 bytes, were needed, but arr_0 \(<U1, 1\) came; is",
    ):
        single(tmp_path / "a.npy").numbers()
    path = zipped({"a.npy": header("(2, 1000000000)")}, tmp_path / "a.npz")
    began = time.process_time()
    with pytest.raises(BadInput, match=r"were needed, but a \(int64, 2 x 1000000000\) came"):
        single(path).numbers()
    assert time.process_time() - began < 1


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
    "a version that is none": (b"\x93NUMPY\x09\x00" + bytes(99), r"arr_0 is in version \(9, 0\) of the format"),
    "text for an array": (b"no array", "this is no npy file"),
    "the beginning of a header": (header("(2,)")[:20], "the file is broken"),
    "objects": (pickled(), "it holds Python objects, which are not opened"),
    "objects in records": (header("(1,)", "[('a', '|O')]") + b"x" * 8, "it holds Python objects, which are not opened"),
    "a pickle": (b"\x80\x04cposix\nsystem\n", "this is no npy file"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_headers(tmp_path: Path, what: str) -> None:
    content, sentence = BROKEN[what]
    with watched() as seen, pytest.raises(BadInput, match=sentence):
        arrays.collection(saved(tmp_path, content))
    assert seen == []


def test_more_axes_than_numpy_knows(tmp_path: Path) -> None:
    found = parts(saved(tmp_path, header(f"({'1,' * 99})") + bytes(8)))["arr_0"]
    with pytest.raises(BadInput, match="an array was needed, but the file is broken"):
        found.array()


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
    "too many": ({f"{number}.npy": b"" for number in range(1001)}, "1,000 entries at most were needed in an ar"),
}


@pytest.mark.parametrize("what", ENTRIES)
def test_archives_of_other_things(tmp_path: Path, what: str) -> None:
    entries, sentence = ENTRIES[what]
    with pytest.raises(BadInput, match=sentence):
        arrays.collection(zipped(entries, tmp_path / "x.npz"))


def test_archives_of_many_entries_cost_nothing(tmp_path: Path) -> None:
    """Numpy's own are opened; one with a million entries, or one that says so, is not even listed."""
    path = tmp_path / "a.npz"
    np.savez(path, a=[1], b=[2])
    with archive(path) as opened:
        assert opened.namelist() == ["a.npy", "b.npy"]
    content = path.read_bytes()
    at = content.rindex(b"PK\5\6")
    long = content[: at + 12] + (2**24).to_bytes(4, "little") + content[at + 16 :]
    for other in (long, content[:at] + b"PK\6\6" + b"\xff" * 52 + content[at:], content + b"PK\5\6" + b"\xff" * 18):
        path.write_bytes(other)
        with pytest.raises(BadInput, match="entries at most were needed in an archive, but it lists more; save those"):
            archive(path)
    path.write_bytes(content[:at] + b"PK\6\6" + bytes(52) + content[at : at + 12] + b"\xff" * 4 + content[at + 16 :])
    with pytest.raises(BadInput, match="the file is broken"):
        parts(path)


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
    "many empty entries": (
        no_entries,
        "1,000 entries at most were needed in an archive, but it lists more; save those",
    ),
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


# Arrays that are broken in thousands of ways are imported in test_bad_tables; here are those that hold code.


def used(path: Path) -> None:
    for found in parts(path).values():
        found.array()


@pytest.mark.slow
def test_nothing_runs_of_objects_that_are_broken(tmp_path: Path) -> None:
    with watched() as seen:
        found = outcome(mutations([pickled()], 500), tmp_path / "x.npy", used)
    assert not found.wrong, "\n".join(found.wrong[:9])
    assert seen == []


def test_a_planted_reader_that_lets_errors_out_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npfiles, "BROKEN", ())
    found = outcome(mutations([header("(2,)") + bytes(16)], 50), tmp_path / "x.npy", used)
    assert len(found.wrong) > 5
