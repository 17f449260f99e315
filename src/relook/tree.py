"""The files under a folder, in an order that never changes; no link leads out of it, or round in it.

Files are told apart by what their names end in. Those that a system leaves behind are skipped and counted; a picture of
a kind that is not opened is refused, because an item would be missing in silence.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from unicodedata import normalize

import msgspec

from relook.errors import BadInput
from relook.pictures import SUFFIXES
from relook.sources import Names, counted, listed

SPLITS = ("train", "val", "valid", "validation", "test", "dev", "holdout")
"""Where all folders are called one of these, they are splits, and classes are the folders in them."""

LEFTOVERS = frozenset({"thumbs.db", "desktop.ini", "__macosx"})
"""Names, in small letters, of what systems leave behind; so is all that begins with a dot."""

OTHER_PICTURES = frozenset(
    """
    .apng .avif .avifs .blp .bmp .bufr .bw .cur .dcm .dcx .dds .dib .dicom .emf .eps .fit .fits .flc .fli .fpx .ftc .ftu
    .gbr .gif .grib .h5 .hdf .heic .heif .icb .icns .ico .iim .im .j2c .j2k .jp2 .jpc .jpf .jpx .jxl .mic
    .mpeg .mpg .mpo .msp .nef .palm .pbm .pcd .pcx .pdf .pfm .pgm .pnm .ppm .ps .psd .pxr .qoi .ras .raw .rgb .rgba .sgi
    .svg .svgz .tga .vda .vst .vtf .webm .wmf .xbm .xpm
    """.split()  # noqa: SIM905  # a list would take a page
)
"""What the names of pictures end in that are not opened, among them all that Pillow would open."""


class Tree(msgspec.Struct, frozen=True):
    """What lies under a folder: paths from it on, with `/`, in order.

    `folders` lie in it directly, and so do the files `beside` them that are no images; `others` counts all such files,
    by what their names end in.
    """

    root: str
    images: Names
    folders: Names
    beside: Names = ()
    others: tuple[tuple[str, int], ...] = ()
    skipped: int = 0
    links: int = 0

    def facts(self) -> Names:
        """Return what was left out and what was kept apart, in sentences."""
        told = self._kept_apart()
        if self.skipped:
            told.append(f"{self.root}: {counted(self.skipped, 'hidden or left-over file')} skipped.")
        if self.others:
            kinds = listed([f"{suffix or 'without an ending'} {number:,}" for suffix, number in self.others])
            number = sum(number for _, number in self.others)
            told.append(f"{self.root}: {counted(number, 'file')} left out that {_are(number)} no images ({kinds}).")
        if self.links:
            told.append(f"{self.root}: {counted(self.links, 'link')} to folders left out.")
        return tuple(told)

    def without(self, name: str) -> Tree:
        """Return the same without a file that is no image but was read."""
        end = _ending(name)
        counts = ((other, number - (other == end)) for other, number in self.others)
        return msgspec.structs.replace(self, others=tuple((other, number) for other, number in counts if number))

    def _kept_apart(self) -> list[str]:
        folders = sorted({name.rpartition("/")[0] for name in self.images})
        pairs = [f"{first!r} and {other!r}" for first, other in alike(folders) or alike(self.images)]
        told = "are told apart by case or Unicode form alone, and kept apart"
        return [f"{self.root}: names that {told}: {listed(pairs)}."] if pairs else []


def tree(root: Path) -> Tree:
    """Return what lies under a folder."""
    if not root.is_dir():
        came = "this is a file" if root.exists() else "there is none of this name"
        raise BadInput(f"{root}: a folder of images was needed, but {came}; check the path")
    walk = _Walk(root)
    for name in walk.files():
        walk.sort(name)
    if walk.refused:
        name = min(walk.refused)
        raise BadInput(
            f"{root}/{name}: PNG, JPEG, WebP or TIFF was needed, but {counted(len(walk.refused), 'picture')} of other "
            "kinds came; save them as one of these, or take them out"
        )
    images = tuple(sorted(walk.images))
    _check_text(root, (*images, *walk.folders))
    return Tree(
        str(root),
        images,
        tuple(sorted(walk.folders)),
        tuple(sorted(walk.beside)),
        tuple(sorted(walk.others.items())),
        walk.skipped,
        walk.links,
    )


def with_images(root: Path) -> Tree:
    """Return what lies under a folder in which images are expected."""
    found = tree(root)
    if not found.images:
        raise BadInput(f"{root}: at least one image was needed, but none lies in it; name the folder they lie in")
    return found


def is_leftover(name: str) -> bool:
    """Say whether a file or a folder is one that systems hide or leave behind."""
    return name.startswith(".") or name.lower() in LEFTOVERS


def alike(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return names that differ in case or in their Unicode form only, each with the first like it.

    >>> alike(["cat", "dog", "Cat"])
    [('cat', 'Cat')]
    """
    first: dict[str, str] = {}
    found = []
    for name in names:
        seen = first.setdefault(plainly(name), name)
        if seen is not name:
            found.append((seen, name))
    return found


def plainly(name: str) -> str:
    """Return a name as it looks to a system that minds neither case nor Unicode form."""
    return name.lower() if name.isascii() else normalize("NFC", normalize("NFC", name).casefold())


class _Walk:
    """A walk through folders: what it meets, by kind."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._inside = os.path.join(self._root, "")  # noqa: PTH118  # a Path a file costs more than the file
        self._called = root
        self.images: list[str] = []
        self.folders: list[str] = []
        self.beside: list[str] = []
        self.refused: list[str] = []
        self.others: Counter[str] = Counter()
        self.skipped = self.links = 0

    def files(self) -> Iterator[str]:
        """Yield every file's path from the root on; a stack, because folders may lie deeper than calls may."""
        waiting = [""]
        while waiting:
            before = waiting.pop()
            for entry in self._entries(before):
                name = before + entry.name
                if is_leftover(entry.name):
                    self.skipped += 1
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")
                    if not before:
                        self.folders.append(name)
                elif not entry.is_symlink() or self._leads_to_file(entry.path, name):
                    yield name

    def _entries(self, before: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._inside + before) as found:
                return list(found)
        except OSError as error:
            raise BadInput(
                f"{self._called}/{before}: a folder that can be listed was needed, but it cannot "
                f"({error.strerror}); check who may read it"
            ) from None

    def _leads_to_file(self, path: str, name: str) -> bool:
        there = os.path.realpath(path)
        if there != self._root and not there.startswith(self._inside):
            raise BadInput(
                f"{self._called}/{name}: files inside the folder were needed, but this link leads out of it; "
                "copy what it leads to, or take it out"
            )
        folder = os.path.isdir(there)  # noqa: PTH112
        self.links += folder
        return not folder

    def sort(self, name: str) -> None:
        """Tell a file's kind by its name."""
        end = _ending(name)
        if end in SUFFIXES:
            self.images.append(name)
        elif end in OTHER_PICTURES:
            self.refused.append(name)
        else:
            self.others[end] += 1
            if "/" not in name:
                self.beside.append(name)


def _ending(name: str) -> str:
    _, dot, end = name.rpartition(".")
    return f".{end.lower()}" if dot and "/" not in end else ""


def _check_text(root: Path, names: Names) -> None:
    """Refuse names that are no text, which no table can hold."""
    try:
        "/".join(names).encode()
    except UnicodeEncodeError:
        wrong = next(name for name in names if not _is_text(name))
        raise BadInput(
            f"{root}: names of files in UTF-8 were needed, but {os.fsencode(wrong)!r} came; rename it"
        ) from None


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
