"""Archives come out whole and inside their folder, or not at all: every trick that is known is refused."""

import gzip
import io
import json
import lzma
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from relook import archives, imported
from relook.archives import Limits, entries, is_archive, opened
from relook.datasets import folder, folder_table
from relook.errors import BadInput
from relook.sources import Columns
from tests import odd, packs
from tests.odd import noise, png
from tests.packs import PACKERS, Member, entry, head, padded, record, tar_of, tarred, zip_of, zipped

IMAGES = {f"{name}.png": png(noise(4, 5, seed=place), 8, 0) for place, name in enumerate(("cat/1", "cat/2", "dog/1"))}
KINDS = (".zip", *PACKERS)


def archive(folder_: Path, kind: str, files: packs.Files = IMAGES) -> Path:
    path = folder_ / f"pets{kind}"
    path.write_bytes(zip_of(files) if kind == ".zip" else PACKERS[kind](tar_of(files)))
    return path


def unpacked(path: Path, limits: Limits = archives.LIMITS) -> dict[str, bytes]:
    """Return all files that come out of an archive, by their names."""
    with opened(path, beside=path.with_name("set"), limits=limits) as found:
        every = [place for place in found.folder.rglob("*") if place.is_file()]
        return {place.relative_to(found.folder).as_posix(): place.read_bytes() for place in every}


@pytest.mark.parametrize("kind", KINDS)
def test_what_went_in_comes_out_and_nothing_is_left_behind(kind: str, tmp_path: Path) -> None:
    path = archive(tmp_path, kind)
    assert is_archive(path)
    assert unpacked(path) == IMAGES
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", KINDS)
def test_a_set_is_made_of_it_and_made_once(kind: str, tmp_path: Path) -> None:
    path, target = archive(tmp_path, kind), tmp_path / "set"
    changes = []
    for _ in range(2):
        with opened(path, beside=target) as found:
            pets = found.carried(folder.collection(found.source))
            origin = imported.Origin(sources=(imported.source_file(path),))
            made, changed = imported.write(pets, target, origin=origin)
            changes.append(changed)
    assert changes == [True, False]
    assert (made.manifest.root, made.manifest.classes) == (None, ("cat", "dog"))
    assert {name: (target / "images" / name).read_bytes() for name in IMAGES} == IMAGES
    images = made.dataset().images
    assert images is not None
    assert images[2].tolist() == noise(4, 5, seed=2).tolist()
    assert made.manifest.facts == (f"{path}: 3 images in folders of 2 classes.",)
    assert sorted(found.name for found in tmp_path.iterdir()) == [path.name, "set"]


def test_a_table_in_it_tells_of_the_images(tmp_path: Path) -> None:
    rows = "id,frontal,lateral,label\n1,cat/1.png,cat/2.png,sick\n2,cat/1.png,,well\n3,dog/1.png,,well\n"
    files = {f"pets/{name}": content for name, content in {**IMAGES, "labels.csv": rows.encode()}.items()}
    path = archive(tmp_path, ".zip", files)
    columns = Columns(files=("frontal", "lateral"))
    with opened(path, beside=tmp_path / "set") as found:
        table = folder_table.table_in(found.source, columns=columns)
        assert table is not None
        said = folder_table.collection(found.source, table=table, columns=columns)
        made, _ = imported.write(found.carried(said), tmp_path / "set")
    assert made.items().collect()["files"].to_list() == [["cat/1.png", "cat/2.png"], ["cat/1.png"], ["dog/1.png"]]
    assert all(str(path) in fact or "conflicts" in fact for fact in made.manifest.facts)


