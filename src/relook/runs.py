"""Simulated campaigns on disk: a folder with their rows, their curves, how they came about, and what a report shows.

A folder holds `rows.json` (a row a run), `curves.npz` (arrays named `policy|seed|quantity`), `resolved.json`
(configuration, versions, seeds, hashes of the inputs) and, where there is more to show, `extra.json`. Every file
appears whole or not at all.
"""

import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from relook.curves import Curve, difficult
from relook.errors import BadInput
from relook.metrics import answers_per_item, kinds
from relook.simulation import Run
from relook.types import Dataset, FloatArray, IntArray
from relook.whole import drafted

Matrix = tuple[tuple[float, ...], ...]
"""Items by true class (rows) and label (columns)."""

QUANTITIES = Curve.__struct_fields__
ROWS, CURVES, RESOLVED, EXTRA, PARTS = "rows.json", "curves.npz", "resolved.json", "extra.json", "parts"

_Read = TypeVar("_Read")


class Outcome(msgspec.Struct, frozen=True):
    """What became of the visits and the labels: of one run, or of a policy's runs on average.

    `kinds` counts visits by `relook.metrics.KINDS`; `answers_per_item` is of clear and difficult items; `confusion`
    holds the final labels against the truth, for `all` items and the `difficult` ones.
    """

    kinds: dict[str, float]
    answers_per_item: dict[str, float]
    confusion: dict[str, Matrix]


class Tile(msgspec.Struct, frozen=True):
    """One item in a gallery; `image` is a PNG or JPEG, `rank` counts from 1, `posterior` is what the model says."""

    id: str
    rank: int
    given: str
    noisiness: float
    ambiguity: float
    image: bytes
    truth: tuple[float, ...] | None = None
    posterior: tuple[float, ...] | None = None


class Shelf(msgspec.Struct, frozen=True):
    """One part of a ranking, such as its top 10 %, and some of its items.

    `wrong` and `difficult` are shares of all items of the part, known where the truth is.
    """

    title: str
    tiles: tuple[Tile, ...]
    wrong: float | None = None
    difficult: float | None = None


class Extra(msgspec.Struct, frozen=True):
    """What a report shows beyond rows and curves; all of it may be missing.

    `given` is the confusion of the given labels with the truth; `against` the policy that others are compared with;
    `bounds` names policies to draw as bounds besides `relook.policies.BOUNDS`; `ranked_by` the policy whose ranking the
    gallery shows.
    """

    dataset: str = ""
    items: int = 0
    classes: tuple[str, ...] = ()
    given: dict[str, Matrix] = {}
    outcomes: dict[str, Outcome] = {}
    against: str | None = None
    bounds: tuple[str, ...] = ()
    ranked_by: str = ""
    gallery: tuple[Shelf, ...] = ()


class Record(msgspec.Struct, frozen=True, eq=False):
    """What is kept of one run."""

    row: dict[str, Any]
    curve: Curve
    outcome: Outcome | None = None


