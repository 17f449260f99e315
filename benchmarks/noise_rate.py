"""How far off the estimated noise rate is, on labels whose truth is known; the estimate never sees it.

    python -m benchmarks.noise_rate --data FOLDER

A quick head (linear discriminants on an embedding, out of sample by 5 folds) tells the rate that co-teaching drops by
default. On CIFAR-10H labels are drawn from people's answers at a temperature, so noise grows with difficulty; beside it
stand labels with the same share of wrong ones everywhere. Small pictures show what a weak head does.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks import record
from relook.datasets import load
from relook.noise import Temperature
from relook.train.crossing import FloatArray, IntArray, fold_of, out_of_sample
from relook.train.noise_rate import noise_rate
from relook.train.parts import Lda

SEED = 1
COLUMNS = {
    "head": "head on",
    "labels": "labels",
    "right": "head right",
    "true": "wrong labels",
    "estimated": "estimated",
    "off": "off by",
}


def measured(table: FloatArray, given: IntArray, *, truth: IntArray) -> dict[str, float]:
    """Return the true and the estimated share of wrong labels, and how right the head is."""
    masses = np.eye(int(truth.max()) + 1, dtype=np.float32)[given]

    def learn(known: FloatArray, asked: IntArray, *, name: str) -> FloatArray:  # noqa: ARG001
        return Lda().said(table, known, asked=asked)[np.newaxis]

    said = out_of_sample(learn, masses, fold_of=fold_of(masses, 5, seed=SEED))[0]
    true, estimated = float((given != truth).mean()), noise_rate(said, given)
    found = {"right": float((said.argmax(1) == truth).mean()), "true": true, "estimated": estimated}
    return {name: round(value, 3) for name, value in (found | {"off": estimated - true}).items()}


def spread(truth: IntArray, share: float) -> IntArray:
    """Return labels of which a share is drawn evenly from the other classes."""
    rng = np.random.default_rng(SEED)
    flipped = rng.random(len(truth)) < share
    other = (truth + rng.integers(1, 10, len(truth))) % 10
    return np.where(flipped, other, truth)


def main() -> None:
    """Measure, print and keep the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--to", type=Path, default=record.ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    began = time.perf_counter()
    whole = load("cifar10h", options.data, settings={"images": options.data / "cifar10"})
    people, true = np.asarray(whole.truth), whole.true_class
    assert whole.images is not None
    small = np.stack([np.asarray(each).reshape(8, 4, 8, 4, 3).mean((1, 3)).ravel() for each in whole.images])
    embedding = np.load(options.data / "embeddings" / "cifar10-test-byol60k.npy", allow_pickle=False)
    heads = {"BYOL's embedding": embedding.astype(np.float32), "8 x 8 pixels": small.astype(np.float32)}
    drawn = {f"people, tau {tau:g}": Temperature(tau)(people, np.random.default_rng(SEED)) for tau in (1, 2, 10)}
    drawn |= {f"evenly, {share:.0%}": spread(true, share) for share in (0.0, 0.1, 0.2, 0.4)}
    rows = [
        {"head": head, "labels": name} | measured(table, given, truth=true)
        for head, table in heads.items()
        for name, given in drawn.items()
    ]
    found = {
        "title": (__doc__ or "").splitlines()[0],
        "command": "python -m benchmarks.noise_rate --data FOLDER",
        "machine": record.machine(),
        "commit": record.commit(),
        "seconds": round(time.perf_counter() - began, 1),
        "seed": SEED,
        "rows": rows,
        "checks": [],
    }
    record.write(options.to, "noise_rate", found=found, columns=COLUMNS)


if __name__ == "__main__":
    main()