@pytest.mark.parametrize(
    ("files", "source"),
    [
        ({"labels.csv": b"id,label\n1,a\n"}, "labels.csv"),
        ({"a/b/labels.csv": b"x", "__MACOSX/._b": b"y", ".DS_Store": b"z"}, "a/b/labels.csv"),
        ({"pets/cat/1.png": b"x", "pets/dog/1.png": b"x"}, "pets"),
        ({"cat/1.png": b"x"}, ""),
        ({"train/cat/1.png": b"x"}, ""),
        ({"pets/1.png": b"x", "pets/labels.csv": b"x"}, "pets"),
        ({"cat/1.png": b"x", "dog/1.png": b"x"}, ""),
        ({"1.png": b"x"}, ""),
    ],
)
def test_what_is_wrapped_is_unwrapped(files: dict[str, bytes], source: str, tmp_path: Path) -> None:
    with opened(archive(tmp_path, ".zip", files), beside=tmp_path / "set") as found:
        assert found.source == (found.folder / source if source else found.folder)


def test_a_message_names_the_archive_and_the_entry(tmp_path: Path) -> None:
    path = archive(tmp_path, ".zip", {**IMAGES, "dog/2.png": IMAGES["dog/1.png"][:-3]})
    with (
        pytest.raises(BadInput, match=r"pets\.zip/dog/2\.png: a whole image was needed"),
        opened(path, beside=tmp_path / "set") as found,
    ):
        imported.write(found.carried(folder.collection(found.source)), tmp_path / "set")
    path = archive(tmp_path, ".zip", {**IMAGES, "dog/2.gif": b""})
    with pytest.raises(BadInput, match=r"pets\.zip/dog/2\.gif: PNG"), opened(path, beside=tmp_path / "set") as found:
        folder.collection(found.source)
    assert list(tmp_path.iterdir()) == [path]


def test_progress_is_told(tmp_path: Path) -> None:
    path = archive(tmp_path, ".tar", {f"{number}.txt": b"x" for number in range(600)})
    steps: list[int] = []
    with opened(path, beside=tmp_path / "set", step=steps.append):
        assert sum(steps) == 600


NAMES = [*odd.NAMES, "deep/" * 31 + "a.png", "./leading.png", "..hidden.png", "a..b/c.png"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [".zip", "pax", "gnu"])
def test_odd_names_come_out_as_they_are(kind: str, name: str, tmp_path: Path) -> None:
    forms = {"pax": tarfile.PAX_FORMAT, "gnu": tarfile.GNU_FORMAT}
    path = tmp_path / ("a.zip" if kind == ".zip" else "a.tar")
    path.write_bytes(zip_of({name: b"x"}) if kind == ".zip" else tar_of({name: b"x"}, forms[kind]))
    assert unpacked(path) == {name.removeprefix("./"): b"x"}


def test_names_of_old_zip_archives_are_read_by_their_standard(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped([Member(b"caf\x82.png", b"x"), Member("\u00fc.png".encode(), b"y")]))
    assert unpacked(path) == {"caf\u00e9.png": b"x", "\u00fc.png": b"y"}


def test_odd_but_sound_archives_come_out(tmp_path: Path) -> None:
    sound = {
        "comment.zip": zipped([Member(b"a", b"x")], comment=b"hello"),
        "stored.zip": zipped([Member(b"a", b"x", method=0)]),
        "old.tar": tarred(entry("a", b"x", kind=b"\0", magic=b"")),
        "contiguous.tar": tarred(entry("a", b"x", kind=b"7")),
        "prefix.tar": tar_of({"long/" * 25 + "a": b"x"}, tarfile.USTAR_FORMAT),
        "two.tar.gz": gzip.compress(entry("a", b"x")) + gzip.compress(bytes(1024)),
        "two.tar.xz": lzma.compress(entry("a", b"x")) + bytes(8) + lzma.compress(bytes(1024)),
        "folder.tar": tarred(
            entry("./", kind=b"5"), entry("./cat/", kind=b"5"), entry("./cat/", kind=b"5"), entry("a", b"x")
        ),
        "large.tar": tarred(head(b"a", 1).replace(b"00000000001\0", b"\x80" + bytes(10) + b"\1"), b""),
    }
    number = b"\x80" + bytes(10) + b"\1"
    block = head(b"a", 1)[:124] + number + head(b"a", 1)[136:]
    block = block[:148] + b" " * 8 + block[156:]
    sound["large.tar"] = tarred(block[:148] + b"%06o\0 " % sum(block) + block[156:], padded(b"x"))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as long, long.open(zipfile.ZipInfo("a"), "w", force_zip64=True) as file:
        file.write(b"x")
    sound["long.zip"] = made.getvalue()
    for name, content in sound.items():
        (tmp_path / name).write_bytes(content)
        assert list(unpacked(tmp_path / name).values()) == [b"x"], name


