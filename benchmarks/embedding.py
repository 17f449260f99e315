"""What frozen networks are worth on a processor: seconds, and how right heads on their embeddings are about the truth.

    python -m benchmarks.embedding judge FOLDER --data DATA     # networks and their joins, on the 5,000 others
    python -m benchmarks.embedding report FOLDER --data DATA    # the chosen one, once, on the paper's 5,000

All 10,000 test images of CIFAR-10 are embedded; rows are kept in FOLDER, with the seconds that each network took.
Recipes are judged on the 5,000 images outside the paper's subset, with given labels of their own draw: the subset's
truth is not looked at before the report.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from benchmarks import record
from relook.annotators import Crowd
from relook.datasets import load
from relook.embedding import embedded, model
from relook.noise import Temperature
from relook.policies import Setting, named
from relook.simulation import Simulation, simulate
from relook.types import Dataset, Labels, Posteriors

SEED, TAU, BUDGET, ANSWER_SEEDS = 77, 10.0, 4_455, 5
NETWORKS = ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2")
RECIPES: Mapping[str, tuple[str, ...]] = {
    "lite0": NETWORKS[:1],
    "lite1": NETWORKS[1:2],
    "lite2": NETWORKS[2:],
    "lite1 + lite2": NETWORKS[1:],
    "lite0 + lite1 + lite2": NETWORKS,
}
CHOSEN = "lite0 + lite1 + lite2"
POLICIES = ("default", "margin", "paper")
FOLDS, REPEATS, SHRINKAGE = 5, 3, 0.45
COLUMNS = {
    "recipe": "networks",
    "numbers": "numbers",
    "seconds": "seconds",
    "cpu": "CPU seconds",
    "right": "right %",
    "shown": "final % (sd) / AUC (sd): default; margin; paper",
}


def described(folder: Path, data: Path) -> dict[str, np.ndarray]:
    """Return the embeddings of all images by each network, and note how long those took that were not kept."""
    whole = load("cifar10h", data, settings={"subset": "all", "images": data / "cifar10"})
    assert whole.images is not None
    images = [np.asarray(whole.images[item]) for item in range(len(whole))]
    tables = {}
    for name in NETWORKS:
        began, cpu = time.perf_counter(), time.process_time()
        made = embedded(images, model(name), kept=folder)
        if made.new:
            took = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu, "images": made.new}
            (folder / f"{name}.json").write_text(json.dumps(took))
        tables[name] = made.values
    return tables


def other_half(data: Path) -> tuple[Dataset, np.ndarray]:
    """Return the 5,000 images outside the paper's subset with given labels of their own draw, and their rows."""
    whole = load("cifar10h", data, settings={"subset": "all"})
    subset = load("cifar10h", data, settings={"subset": "paper"})
    rows = np.setdiff1d(np.arange(len(whole)), [int(name) for name in subset.ids])
    truth = np.asarray(whole.truth)[rows]
    given = Temperature(TAU)(truth, np.random.default_rng(SEED))
    labels = Labels(given, len(whole.classes))
    return Dataset("the other half", whole.classes, [str(row) for row in rows], labels, truth=truth), rows


def the_papers(data: Path) -> tuple[Dataset, np.ndarray]:
    """Return the paper's 5,000 images with the released code's labels, and their rows."""
    found = load("cifar10h", data, settings={"subset": "paper", "tau": TAU})
    return found, np.array([int(name) for name in found.ids])


def head(tables: Sequence[np.ndarray], given: np.ndarray, *, classes: int) -> np.ndarray:
    """Return out-of-sample probabilities, N x C: the mean of each table's linear discriminants and of the joined one's.

    How sure they may be is fitted to the given labels of the other folds, which a share of the items has by chance.
    """
    every = [*tables, np.hstack(tables)] if len(tables) > 1 else list(tables)
    total = np.zeros((len(given), classes))
    for table in every:
        plain = ((table - table.mean(0)) / (table.std(0) + 1e-6)).astype(np.float32)
        for repeat in range(REPEATS):
            total += _cross_fitted(plain, np.eye(classes)[given], np.random.default_rng(repeat))
    return total / total.sum(1, keepdims=True)


