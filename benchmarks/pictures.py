"""The two pictures of the README: a real cleaning curve and the gallery of the ranking behind it.

    RELOOK_DATA=DIR python -m benchmarks.pictures

DIR holds CIFAR-10H, the images of CIFAR-10 and embeddings of its test set (see docs/data.md). The 5,000 images that the
paper's released code uses, its given labels at tau 10 (29.7 % wrong), 4,455 answers, seeds 0 to 4. Every rule sees the
same posteriors: a logistic regression on embeddings trained without labels, cross-fitted in 5 folds to the wrong labels
(seed 0). The gallery is ranked by the paper's equation, phi. It takes about 15 seconds and writes docs/images/curve.png
and docs/images/gallery.png.
"""

from __future__ import annotations

import os
import sys
from io import BytesIO
from pathlib import Path

import numpy as np

from relook import Crowd, Dataset, Posteriors, Setting, Simulation, named, simulate
from relook.datasets import cifar10h
from relook.plots import cleaning_curves, gallery
from relook.report import gallery as shelves_of
from relook.report import headline
from relook.runs import Runs, gathered, recorded, replace_file
from relook.selectors.logistic import cross_fitted

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
POLICIES = ("default", "margin", "paper", "random", "oracle")
BUDGET, SEEDS, TILES = 4455, range(5), 7
LARGEST = 200_000
"""A picture of the README has at most so many bytes."""


def played(dataset: Dataset, posteriors: Posteriors) -> Runs:
    """Simulate every policy with every seed."""
    truth = np.asarray(dataset.truth)
    records = []
    for name in POLICIES:
        for seed in SEEDS:
            policy = named(name, Setting(truth=truth, seed=seed))
            plan = Simulation(policy, BUDGET, [Crowd(truth, seed)], posteriors=posteriors, seed=seed)
            records.append(recorded(simulate(dataset, plan), dataset))
    return gathered(records)


def made_small(path: Path, *, width: int) -> None:
    """Keep what a README shows of a picture: its width and 256 colours; refuse it when it is still too large."""
    from PIL import Image

    with Image.open(path) as picture:
        picture.thumbnail((width, width), Image.Resampling.LANCZOS)
        # The means of colours are no colours of the picture: white is put back where it was.
        few = picture.convert("RGB").quantize(256, kmeans=4)
    palette = np.array(few.getpalette()).reshape(-1, 3)
    palette[palette.sum(1).argmax()] = 255
    few.putpalette(palette.ravel().tolist())
    file = BytesIO()
    few.save(file, "PNG", optimize=True)
    if len(file.getvalue()) > LARGEST:
        sys.exit(f"{path} would have {len(file.getvalue()):,} bytes, {LARGEST:,} are allowed")
    replace_file(path, file.getvalue())


def main() -> None:
    """Simulate, draw, and say what came out."""
    folder = os.environ.get("RELOOK_DATA")
    if not folder:
        sys.exit("pictures: set RELOOK_DATA to the folder with cifar10h, cifar10 and embeddings")
    data = Path(folder)
    dataset = cifar10h.load(data, subset="paper", tau=10, images=data / "cifar10")
    embeddings = np.load(data / "embeddings" / "cifar10-test-byol60k.npy", allow_pickle=False)
    rows = np.array(dataset.ids, np.int64)
    posteriors = cross_fitted(embeddings[rows].astype(np.float64), dataset.given)
    runs = played(dataset, posteriors)
    cleaning_curves(IMAGES / "curve.png", runs, title="CIFAR-10H: labels correct, mean of 5 seeds and 95 % interval")
    shelves = shelves_of(dataset, posteriors, tiles=TILES)
    gallery(IMAGES / "gallery.png", shelves, classes=dataset.classes)
    for name, width in (("curve.png", 1216), ("gallery.png", 900)):
        made_small(IMAGES / name, width=width)
        print(f"{IMAGES / name}: {(IMAGES / name).stat().st_size:,} bytes")
    print(headline(runs))
    for shelf in shelves:
        print(f"{shelf.title}: {shelf.wrong:.1%} wrong, {shelf.difficult:.1%} difficult")


if __name__ == "__main__":
    main()
