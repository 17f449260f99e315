"""What a cleaned set leaves as: the form it came in, tables for people and programs, or what other packages read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from relook import __version__, streams
from relook.cleaned import Cleaned
from relook.errors import BadInput
from relook.evidence import RULES
from relook.exports import answers, changes, crowds, folders, huggingface, items, label_studio, tables
from relook.whole import Over, check_target, whole

FOLDER = ("",)
"""What the name of a folder ends in: nothing."""


class Form(msgspec.Struct, frozen=True):
    """A form to leave in: what writes it, what the name of its file may end in, and whom it is for."""

    write: Callable[[Cleaned, Path], None]
    suffixes: tuple[str, ...]
    meaning: str


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "table": Form(tables.write, streams.SUFFIXES, "the table it came as, with labels replaced or answers added"),
        "items": Form(items.write, streams.SUFFIXES, "a row an item: given and final label, and what speaks for it"),
        "answers": Form(answers.write, streams.SUFFIXES, "a row an answer: who, what, when, under which ranking"),
        "changes": Form(changes.write, streams.SUFFIXES, "only the items whose label changed"),
        "cleanlab": Form(crowds.write_cleanlab, streams.SUFFIXES, "a row an item, a column an annotator"),
        "crowd-kit": Form(crowds.write_crowd_kit, streams.SUFFIXES, "a row an answer: task, worker, label"),
        "label-studio": Form(label_studio.write, (".json",), "tasks with all answers and the final label"),
        "counts": Form(crowds.write_counts, (".npy", ".npz"), "N x C counts of votes"),
        "labels": Form(crowds.write_labels, (".npy", ".npz"), "N final labels by number, -1 for none"),
        "huggingface": Form(huggingface.write, FOLDER, "a folder that datasets.load_dataset opens"),
        "folder": Form(folders.write, FOLDER, "images in a folder a class"),
    }
)
"""The forms by their names."""

SOURCE = "source"
"""The form that a set came in, or the one nearest to it."""


def write(
    found: Cleaned, to: str | Path, *, form: str = "items", sources: Sequence[Path] = (), over: Over = "own"
) -> None:
    """Write a cleaned set, whole or not at all, with a note beside it of what it is and by which rule.

    >>> import tempfile
    >>> from relook import Labels, named
    >>> from relook.campaign import Campaign
    >>> from relook.cleaned import cleaned
    >>> campaign = Campaign(Labels([0, 1], 2), named("random"), budget=1)
    >>> to = Path(tempfile.mkdtemp(), "items.csv")
    >>> write(cleaned(campaign), to)
    >>> to.read_text().splitlines()[1]
    '0,0,0,unseen,0,1,0,vote'
    """
    target = Path(to)
    name = nearest(found) if form == SOURCE else form
    chosen = _form(name, target)
    kept = None if found.imported is None else found.imported.folder
    check_target(target, sources=[*found.sources, *sources], kept=kept, over=over)
    with whole(target, _note(found, name)) as draft:
        chosen.write(found, draft)


def usual(found: Cleaned, to: Path) -> str:
    """Return the form that a name asks for by its end: the one the set came in where it ends like that."""
    suffix, kind = to.suffix.lower(), found.found.form.kind
    if suffix == f".{kind}" or (kind == "folder" and not suffix):
        return SOURCE
    if not suffix:
        return "folder" if "files" in found.found.columns else "huggingface"
    return {".npy": "counts", ".json": "label-studio"}.get(suffix, "items")


def nearest(found: Cleaned) -> str:
    """Return the form that a set came in, or what holds as much: the items where nothing else can."""
    kind = found.found.form.kind
    if kind in ("npy", "npz"):
        return {"items": "labels", "counts": "counts"}.get(found.found.form.layout, "items")
    if f".{kind}" in streams.SUFFIXES:
        return "table"
    return kind if kind in FORMS else "items"


def _form(name: str, target: Path) -> Form:
    if name not in FORMS:
        raise BadInput(f"export: one of the forms {', '.join(FORMS)} was needed, but {name!r} came; name one with --as")
    form, suffix = FORMS[name], target.suffix.lower()
    if form.suffixes != FOLDER and suffix not in form.suffixes:
        raise BadInput(
            f"{target}: a file that ends in {', '.join(form.suffixes)} was needed for --as {name}, but it ends in "
            f"{suffix or 'nothing'}; name one with --to"
        )
    return form


def _note(found: Cleaned, form: str) -> dict[str, object]:
    known = found.evidence
    return {
        "software": f"relook {__version__}",
        "source": found.found.source,
        "form": form,
        "rule": known.rule,
        "meaning": f"final is {RULES[known.rule]}",
        "classes": list(known.classes),
        "items": len(known),
        "changed": len(known.changed),
    }
