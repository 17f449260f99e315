"""`relook rank`: which labels to look at first, from two files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relook.cli import show
from relook.cli.report import check_page

if TYPE_CHECKING:
    from relook.alignment import Matched
    from relook.guard import Doubt
    from relook.predictions import Predictions
    from relook.ranking import Ranked

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
    *,
    labels: Annotated[
        Path, _option("Given labels: npy, npz, csv, tsv, parquet or jsonl.", "--labels", "-l", panel=FILES)
    ],
    probabilities: Annotated[
        Path,
        _option("Class probabilities, N x C or M x N x C.", "--probabilities", "--pred-probs", "-p", panel=FILES),
    ],
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
    seed: Annotated[int, _option("Chance, for the policy random.", panel=RULE)] = 0,
    top: Annotated[int, typer.Option(help="Rows to print.", min=0, rich_help_panel=OUT)] = 20,
    to: Annotated[Path, _option("File for the table: csv, tsv or parquet.", panel=OUT)] = Path("ranking.csv"),
    json: Annotated[Path | None, _option("Write all rows as JSON, best first.", panel=OUT)] = None,
    report: Annotated[Path | None, _option("Write a page about the ranking: an HTML file.", panel=OUT)] = None,
) -> None:
    """Rank labelled items by how much one more human answer about each is worth.

    Labels and class probabilities are joined by id where both files have ids, else row by row. Columns or rows that
    look out of order are refused, and nothing is written then.
    """
    from relook import ranking, stopping
    from relook.policies import Setting

    _check_targets(to, json, inputs=(labels, probabilities))
    if report is not None:
        check_page(report)
    stop, weight = stopping.named(settle)
    setting = Setting(seed=seed, stop=stop, given_weight=weight)
    rule = ranking.ranking_policy(policy, setting=setting)
    both, seen = _read(labels, probabilities, asked=(id, label, classes), allow_missing=allow_missing)
    doubtful = _guard(both, seen, trust_order=trust_order)
    table = ranking.ranked(both, rule, seen=seen)
    _tell(both, seen, doubtful=doubtful)
    _show(table, top, rule=policy)
    _write(table, to, json=json)
    if report is not None:
        _page(table, report, rule=policy)
    written = [path for path in (to, json, report) if path is not None]
    show.wrote(*written, following=_next(labels, probabilities))


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


def _read(
    labels: Path, probabilities: Path, *, asked: tuple[str | None, str | None, str | None], allow_missing: bool
) -> tuple["Matched", "Predictions"]:
    from relook.inputs import together
    from relook.predictions import predictions
    from relook.sources import Columns

    ids, label, classes = asked
    named = None if classes is None else tuple(name.strip() for name in classes.split(","))
    columns = Columns(ids, label, named)
    both = together(labels, probabilities, columns=columns, missing="leave out" if allow_missing else "refuse")
    return both, predictions(both.labels, both.posteriors)


def _guard(both: "Matched", seen: "Predictions", *, trust_order: bool) -> "Doubt | None":
    """Refuse columns or rows that look out of order; return a doubt that is no reason to, or that a user overrules."""
    from relook.errors import BadInput
    from relook.guard import cure, doubt, sentence

    found = doubt(both, seen)
    if found is not None and found.sure and not trust_order:
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


def _page(table: "Ranked", path: Path, *, rule: str) -> None:
    from datetime import UTC, datetime

    from relook.report import RankingReport, write
    from relook.types import Dataset

    both = table.both
    ids = [both.name(item) for item in range(len(both))]
    dataset = Dataset(both.source, both.classes, ids, both.labels)
    today = datetime.now(UTC).date().isoformat()
    write(path, RankingReport(dataset, both.posteriors, table.priority, today, policy=rule))


def _next(labels: Path, probabilities: Path) -> str:
    if {labels.suffix, probabilities.suffix} <= {".npy", ".npz"}:
        return f"relook simulate --labels {labels} --probabilities {probabilities} --truth COUNTS"
    return "relook simulate --help"
