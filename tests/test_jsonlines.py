"""JSON lines are read as the values they are, a kind a column, and a line that is none is refused by number."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from relook.errors import BadInput
from relook.tables import sheet


def saved(folder: Path, content: bytes | str) -> Path:
    (folder / "x.jsonl").write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / "x.jsonl"


def test_values_keep_their_kinds(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 7, "label": "a", "x": 1, "ok": True, "files": ["a.png"], "none": None},
        {"label": None, "x": 0.5, "files": [], "late": [1, 2.5]},
    ]
    read = sheet(saved(tmp_path, "\n".join(map(json.dumps, rows)) + "\n\n"))
    assert read.columns == ("id", "label", "x", "ok", "files", "none", "late")
    frame = read.frame.collect()
    assert frame.rows() == [(7, "a", 1.0, True, ["a.png"], None, None), (None, None, 0.5, None, [], None, [1.0, 2.5])]
    assert frame.dtypes[:5] == [pl.Int64, pl.String, pl.Float64, pl.Boolean, pl.List(pl.String)]
    assert read.place(1).endswith("x.jsonl, line 2")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_people_have(tmp_path: Path, encoding: str) -> None:
    read = sheet(saved(tmp_path, '{"id": "é"}\r\n{"id": "\\u0416"}\r\n'.encode(encoding)))
    assert read.frame.collect().rows() == [("é",), ("Ж",)]
    assert read.settings == {"newline": "\r\n", "encoding": encoding}


def test_what_polars_writes_is_read(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["a", "b"], "l": [[1, 2], None], "x": [1.5, None], "": ["", "=1"]})
    assert sheet(saved(tmp_path, frame.write_ndjson())).frame.collect().equals(frame)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"a": 1}\n{"a": \n', "line 2: a JSON object was needed, but it cannot be read"),
        ('{"a": 1}\n\n{"a": 2}', "line 2: a JSON object was needed"),
        ("[1, 2]\n", "line 1: a JSON object was needed"),
        ('{"a": NaN}\n', "line 1: a JSON object was needed"),
        ('{"a": ' + "[" * 100_000, "line 1: a JSON object was needed"),
        ('{"a": 1}\n{"a": "x"}', "line 2: numbers were needed under 'a', as in the lines before, but text came; write"),
        ('{"a": true}\n{"a": 1}', "line 2: true or false were needed under 'a', as in the lines before, but numbers"),
        ('{"a": []}\n{"a": 1}', "line 2: lists were needed under 'a', as in the lines before, but none came"),
        ('{"a": ["x"]}\n{"a": [1]}', "line 2: text were needed under 'a'"),
        (
            '{"a": {"b": 1}}',
            "line 1: text, numbers, true or false, or lists of them, were needed under 'a', but a nest",
        ),
        ('{"a": [[1]]}', "under 'a', but a nested object or list came; write a key for each part"),
        ('{"a": 18446744073709551615}', "but a number beyond 64 bits came; write a key"),
        (
            json.dumps({str(key): key for key in range(10_001)}),
            "line 1: 10,000 keys at most were needed, but more came",
        ),
    ],
)
def test_lines_that_are_none(tmp_path: Path, content: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as raised:
        sheet(saved(tmp_path, content))
    assert str(raised.value).startswith(str(tmp_path / "x.jsonl"))