def test_more_entries_than_a_plain_end_can_count_come_out(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(packs.many_empty_zipped(70_000))
    with path.open("rb") as file:
        assert sum(1 for _ in archives.zips.entries(file, called="a", limits=archives.LIMITS)) == 70_000


OUT = [
    "../a",
    "/etc/a",
    "a/../../b",
    "..",
    "C:/a",
    "c:a",
    "a\\..\\b",
    "\\a",
    "a//b",
    "a/./b",
    "a/..",
    "\\\\host\\a",
    "a\\b",
]
ZIPS: dict[str, tuple[bytes, str]] = {
    **{f"name {name}": (zipped([Member(name.encode(), b"x")]), "inside the archive were needed, but") for name in OUT},
    "a name of nothing": (zipped([Member(b"", b"x")]), "inside the archive were needed, but '' leads"),
    "a name with zero": (zipped([Member(b"a\0b", b"x")]), "leads elsewhere; pack it anew"),
    "a link": (zipped([Member(b"a", b"/etc/passwd", mode=0o120777)]), "but this is a link or a device; pack"),
    "a device": (zipped([Member(b"a", mode=0o020666)]), "but this is a link or a device"),
    "a password": (zipped([Member(b"a", b"x", flags=1)]), "without a password was needed, but it is encrypted"),
    "a strong password": (zipped([Member(b"a", b"x", flags=0x41)]), "but it is encrypted; unpack it"),
    "another packing": (
        zipped([Member(b"a", b"x", method=12)]),
        "stored or deflated file was needed, but it is packed by",
    ),
    "a name twice": (
        zipped([Member(b"a", b"x"), Member(b"a", b"y")]),
        "names that differ were needed, but 'a' comes beside",
    ),
    "names alike": (zipped([Member(b"a", b"x"), Member(b"A", b"y")]), "but 'A' comes beside 'a'; rename"),
    "folders alike": (zipped([Member(b"a/1", b"x"), Member(b"A/2", b"y")]), "but 'A/' comes beside 'a/'"),
    "names of two forms": (
        zipped([Member("\u00e9".encode(), b"x"), Member("e\u0301".encode(), b"y")]),
        "comes beside '\u00e9'",
    ),
    "a file as a folder": (zipped([Member(b"a", b"x"), Member(b"a/b", b"y")]), "but 'a/' comes beside 'a'"),
    "a folder as a file": (zipped([Member(b"a/b", b"x"), Member(b"a", b"y")]), "but 'a' comes beside 'a/'"),
    "a folder of bytes": (zipped([Member(b"a/", b"x")]), "a folder holds bytes; copy"),
    "an archive by name": (
        zipped([Member(b"a.tar.gz", b"x")]),
        "but this is an archive in an archive; unpack it first",
    ),
    "an archive by bytes": (
        zipped([Member(b"a.png", zip_of({"b": b"x"}))]),
        "a.png: files were needed, but this is an archive",
    ),
    "a tar by bytes": (
        zipped([Member(b"a.png", tar_of({"b": b"x"}))]),
        "a.png: files were needed, but this is an archive",
    ),
    "another size": (zipped([Member(b"a", b"xy", size=1)]), "other bytes came out than the directory says"),
    "a size too large": (zipped([Member(b"a", b"xy", size=3)]), "other bytes came out than the directory"),
    "another checksum": (zipped([Member(b"a", b"xy", crc=1)]), "other bytes came out than the directory"),
    "stored otherwise": (zipped([Member(b"a", b"xy", method=0, size=3)]), "its sizes contradict each other"),
    "another name inside": (zipped([Member(b"a", b"x", local_name=b"b")]), "the directory calls it something else"),
    "fewer than said": (zipped([Member(b"a", b"x")], count=2), "does not have as many entries as it says"),
    "more than said": (zipped([Member(b"a", b"x"), Member(b"b", b"x")], count=1), "not have as many entries as it"),
    "bytes before": (
        zipped([Member(b"a", b"x")], before=b"#!/bin/sh\n")[10:],
        "its directory does not lie where it says",
    ),
    "bytes behind": (zipped([Member(b"a", b"x")]) + b"x", "bytes follow its end"),
    "no end": (zipped([Member(b"a", b"x")])[:-22], "the end of a zip archive is missing"),
    "half an end": (zipped([Member(b"a", b"x")])[:-1], "the end of a zip archive is missing"),
    "of several": (zipped([Member(b"a", b"x")]).replace(b"PK\5\6\0\0", b"PK\5\6\1\0"), "it is a part of several"),
    "in another part": (
        zipped([Member(b"a", b"x")]).replace(
            struct.pack("<3H", 1, 0, 0) + b"\0\0", struct.pack("<3H", 1, 0, 0) + b"\1\0"
        ),
        "it lies in another part",
    ),
    "a directory of others": (zipped([Member(b"a", b"x")]).replace(b"PK\1\2", b"PK\1\3"), "its directory is damaged"),
    "bytes elsewhere": (
        zipped([Member(b"a", b"x")]).replace(b"PK\3\4", b"PK\3\5"),
        "it does not lie where the directory says",
    ),
    "damaged bytes": (
        zipped([Member(b"a", bytes(range(256)))]).replace(packs.deflated(bytes(range(256)))[:9], b"\xff" * 9),
        "its bytes are damaged; copy",
    ),
    "bytes that end early": (
        zipped([Member(b"a", packs.deflated(b"x") + b"more", method=0, size=1)]).replace(b"\0\0", b"\0\0"),
        "its sizes contradict each other",
    ),
    "overlapping entries": (packs.overlapping(20, 100_000), "its bytes overlap with others"),
    "nested entries": (packs.nested_to_the_left(20, 1000), "its bytes overlap with others"),
    "no file": (zipped([Member(b"cat/")]), "at least one file was needed, but the archive holds none"),
    "nothing": (zipped([]), "at least one file was needed, but the archive holds none"),
    "a long name": (zipped([Member(b"x" * 256, b"x")]), "names of at most 255 bytes in 32 folders were needed"),
    "a deep name": (zipped([Member(b"a/" * 32 + b"a", b"x")]), "is longer; rename it"),
    "more than it may": (zipped([Member(b"a", bytes(30_000_000))]), "at most 200 times its own bytes were to come out"),
    "text": (b"id,label\n1,a\n", "the end of a zip archive is missing"),
    "a lost long end": (
        b"PK\6\7".ljust(20, b"\xff") + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0, 0, 0),
        "its long end is missing",
    ),
    "a long end elsewhere": (
        packs.many_empty_zipped(1, said=0xFFFF).replace(struct.pack("<Q", 44), struct.pack("<Q", 45)),
        "its long end does not lie where",
    ),
    "a long size that is missing": (
        zipped([Member(b"a", b"x", method=0, size=0xFFFFFFFF)]),
        "a long size is missing",
    ),
}
TARS: dict[str, tuple[bytes, str]] = {
    **{f"name {name}": (tarred(entry(name, b"x")), "inside the archive were needed, but") for name in OUT},
    "a link": (tarred(entry("a", kind=b"2", link=b"/etc/passwd")), "but this is a link or a device"),
    "a hard link": (tarred(entry("a", kind=b"1", link=b"../a")), "but this is a link or a device"),
    "a device": (tarred(entry("a", kind=b"3")), "but this is a link or a device"),
    "a pipe": (tarred(entry("a", kind=b"6")), "but this is a link or a device"),
    "a link, then through it": (
        tarred(entry("a", kind=b"2", link=b"/tmp"), entry("a/b", b"x")),
        "but this is a link or a device",
    ),
    "an unknown kind": (tarred(entry("a", kind=b"Z")), "it is of a kind that nobody knows"),
    "holes": (tarred(entry("a", b"x", kind=b"S")), "it is of a kind that nobody knows"),
    "holes by record": (
        tarred(entry("x", record("GNU.sparse.major", "1"), b"x"), entry("a", b"x")),
        "a file with holes",
    ),
    "one name for all": (tarred(entry("x", record("path", "b"), b"g"), entry("a", b"x")), "or one name for all"),
    "a name twice": (tarred(entry("a", b"x"), entry("a", b"y")), "but 'a' comes beside 'a'"),
    "names alike": (tarred(entry("a", b"x"), entry("A", b"y")), "but 'A' comes beside 'a'"),
    "a folder of bytes": (tarred(entry("a", b"x", kind=b"5")), "a folder holds bytes"),
    "no name": (
        tarred(entry("./", b"x")[:512].replace(b"./\0", b".\0\0"), padded(b"x")),
        "a header is damaged|a file in it has no",
    ),
    "a file called .": (tarred(entry(".", b"x")), "a file in it has no name"),
    "an archive by name": (tarred(entry("a.zip", b"x")), "but this is an archive in an archive"),
    "an archive by bytes": (tarred(entry("a.png", gzip.compress(b"x"))), "but this is an archive in an archive"),
    "a checksum": (tarred(entry("a", b"x").replace(b"a", b"b", 1)), "a header is damaged"),
    "a long name that is long": (tarred(head(b"x", 2 << 20, b"L")), "a name is longer than any"),
    "a long name out": (
        tarred(entry("././@LongLink", b"../" * 50 + b"a\0", b"L"), entry("a", b"x")),
        "leads elsewhere",
    ),
    "a record out": (tarred(entry("x", record("path", "../a"), b"x"), entry("a", b"x")), "leads elsewhere"),
    "a record of bytes": (
        tarred(entry("x", b"12 path=\xff\xff\xff\n", b"x"), entry("a", b"x")),
        "names in UTF-8 were needed",
    ),
    "a record without a mark": (
        tarred(entry("x", b"8 path1\n", b"x"), entry("a", b"x")),
        "an extended header is damaged",
    ),
    "a record of no length": (tarred(entry("x", b"path=a\n", b"x"), entry("a", b"x")), "an extended header is damaged"),
    "a size that is none": (tarred(entry("x", record("size", "-1"), b"x"), entry("a", b"x")), "a size is no number"),
    "a size below zero": (tarred(b""), "at least one file was needed"),
    "a name of bytes": (tarred(entry(b"caf\xe9", b"x")), "names in UTF-8 were needed, but b'caf.xe9' came"),
    "cut in a header": (tarred(entry("a", b"x"))[:300], "it breaks off"),
    "cut in a file": (tarred(entry("a", b"x" * 2000))[:1000], "it breaks off"),
    "no end": (entry("a", b"x"), "it breaks off"),
    "bytes behind": (tarred(entry("a", b"x")) + entry("b", b"x"), "bytes follow its end"),
    "an endless file": (tarred(head(b"a", 8**11)), "at most 2 GB were to come out of it, but there are more"),
    "nothing": (bytes(1024), "at least one file was needed"),
    "text": (b"id,label\n1,a\n", "it breaks off"),
    "long text": (b"id,label\n1,a\n" * 100, "a number is none"),
}
NEGATIVE = head(b"a", 1)[:124] + b"\xff" * 12 + head(b"a", 1)[136:]
NEGATIVE = NEGATIVE[:148] + b" " * 8 + NEGATIVE[156:]
TARS["a size below zero"] = (
    tarred(NEGATIVE[:148] + b"%06o\0 " % sum(NEGATIVE) + NEGATIVE[156:]),
    "a number is negative",
)
CASES = [(".zip", name, *case) for name, case in ZIPS.items()]
CASES += [(kind, name, *case) for kind in (".tar", ".tar.xz") for name, case in TARS.items()]


