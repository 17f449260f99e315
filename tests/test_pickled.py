"""Pickles of publishers are read and never run: what is plain comes out, anything else is refused where it stands."""

import io
import os
import pickle
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook import npfiles, pickledfiles
from relook.errors import BadInput
from relook.pickled import values
from relook.pickledfiles import unpickled
from tests.malformed import read_or_refused
from tests.watched import watched

PLAIN: dict[str, Any] = {
    "labels": np.arange(6, dtype=">i2").reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "data": np.arange(12, dtype=np.uint8).reshape(3, 4),
    "none": np.zeros((0, 3), np.uint8),
    "list": [1, 2, -5, 70_000, 2**40, 2.5, None, True, "é"],
    "pairs": (("a", b"b"), {}),
}


class Runs:
    """A value whose pickle runs a command."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


def of_torch(content: bytes, *, folder: str = "archive", compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        archive.writestr(f"{folder}/data.pkl", content)
        archive.writestr(f"{folder}/version", "3\n")
    return stream.getvalue()


def of_old_torch(content: bytes) -> bytes:
    parts = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True, "type_sizes": {"int": 4}}]
    return b"".join([*(pickle.dumps(part, protocol=2) for part in parts), content, pickle.dumps([], protocol=2)])


def of_python_2(name: bytes = b"data") -> bytes:
    """A dictionary with an array, as Python 2 wrote it: CIFAR-10's python layout."""
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\1(cnumpy\nndarray\nq\2K\0\x85U\1btRq\3(K\1K\2K\3\x86cnumpy\ndtype\n"
    )
    kind = b"q\4U\2u1K\0K\1\x87Rq\5(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89U\6\1\2\3\4\5\6tb"
    return b"\x80\2}q\0(U" + bytes([len(name)]) + name + array + kind + b"U\6labels]q\7(K\3K\1eu."


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)


class TestPlain:
    @pytest.mark.parametrize("protocol", [2, 3, 4, 5])
    def test_comes_out_as_it_went_in(self, protocol: int) -> None:
        (found,) = values(pickle.dumps(PLAIN, protocol=protocol))
        assert list(found) == list(PLAIN)
        assert [name for name in PLAIN if not same(PLAIN[name], found[name])] == []

    @given(
        st.dictionaries(
            st.text(max_size=5),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats(allow_nan=False)
                | st.text()
                | st.binary(min_size=1),
                lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner),
                max_leaves=8,
            ),
        ),
        st.sampled_from([3, 4, 5]),
    )
    def test_any_plain_value(self, value: dict[str, Any], protocol: int) -> None:
        assert values(pickle.dumps(value, protocol=protocol)) == [value]

    def test_python_2(self, tmp_path: Path) -> None:
        path = tmp_path / "data_batch_1"
        path.write_bytes(of_python_2())
        found = unpickled(path)
        assert found["data"].tolist() == [[1, 2, 3], [4, 5, 6]]
        assert found["labels"] == [3, 1]
        assert pickle.loads(of_python_2(), encoding="bytes")[b"labels"] == [3, 1], "it is a pickle indeed"

    @pytest.mark.parametrize("packed", [of_torch, of_old_torch, bytes])
    def test_files(self, tmp_path: Path, packed: Callable[[bytes], bytes]) -> None:
        path = tmp_path / "human.pt"
        path.write_bytes(packed(pickle.dumps(PLAIN, protocol=2)))
        assert same(unpickled(path)["data"], PLAIN["data"])

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", r"byte 0: .+ 1 more bytes were announced than the file has"),
            (b"N.", "a dictionary was needed, but NoneType came"),
            (pickle.dumps([1]), "a dictionary was needed, but list came"),
            (b"PK\3\4 no archive", r"a sound data\.pkl was needed in it, but it is broken \(File is"),
            (of_torch(b"}.", folder="x")[:60], "but it is broken"),
            (b"N." * 9, "more than 8 pickles came in a row"),
        ],
        ids=["empty", "none", "list", "no archive", "cut archive", "nine"],
    )
    def test_no_such_file(self, tmp_path: Path, content: bytes, message: str) -> None:
        path = tmp_path / "human.pt"
        path.write_bytes(content)
        with pytest.raises(BadInput, match=message):
            unpickled(path)

    def test_a_flipped_byte(self, tmp_path: Path) -> None:
        path = tmp_path / "human.pt"
        path.write_bytes(of_torch(pickle.dumps({"a": "x" * 99}, protocol=2)).replace(b"xxx", b"xyx", 1))
        with pytest.raises(BadInput, match=r"a sound data\.pkl was needed in it, but it is broken \(Bad CRC-32"):
            unpickled(path)

    def test_archives_without_or_with_two(self, tmp_path: Path) -> None:
        path = tmp_path / "human.pt"
        for names in ([], ["a/data.pkl", "b/data.pkl"]):
            with zipfile.ZipFile(path, "w") as archive:
                for name in names:
                    archive.writestr(name, b"}.")
            with pytest.raises(BadInput, match=r"one data\.pkl of at most .+ bytes was needed, but [02] came"):
                unpickled(path)

    def test_bombs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "human.pt"
        path.write_bytes(of_torch(b"\0" * 80 * 2**20, compression=zipfile.ZIP_DEFLATED))
        began = time.process_time()
        with pytest.raises(BadInput, match=r"one data\.pkl of at most 67,108,864 bytes was needed"):
            unpickled(path)
        assert time.process_time() - began < 5
        monkeypatch.setattr(pickledfiles, "MOST_BYTES", 100)
        with pytest.raises(BadInput, match=r"at most 100 bytes were needed, but it has \d\d,\d+; is it another file"):
            unpickled(path)


