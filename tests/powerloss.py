"""A disk that loses power: what a program wrote, as it was traced, and what of it may be left at any moment.

What was written and not yet synced may be there or not, each sector of 512 bytes for itself, in any order; a file's new
name lasts from the sync of the file or of its folder on, and what happened to names happened in order. What was synced
stays. Shared memory files (`-shm`) are gone.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import msgspec

SECTOR = 512
TRACED = "openat,pwrite64,write,fdatasync,fsync,ftruncate,unlink,rename"


class Call(msgspec.Struct, frozen=True):
    """One call: its name, the file, and what is written where, the new size, or the new name."""

    name: str
    path: str
    content: bytes = b""
    at: int = 0
    other: str = ""


def calls(trace: Path, folder: Path) -> list[Call]:
    """Return the calls on files of a folder, in the order in which they ended."""
    found = (_call(line) for line in _whole(trace.read_text("latin-1").splitlines()))
    inside = [call for call in found if call is not None and call.path.startswith(str(folder))]
    return [call for call in inside if not call.path.endswith(("-shm", ".lock"))]


def _whole(lines: list[str]) -> Iterator[str]:
    begun: dict[str, str] = {}
    for line in lines:
        number, _, rest = line.partition(" ")
        rest = rest.strip()
        if rest.endswith("<unfinished ...>"):
            begun[number] = rest.removesuffix("<unfinished ...>").rstrip()
        elif resumed := re.match(r"<\.\.\. \w+ resumed>(.*)", rest):
            yield begun.pop(number, "") + resumed[1]
        else:
            yield rest


def _call(line: str) -> Call | None:
    found = re.match(r"(\w+)\((.*)\)\s+= (-?\d+)", line)
    if not found or found[3].startswith("-"):
        return None
    name, given = found[1], found[2]
    file = re.match(r"\d+<([^>]*)>", given)
    texts = [_bytes(text) for text in re.findall(r'"((?:\\x[0-9a-f]{2})*)"', given)]
    if name == "openat":
        return Call(name, texts[0].decode()) if "O_CREAT" in given else None
    if name in ("unlink", "rename"):
        return Call(name, texts[0].decode(), other=texts[-1].decode())
    if file is None:
        return None
    path = _bytes(file[1]).decode() if "\\x" in file[1] else file[1]
    last = given.rsplit(", ", 1)[-1]
    at = int(last) if name in ("pwrite64", "ftruncate") else 0
    return Call(name, path.removesuffix("(deleted)"), texts[0] if texts else b"", at)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


class Disk:
    """What is on a disk for good, and what is on its way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.diary = b""
        kept = [path for path in folder.iterdir() if not path.name.endswith(("-shm", ".lock", "diary"))]
        self._files = {path.name: File(path.read_bytes()) for path in kept}
        self._names: list[Call] = []
        self._kept = dict(self._files)

    def take(self, call: Call) -> None:
        """Let a call happen."""
        name = Path(call.path).name
        if name == "diary":
            self.diary += call.content
        elif call.name in ("fdatasync", "fsync"):
            self._sync(call, name)
        elif call.name in ("openat", "rename", "unlink"):
            if call.name != "openat" or name not in self._files:
                self._names.append(call)
                _rename(self._files, call)
        elif name in self._files:
            self._files[name].pending.append(call)

    def _sync(self, call: Call, name: str) -> None:
        if Path(call.path) == self.folder:
            for change in self._names:
                _rename(self._kept, change, known=self._files)
            self._names.clear()
        elif name in self._files:
            self._files[name].sync()
            self._kept.setdefault(name, self._files[name])

    def left(self, to: Path, chance: Random) -> None:
        """Write what may be left if power fails now."""
        names = dict(self._kept)
        for change in self._names[: chance.randint(0, len(self._names))]:
            _rename(names, change, known=self._files)
        for name, file in names.items():
            (to / name).write_bytes(file.left(chance))
        (to / "diary").write_bytes(self.diary)


class File:
    """The bytes of a file that were synced, and what was written since."""

    def __init__(self, synced: bytes = b"") -> None:
        self.synced = bytearray(synced)
        self.pending: list[Call] = []

    def sync(self) -> None:
        for call in self.pending:
            _write(self.synced, call, lambda: True)
        self.pending.clear()

    def left(self, chance: Random) -> bytes:
        held, share = bytearray(self.synced), chance.choice((0.0, 0.5, 0.9, 1.0))
        for call in self.pending:
            _write(held, call, lambda: chance.random() < share)
        return bytes(held)


def _rename(names: dict[str, File], call: Call, *, known: dict[str, File] | None = None) -> None:
    name = Path(call.path).name
    if call.name == "openat":
        names.setdefault(name, (known or {}).get(name) or File())
    elif call.name == "unlink":
        names.pop(name, None)
    elif name in names:
        names[Path(call.other).name] = names.pop(name)


def _write(held: bytearray, call: Call, there: Callable[[], bool]) -> None:
    if call.name == "ftruncate":
        if there():
            del held[call.at :]
            held.extend(bytes(call.at - len(held)))
        return
    at = call.at if call.name == "pwrite64" else len(held)
    end = at + len(call.content)
    while at < end:
        step = min(SECTOR - at % SECTOR, end - at)
        if there():
            held.extend(bytes(max(0, at + step - len(held))))
            held[at : at + step] = call.content[len(call.content) - (end - at) :][:step]
        at += step