@pytest.mark.parametrize(
    ("kind", "name", "content", "message"), CASES, ids=[f"{kind} {name}" for kind, name, *_ in CASES]
)
def test_bad_archives_are_refused(kind: str, name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / f"pets{kind}"
    path.write_bytes(content if kind == ".zip" else PACKERS[kind](content))
    with pytest.raises(BadInput, match=rf"pets{kind}.*({message})"):
        unpacked(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in (".tar", ".zip")])
def test_damaged_packing_is_refused(kind: str, tmp_path: Path) -> None:
    path = archive(tmp_path, kind)
    whole = path.read_bytes()
    for content in (
        whole[:-10],
        whole[: len(whole) // 2],
        whole[:20],
        whole[:40] + b"\xff" * 9 + whole[49:],
        whole + b"x",
    ):
        path.write_bytes(content)
        with pytest.raises(
            BadInput, match=r"a sound archive was needed, but (its bytes are damaged|it breaks off|bytes fo)"
        ):
            unpacked(path)


def test_memory_that_xz_asks_for_is_bounded(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 28}]
    path = tmp_path / "a.tar.xz"
    path.write_bytes(lzma.compress(tar_of({"a": b"x"}), filters=filters))
    with pytest.raises(BadInput, match=r"its bytes are damaged .Memory usage limit"):
        unpacked(path)


