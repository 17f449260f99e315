"""Commands as a user gives them, run in this process: what they print and the status they end with."""

import sys
from typing import NamedTuple

import pytest

from relook.cli import main


class Said(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


def command(*words: str, capsys: pytest.CaptureFixture[str]) -> Said:
    """Run `relook` with these words, through the very function that the console script calls."""
    before, sys.argv = sys.argv, ["relook", *words]
    capsys.readouterr()
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = before
    said = capsys.readouterr()
    return Said(status, said.out, said.err)