class Runs(msgspec.Struct, frozen=True, eq=False):
    """All runs of a simulation: what a folder of runs holds. Curves are found by policy and seed."""

    rows: tuple[dict[str, Any], ...]
    curves: dict[tuple[str, int], Curve]
    resolved: dict[str, Any] = {}
    extra: Extra = Extra()

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies in the order of the rows."""
        return tuple(dict.fromkeys(row["policy"] for row in self.rows))

    def rows_of(self, policy: str) -> list[dict[str, Any]]:
        """Return the rows of a policy, a row a seed."""
        return [row for row in self.rows if row["policy"] == policy]

    def curves_of(self, policy: str) -> list[Curve]:
        """Return the curves of a policy, in the order of its rows."""
        return [self.curves[policy, row["seed"]] for row in self.rows_of(policy)]


class Paired(msgspec.Struct, frozen=True):
    """How a policy differs from another over the seeds they share: mean, its 95 % interval, and how often it is higher.

    With a single seed there is no interval: its ends are None.
    """

    policy: str
    against: str
    quantity: str
    mean: float
    low: float | None
    high: float | None
    wins: int
    seeds: int


class _Row(msgspec.Struct, frozen=True):
    """What a row must hold; it may hold more."""

    policy: str
    seed: int
    answers: int
    items: int
    share_correct: float
    auc: float
    total_variation: float
    clear_left: int
    difficult_left: int


def recorded(run: Run, dataset: Dataset) -> Record:
    """Return what is kept of a run: its row, its curve, and what became of visits and labels.

    >>> from relook import Crowd, Labels, Simulation, named, simulate
    >>> dataset = Dataset("two", ("cat", "dog"), ("a", "b"), Labels([1, 1], 2), truth=np.array([[1., 0.], [0., 1.]]))
    >>> run = simulate(dataset, Simulation(named("random"), 3, [Crowd(dataset.truth, seed=0)]))
    >>> recorded(run, dataset).outcome.confusion["all"]
    ((1.0, 0.0), (0.0, 1.0))
    """
    if dataset.truth is None:
        raise BadInput(f"{dataset.name}: the truth was needed to judge a run, but this set has none; pass --truth")
    truth = np.asarray(dataset.truth)
    counted = {name: float(count) for name, count in kinds(run.events, dataset.given, truth=truth).items()}
    outcome = Outcome(counted, answers_per_item(run.events, truth), confusions(truth, run.final))
    return Record(run.row(), run.curve, outcome)


def confusions(truth: FloatArray, labels: IntArray) -> dict[str, Matrix]:
    """Count labels by true class, for all items and for the difficult ones; an unlabelled item is left out.

    >>> confusions(np.array([[1., 0.], [.4, .6]]), np.array([1, 1]))
    {'all': ((0.0, 1.0), (0.0, 1.0)), 'difficult': ((0.0, 0.0), (0.0, 1.0))}
    """
    hard, classes = difficult(truth), truth.shape[1]
    right = truth.argmax(1)
    counted = {}
    for name, chosen in (("all", labels >= 0), ("difficult", hard & (labels >= 0))):
        counts = np.bincount(right[chosen] * classes + labels[chosen], minlength=classes * classes)
        counted[name] = _matrix(counts.reshape(classes, classes))
    return counted


def described(dataset: Dataset) -> Extra:
    """Return what a report says of the data set itself."""
    given = {} if dataset.truth is None else confusions(np.asarray(dataset.truth), dataset.given.label())
    return Extra(dataset.name, len(dataset), tuple(dataset.classes), given)


def gathered(
    records: Sequence[Record], *, resolved: Mapping[str, Any] | None = None, extra: Extra | None = None
) -> Runs:
    """Return the records as one simulation, outcomes averaged over each policy's runs."""
    outcomes: dict[str, list[Outcome]] = {}
    for each in records:
        if each.outcome is not None:
            outcomes.setdefault(each.row["policy"], []).append(each.outcome)
    curves = {(each.row["policy"], each.row["seed"]): each.curve for each in records}
    if len(curves) < len(records):
        raise BadInput(f"runs: a policy and a seed make one run, but {_first_double(records)} came twice; keep one")
    averages = {policy: _average(parts) for policy, parts in outcomes.items()}
    complete = msgspec.structs.replace(extra or Extra(), outcomes=averages)
    return Runs(tuple(each.row for each in records), curves, dict(resolved or {}), complete)


def paired(runs: Runs, against: str, *, quantity: str = "share_correct") -> list[Paired]:
    """Compare every other policy with one, seed by seed, with a 95 % interval of the mean difference by Student's t.

    >>> row = {"policy": "a", "seed": 0, "share_correct": .9}
    >>> runs = Runs((row, row | {"seed": 1}, row | {"policy": "b", "share_correct": .8}), {})
    >>> [(each.policy, round(each.mean, 2), each.wins, each.seeds) for each in paired(runs, "a")]
    [('b', -0.1, 0, 1)]
    """
    reference = {row["seed"]: row[quantity] for row in runs.rows_of(against)}
    if not reference:
        known = ", ".join(runs.policies)
        raise BadInput(f"runs: one of {known} was needed to compare with, but {against!r} came; simulate it as well")
    found = []
    for policy in runs.policies:
        here = {row["seed"]: row[quantity] for row in runs.rows_of(policy)}
        differences = np.array([here[seed] - reference[seed] for seed in here if seed in reference])
        if policy != against and len(differences):
            found.append(_paired(differences, policy=policy, against=against, quantity=quantity))
    return found


def _paired(differences: FloatArray, *, policy: str, against: str, quantity: str) -> Paired:
    count, mean = len(differences), float(differences.mean())
    wins = int((differences > 0).sum())
    if count == 1:
        return Paired(policy, against, quantity, mean, None, None, wins, 1)
    from scipy.special import stdtrit

    half = float(stdtrit(count - 1, 0.975) * differences.std(ddof=1) / np.sqrt(count))
    return Paired(policy, against, quantity, mean, mean - half, mean + half, wins, count)