@pytest.mark.parametrize("kind", [".zip", ".tar"])
def test_limits_are_those_that_are_asked_for(kind: str, tmp_path: Path) -> None:
    path = archive(tmp_path, kind, {f"{number}": b"x" * 100 for number in range(9)})
    assert len(unpacked(path, Limits(bytes=900, entries=9))) == 9
    with pytest.raises(BadInput, match="at most 8 entries were needed, but it has more; unpack it yourself"):
        unpacked(path, Limits(entries=8))
    with pytest.raises(BadInput, match=r"at most 8.99e-07 GB were to come out of it, but there are more; allow"):
        unpacked(path, Limits(bytes=899))


def test_what_is_no_archive_and_where_none_can_be_unpacked(tmp_path: Path) -> None:
    path = archive(tmp_path, ".zip")
    assert not is_archive(tmp_path / "pets.7z")
    with (
        pytest.raises(BadInput, match=r"an archive was needed .\.zip, .*, but its name ends otherwise; rename"),
        opened(tmp_path / "pets.7z", beside=tmp_path / "set"),
    ):
        pass
    with (
        pytest.raises(BadInput, match=r"a folder to write in was needed, but it cannot be used .No such file"),
        opened(path, beside=tmp_path / "none" / "set"),
    ):
        pass
    with pytest.raises(BadInput, match="there is none of this name"), opened(Path("no.zip"), beside=tmp_path / "set"):
        pass
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path, ".zip")

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "makedirs", full)
    with pytest.raises(BadInput, match=r"room for what is in it was needed, but it cannot be unpacked .No space"):
        unpacked(path)


