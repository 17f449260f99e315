"""Two thousand broken archives: each comes out whole or is refused, and nothing is ever written elsewhere."""

import gzip
import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relook import archives
from relook.datasets import folder
from relook.errors import BadInput
from tests.malformed import mutations, outcome
from tests.odd import noise, png
from tests.packs import PACKERS, Member, head, padded, record, tar_of, zip_of, zipped

FILES = {f"{name}.png": png(noise(4, 5, seed=place), 8, 0) for place, name in enumerate(("cat/1", "cat/2", "dog/1"))}
FILES["labels.csv"] = b"path,label\ncat/1.png,cat\n" * 9
CORPUS = {".zip": zip_of(FILES), **{kind: pack(tar_of(FILES)) for kind, pack in PACKERS.items()}}
LIMITS = archives.Limits(bytes=1_000_000, entries=100)


def taken_out(path: Path) -> None:
    """Unpack an archive as the import does, and read the folder that comes out."""
    with archives.opened(path, beside=path.with_name("set"), limits=LIMITS) as found:
        every = list(found.folder.rglob("*"))
        assert all(place.is_dir() or place.is_file() for place in every)
        assert not any(place.is_symlink() for place in every)
        assert sum(place.stat().st_size for place in every if place.is_file()) <= LIMITS.bytes
        try:
            folder.collection(found.source if found.source.is_dir() else found.folder, missing="allowed")
        except BadInput as error:
            # The folder in it may be none of images; that is told in the name of the archive.
            raise BadInput(found.named(str(error))) from None


def state(root: Path) -> Mapping[str, str]:
    """Return every file under a folder with what it holds."""
    every = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in every}


def guarded(tmp_path: Path, kind: str) -> tuple[Path, Mapping[str, str]]:
    """Return where an archive is to lie, with canaries around it."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    for place in (tmp_path, tmp_path / "a", inner):
        (place / "canary").write_text("alive")
    path = inner / f"pets{kind}"
    path.touch()
    return path, state(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CORPUS)
def test_faults_at_random_are_refused_or_read(kind: str, tmp_path: Path) -> None:
    path, before = guarded(tmp_path, kind)
    began = perf_counter()
    found = outcome(mutations([CORPUS[kind]], 300), path, taken_out)
    assert found.wrong == []
    assert found.refused > 200
    assert perf_counter() - began < 60
    path.write_bytes(b"")
    assert state(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in CORPUS if kind not in (".zip", ".tar")])
def test_faults_inside_the_packing_are_refused_or_read(kind: str, tmp_path: Path) -> None:
    path, before = guarded(tmp_path, kind)
    found = outcome((PACKERS[kind](content) for content in mutations([CORPUS[".tar"]], 200)), path, taken_out)
    assert found.wrong == []
    assert found.refused > 50
    assert found.read > 10
    path.write_bytes(b"")
    assert state(tmp_path) == before


sound = (
    "a",
    "A",
    "cat/1.png",
    "cat/2.png",
    "cat/",
    "cat",
    "./a",
    "caf\u00e9.png",
    "cafe\u0301.png",
    "a\nb.png",
    "a/b/c/d.png",
)
harmful = (
    "../canary",
    "../../canary",
    "/canary",
    "a/../../canary",
    "a\\b",
    "C:/a",
    "a.zip",
    "",
    ".",
    "..",
    "x" * 300,
    "\0",
)
names = st.sampled_from([*sound, *harmful]) | st.text(max_size=6)
content = st.sampled_from([b"", b"x", png(noise(4, 5), 8, 0), bytes(100_000), zip_of({"a": b"x"})]) | st.binary(
    max_size=40
)
maybe = st.none() | st.sampled_from([0, 1, 2**31, 2**32 - 1])


@st.composite
def zips(draw: st.DrawFn) -> bytes:
    """Entries whose headers say what they like."""
    members = []
    for _ in range(draw(st.integers(0, 5))):
        odd = draw(st.integers(0, 3)) == 0
        member = Member(
            draw(names).encode("utf-8", "replace"),
            draw(content),
            draw(st.sampled_from([8, 8, 0, 12, 99]) if odd else st.just(8)),
        )
        if odd:
            member = member._replace(
                flags=draw(st.sampled_from([0, 0, 1, 8, 0x800, 0x2000])),
                mode=draw(st.sampled_from([0, 0o100644, 0o120777, 0o040755, 0o020666, 0o010644])),
                size=draw(maybe),
                crc=draw(maybe),
                local_name=draw(st.none() | st.binary(max_size=5)),
                extra=draw(
                    st.sampled_from([b"", b"\1\0\x10\0" + bytes(16), b"\1\0\xff\xff", b"\1"]) | st.binary(max_size=30)
                ),
            )
        members.append(member)
    odd = draw(st.integers(0, 4)) == 0
    count = draw(st.sampled_from([None, 0, 1, 0xFFFE, 0xFFFF, 10**7])) if odd else None
    before, comment = (
        (draw(st.binary(max_size=9)), draw(st.sampled_from([b"", b"PK\5\6", b"PK\5\6" + bytes(18)])))
        if odd
        else (b"", b"")
    )
    made = zipped(members, count=count, before=before, comment=comment)
    return made[: draw(st.integers(0, len(made)))] if draw(st.integers(0, 19)) == 0 else made


@st.composite
def tars(draw: st.DrawFn) -> bytes:
    """Headers of every kind, with right checksums and sizes that may lie."""
    parts = []
    for _ in range(draw(st.integers(0, 6))):
        name, kind = (
            draw(names).encode("utf-8", "replace")[:99].replace(b"\0", b"?"),
            draw(st.sampled_from("00000000005127xgLKSVZ\0")),
        )
        body = draw(content)
        if kind in "xg":
            key = draw(st.sampled_from(["path", "size", "linkpath", "GNU.sparse.map", "comment"]))
            body = record(key, draw(names | st.sampled_from(["7", "-1", "9" * 30]))) if draw(st.booleans()) else body
        size = draw(st.sampled_from([len(body)] * 6 + [0, 1, 8**11 - 1, 8**11, 2**80]))
        parts.append(
            head(name, size, kind.encode(), magic=draw(st.sampled_from([b"ustar\x0000", b"ustar  \0", b""])))
            + padded(body)
        )
    return b"".join(parts) + bytes(draw(st.sampled_from([1024, 1024, 10240, 512, 0])))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "made"), [(".zip", zips()), (".tar", tars()), (".tar.gz", tars().map(gzip.compress))])
def test_headers_that_say_what_they_like(kind: str, made: st.SearchStrategy[bytes], tmp_path: Path) -> None:
    path, before = guarded(tmp_path, kind)
    ends = {"read": 0, "refused": 0}

    @settings(max_examples=500)
    @given(content=made)
    def law(content: bytes) -> None:
        began = perf_counter()
        found = outcome([content], path, taken_out)
        assert found.wrong == []
        assert perf_counter() - began < 10
        ends["read"] += found.read
        ends["refused"] += found.refused

    law()
    assert ends["refused"] > 100
    path.write_bytes(b"")
    assert state(tmp_path) == before


def test_a_careless_unpacker_is_caught(tmp_path: Path) -> None:
    """The planted fault: an unpacker that raises what comes, and one that writes where it is told to."""
    path, before = guarded(tmp_path, ".zip")
    found = outcome([CORPUS[".zip"][:-1]], path, lambda there: shutil.unpack_archive(there, there.parent / "set"))
    assert len(found.wrong) == 1
    path.write_bytes(b"")
    assert state(tmp_path) == before
    (path.parent / "../canary").write_text("dead")
    assert state(tmp_path) != before
