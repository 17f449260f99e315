"""Whatever a user has, as a collection: the format is told by the source, and what belongs together is joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path

import msgspec

from relook import archives, datasets, imported
from relook.collection import Collection
from relook.errors import BadInput
from relook.imported import Origin, source_file
from relook.pictures import SUFFIXES as IMAGES
from relook.pictures import Step
from relook.radiograph import is_dicom
from relook.sources import COLUMNS, Columns, Missing, Names, listed

FORMS: Mapping[str, str] = {
    "table": "csv, tsv, JSON lines or parquet",
    "arrays": "npy or npz",
    "folder": "images in folders, with or without a table of labels",
    "dicom": "DICOM files",
    "label-studio": "JSON exported by Label Studio",
    "huggingface": "a folder of Hugging Face datasets",
    "hub": "a data set of the Hugging Face hub, as hub:NAME",
    "published": "a published data set, by its name",
    "archive": "zip or tar of any of these",
}
"""Forms that are read, and what each is."""

_SUFFIXES: Mapping[str, str] = {
    **dict.fromkeys((".csv", ".tsv", ".parquet", ".jsonl", ".ndjson"), "table"),
    **dict.fromkeys((".npy", ".npz"), "arrays"),
    **dict.fromkeys((".dcm", ".dicom", ".ima"), "dicom"),
    ".json": "label-studio",
}
_HUGGINGFACE = ("dataset_dict.json", "dataset_info.json", "state.json")
_IN_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "folder": IMAGES,
    "dicom": tuple(suffix for suffix, form in _SUFFIXES.items() if form == "dicom"),
    "huggingface": (".arrow",),
}
_LOOKED_AT, _OPENED = 1_000, 20

HUB = "hub:"
"""What comes before the name of a data set that a user asks to be downloaded."""


class Wanted(msgspec.Struct, frozen=True):
    """What a user says about a source, beside where it lies.

    `form` is one of `FORMS`, where the source does not tell. `labels` is a table about images that lie in the source,
    `images` the folder that paths in a table start from. `key` and `released` are a site's decisions about DICOM.
    """

    columns: Columns = COLUMNS
    form: str | None = None
    missing: Missing = "refused"
    labels: Path | None = None
    images: Path | None = None
    key: Path | None = None
    released: Names = ()


WANTED = Wanted()
"""Nothing said."""


@contextmanager
def gathered(
    source: Path, *, beside: Path, wanted: Wanted = WANTED, step: Step | None = None
) -> Iterator[tuple[Collection, Origin]]:
    """Read a source and yield what it holds, and where that came from.

    An archive is unpacked beside the set that will be made of it, for as long as the caller works on it.
    """
    form = _form(source, wanted)
    if form != "archive":
        yield _READERS[form](source, wanted)
        return
    with archives.opened(source, beside=beside, step=step) as archive:
        inner = _form(archive.source, msgspec.structs.replace(wanted, form=None))
        found, origin = _READERS[inner](archive.source, wanted)
        yield archive.carried(found), msgspec.structs.replace(origin, sources=(source_file(source),), root=None)


def recognised(source: Path) -> str:
    """Return the form of a source, one of `FORMS`.

    >>> recognised(Path("labels.csv")), recognised(Path("scans.tar.gz"))
    ('table', 'archive')
    """
    if source.is_dir():
        return _form_of_folder(source)
    if archives.is_archive(source):
        return "archive"
    suffix = source.suffix.lower()
    if suffix not in _SUFFIXES and source.is_file() and is_dicom(source):
        return "dicom"
    if suffix not in _SUFFIXES:
        known = listed([*_SUFFIXES, *archives.KINDS], 20)
        raise BadInput(
            f"{source}: a folder, or a file of a known kind ({known}), was needed, but {suffix or 'no suffix'} came; "
            f"say what it is with --form ({listed(list(FORMS))})"
        )
    return _SUFFIXES[suffix]


def _form(source: Path, wanted: Wanted) -> str:
    if str(source).startswith(HUB):
        return "hub"
    if not source.exists() and str(source) in datasets.NAMES:
        return "published"
    if not source.exists():
        raise BadInput(f"{source}: a file or a folder to import was needed, but there is none; check the path")
    if wanted.form is None:
        return recognised(source)
    if wanted.form not in FORMS:
        raise BadInput(f"--form: {listed(list(FORMS))} were needed, but {wanted.form!r} came; take one of these")
    return wanted.form


def _form_of_folder(folder: Path) -> str:
    if (folder / imported.MANIFEST).is_file():
        raise BadInput(f"{folder}: a source to import was needed, but this set is imported already; rank it")
    if any((folder / name).is_file() for name in _HUGGINGFACE):
        return "huggingface"
    files = _some_files(folder)
    endings = {path.suffix.lower() for path in files}
    known = [form for form, own in _IN_FOLDERS.items() if endings & set(own)]
    return known[0] if known else "dicom" if any(is_dicom(path) for path in files[:_OPENED]) else "folder"


def _some_files(folder: Path) -> list[Path]:
    """Return a folder's first files: enough to see what it holds."""
    every = (path for path in folder.rglob("*") if path.is_file())
    return list(islice(every, _LOOKED_AT))


def _collection(member: str, source: Path, *, columns: Columns) -> Collection:
    found: Collection = import_module(f"relook.datasets.{member}").collection(source, columns=columns)
    return found


def _table(source: Path, wanted: Wanted) -> tuple[Collection, Origin]:
    found = _collection("table", source, columns=wanted.columns)
    if wanted.images is not None and "files" not in found.columns:
        from relook.datasets.folder_table import illustrated

        return illustrated(wanted.images, found, missing=wanted.missing), Origin((source_file(source),), wanted.images)
    return found, Origin((source_file(source),), wanted.images or source.parent)


def _folder(source: Path, wanted: Wanted) -> tuple[Collection, Origin]:
    from relook.datasets import folder, folder_table

    table = wanted.labels or folder_table.table_in(source, columns=wanted.columns)
    if table is None:
        return folder.collection(source, columns=wanted.columns, missing=wanted.missing), Origin(root=source)
    found = folder_table.collection(source, table=table, columns=wanted.columns, missing=wanted.missing)
    return found, Origin((source_file(table),), source)


def _dicom(source: Path, wanted: Wanted) -> tuple[Collection, Origin]:
    from relook.datasets import dicom

    said = None if wanted.labels is None else _collection("table", wanted.labels, columns=wanted.columns)
    site = dicom.Site(wanted.key, wanted.released)
    return dicom.collection(source, columns=wanted.columns, labels=said, site=site), Origin()


def _hub(source: Path, wanted: Wanted) -> tuple[Collection, Origin]:
    from relook.datasets.huggingface import from_hub

    return from_hub(str(source).removeprefix(HUB), columns=wanted.columns), Origin()


def _file(member: str) -> Callable[[Path, Wanted], tuple[Collection, Origin]]:
    def read(source: Path, wanted: Wanted) -> tuple[Collection, Origin]:
        sources = (source_file(source),) if source.is_file() else ()
        return _collection(member, source, columns=wanted.columns), Origin(sources, wanted.images or source.parent)

    return read


_READERS: Mapping[str, Callable[[Path, Wanted], tuple[Collection, Origin]]] = {
    "table": _table,
    "arrays": _file("arrays"),
    "folder": _folder,
    "dicom": _dicom,
    "label-studio": _file("label_studio"),
    "huggingface": _file("huggingface"),
    "hub": _hub,
    "published": lambda source, _: (datasets.collection(str(source)), Origin()),
}
