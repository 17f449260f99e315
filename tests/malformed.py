"""Files that somebody's program, disk or malice broke: faults in valid bytes, and what becomes of reading them."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from relook.errors import BadInput
from tests.watched import watched

NUMBERS = [b"\x00", b"\xff", b"\x7f\xff\xff\xff", b"\xff" * 8, b"\x80" * 9 + b"\x01", b"-1", b"9" * 30, b"1e999"]
MARKS = [b'"', b"'", b",", b"\t", b"\n", b"\r", b"\0", b"[", b"{", b"}", b":", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3"]


def mutated(valid: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes with one to four faults: turned, cut, doubled, moved, or written over."""
    content = bytearray(valid)
    for _ in range(int(rng.integers(1, 5))):
        at, to = sorted(rng.integers(0, len(content) + 1, 2).tolist())
        to = min(to, at + int(rng.integers(1, 64)))
        kind = int(rng.integers(7))
        if kind == 0 and at < len(content):
            content[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del content[at:to]
        elif kind == 2:
            content[at:at] = content[at:to]
        elif kind == 3:
            content[at:at] = MARKS[int(rng.integers(len(MARKS)))]
        elif kind == 4:
            number = NUMBERS[int(rng.integers(len(NUMBERS)))]
            content[at : at + len(number)] = number
        elif kind == 5:
            del content[at:]
        else:
            content[at:to] = rng.bytes(to - at)
    return bytes(content)


def is_told(error: BadInput, path: Path) -> bool:
    """Say whether a refusal says where and what to do, in one line that can be read."""
    said = str(error)
    return str(path) in said and ";" in said and "\n" not in said and len(said) <= 1000


def read_or_refused(read: Callable[[], object], path: Path) -> None:
    """Read a file that may hold anything: it is read, or refused by name; nothing is run, and it takes no time."""
    began = time.process_time()
    with watched() as seen:
        try:
            read()
        except BadInput as error:
            assert is_told(error, path), str(error)  # noqa: PT017  # a file that is read is as good
    assert not seen, seen
    assert time.process_time() - began < 10


class Outcome(NamedTuple):
    """How many files were read, how many were refused, and what else happened."""

    read: int
    refused: int
    wrong: list[str]


def outcome(files: Iterable[bytes], path: Path, reading: Callable[[Path], object]) -> Outcome:
    """Read files one after another, and tell of every one that ended in anything but BadInput as it should be."""
    read = refused = 0
    wrong = []
    for number, content in enumerate(files):
        path.write_bytes(content)
        try:
            reading(path)
            read += 1
        except BadInput as error:
            refused += 1
            wrong += [] if is_told(error, path) else [f"file {number}: no place, no cure, or too long: {error!s:.300}"]
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            wrong.append(f"file {number}: {type(error).__name__}: {str(error)[:300]} of {content[:400]!r}")
    return Outcome(read, refused, wrong)


def mutations(corpus: Iterable[bytes], number: int, *, seed: int = 0) -> Iterator[bytes]:
    """Yield so many mutated files, taking the valid ones in turn."""
    rng, valid = np.random.default_rng(seed), list(corpus)
    for place in range(number):
        yield mutated(valid[place % len(valid)], rng)
