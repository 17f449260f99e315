"""Tables of publishers: the columns that are needed come as what they must be, or the line that is not is named."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relook.errors import BadInput
from relook.publishers import Kind, sheet
from tests.malformed import read_or_refused

KINDS: dict[str, Kind] = {"n": "whole", "id": "text", "x": "number"}


def test_columns_as_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfid,x,n,else\r\n"a, b",0.5, 7 ,\r\nc,1e3,-1,z\r\n')
    assert sheet(path, KINDS).rows() == [(7, "a, b", 0.5), (-1, "c", 1_000.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a file with labels or probabilities was needed, but it is empty"),
        ("id,n,x\n", "at least one row was needed, but it has a heading alone; get it again"),
        ("id,n\na,1\n", "a column 'x' was needed, but it has id, n; is it another file"),
        ("id,n,x\na,1.5,1\n", "line 2: a whole number was needed in column n, but '1.5' came; get the file again"),
        ("id,n,x\na,1,1\nb,1,nan\n", "line 3: a number was needed in column x, but 'nan' came"),
        ("id,n,x\n,1,1\n", "line 2: text was needed in column id, but None came"),
        ("id,n,x\na,1,1,1,1\n", "a table in CSV was needed, but it is none"),
    ],
)
def test_other_tables(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        sheet(path, KINDS)


@given(content=st.binary(max_size=60) | st.text("id,nx\n\r\"'0123456789.\0é", max_size=60).map(str.encode))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(b"id,n,x\n" + content)
    read_or_refused(lambda: sheet(path, KINDS), path)
