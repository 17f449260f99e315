"""`relook export`: a set as it came or as others read it, with the label of every item and what speaks for it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from relook.cli import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relook.cleaned import Cleaned
    from relook.events import Event
    from relook.imported import Imported
    from relook.types import Posteriors

FORMS = "source, items, answers, changes, cleanlab, crowd-kit, counts, labels, huggingface, folder or label-studio"

WHAT, HOW, OUT = "What leaves", "Labels", "Writing"


def _option(help_text: str, *names: str, panel: str) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel)


def export(
    source: Annotated[Path, typer.Argument(help="Folder of an imported set, or of a campaign.", show_default=False)],
    *,
    to: Annotated[Path, _option("File or folder to write; what it ends in says the form.", "--to", panel=OUT)],
    form: Annotated[str | None, _option(f"{FORMS}.", "--as", panel=WHAT)] = None,
    changes: Annotated[bool, _option("Only the items whose label changed.", "--changes", panel=WHAT)] = False,
    split: Annotated[str | None, _option("Only the items of this split.", panel=WHAT)] = None,
    log: Annotated[Path | None, _option("Events of a campaign on this set: JSON lines.", panel=HOW)] = None,
    rule: Annotated[Literal["vote", "belief"], _option("Which label is final.", panel=HOW)] = "vote",
    probabilities: Annotated[
        Path | None,
        _option("Class probabilities of all items; else those in the set.", "--probabilities", "-p", panel=HOW),
    ] = None,
    ranked_by: Annotated[
        str | None, _option("Add rank and score by this policy; default is one.", "--ranked-by", panel=HOW)
    ] = None,
    copy: Annotated[bool, _option("Copy images rather than link them.", "--copy", panel=OUT)] = False,
    replace: Annotated[bool, _option("Write over a file that is not relook's.", "--replace", panel=OUT)] = False,
) -> None:
    """Write a cleaned set out, in the form it came in or as a table, with the evidence for every label.

    A name that ends as the source did keeps its form; other tables get a row an item; a folder gets images by class, or
    what Hugging Face opens. Nothing is written over but what relook wrote. With a campaign its log leaves, beside.
    """
    from msgspec.structs import replace as changed

    from relook import exports, imported
    from relook.charter import is_campaign

    own = None
    if is_campaign(source):
        found, own = _of_campaign(source, rule=rule, others=(log, probabilities, split))
    else:
        known = imported.read(source)
        found = _cleaned(known, log=log, rule=rule, probabilities=probabilities, split=split)
    if ranked_by is not None:
        found = _ranked(found, ranked_by)
    chosen = _form(found, to, asked=form, only="changes" if changes else None)
    read = [path for path in (log, probabilities) if path is not None]
    with show.progress("Writing", len(found)) as step:
        found = changed(found, files="copy" if copy else "link", step=step)
        exports.write(found, to, form=chosen, sources=read, over="any" if replace else "own")
    _tell(found)
    logs = [] if own is None else [_write_log(own, to)]
    show.wrote(to, *logs, following=_next(source, form=chosen, log=log))


def _of_campaign(folder: Path, *, rule: str, others: tuple[object, ...]) -> "tuple[Cleaned, Sequence[Event]]":
    """Return the items of a campaign with what came of it, and its events."""
    from relook import campaigns
    from relook.errors import BadInput

    if any(other is not None for other in others):
        raise BadInput(
            f"export: {folder} is a campaign and has a log, probabilities and a split of its own, but others came; "
            "leave them out"
        )
    return campaigns.cleaned_items(folder, rule=rule)


def _write_log(events: "Sequence[Event]", to: Path) -> Path:
    """Write a campaign's events beside what left, as JSON lines."""
    from relook.events import to_lines
    from relook.whole import drafted

    place = to.with_name(to.name + ".log.jsonl")
    with drafted(place) as draft:
        draft.write_bytes(to_lines(events))
    return place


def _cleaned(
    known: "Imported", *, log: Path | None, rule: str, probabilities: Path | None, split: str | None
) -> "Cleaned":
    from relook.cleaned import cleaned

    events = () if log is None else _events(log)
    posteriors = _posteriors(known, probabilities, rule=rule)
    return cleaned(known, events=events, posteriors=posteriors, rule=rule, split=split)