def write_runs(folder: Path, runs: Runs) -> list[Path]:
    """Write a folder of runs and return its files; parts of it that were kept on the way are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"{policy}|{seed}|{name}": getattr(curve, name)
        for (policy, seed), curve in runs.curves.items()
        for name in QUANTITIES
    }
    _replace_arrays(folder / CURVES, arrays)
    for name, content in ((EXTRA, runs.extra), (RESOLVED, runs.resolved), (ROWS, list(runs.rows))):
        replace_file(folder / name, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    return [folder / name for name in (ROWS, CURVES, RESOLVED, EXTRA)]


def read_runs(folder: Path) -> Runs:
    """Read a folder that `write_runs` wrote."""
    if not folder.is_dir():
        raise BadInput(f"runs: a folder that `relook simulate` wrote was needed, but {folder} is none; check the path")
    rows = _json(folder / ROWS, list[dict[str, Any]], what="a list of rows")
    if not rows:
        raise BadInput(f"runs: {folder / ROWS} must hold at least one run, but it is empty; simulate again")
    for number, row in enumerate(rows):
        _check_row(row, f"{folder / ROWS}, row {number}")
    arrays = _arrays(folder / CURVES)
    curves = {(row["policy"], row["seed"]): _curve(arrays, row, path=folder / CURVES) for row in rows}
    if len(curves) < len(rows):
        raise BadInput(f"runs: a policy and a seed make one run, but {folder / ROWS} has one twice; keep one")
    resolved = _json(folder / RESOLVED, dict[str, Any], what="the resolved configuration")
    extra = _json(folder / EXTRA, Extra, what="what a report shows besides") if (folder / EXTRA).exists() else Extra()
    return Runs(tuple(rows), curves, resolved, extra)


def write_part(folder: Path, record: Record, *, key: str) -> None:
    """Keep one finished run in a folder, under a key of its own, so that a simulation that is killed goes on there."""
    told = msgspec.json.encode({"row": record.row, "outcome": record.outcome})
    arrays = {name: getattr(record.curve, name) for name in QUANTITIES}
    _replace_arrays(folder / PARTS / f"{key}.npz", {"told": np.frombuffer(told, np.uint8)} | arrays)


def read_part(folder: Path, *, key: str) -> Record | None:
    """Return the run that was kept under a key, or None."""
    path = folder / PARTS / f"{key}.npz"
    return _part(path) if path.is_file() else None


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that it is seen whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafted(path) as draft:
        draft.write_bytes(content)


def _replace_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    from io import BytesIO

    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", compresslevel=1) as archive:
        for name, array in arrays.items():
            # An entry made by hand has a fixed date, so that equal runs make equal files.
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    replace_file(path, buffer.getvalue())


def _part(path: Path) -> Record:
    arrays = _arrays(path)
    told = arrays.pop("told", np.zeros(0, np.uint8)).tobytes()
    try:
        found = msgspec.json.decode(told, type=dict[str, Any])
        row = found["row"]
        outcome = msgspec.convert(found["outcome"], Outcome | None, strict=False)
    except (msgspec.DecodeError, msgspec.ValidationError, KeyError) as error:
        raise BadInput(f"runs: {path} must hold one finished run, but it does not ({error}); remove it") from None
    _check_row(row, str(path))
    named = {f"{row['policy']}|{row['seed']}|{name}": array for name, array in arrays.items()}
    return Record(row, _curve(named, row, path=path), outcome)


def _json(path: Path, kind: type[_Read], *, what: str) -> _Read:
    if not path.is_file():
        raise BadInput(f"runs: {path} was needed, with {what}, but there is no such file; simulate again")
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"runs: {path} must hold {what}, but it does not ({error}); simulate again") from None


def _check_row(row: Any, where: str) -> None:
    try:
        msgspec.convert(row, _Row)
    except msgspec.ValidationError as error:
        raise BadInput(f"runs: {where}: a run's row was needed, but it is none ({error}); simulate again") from None


def _arrays(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise BadInput(f"runs: {path} was needed, with the curves, but there is no such file; simulate again")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise BadInput(f"runs: {path} must hold arrays, but it is broken ({error}); simulate again") from None


def _curve(arrays: Mapping[str, Any], row: Mapping[str, Any], *, path: Path) -> Curve:
    policy, seed = row["policy"], row["seed"]
    parts = [arrays.get(f"{policy}|{seed}|{name}", np.zeros(0)) for name in QUANTITIES]
    shapes = {part.shape for part in parts}
    if len(shapes) > 1 or len(parts[0].shape) != 1 or not parts[0].size:
        raise BadInput(
            f"runs: {path} must hold {len(QUANTITIES)} equally long curves of {policy}, seed {seed}, but it does not; "
            "simulate again"
        )
    return Curve(*parts)


def _average(outcomes: Sequence[Outcome]) -> Outcome:
    first = outcomes[0]
    return Outcome(
        {name: float(np.mean([each.kinds[name] for each in outcomes])) for name in first.kinds},
        {name: float(np.mean([each.answers_per_item[name] for each in outcomes])) for name in first.answers_per_item},
        {name: _matrix(np.mean([each.confusion[name] for each in outcomes], axis=0)) for name in first.confusion},
    )


def _matrix(counts: Any) -> Matrix:
    return tuple(tuple(float(count) for count in row) for row in counts)


def _first_double(records: Sequence[Record]) -> str:
    seen = set()
    for each in records:
        key = f"{each.row['policy']}, seed {each.row['seed']},"
        if key in seen:
            return key
        seen.add(key)
    return ""
