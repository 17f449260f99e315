"""What pre-training without labels is worth: seconds, image pairs a second, and a linear head's share of right labels.

In two steps, because a machine with a graphics card may have torch and numpy alone:

    python -m benchmarks.pretraining prepare images.npz --data FOLDER      # images, and labels of the 5,000 others
    python -m benchmarks.pretraining measure images.npz rows.json          # trains; needs torch, numpy, safetensors

Recipes are judged on the 5,000 images of CIFAR-10's test set that are not in the paper's subset, with given labels of
their own draw: the subset's truth is not looked at.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

SEED, TAU = 77, 10.0


def prepare(place: Path, data: Path) -> None:
    """Write the images of the test set, and the rows, given labels and true classes of those outside the subset."""
    from relook.datasets import load
    from relook.noise import Temperature

    whole = load("cifar10h", data, settings={"subset": "all", "images": data / "cifar10"})
    subset = load("cifar10h", data, settings={"subset": "paper"})
    rows = np.setdiff1d(np.arange(len(whole)), [int(name) for name in subset.ids])
    truth = np.asarray(whole.truth)[rows]
    given = Temperature(TAU)(truth, np.random.default_rng(SEED))
    assert whole.images is not None
    images = np.stack([np.asarray(whole.images[item]).transpose(2, 0, 1) for item in range(len(whole))])
    np.savez_compressed(place, images=images, rows=rows, given=given, true=truth.argmax(1))


def measure(place: Path, *, epochs: int, seeds: int, device: str) -> list[dict[str, Any]]:
    """Train a network a seed and return a row each: how long, how fast, how right alone and with those before it."""
    import torch

    from relook.train.loop import Place, trained
    from relook.train.material import Material
    from relook.train.predict import embedded
    from relook.train.schedule import Schedule
    from relook.train.simclr import SimClr

    with np.load(place, allow_pickle=False) as file:
        images = torch.from_numpy(file["images"])
        known = {name: file[name] for name in ("rows", "given", "true")}
    schedule, rows, total = Schedule(epochs=epochs), [], np.zeros((len(known["rows"]), 10))
    for seed in range(seeds):
        began = time.perf_counter()
        found = trained(Material(images), SimClr(), schedule=schedule, seed=seed, place=Place(device=device))
        seconds = time.perf_counter() - began
        posteriors = lda(embedded(found, images).numpy()[known["rows"]], known["given"])
        total += posteriors
        pairs = epochs * (len(images) // schedule.batch) * schedule.batch
        right, mean = (float((values.argmax(1) == known["true"]).mean()) for values in (posteriors, total))
        rows.append({"seed": seed, "seconds": seconds, "pairs_a_second": pairs / seconds, "right": right, "mean": mean})
    return rows


def lda(table: np.ndarray, given: np.ndarray, *, folds: int = 5, shrinkage: float = 0.1) -> np.ndarray:
    """Return out-of-sample class probabilities by linear discriminants with a shrunk covariance, N x C."""
    table = (table - table.mean(0)) / (table.std(0) + 1e-6)
    order, out = np.random.default_rng(0).permutation(len(table)), np.zeros((len(table), int(given.max()) + 1))
    for fold in range(folds):
        asked = order[fold::folds]
        train = np.setdiff1d(order, asked)
        hot = np.eye(out.shape[1])[given[train]]
        means = hot.T @ table[train] / hot.sum(0)[:, None]
        rest = table[train] - means[given[train]]
        spread = rest.T @ rest / len(train)
        spread = (1 - shrinkage) * spread + shrinkage * np.diag(spread).mean() * np.eye(len(spread))
        weights = np.linalg.solve(spread, means.T)
        logits = table[asked] @ weights - 0.5 * (means * weights.T).sum(1) + np.log(hot.mean(0))
        shares = np.exp(logits - logits.max(1, keepdims=True))
        out[asked] = shares / shares.sum(1, keepdims=True)
    return out


def main() -> None:
    """Prepare or measure, and print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=("prepare", "measure"))
    parser.add_argument("images", type=Path)
    parser.add_argument("rows", type=Path, nargs="?")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--epochs", type=int, default=230)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    if options.step == "prepare":
        prepare(options.images, options.data)
        return
    rows = measure(options.images, epochs=options.epochs, seeds=options.seeds, device=options.device)
    sys.stdout.write(json.dumps(rows, indent=1) + "\n")
    if options.rows is not None:
        options.rows.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
