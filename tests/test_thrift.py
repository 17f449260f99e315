"""Records in thrift's compact form are read as an independent reader reads them, and torn ones are refused."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from relook.thrift import DEPTH, Torn, structs
from tests.laws import LAW
from tests.parquets import Part, built

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1).map(lambda number: Part(6, number))
TEXTS = st.binary(max_size=20).map(lambda text: Part(8, text))
FLAGS = st.booleans().map(lambda flag: Part(1 if flag else 2, flag))
RECORDS = st.recursive(
    st.one_of(NUMBERS, TEXTS, FLAGS),
    lambda parts: st.one_of(
        st.dictionaries(st.integers(1, 300), parts, max_size=4).map(
            lambda fields: Part(12, dict(sorted(fields.items())))
        ),
        st.lists(NUMBERS, max_size=20).map(lambda parts: Part(9, (6, parts))),
    ),
    max_leaves=12,
)


def depth(part: Part) -> int:
    return 1 + max(map(depth, part.value.values()), default=0) if part.kind == 12 else 0


def plain(part: Part) -> object:
    if part.kind == 12:
        return {field: plain(inner) for field, inner in part.value.items()}
    return [plain(inner) for inner in part.value[1]] if part.kind == 9 else part.value


@LAW
@given(st.dictionaries(st.integers(1, 40), RECORDS, max_size=4), st.binary(max_size=3))
def test_records_are_read(fields: dict[int, Part], rest: bytes) -> None:
    record = Part(12, dict(sorted(fields.items())))
    content = built(record)
    assume(depth(record) <= DEPTH)
    assert structs(content + rest) == (plain(record), len(content))


@LAW
@given(st.binary(max_size=60))
def test_other_bytes_are_torn_or_records(content: bytes) -> None:
    try:
        found, end = structs(content)
        assert isinstance(found, dict)
        assert 0 < end <= len(content)
    except Torn:
        pass


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "ends in the middle"),
        (b"\x15", "ends in the middle"),
        (b"\x1c" * (DEPTH + 1), "nests too deep"),
        (b"\x18\x7f", "a text is longer"),
        (b"\x19\xf5\xff\xff\xff\xff\x07", "a list is longer"),
        (b"\x16" + b"\xff" * 10 + b"\x01", "a number is too long"),
        (b"\x1b\x00", "a part of kind 11"),
    ],
)
def test_torn_records(content: bytes, why: str) -> None:
    with pytest.raises(Torn, match=why):
        structs(content)


def test_too_many_parts() -> None:
    length = 3_000_000
    head = bytes([0x19, 0xF3, length & 127 | 128, length >> 7 & 127 | 128, length >> 14 & 127 | 128, length >> 21])
    with pytest.raises(Torn, match="too many parts"):
        structs(head + bytes(length))