def _cross_fitted(table: np.ndarray, hot: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    fold = rng.permutation(len(table)) % FOLDS
    scores = np.zeros_like(hot)
    for part in range(FOLDS):
        seen = fold != part
        means = (hot[seen].T @ table[seen]) / hot[seen].sum(0)[:, None]
        rest = table[seen] - (hot[seen] @ means).astype(np.float32)
        spread = (rest.T @ rest / seen.sum()).astype(float)
        spread = (1 - SHRINKAGE) * spread + SHRINKAGE * np.diag(spread).mean() * np.eye(len(spread))
        weights = np.linalg.solve(spread, means.T)
        scores[~seen] = table[~seen] @ weights - 0.5 * (means * weights.T).sum(1) + np.log(hot[seen].mean(0))
    out = np.zeros_like(hot)
    for part in range(FOLDS):
        seen = fold != part
        out[~seen] = softmax(scores[~seen] / _sureness(scores[seen], hot[seen]))
    return out


def _sureness(scores: np.ndarray, hot: np.ndarray) -> float:
    """Return the temperature at which scores explain labels best, where a share of the labels is chance alone."""

    def loss(temperature: float, share: float) -> float:
        said = (softmax(scores / temperature) * hot).sum(1)
        return float(-np.log((1 - share) * said + share * hot.mean(0)[hot.argmax(1)]).mean())

    grid = [(temperature, share) for temperature in np.geomspace(0.7, 6, 12) for share in np.linspace(0.05, 0.5, 10)]
    return min(grid, key=lambda pair: loss(*pair))[0]


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return shares of 1, row by row."""
    shares = np.exp(logits - logits.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True)


def campaigns(dataset: Dataset, posteriors: np.ndarray) -> dict[str, dict[str, float]]:
    """Return the share of right labels at the end and the AUC of each policy, over answer seeds."""
    truth, kept = np.asarray(dataset.truth), Posteriors(posteriors)
    found = {}
    for policy in POLICIES:
        runs = [
            simulate(
                dataset,
                Simulation(named(policy, Setting(truth=truth, seed=s)), BUDGET, [Crowd(truth, s)], kept, seed=s),
            ).row()
            for s in range(ANSWER_SEEDS)
        ]
        shares, aucs = ([run[name] for run in runs] for name in ("share_correct", "auc"))
        found[policy] = {"final": fmean(shares), "sd": stdev(shares), "auc": fmean(aucs), "auc_sd": stdev(aucs)}
    return found


def row(
    name: str, folder: Path, *, dataset: Dataset, tables: Sequence[np.ndarray]
) -> tuple[dict[str, Any], np.ndarray]:
    """Return what a recipe reached, and its posteriors."""
    began = time.process_time()
    posteriors = head(tables, np.asarray(dataset.given.given), classes=len(dataset.classes)).astype(np.float16)
    posteriors = posteriors.astype(float) / posteriors.astype(float).sum(1, keepdims=True)
    took = [json.loads((folder / f"{network}.json").read_text()) for network in RECIPES[name]]
    played = campaigns(dataset, posteriors)
    shown = [
        f"{100 * f['final']:.2f} ({100 * f['sd']:.2f}) / {f['auc']:.4f} ({f['auc_sd']:.4f})" for f in played.values()
    ]
    return {
        "recipe": name,
        "numbers": sum(table.shape[1] for table in tables),
        "seconds": round(sum(each["seconds"] for each in took), 1),
        "cpu": round(sum(each["cpu"] for each in took), 1),
        "head_cpu": round(time.process_time() - began, 1),
        "right": round(100 * float((posteriors.argmax(1) == dataset.true_class).mean()), 2),
        "campaigns": played,
        "shown": "; ".join(shown),
    }, posteriors


def main() -> None:
    """Judge or report, and write what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=("judge", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    began, results = time.perf_counter(), record.ROOT / "benchmarks" / "results"
    options.folder.mkdir(exist_ok=True)
    tables = described(options.folder, options.data)
    dataset, rows = (other_half if options.step == "judge" else the_papers)(options.data)
    found = []
    for name in RECIPES if options.step == "judge" else [CHOSEN]:
        made, posteriors = row(name, options.folder, dataset=dataset, tables=[tables[n][rows] for n in RECIPES[name]])
        found.append({"images": dataset.name, **made})
        print(json.dumps(found[-1]), flush=True)
    place, earlier = results / "embedding.json", []
    if place.is_file():
        earlier = [each for each in json.loads(place.read_text())["rows"] if each["images"] != dataset.name]
    told = {
        "title": TITLE,
        "command": "python -m benchmarks.embedding judge FOLDER --data DATA, then report",
        "machine": f"two shared CPU cores ({record.machine()})",
        "commit": record.commit(),
        "seconds": round(time.perf_counter() - began, 1),
        "seed": SEED,
        "rows": [*earlier, *found],
        "checks": [],
    }
    record.write(results, "embedding", found=told, columns={"images": "images", **COLUMNS})
    if options.step == "report":
        kept = record.ROOT / "benchmarks" / "posteriors"
        kept.mkdir(exist_ok=True)
        labels = np.asarray(dataset.given.given)
        np.savez_compressed(
            kept / "cifar10h-tau10-efficientnet.npz", posteriors=posteriors.astype(np.float16), labels=labels, ids=rows
        )


TITLE = """EfficientNet-Lite as published, frozen, at 160 pixels, the mean over each image and its mirror image, stages
of 80 to 320 channels joined; cross-fitted linear discriminants (5 folds, three times) on labels of which 26 % (the
other half) and 30 % (the paper's images) are wrong. `seconds` are for all 10,000 test images of CIFAR-10 while seven
others worked on the same two cores, `CPU seconds` what the work itself took: half of them is the time on two free
cores. `right` is the share whose true class is said, out of sample. Campaigns: 4,455 answers, five answer seeds, phi
("paper") in one pass.
"""

if __name__ == "__main__":
    main()
