"""npy files come out as numpy wrote them; what lies, is cut short or holds objects is refused and costs nothing."""

import io
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from relook import npy
from relook.errors import BadInput
from tests.watched import read_or_refused, watched


def saved(array: object, *, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=allow_pickle)  # type: ignore[arg-type]
    return stream.getvalue()


@given(arrays.arrays(st.sampled_from(["<i8", ">u2", "<f4", "|b1", "|u1"]), arrays.array_shapes(min_dims=0, min_side=0)))
def test_comes_out_as_it_went_in(tmp_path_factory: pytest.TempPathFactory, array: np.ndarray) -> None:
    path = tmp_path_factory.getbasetemp() / "a.npy"
    for each in (array, np.asfortranarray(array)):
        path.write_bytes(saved(each))
        found = npy.array(path)
        assert (found.dtype, found.shape) == (each.dtype, each.shape)
        assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an array of numbers was needed, but it is none"),
        (b"no array", "an array of numbers was needed, but it is none"),
        (saved([1, 2])[:-1], "an array of numbers was needed, but it is none"),
        (saved(["a"]), r"plain numbers of at most 67,108,864 bytes were needed, but <U1 of shape \(1,\) came"),
        (saved([None], allow_pickle=True), r"but object of shape \(1,\) came; is it another file"),
        (saved([1, 2]).replace(b"(2,)", b"(-2)"), "is none"),
        (saved([1, 2]).replace(b"\x01\x00v", b"\x09\x00v", 1), r"plain numbers was needed, but npy \(9, 0\) came"),
        (saved(np.zeros((2, 2))).replace(b"(2, 2)", b"(2,-2)"), r"but float64 of shape \(2, -2\) came"),
    ],
)
def test_other_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    with watched() as seen, pytest.raises(BadInput, match=message):
        npy.array(path)
    assert seen == []


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"a file with an array was needed, but it cannot be opened \(No such file or directory\)"
    ):
        npy.array(tmp_path / "nowhere.npy")


def test_a_length_that_lies(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(saved(np.zeros((2, 2))).replace(b"(2, 2), }        ", b"(2, 10000000000)}"))
    began = time.process_time()
    with pytest.raises(BadInput, match=r"plain numbers of at most 67,108,864 bytes were needed, but float64 of shape"):
        npy.array(path)
    assert time.process_time() - began < 1


def test_archives(tmp_path: Path) -> None:
    """Numpy's own are opened; one with a million members, or one that says so, costs nothing."""
    path = tmp_path / "a.npz"
    np.savez(path, a=[1], b=[2])
    with npy.archive(path) as opened:
        assert opened.namelist() == ["a.npy", "b.npy"]
    content = path.read_bytes()
    at = content.rindex(b"PK\5\6")
    long = content[: at + 12] + (2**24).to_bytes(4, "little") + content[at + 16 :]
    for other in (long, content[:at] + b"PK\6\6" + b"\xff" * 52 + content[at:], content + b"PK\5\6" + b"\xff" * 18):
        path.write_bytes(other)
        with pytest.raises(BadInput, match="an archive of a few files was needed, but it lists too many; is it anoth"):
            npy.archive(path)
    path.write_bytes(content[:at] + b"PK\6\6" + bytes(52) + content[at : at + 12] + b"\xff" * 4 + content[at + 16 :])
    with pytest.raises(BadInput, match="but it is broken"):
        npy.archive(path)
    path.write_bytes(b"")
    with pytest.raises(BadInput, match=r"a zip archive was needed, but it is broken \(File is not a zip file\)"):
        npy.archive(path)


@pytest.mark.slow
@settings(max_examples=2_000)
@given(data=st.data())
def test_two_thousand_malformed_files(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    corpus = [
        saved(np.arange(6).reshape(2, 3)),
        saved(np.zeros(4, np.uint8)),
        saved(["a"]),
        saved([{}], allow_pickle=True),
    ]
    content = bytearray(data.draw(st.sampled_from(corpus)))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        piece = data.draw(
            st.sampled_from([b"(" * 200, b"{", b"'", b"9" * 30, b"-1", b"\0", b"O", b"1_0"]) | st.binary(max_size=4)
        )
        content[at : at + data.draw(st.integers(0, 6))] = piece
    path = tmp_path_factory.getbasetemp() / "any.npy"
    path.write_bytes(content)
    read_or_refused(lambda: npy.array(path), path)