def test_nothing_is_written_through_a_link_that_somebody_plants(tmp_path: Path) -> None:
    (tmp_path / "canary").write_text("alive")
    folder_ = tmp_path / "folder"
    folder_.mkdir()
    (folder_ / "a").symlink_to(tmp_path / "canary")
    write = archives._Writer(folder_, "pets.zip")
    with pytest.raises(OSError, match="exists"):
        write.entry(entries.Entry("a", 1), iter([b"x"]))
    assert (tmp_path / "canary").read_text() == "alive"


ATTACK = r"""
import json, re, sys, time
from pathlib import Path
from relook.archives import opened
from relook.errors import BadInput
from relook.sources import Columns

def largest():
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024

good, bad = map(Path, sys.argv[1:])
with opened(good, beside=good.with_name("set")):
    pass
began, before = time.process_time(), largest()
try:
    with opened(bad, beside=bad.with_name("set")):
        said = ""
except BadInput as error:
    said = str(error)
print(json.dumps([said, time.process_time() - began, largest() - before]))
"""

QUINE = zipped([Member(b"r/r.zip", b"itself")])
ATTACKS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "42": (
        ".zip",
        lambda: zipped([Member(b"lib %x.zip" % number, b"PK\3\4") for number in range(16)]),
        "an archive in an",
    ),
    "flat and overlapping": (".zip", lambda: packs.overlapping(20_000, 4_000_000), "at most 2 GB were to come out"),
    "overlapping, and not too large": (".zip", lambda: packs.overlapping(190, 10_000_000), "were to come out|overlap"),
    "nested to the left": (".zip", lambda: packs.nested_to_the_left(900, 2_000_000), "were to come out|overlap"),
    "itself": (".zip", lambda: QUINE, "an archive in an archive"),
    "sizes that lie": (
        ".zip",
        lambda: zipped([Member(b"%d" % number, bytes(50_000_000), size=10) for number in range(2)]),
        "other bytes came out",
    ),
    "a million empty": (".zip", lambda: packs.many_empty_zipped(1_000_000), "at most 200,000 entries"),
    "a million, ten said": (".zip", lambda: packs.many_empty_zipped(1_000_000, said=10), "as many entries as it says"),
    "a million, 199,999 said": (".zip", lambda: packs.many_empty_zipped(1_000_000, said=199_999), "as many entries as"),
    "zeros": (".zip", lambda: zipped([Member(b"a", bytes(200_000_000))]), "at most 200 times"),
    "zeros in a tar": (
        ".tar.gz",
        lambda: PACKERS[".tar.gz"](tarred(entry("a", bytes(100_000_000)))),
        "at most 200 times",
    ),
    "zeros in xz": (".tar.xz", lambda: PACKERS[".tar.xz"](tarred(entry("a", bytes(100_000_000)))), "at most 200 times"),
    "zeros in bzip2": (".tar.bz2", lambda: PACKERS[".tar.bz2"](tarred(entry("a", bytes(100_000_000)))), "at most 200"),
    "many empty in a tar": (
        ".tar",
        lambda: tarred(*(head(b"%07d" % number) for number in range(201_000))),
        "at most 200,000 entries",
    ),
    "a million headers without a file": (
        ".tar.gz",
        lambda: PACKERS[".tar.gz"](tarred(*[entry("x", record("comment", "x"), b"x")] * 201_000)),
        "at most 200,000 entries|at most 200 times",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_refused_in_little_time_and_memory(name: str, tmp_path: Path) -> None:
    kind, make, message = ATTACKS[name]
    good, bad = archive(tmp_path, kind), tmp_path / f"bad{kind}"
    bad.write_bytes(make())
    ran = subprocess.run(
        [sys.executable, "-c", ATTACK, str(good), str(bad)], capture_output=True, text=True, check=True, env=os.environ
    )
    said, seconds, grown = json.loads(ran.stdout)
    assert any(part in said for part in message.split("|"))
    assert seconds < 5
    assert grown < 50e6
    assert sorted(tmp_path.iterdir()) == sorted([good, bad])