GET_SYSTEM = b"cos\nsystem\n"
TEXT = b"X\4\0\0\0true"

BEGUN = b"\x80\3cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\0\x85C\1btR"
"""An array, its content still to come."""

KIND, ORDER = b"cnumpy\ndtype\nX\2\0\0\0u1\x89\x88\x87R", b"(K\3X\1\0\0\0|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
"""A kind of number, and its content."""

HOSTILE: dict[str, bytes] = {
    "GLOBAL and REDUCE": b"\x80\2" + GET_SYSTEM + TEXT + b"\x85R.",
    "posix": b"\x80\2cposix\nsystem\n" + TEXT + b"\x85R.",
    "builtins": b"\x80\2c__builtin__\neval\nX\3\0\0\0" + b"1+1\x85R.",
    "getattr": b"\x80\2c__builtin__\ngetattr\ncnumpy\nndarray\nX\4\0\0\0tolist\x86R.",
    "a part of numpy": b"\x80\2cnumpy\nload\nX\1\0\0\0x\x85R.",
    "numpy's runner": b"\x80\2cnumpy.testing._private.utils\nrunstring\nX\1\0\0\0x}\x86R.",
    "a dotted name": b"\x80\4\x8c\5numpy\x8c\x0endarray.tolist\x93.",
    "STACK_GLOBAL": b"\x80\4\x8c\2os\x8c\6system\x93\x8c\4true\x85R.",
    "STACK_GLOBAL of a number": b"\x80\4K\1K\2\x93.",
    "INST": b"(S'true'\nios\nsystem\n.",
    "INST without arguments": b"(ios\ngetcwd\n.",
    "OBJ": b"(" + GET_SYSTEM + TEXT + b"o.",
    "NEWOBJ": b"\x80\2" + GET_SYSTEM + TEXT + b"\x85\x81.",
    "NEWOBJ_EX": b"\x80\4" + GET_SYSTEM + b")}\x92.",
    "EXT1": b"\x80\2\x82\1.",
    "EXT4": b"\x80\2\x84\1\0\0\0.",
    "PERSID": b"Pos.system\n.",
    "BINPERSID": b"\x80\2" + TEXT + b"Q.",
    "BUILD of a dictionary": b"\x80\2}}b.",
    "BUILD of an array with a dictionary": BEGUN + b"}b.",
    "REDUCE of data": b"\x80\2X\2\0\0\0osX\1\0\0\0x\x85R.",
    "REDUCE of a noted name": b"\x80\2}q\0h\0)R.",
    "REDUCE of the type alone": b"\x80\2cnumpy\nndarray\nK\x05\x85\x85R.",
    "a name as data": b"\x80\2}X\1\0\0\0acnumpy\ndtype\ns.",
    "half an array as data": b"]" + BEGUN + b"a.",
    "a kind of number as data": b"\x80\2" + KIND + ORDER + b".",
    "objects": b"\x80\2cnumpy\ndtype\nX\2\0\0\0O8\x89\x88\x87R.",
    "records": b"\x80\2cnumpy\ndtype\nX\x05\0\0\0i4,i4\x89\x88\x87R.",
    "numbers with parts": b"\x80\2cnumpy\ndtype\nX\2\0\0\0i8\x89\x88\x87R(K\3X\1\0\0\0<NX\1\0\0\0aNK\0K\0K\0tb.",
    "another encoding": b"\x80\2c_codecs\nencode\nX\1\0\0\0xX\5\0\0\0rot13\x86R.",
    "not latin1": b"\x80\2c_codecs\nencode\nX\2\0\0\0\xce\xb1X\6\0\0\0latin1\x86R.",
    "bytes of a number": b"\x80\2c__builtin__\nbytes\nJ\xff\xff\xff\x7f\x85R.",
    "an array of another type": b"\x80\2cnumpy.core.multiarray\n_reconstruct\n(cnumpy\ndtype\nK\0\x85C\1btR.",
    "a huge length": b"\x80\4\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "a negative length": b"\x80\2T\xff\xff\xff\xff.",
    "a huge note": b"\x80\2Nr\xff\xff\xff\xffj\xff\xff\xff\xfe.",
    "a note that is not there": b"\x80\2h\7.",
    "an empty stack": b"\x80\2R.",
    "no mark": b"\x80\2t.",
    "too few": b"\x80\2K\1\x87.",
    "odd entries": b"\x80\2}(K\1u.",
    "a list as a name": b"\x80\2}]K\1s.",
    "appended to a number": b"\x80\2K\1K\2a.",
    "two results": b"\x80\2K\1K\2.",
    "a name without an end": b"\x80\2c" + b"a" * 500,
    "text that is none": b"\x80\2X\2\0\0\0\xff\xfe.",
    "no end": b"\x80\2}",
    "protocol 0": b"(dp0\nVa\np1\nI1\ns.",
}


