"""Published data sets from their publishers: the one part of relook that uses the network, when it is told to.

A file comes over https from one of a few hosts, is no longer than its publisher's, and has the publisher's sum before
it gets its name; a set comes whole or not at all.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from relook.errors import BadInput
from relook.published import File, Published
from relook.whole import beside

HOSTS = frozenset(
    {"www.cs.toronto.edu", "cave.cs.toronto.edu", "raw.githubusercontent.com", "zenodo.org", "s3.amazonaws.com"}
)
"""All that is ever connected to."""

Opener = Callable[[str], http.client.HTTPConnection]
Step = Callable[[int], object]

_SECONDS, _HOPS, _BLOCK, _MOST_MEMBER = 60, 5, 2**18, 2**26
_MOVED = (301, 302, 303, 307, 308)


def secure(host: str) -> http.client.HTTPConnection:
    """Return a connection whose other end has shown a certificate for the host."""
    return http.client.HTTPSConnection(host, timeout=_SECONDS)


def obtain(found: Published, folder: Path, *, opener: Opener = secure, step: Step | None = None) -> list[Path]:
    """Download what is missing of a set into a folder of data sets, and return the new files.

    Files that must be got by hand are left to the caller; one that is there is checked, and kept.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: a folder of data sets was needed, but it is not there; make it, or name another")
    missing = [file for file in found.files if not file.by_hand and not _there(found, file, folder=folder)]
    made: list[Path] = []
    with beside(folder / found.name) as staged:
        for file in missing:
            fetch(file, staged / file.name, opener=opener, step=step)
            made += _unpacked(file, staged) if file.holds else [staged / file.name]
        placed = [folder / found.folder / path.relative_to(staged) for path in made]
        for path, place in zip(made, placed, strict=True):
            place.parent.mkdir(parents=True, exist_ok=True)
            path.replace(place)
    return placed


def fetch(file: File, to: Path, *, opener: Opener = secure, step: Step | None = None) -> None:
    """Download one file and check its length and its sum; nothing is left of one that is not right."""
    method, _, wanted = (file.digest or "").partition(":")
    digest, length = hashlib.new(method, usedforsecurity=False), 0
    try:
        with to.open("xb") as target:
            for block in _blocks(file.url or "", opener):
                length += len(block)
                if length > file.most:
                    raise BadInput(
                        f"{file.url}: at most {file.most:,} bytes were needed, but more came; {_by_hand(file)}"
                    )
                digest.update(block)
                target.write(block)
                if step is not None:
                    step(len(block))
            target.flush()
            os.fsync(target.fileno())
        if digest.hexdigest() != wanted:
            raise BadInput(
                f"{file.url}: the {method} sum {wanted} was needed, but {length:,} bytes of {digest.hexdigest()} came; "
                f"try again, or {_by_hand(file)}"
            )
    except BaseException:
        to.unlink(missing_ok=True)
        raise


def _blocks(url: str, opener: Opener) -> Iterator[bytes]:
    """Yield what an address holds, block by block; it may have moved to another address of the same hosts."""
    for _ in range(_HOPS):
        host, target = _checked(url)
        connection = opener(host)
        try:
            connection.request("GET", target, headers={"User-Agent": "relook", "Accept-Encoding": "identity"})
            answer = connection.getresponse()
            if answer.status not in _MOVED:
                if answer.status != http.client.OK:
                    raise BadInput(f"{url}: a file was needed, but the server said {answer.status}; get it by hand")
                while block := answer.read(_BLOCK):
                    yield block
                return
            url = urljoin(url, answer.headers.get("Location", ""))
        except (OSError, http.client.HTTPException) as error:
            raise BadInput(
                f"{url}: an answer was needed, but none came ({type(error).__name__}: {error}); is there a network? "
                "try again"
            ) from None
        finally:
            connection.close()
    raise BadInput(f"{url}: a file was needed, but it moved {_HOPS} times; get it by hand")


def _checked(url: str) -> tuple[str, str]:
    """Return host and target of an address that may be connected to."""
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.netloc not in HOSTS:
        raise BadInput(
            f"{url}: an address with https at {', '.join(sorted(HOSTS))} was needed, but the file is elsewhere; get it "
            "by hand"
        )
    return parts.netloc, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _by_hand(file: File) -> str:
    return f"get {file.name} from {file.page}"


def _there(found: Published, file: File, *, folder: Path) -> bool:
    """Say whether a file is there already; one that is another than its publisher's is refused."""
    places = [folder / found.folder / name for name in file.holds or (file.name,)]
    if file.holds or not places[0].is_file():
        return all(place.is_file() for place in places)
    method, _, wanted = (file.digest or "").partition(":")
    with places[0].open("rb") as opened:
        came = hashlib.file_digest(opened, lambda: hashlib.new(method, usedforsecurity=False)).hexdigest()
    if came != wanted:
        raise BadInput(
            f"{places[0]}: the publisher's file was needed ({method} {wanted}), but another is there; move it away"
        )
    return True


def _unpacked(file: File, staged: Path) -> list[Path]:
    """Take the files that are wanted out of an archive, and nothing else."""
    path = staged / file.name
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.name in file.holds and member.isfile() and member.size <= _MOST_MEMBER:
                    (staged / member.name).parent.mkdir(parents=True, exist_ok=True)
                    with (staged / member.name).open("xb") as target:
                        shutil.copyfileobj(cast("Any", archive.extractfile(member)), target)
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise BadInput(f"{file.url}: an archive was needed, but it is broken ({error}); {_by_hand(file)}") from None
    absent = [name for name in file.holds if not (staged / name).is_file()]
    if absent:
        raise BadInput(f"{file.url}: {absent[0]} was needed in the archive, but it is not there; {_by_hand(file)}")
    path.unlink()
    return [staged / name for name in file.holds]
