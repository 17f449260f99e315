"""Tables in csv and tsv are read as the csv module reads them, cell by cell, and torn lines are refused by number."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from relook import delimited
from relook.errors import BadInput
from relook.sheets import COLUMNS_MOST
from relook.tables import sheet
from tests.laws import LAW, catches

CELLS = st.text(st.sampled_from("ab\"'\r\n,\t; 1é\ufeff="), max_size=6)

QUOTING = st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])


def table(path: Path) -> list[tuple[Any, ...]]:
    return sheet(path).frame.collect().rows()


def saved(folder: Path, content: bytes | str, name: str = "x.csv") -> Path:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / name


def law(tried: settings, folder: Path, *, ends: str = "\r\n") -> None:
    """What the csv module writes is read as it was meant: all but the mark of a defused cell."""

    @tried
    @given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8), st.sampled_from([",", "\t"]), QUOTING)
    def holds(rows: list[tuple[str, str]], mark: str, how: Any) -> None:
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter=mark, lineterminator=ends, quoting=how)
        writer.writerows([("first", "second"), *rows])
        cells = [cell for row in rows for cell in row]
        assume(not any("'" in cell for cell in cells))
        # The csv module puts no quotes around a return where lines end without one.
        assume(ends == "\r\n" or how == csv.QUOTE_ALL or not any("\r" in cell for cell in cells))
        path = saved(folder, file.getvalue(), "x.csv" if mark == "," else "x.tsv")
        assert [tuple(cell or "" for cell in row) for row in table(path)] == rows

    holds()


@pytest.mark.parametrize("ends", ["\r\n", "\n"])
def test_what_is_written_is_read(tmp_path: Path, ends: str) -> None:
    law(LAW, tmp_path, ends=ends)


def test_a_planted_reader_without_quotes_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "_QUOTE", ord("§") % 256)
    catches(lambda tried: law(tried, tmp_path), error=Exception)


def test_blocks_of_any_length_find_the_same_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a,b", 'say "x"', "two\nlines"), ("", "é" * 40, "\r\n"), ("1", "2", "3")] * 5
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("x", "y", "z"), *rows])
    path = saved(tmp_path, file.getvalue())
    whole = table(path)
    for length in (1, 2, 3, 7, 64):
        monkeypatch.setattr(delimited, "_BLOCK", length)
        assert table(path) == whole


@pytest.mark.parametrize(
    ("content", "rows", "settings"),
    [
        (b"a,b\n1,2\n", [("1", "2")], {"newline": "\n", "encoding": "utf-8"}),
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n\r\n", [("1", "2")], {"newline": "\r\n", "encoding": "utf-8-sig"}),
        ("a,b\né,Ж\n".encode("utf-16"), [("é", "Ж")], {"newline": "\n", "encoding": "utf-16"}),
        (b'a,b\n"1\n\n2",\n"",x', [("1\n\n2", None), ("", "x")], {"newline": "\n", "encoding": "utf-8"}),
        (b',b\n007,"say ""hi"""\n', [("007", 'say "hi"')], {"newline": "\n", "encoding": "utf-8"}),
        (b"a\nx\ny\n", [("x",), ("y",)], {"newline": "\n", "encoding": "utf-8"}),
        (b"a,b\n", [], {"newline": "\n", "encoding": "utf-8"}),
        (b"a,b", [], {"newline": "\n", "encoding": "utf-8"}),
    ],
)
def test_odd_ones_are_read(tmp_path: Path, content: bytes, rows: Any, settings: Any) -> None:
    read = sheet(saved(tmp_path, content))
    assert read.frame.collect().rows() == rows
    assert read.settings == settings | {"separator": ","}


def test_columns_keep_their_names(tmp_path: Path) -> None:
    assert sheet(saved(tmp_path, "Path,,path, path ,'=x\n1,2,3,4,5\n")).columns == ("Path", "", "path", " path ", "=x")


def test_what_keeps_a_spreadsheet_from_running_is_taken_off_and_said(tmp_path: Path) -> None:
    read = sheet(saved(tmp_path, "id,text\n'=1,'@x\n'a,-1\n"))
    assert read.frame.collect().rows() == [("=1", "@x"), ("'a", "-1")]
    assert read.facts == (
        f"{tmp_path / 'x.csv'}: 2 cells had an apostrophe that keeps a spreadsheet from running it: taken off.",
    )


def test_a_line_is_named_where_each_row_has_one(tmp_path: Path) -> None:
    assert sheet(saved(tmp_path, "a,b\n1,2\n")).place(0).endswith("x.csv, line 2")
    assert sheet(saved(tmp_path, 'a,b\n1,"2\n3"\n4,5\n')).place(1).endswith("x.csv, item 1")
    assert sheet(saved(tmp_path, '"a\n",b\n1,2\n')).place(0).endswith("x.csv, item 0")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a,b\n1,2\n3\n", "line 3: 2 cells were needed, as many as the heading has, but 1 came; mend the line"),
        (b'a,b\n"1\n",2\n3,4,5\n', "line 4: 2 cells were needed, as many as the heading has, but 3 came"),
        (b"a,b\n1,2\n\n3,4\n", "line 3: 2 cells were needed, as many as the heading has, but none came"),
        (b"a\n1\n\n3\n", "line 3: 1 cell were needed, as many as the heading has, but none came"),
        (b"a\r\n1\r\n\r\n3\r\n", "line 3: 1 cell were needed, as many as the heading has, but none came"),
        (b'a,b\n1,5" disk\n', "line 2: quotes around a whole cell were needed, but one stands inside; put the cell"),
        (b'a,b\n1,"x"y\n', "line 2: quotes around a whole cell were needed"),
        (b'a,b\n1,"x\n', "line 2: a quote to close the cell was needed, but it stays open"),
        (b"a,b\n1\r2,3\n", "line 2: ends of lines in one piece were needed, but a carriage return stands alone"),
        (b"a,b\n1,\xff\n", "line 2: text in UTF-8 was needed, but the bytes ff 0a came"),
        (b"a,b\n1,\0\n", "line 2: text was needed, but a byte of zero came; export it again"),
        (b"\xff\xfea\0,\0b", "text in UTF-16 was needed, as its first bytes say, but it cannot be read"),
        (b"\n", "the names of columns were needed in line 1, but"),
        (b'a,"b\n1,2\n', "the names of columns were needed in line 1, but unexpected end of data; mend the heading"),
        (b"a,b,a\n1,2,3\n", "columns must differ in name, but 'a' comes twice in line 1; rename one"),
        (b"=a,'=a\n1,2\n", "columns must differ in name, but '=a' comes twice"),
        (b"x" * (1 << 23), "a heading in line 1 was needed, but it is too long; write fewer columns"),
        (b"a," * 1_000_000 + b"\n", "a heading in line 1 was needed, but it is too long"),
        (
            ",".join(map(str, ["a", *range(COLUMNS_MOST)])).encode() + b"\n",
            "10,000 columns at most were needed, but 10,001 came; write fewer",
        ),
    ],
)
def test_torn_ones_are_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as raised:
        sheet(saved(tmp_path, content))
    assert str(raised.value).startswith(str(tmp_path / "x.csv"))


def test_files_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"a table was needed, its name ending in \.csv, .*, but \.xlsx came; save it"):
        sheet(saved(tmp_path, "", "x.xlsx"))
    with pytest.raises(BadInput, match="it is empty; export it again"):
        sheet(saved(tmp_path, ""))
