"""`relook import`: labels in any usual form become an imported set, or are refused with the row and the cure."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from relook.cli import show

if TYPE_CHECKING:
    from relook.collection import Collection
    from relook.imported import Imported, Origin
    from relook.intake import Wanted
    from relook.sources import Missing

COLUMNS, ALONG, OUT = "Columns", "What comes along", "Running and writing"

Answer = Literal["yes", "no", "missing"]


def _option(help_text: str, *names: str, panel: str) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel)


def import_(
    source: Annotated[Path, typer.Argument(help="A folder, a table, arrays, JSON or an archive.", show_default=False)],
    *,
    to: Annotated[Path, typer.Option(help="Folder to make.", show_default=False)],
    form: Annotated[
        str | None,
        typer.Option(help="table, arrays, folder, dicom, label-studio, huggingface or archive, where in doubt."),
    ] = None,
    id: Annotated[str | None, _option("Ids; else id, item, path or image.", panel=COLUMNS)] = None,  # noqa: A002
    label: Annotated[str | None, _option("Labels; else label, given, given_label or class.", panel=COLUMNS)] = None,
    annotator: Annotated[
        str | None, _option("Who answered, where a row is an answer; see the pages for wide tables.", panel=COLUMNS)
    ] = None,
    text: Annotated[str | None, _option("Text of the items.", panel=COLUMNS)] = None,
    files: Annotated[str | None, _option("Paths of images, up to eight: front,side.", panel=COLUMNS)] = None,
    numbers: Annotated[str | None, _option("Numbers that describe an item: age,size.", panel=COLUMNS)] = None,
    split: Annotated[str | None, _option("Split, such as train or test.", panel=COLUMNS)] = None,
    group: Annotated[str | None, _option("What belongs together, such as a patient.", panel=COLUMNS)] = None,
    origin: Annotated[str | None, _option("Where an item comes from.", "--source", panel=COLUMNS)] = None,
    classes: Annotated[str | None, _option("Names of the classes in order: a,b,c.", panel=COLUMNS)] = None,
    question: Annotated[
        str | None, _option("A column of a multi-label file, asked as yes or no.", panel=COLUMNS)
    ] = None,
    blank: Annotated[Answer | None, _option("What its empty cells mean.", panel=COLUMNS)] = None,
    uncertain: Annotated[Answer | None, _option("What its -1 means.", panel=COLUMNS)] = None,
    labels: Annotated[Path | None, _option("A table about the images of the source.", panel=ALONG)] = None,
    images: Annotated[Path | None, _option("Folder that paths in the table start from.", panel=ALONG)] = None,
    embeddings: Annotated[Path | None, _option("N x D: npy, npz, parquet or csv.", panel=ALONG)] = None,
    probabilities: Annotated[
        Path | None, _option("N x C of a model.", "--probabilities", "--pred-probs", panel=ALONG)
    ] = None,
    join: Annotated[str | None, _option("Join these by id, path, stem or a column.", panel=ALONG)] = None,
    site_key: Annotated[Path | None, _option("Of DICOM: the key that pseudonyms are made with.", panel=ALONG)] = None,
    release: Annotated[
        str | None, _option("Of DICOM: reasons to hold a file back that are overruled: a,b.", panel=ALONG)
    ] = None,
    allow_missing: Annotated[
        bool, _option("Leave out images without a row and rows without an image.", "--allow-missing", panel=ALONG)
    ] = False,
    dry_run: Annotated[bool, _option("Read and tell, but write nothing.", "--dry-run", panel=OUT)] = False,
) -> None:
    """Import labels and what they are about into a folder: tables of items and of answers, and a manifest.

    A folder of images (by class, or with a table), csv, tsv, JSON lines, parquet, npy, npz, Label Studio's JSON,
    Hugging Face datasets, DICOM, or a zip or tar of these. Images are linked, not copied, but for DICOM and archives.
    All or nothing is written; importing the same source again changes nothing.
    """
    from relook import intake
    from relook.sources import Columns, names_in

    columns = Columns(
        id=id, label=label, classes=names_in(classes), annotator=annotator, text=text, files=names_in(files),
        numbers=names_in(numbers), split=split, group=group, source=origin, question=question, blank=blank,
        uncertain=uncertain,
    )  # fmt: skip
    missing: Missing = "allowed" if allow_missing else "refused"
    wanted = intake.Wanted(columns, form, missing, labels, images, site_key, names_in(release) or ())
    along = {"embeddings": embeddings, "probabilities": probabilities}
    if dry_run:
        look(source, to, wanted=wanted, along=along, join=join)
        return
    made, changed = bring_in(source, to, wanted=wanted, along=along, join=join)
    if not changed:
        show.say(f"{to} holds this very set already: nothing was changed.")
    show.wrote(*([made.folder] if changed else []), following=f"relook rank {to}")


def bring_in(
    source: Path, to: Path, *, wanted: "Wanted", along: Mapping[str, Path | None], join: str | None = None
) -> tuple["Imported", bool]:
    """Read a source, say what it holds, write it as an imported set, and say whether that changed anything."""
    from relook import imported

    imported.check_target(to)
    with _read(source, to, wanted=wanted, along=along, join=join) as (found, origin):
        tell(found, origin)
        _check_room(source, to, found=found, origin=origin)
        with show.progress("Importing", len(found)) as step:
            made, changed = imported.write(found, to, origin=origin, step=step)
    for fact in made.manifest.facts[len(found.facts) :]:
        show.say(fact)
    return made, changed


def look(source: Path, to: Path, *, wanted: "Wanted", along: Mapping[str, Path | None], join: str | None) -> None:
    """Say what a source holds and what room it would need, and write nothing."""
    from relook import imported

    imported.check_target(to)
    with _read(source, to, wanted=wanted, along=along, join=join) as (found, origin):
        tell(found, origin)
        needed, free = imported.room(found, to, source=source, origin=origin)
    show.say(f"It needs about {_megabytes(needed)}; {_megabytes(free)} are free in {to.absolute().parent}.")
    show.wrote(following=f"relook import {source} --to {to}")


def _check_room(source: Path, to: Path, *, found: "Collection", origin: "Origin") -> None:
    from relook import imported
    from relook.errors import BadInput

    needed, free = imported.room(found, to, source=source, origin=origin)
    if needed > free:
        raise BadInput(
            f"{to}: about {_megabytes(needed)} were needed, but {_megabytes(free)} are free there; make room, or name "
            "another place"
        )


@contextmanager
def _read(
    source: Path, to: Path, *, wanted: "Wanted", along: Mapping[str, Path | None], join: str | None
) -> Iterator[tuple["Collection", "Origin"]]:
    from relook import intake

    with show.progress("Reading", None) as step, intake.gathered(source, beside=to, wanted=wanted, step=step) as read:
        yield with_vectors(*read, along=along, join=join)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def with_vectors(
    found: "Collection", origin: "Origin", *, along: Mapping[str, Path | None], join: str | None
) -> tuple["Collection", "Origin"]:
    """Join what comes along to the items, and say how many have none."""
    import msgspec

    from relook import vectors
    from relook.sources import Columns

    readers = {"embeddings": vectors.embeddings, "probabilities": vectors.probabilities}
    joined = {
        name: readers[name](found, path, by=join or "id", columns=Columns()) for name, path in along.items() if path
    }
    facts = tuple(fact for each in joined.values() for fact in each.facts)
    values = {name: each.values for name, each in joined.items()}
    missing, extra = ({name: getattr(each, part) for name, each in joined.items()} for part in ("missing", "extra"))
    found = msgspec.structs.replace(found, facts=found.facts + facts)
    return found, msgspec.structs.replace(origin, vectors=values, missing=missing, extra=extra)


def tell(found: "Collection", origin: "Origin") -> None:
    """Say what was read: items, classes, answers, and what was decided on the way."""
    from relook.imported import EXTRA, MISSING
    from relook.sources import counted, listed

    linked = ", linked" if found.content == "images" and found.pictures is None else ""
    items = f"{counted(len(found), 'item')} ({found.content}{linked})"
    classes = f"{len(found.classes)} {'class' if len(found.classes) == 1 else 'classes'} ({listed(found.classes, 12)})"
    show.say(f"{items}, {classes}{_answers(found)}.")
    for fact in found.facts:
        show.say(fact)
    unlabelled = len(found) - found.answers["item"].n_unique()
    if unlabelled:
        show.say(f"{counted(unlabelled, 'item')} without a label.")
    for name in [name for name, ids in origin.missing.items() if ids]:
        show.say(f"Items without {name} are listed in {MISSING}.")
    for name in [name for name, ids in origin.extra.items() if ids]:
        show.say(f"Rows of {name} for no item are listed in {EXTRA}.")


def _answers(found: "Collection") -> str:
    """Return how many answers there are, and of how many people, unless each item has its given label alone."""
    from relook.collection import GIVEN
    from relook.sources import counted

    people = set(found.answers["annotator"].unique().cast(str).drop_nulls()) - {GIVEN}
    answers = int(found.answers["count"].sum()) if "count" in found.answers.columns else len(found.answers)
    if not people and answers <= len(found):
        return ""
    return f", {counted(answers, 'answer')}" + (f" of {counted(len(people), 'annotator')}" if people else "")