class TestHostile:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_is_refused_and_not_run(self, name: str) -> None:
        with watched() as seen, pytest.raises(BadInput, match="nothing of it was run; get the file from its publisher"):
            values(HOSTILE[name])
        assert seen == []

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("GLOBAL and REDUCE", r"pickle, byte 13: .+ but it asks for 'os\.system'; nothing of it was run"),
            ("INST", r"a step that such files do not take came \(code 0x53\)"),
            ("BUILD of a dictionary", "content came for what holds none"),
            ("REDUCE of data", "a call came of what cannot be called"),
            ("a name as data", "the name of a function, or half an array, came as data"),
            ("objects", "an array of 'O8' came, which are no plain numbers"),
            ("numbers with parts", "numbers with parts came, which are no plain ones"),
            ("another encoding", "text in another encoding than latin1 came"),
            ("bytes of a number", "bytes were to be made of something"),
            ("an array of another type", "an array of an unknown type came"),
            ("a huge length", "9,223,372,036,854,775,807 more bytes were announced than"),
            ("too few", "it asks for more values than came"),
            ("a list as a name", "an entry came for what is no dictionary, or under no name"),
            ("appended to a number", "something was appended to what is no list"),
            ("a name without an end", "a name without an end came"),
            ("an empty stack", r"it is broken \(IndexError\)"),
        ],
    )
    def test_says_what_came(self, name: str, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            values(HOSTILE[name])

    @pytest.mark.parametrize(
        ("shape", "raw", "message"),
        [
            (b"K\7\x85", b"C\2ab", r"an array of shape \(7,\) came with 2 bytes"),
            (b"J\xff\xff\xff\xff\x85", b"C\2ab", "an array of an impossible shape came"),
            (b"(" + b"K\1" * 9 + b"t", b"C\1a", "an array of an impossible shape came"),
            (b"K\1\x85", b"]", "an array that is none of numbers came"),
        ],
    )
    def test_arrays_that_cannot_be(self, shape: bytes, raw: bytes, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            values(BEGUN + b"(K\1" + shape + KIND + ORDER + b"\x89" + raw + b"tb.")

    def test_costs_are_bounded(self) -> None:
        """Many steps, much text, depth without end, a list in itself: in seconds, whatever the file says."""
        began = time.process_time()
        with pytest.raises(BadInput, match="it takes more than 1,000,000 steps"):
            values(b"\x80\2" + b"]" * 1_000_100 + b".")
        assert len(values(b"\x80\2" + b"]" + b"]" * 400_000 + b"a" * 400_000 + b".")) == 1
        assert len(values(b"\x80\2]q\0h\0a.")) == 1
        text = 2**22 * b"x"
        again = b"c_codecs\nencode\nh\0X\6\0\0\0latin1\x86R0".replace(b"0", b"")
        with pytest.raises(BadInput, match=r"it makes more than [\d,]+ bytes"):
            values(b"\x80\2(X" + struct.pack("<I", len(text)) + text + b"q\0" + again * 40 + b"t.")
        assert time.process_time() - began < 10

    def test_control_what_runs_is_seen(self) -> None:
        """The same bytes under Python's own reader: the hook fires, so its silence above means something."""
        with watched() as seen:
            pickle.loads(pickle.dumps(Runs(os.system, "true")))
        assert "pickle.find_class" in seen
        assert "os.system" in seen
        with watched() as seen:
            exec(compile("1", "<string>", "exec"))
        assert seen == ["exec"]


# Whatever stands in a file: plain data, or one kind of refusal.

_corpus = [
    *(pickle.dumps(PLAIN, protocol=protocol) for protocol in (2, 3, 4, 5)),
    of_python_2(),
    of_old_torch(pickle.dumps(PLAIN, protocol=2)),
    *HOSTILE.values(),
]
_steps = [bytes([code]) for code in range(256)]
_names = [
    b"os\nsystem\n",
    b"numpy\nndarray\n",
    b"numpy\ndtype\n",
    b"numpy.core.multiarray\n_reconstruct\n",
    b"_codecs\nencode\n",
]
_pieces = st.one_of(
    st.sampled_from(_steps),
    st.sampled_from(
        [b"(", b"t", b"R", b"b", b"\x85", b"\x86", b"\x87", b"}", b"]", b"u", b"e", b"s", b"a", b"\x94", b"."]
    ),
    st.builds(
        lambda code, number: code + bytes([number]), st.sampled_from([b"K", b"q", b"h", b"C", b"U"]), st.integers(0, 9)
    ),
    st.builds(lambda name: b"c" + name, st.sampled_from(_names)),
    st.builds(lambda text: b"X" + struct.pack("<I", len(text)) + text, st.binary(max_size=6)),
    st.builds(
        lambda code, size: code + struct.pack("<Q", size),
        st.sampled_from([b"\x8d", b"\x8e", b"\x95"]),
        st.integers(0, 2**64 - 1),
    ),
    st.builds(
        lambda code, size: code + struct.pack("<I", size),
        st.sampled_from([b"X", b"B", b"T", b"r", b"j", b"J"]),
        st.integers(0, 2**32 - 1),
    ),
)
_programs = st.lists(_pieces, max_size=30).map(lambda pieces: b"\x80\2" + b"".join(pieces) + b".")


@st.composite
def _mutated(draw: st.DrawFn) -> bytes:
    content = bytearray(draw(st.sampled_from(_corpus)))
    for _ in range(draw(st.integers(1, 8))):
        at = draw(st.integers(0, len(content)))
        change = draw(st.sampled_from(["put", "cut", "insert"]))
        if change == "put" and at < len(content):
            content[at] = draw(st.integers(0, 255))
        elif change == "cut":
            del content[at : at + draw(st.integers(1, 12))]
        else:
            content[at:at] = draw(_pieces)
    return bytes(content)


def check(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    read_or_refused(lambda: unpickled(path), path)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "human.pt"


@pytest.mark.slow
@settings(max_examples=2_000)
@given(content=_programs | _mutated(), packed=st.sampled_from([bytes, bytes, of_torch, of_old_torch]))
def test_two_thousand_malformed_or_hostile_files(path: Path, content: bytes, packed: Callable[[bytes], bytes]) -> None:
    check(packed(content), path)


@pytest.mark.slow
@settings(max_examples=300)
@given(data=st.data())
def test_mutated_archives(path: Path, data: st.DataObject) -> None:
    content = bytearray(of_torch(pickle.dumps(PLAIN, protocol=2), compression=data.draw(st.sampled_from([0, 8]))))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    check(bytes(content), path)


def test_planted_fault_fails_the_check(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npfiles, "BROKEN", ())
    with pytest.raises(IndexError):
        check(HOSTILE["an empty stack"], path)
    monkeypatch.setattr(pickledfiles, "values", lambda content, **_: [pickle.loads(content)])
    with pytest.raises(AssertionError):
        check(pickle.dumps(Runs(dict, ())), path)