def _events(log: Path) -> Any:
    from relook.errors import BadInput
    from relook.events import from_lines

    try:
        return from_lines(log.read_bytes())
    except OSError as error:
        raise BadInput(
            f"--log {log}: events of a campaign were needed, but it cannot be read ({error.strerror}); check the path"
        ) from None


def _posteriors(known: "Imported", path: Path | None, *, rule: str) -> "Posteriors | None":
    """Return the probabilities of a file, else those that came with the set; where some are missing there are none."""
    import numpy as np

    from relook import vectors
    from relook.errors import BadInput
    from relook.sources import counted
    from relook.types import Posteriors

    if path is None:
        values, told = known.vectors("probabilities"), str(known.folder)
    else:
        found = vectors.probabilities(known.collection(), path)
        values, told = found.values, str(path)
        for fact in found.facts:
            show.say(fact)
    if values is None:
        return None
    missing = int(np.isnan(values).any(axis=1).sum())
    if not missing:
        return _guarded(known, Posteriors(values), source=told)
    told = f"{told}: class probabilities of {counted(missing, 'item')} are missing"
    if rule == "belief":
        raise BadInput(f"{told}, but --rule belief was asked for; pass those of all items with --probabilities")
    show.say(f"{told}, so no belief is told.")
    return None


def _guarded(known: "Imported", posteriors: "Posteriors", *, source: str) -> "Posteriors":
    """Refuse probabilities whose rows or columns look out of order."""
    from relook.alignment import Matched
    from relook.errors import BadInput
    from relook.guard import cure, doubt, sentence
    from relook.predictions import predictions
    from relook.types import Labels

    found = known.collection()
    labels = Labels(found.labels().label(), len(found.classes))
    if (labels.given < 0).all():
        return posteriors
    both = Matched(found.classes, labels, posteriors, found.ids.to_list(), source, joined="order")
    seen = predictions(labels, posteriors)
    doubtful = doubt(both, seen)
    if doubtful is not None and doubtful.sure:
        raise BadInput(f"{sentence(both, doubtful, seen=seen)}; {cure(both, doubtful)}")
    return posteriors


def _ranked(found: "Cleaned", policy: str) -> "Cleaned":
    from msgspec.structs import replace

    from relook.policies import Setting, check_rule
    from relook.ranking import ranking_policy
    from relook.scores import score_items
    from relook.types import Labels

    chosen = ranking_policy(policy, setting=Setting())
    labels, posteriors = Labels(found.evidence.counts(), len(found.classes)), found.evidence.posteriors
    check_rule(chosen, labels, posteriors=posteriors)
    fit = getattr(chosen.score, "fit", None)
    score = chosen.score if fit is None else fit(labels, posteriors)
    return replace(found, priority=score_items(score, labels, posteriors, given_weight=chosen.given_weight))


def _form(found: "Cleaned", to: Path, *, asked: str | None, only: str | None) -> str:
    from relook.errors import BadInput
    from relook.exports import usual

    if only is not None and asked not in (None, only):
        raise BadInput(f"export: --changes is a form of its own, but --as {asked} was asked for too; leave out one")
    return only or asked or usual(found, to)


def _tell(found: "Cleaned") -> None:
    """Say what final means here, and what people's answers say of the items."""
    import numpy as np

    from relook.evidence import RULES, STATUSES
    from relook.sources import counted

    known = found.evidence
    times = np.bincount(known.status, minlength=len(STATUSES))
    told = ", ".join(f"{count:,} {name}" for name, count in zip(STATUSES, times.tolist(), strict=True) if count)
    show.say(f"Final by {known.rule}: {RULES[known.rule]}.")
    show.say(f"{counted(len(known), 'item')}: {told}; {counted(len(known.changed), 'label')} changed.")


def _next(source: Path, *, form: str, log: Path | None) -> str:
    events = "" if log is None else f" --log {log}"
    if form == "changes":
        return f"relook export {source}{events} --to items.csv --as items"
    return f"relook export {source}{events} --to changes.csv --changes"
