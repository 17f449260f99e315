"""What posteriors without deep learning cost and are worth: a big table, and four real sets with wrong labels.

    python -m benchmarks.selectors [--to FOLDER] [--items 80000]

Each selector runs in a process of its own: wall seconds on the cores there are, CPU seconds of all of them together,
which a busy machine changes less, and the peak of its memory. Agreement,
log loss and calibration error are measured on held-out given labels, and defaults were chosen by them; the share that
is right about the truth is reported beside them and was looked at for nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time, time
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from relook import datasets
from relook.calibration import calibration
from relook.selectors import FIRST, FULL, SELECTORS, named
from relook.types import FloatArray, Labels

ITEMS, WIDTH, CLASSES, WRONG = 80_000, 768, 100, 0.2
FIRST_SECONDS, FULL_SECONDS = 60.0, 600.0
COLUMNS = {
    "set": "set",
    "method": "method",
    "folds": "folds",
    "seconds": "seconds",
    "cpu": "CPU seconds",
    "peak": "peak MB",
    "agreement": "agrees with given",
    "log_loss": "log loss",
    "error": "calibration error",
    "right": "right about the truth (report only)",
}


class Task(NamedTuple):
    """Features, given labels, and the truth."""

    features: FloatArray
    labels: Labels
    truth: np.ndarray


def big(items: int = ITEMS) -> Task:
    """Return clouds in a random frame whose directions vary unalike, as embeddings do, and labels of which 20 % lie."""
    rng = np.random.default_rng(0)
    truth = rng.integers(CLASSES, size=items)
    spread = (1 + np.arange(WIDTH)) ** -0.5
    middle = rng.standard_normal((CLASSES, WIDTH)) * spread * 0.2
    frame = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0].astype(np.float32)
    table = (rng.standard_normal((items, WIDTH), dtype=np.float32) * spread + middle[truth]).astype(np.float32) @ frame
    other = (truth + rng.integers(1, CLASSES, size=items)) % CLASSES
    return Task(table, Labels(np.where(rng.random(items) < WRONG, other, truth), CLASSES), truth)


def cifar10h() -> Task:
    """Return the paper's 5,000 images at tau 10, described by BYOL on all 60,000 images without any label."""
    found = datasets.load("cifar10h", settings={"subset": "paper", "tau": 10.0})
    path = Path(os.environ[datasets.FOLDER]) / "embeddings" / "cifar10-test-byol60k.npy"
    rows = [int(name) for name in found.ids]
    return Task(np.load(path, allow_pickle=False)[rows], found.given, found.true_class)


def digits() -> Task:
    """Return handwritten digits of 8 x 8, a fifth of whose labels depend on the image and are wrong."""
    found = datasets.load("digits")
    assert found.features is not None
    return Task(found.features, found.given, found.true_class)


def pneumonia(wrong: float = 0.0) -> Task:
    """Return pixels of radiographs of children, 28 x 28, with a share of labels flipped on purpose."""
    found = datasets.load("pneumoniamnist")
    assert found.images is not None
    truth = found.given.label()
    flipped = np.random.default_rng(0).random(len(found)) < wrong
    pixels = np.asarray(found.images, np.float32).reshape(len(found), -1)
    return Task(pixels, Labels(np.where(flipped, 1 - truth, truth), 2), truth)


TASKS = {
    "80,000 x 768, 100 classes": big,
    "cifar10h paper, BYOL": cifar10h,
    "digits": digits,
    "PneumoniaMNIST pixels": pneumonia,
    "PneumoniaMNIST pixels, 20 % flipped": lambda: pneumonia(0.2),
}


def measured(name: str, method: str, *, repeats: int, items: int) -> dict[str, Any]:
    """Return a row: one selector on one set, in this process."""
    task = big(items) if TASKS[name] is big else TASKS[name]()
    selector = named(method, repeats=repeats)
    began, worked = perf_counter(), process_time()
    found = selector(task.features, task.labels)
    seconds, cpu = perf_counter() - began, process_time() - worked
    fit = calibration(found, task.labels)
    return {
        "set": name,
        "method": method,
        "folds": "each item" if method == "knn" else f"5 x {repeats}",
        "seconds": round(seconds, 1),
        "cpu": round(cpu, 1),
        "peak": round(_peak()),
        "agreement": round(fit.agreement, 4),
        "log_loss": round(fit.log_loss, 4),
        "error": round(fit.error, 3),
        "right": round(float((found.mean().argmax(1) == task.truth).mean()), 4),
    }


def _peak() -> float:
    """Return the peak of this process, the set itself included, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def _apart(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.selectors", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=record.ROOT)
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def checks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the first and the full ranking of the big table may take, and took."""
    bounds = {(FIRST, "5 x 1"): FIRST_SECONDS, (FULL, "5 x 3"): FULL_SECONDS}
    found = [row for row in rows if row["set"].startswith("80,000")]
    return [
        {
            "what": f"{row['set']}: {row['method']}, {row['folds']} folds",
            "needed": f"under {bound:g} s",
            "found": f"{row['seconds']} s, {row['cpu']} CPU seconds",
            "holds": row["seconds"] < bound,
        }
        for row in found
        if (bound := bounds.get((row["method"], row["folds"])))
    ]


def main() -> int:
    """Measure all, print it, write it where it is wanted, and say with the status whether all bounds hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", type=Path)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--measure", nargs=3)
    asked = parser.parse_args()
    if asked.measure:
        name, method, repeats = asked.measure
        print(json.dumps(measured(name, method, repeats=int(repeats), items=asked.items)))
        return 0
    started, rows = time(), []
    for name, task in TASKS.items():
        for method in SELECTORS:
            repeats = 3 if task is big and method == FULL else 1
            rows.append(_apart("--measure", name, method, str(repeats), "--items", str(asked.items)))
            print(rows[-1], flush=True)
    result = {
        "title": __doc__.partition("\n")[0] if __doc__ else "",
        "command": "python -m benchmarks.selectors",
        "machine": record.machine() + ", shared with other work",
        "commit": record.commit(),
        "seconds": round(time() - started),
        "seed": 0,
        "rows": rows,
        "checks": checks(rows),
    }
    print(record.page("selectors", result, columns=COLUMNS))
    if asked.to is not None:
        record.write(asked.to, "selectors", found=result, columns=COLUMNS)
    return 0 if all(check["holds"] for check in result["checks"]) else 1


if __name__ == "__main__":
    sys.exit(main())
