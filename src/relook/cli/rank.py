"""`relook rank`: which labels to look at first, in an imported set or from two files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from relook.cli import show
from relook.cli.report import check_page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from relook.alignment import Matched
    from relook.guard import Doubt
    from relook.imported import Imported
    from relook.predictions import Predictions
    from relook.ranking import Ranked
    from relook.rules import Policy
    from relook.thumbnails import LinkedImages

FILES, RULE, OUT = "Files", "Rule", "Writing"

SHOWN = {
    "rank": "",
    "id": "id",
    "given": "given",
    "suggested": "suggested",
    "suggested_probability": "probability",
    "priority": "priority",
    "noisiness": "noisiness",
    "ambiguity": "ambiguity",
    "label_quality": "label quality",
}


def _option(help_text: str, *names: str, panel: str) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel)


def rank(
    source: Annotated[Path | None, typer.Argument(help="An imported set; else name two files.")] = None,
    *,
    split: Annotated[str | None, _option("Of a set: rank this split alone.", panel=FILES)] = None,
    labels: Annotated[
        Path | None, _option("Given labels: npy, npz, csv, tsv, parquet or jsonl.", "--labels", "-l", panel=FILES)
    ] = None,
    probabilities: Annotated[
        Path | None,
        _option("Class probabilities, N x C or M x N x C.", "--probabilities", "--pred-probs", "-p", panel=FILES),
    ] = None,
    id: Annotated[str | None, _option("Column of ids; else id, item, path or image.", panel=FILES)] = None,  # noqa: A002
    label: Annotated[
        str | None, _option("Column of labels; else label, given, given_label or class.", panel=FILES)
    ] = None,
    classes: Annotated[str | None, _option("Names of the classes in column order: a,b,c.", panel=FILES)] = None,
    allow_missing: Annotated[
        bool, _option("Leave out items that have no probabilities.", "--allow-missing", panel=FILES)
    ] = False,
    trust_order: Annotated[
        bool, _option("Go on where columns or rows look out of order.", "--trust-order", panel=FILES)
    ] = False,
    policy: Annotated[str, _option("A name, or your own: mine.py:function.", panel=RULE)] = "default",
    settle: Annotated[str, _option("paper, people:2, one, margin:2 or confidence:.95.", panel=RULE)] = "paper",
    method: Annotated[
        str | None, _option("Of a set: fit this now, logistic, lda, knn or average.", panel=FILES)
    ] = None,
    seed: Annotated[int, _option("Chance: folds, and the policy random.", panel=RULE)] = 0,
    top: Annotated[int, typer.Option(help="Rows to print.", min=0, rich_help_panel=OUT)] = 20,
    to: Annotated[
        Path | None, _option("File for the table: csv, tsv or parquet; else ranking.csv, in the set.", panel=OUT)
    ] = None,
    json: Annotated[Path | None, _option("Write all rows as JSON, best first.", panel=OUT)] = None,
    report: Annotated[Path | None, _option("Write a page about the ranking: an HTML file.", panel=OUT)] = None,
) -> None:
    """Rank labelled items by how much one more human answer about each is worth.

    A set is ranked by --probabilities, as relook train writes them, else by those that it was imported with, else by
    models that are fitted now to what it holds: a closed form first, whose ranking is there soon, then the full one. Of
    two files, labels and class probabilities are joined by id where both have ids, else row by row. Columns or rows
    that look out of order are refused, and nothing is written then.
    """
    files = tuple(path for path in (labels, probabilities) if path is not None)
    _check_sources(source, files, labels=labels, split=split, method=method)
    found = None if source is None else _set(source)
    out = Out(to or (Path() if source is None else source) / "ranking.csv", json, report, top)
    _check_targets(out.to, json, inputs=files)
    if report is not None:
        check_page(report)
    rule, guarded = _rule(policy, settle, seed=seed), guard if not trust_order else look
    images = None if found is None else images_of(found, split)
    if found is None:
        both = _read(*files, asked=(id, label, classes), allow_missing=allow_missing)
    elif probabilities is not None:
        both = _set_and_file(found, probabilities, split=split)
    else:
        early = first_ranking(rule, out, guarded=guarded)
        both, _ = set_of(found, split=split, seed=seed, method=method, first=early)
    written = tell_ranking(both, rule, out=out, images=images, guarded=guarded)
    show.wrote(*written, following=_next(files) if source is None else f"relook new NAME --data {source} --answers N")


def _set(folder: Path) -> "Imported":
    from relook.imported import read

    return read(folder)


class Out(NamedTuple):
    """Where a ranking is written to, and how many of its rows are printed."""

    to: Path
    json: Path | None = None
    report: Path | None = None
    top: int = 20


def set_of(
    found: "Imported",
    *,
    split: str | None,
    seed: int,
    method: str | None = None,
    first: "Callable[[Matched], None] | None" = None,
) -> tuple["Matched", "LinkedImages | None"]:
    """Return an imported set with probabilities, fitted now where none came along or a method is named, and images."""
    from relook.inputs import of_set
    from relook.selectors import named

    selector = None if method is None else named(method)
    return of_set(found, split=split, seed=seed, selector=selector, first=first), images_of(found, split)


def images_of(found: "Imported", split: str | None) -> "LinkedImages | None":
    """Return the images of an imported set, where it is one of images."""
    return found.images(split) if found.manifest.content == "images" else None


def first_ranking(rule: "Policy", out: Out, *, guarded: "Callable[..., Any]") -> "Callable[[Matched], None]":
    """Return what writes the ranking of a closed form, while the full one is on its way, and says so."""

    def tell(both: "Matched") -> None:
        from relook import ranking
        from relook.predictions import predictions

        seen = predictions(both.labels, both.posteriors)
        guarded(both, seen)
        _write(ranking.ranked(both, rule, seen=seen), out.to, json=None)
        show.say(f"A first ranking is in {out.to}; the full one follows and takes its place. {both.facts[0]}")

    return tell


def tell_ranking(
    both: "Matched",
    rule: "Policy",
    *,
    out: Out,
    images: "LinkedImages | None" = None,
    guarded: "Callable[[Matched, Predictions], Doubt | None] | None" = None,
) -> list[Path]:
    """Rank labels, print what is to be looked at first, write the table and the page, and return what was written."""
    from relook import ranking
    from relook.predictions import predictions

    seen = predictions(both.labels, both.posteriors)
    doubtful = (guarded or guard)(both, seen)
    table = ranking.ranked(both, rule, seen=seen)
    _tell(both, seen, doubtful=doubtful)
    _show(table, out.top, rule=rule.name)
    _write(table, out.to, json=out.json)
    if out.report is not None:
        _page(table, out.report, rule=rule.name, images=images)
    return [path for path in (out.to, out.json, out.report) if path is not None]


def _rule(policy: str, settle: str, *, seed: int) -> "Policy":
    from relook import ranking, stopping
    from relook.policies import Setting

    stop, weight = stopping.named(settle)
    return ranking.ranking_policy(policy, setting=Setting(seed=seed, stop=stop, given_weight=weight))


def _check_sources(
    source: Path | None, files: tuple[Path, ...], *, labels: Path | None, split: str | None, method: str | None
) -> None:
    """Refuse to rank nothing, or two things at once."""
    from relook.errors import BadInput

    if source is not None and labels is not None:
        raise BadInput(
            f"rank: a set, whose labels it holds, or two files were needed, but {source} came with --labels; leave one "
            "out, or import them together by relook import"
        )
    if source is None and len(files) < 2:
        missing = "--probabilities" if labels is not None else "--labels"
        raise BadInput(
            f"rank: an imported set, or --labels and --probabilities, were needed, but {missing} lacks; name it"
        )
    if source is None and (split is not None or method is not None):
        option = "--split" if split is not None else "--method"
        raise BadInput(f"rank: {option} belongs to an imported set, but two files came; import them, or leave it out")
    if method is not None and files:
        raise BadInput("rank: --method or --probabilities was needed, but both came; leave one out")


def _check_targets(to: Path, json: Path | None, *, inputs: tuple[Path, ...]) -> None:
    """Refuse to write where nothing can be written, or over what is read."""
    from relook.errors import BadInput
    from relook.ranking import check_target

    check_target(to)
    targets = [to] if json is None else [to, json]
    for target in targets:
        if any(target.resolve() == path.resolve() for path in inputs):
            raise BadInput(f"{target}: another file to write to was needed, but this one is read; name a new one")
    if json is not None and json.resolve() == to.resolve():
        raise BadInput(f"{json}: two files to write to were needed, but --json and --to name one; name another")
    if json is not None and (json.is_dir() or not json.absolute().parent.is_dir()):
        raise BadInput(
            f"{json}: a file in a folder that is there was needed for --json; make the folder, or name a file"
        )


def _set_and_file(found: "Imported", probabilities: Path, *, split: str | None) -> "Matched":
    from relook.inputs import of_set_and_file

    return of_set_and_file(found, probabilities, split=split)


def _read(
    labels: Path, probabilities: Path, *, asked: tuple[str | None, str | None, str | None], allow_missing: bool
) -> "Matched":
    from relook.inputs import together
    from relook.sources import Columns, names_in

    ids, label, classes = asked
    columns = Columns(ids, label, names_in(classes))
    return together(labels, probabilities, columns=columns, missing="leave out" if allow_missing else "refuse")


def look(both: "Matched", seen: "Predictions") -> "Doubt | None":
    """Return a doubt about the order of columns or rows, which a user overrules."""
    from relook.guard import doubt

    return doubt(both, seen)


def guard(both: "Matched", seen: "Predictions") -> "Doubt | None":
    """Refuse columns or rows that look out of order; return a doubt that is no reason to."""
    from relook.errors import BadInput
    from relook.guard import cure, sentence

    found = look(both, seen)
    if found is not None and found.sure:
        raise BadInput(f"{sentence(both, found, seen=seen)}; {cure(both, found)}, or pass --trust-order")
    return found


def _tell(both: "Matched", seen: "Predictions", *, doubtful: "Doubt | None") -> None:
    """Say what was decided, how well the two files agree, and what to be careful about."""
    from relook.guard import sentence, warnings
    from relook.ranking import wrong_labels
    from relook.sources import counted, listed

    models = counted(both.posteriors.models, "model")
    show.say(f"{counted(len(both), 'item')}, {len(both.classes)} classes, probabilities of {models}.")
    for fact in both.facts:
        show.say(fact)
    show.say(f"Classes in column order: {listed(both.classes, 20)}.")
    show.say(
        f"The likeliest class agrees with the given label on {seen.agreement():.1%} (chance: {seen.chance():.1%})."
    )
    for warning in warnings(both, seen):
        show.say(f"Careful: {warning}")
    if doubtful is not None:
        show.say(f"Careful: {sentence(both, doubtful, seen=seen)}")
    wrong = wrong_labels(both, seen)
    if wrong is None:
        show.say("How many labels are wrong cannot be told from these probabilities.")
    else:
        show.say(
            f"Probably wrong: roughly {wrong.share:.1%} ({wrong.low:.1%} to {wrong.high:.1%}); the model's mistakes "
            "are among them, and only people's answers can tell."
        )


def _show(table: "Ranked", top: int, *, rule: str) -> None:
    from relook.policies import POLICIES

    meaning = f": {POLICIES[rule][1]}" if rule in POLICIES else ""
    show.say(f"Ranked by {rule}{meaning}.")
    if top:
        # An id is a name, even where it is a number.
        show.table([row | {"id": str(row["id"])} for row in table.rows(top)], SHOWN)


def _write(table: "Ranked", to: Path, *, json: Path | None) -> None:
    from relook.ranking import write, write_json

    write(table, to)
    if json is not None:
        write_json(table, json)


def _page(table: "Ranked", path: Path, *, rule: str, images: "LinkedImages | None") -> None:
    from datetime import UTC, datetime

    from relook.report import RankingReport, write
    from relook.types import Dataset

    both = table.both
    ids = [both.name(item) for item in range(len(both))]
    pictures = cast("Sequence[Any] | None", images)
    dataset = Dataset(both.source, both.classes, ids, both.labels, images=pictures)
    today = datetime.now(UTC).date().isoformat()
    write(path, RankingReport(dataset, both.posteriors, table.priority, today, policy=rule))


def _next(files: tuple[Path, ...]) -> str:
    if {path.suffix for path in files} <= {".npy", ".npz"}:
        return "relook simulate --labels {} --probabilities {} --truth COUNTS".format(*files)
    return "relook simulate --help"
