"""`python -m relook.train`: a recipe on arrays of images and labels, for a machine that has torch and little else.

    python -m relook.train --images images.npz --labels labels.npy --recipe ssl/relook --seed 0 --to posteriors.npz

`images.npz` holds `images` (N x H x W x 3 or N x channels x H x W bytes; grey ones N x H x W), perhaps `ids` and
`groups` (N each), and perhaps `unlabelled`: further images, which are no items. The labels are N classes, -1 where
there is none, or N x C masses. A training that was stopped goes on when the same command is given again.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput, MissingExtra, RelookError
from relook.train import files

MODES = ("plain", "graph", "fused", "compiled")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a recipe and write what it says; what was wrong with the input is said in one sentence."""
    parser = argparse.ArgumentParser(prog="python -m relook.train", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--images", type=Path, required=True, help="npz with images, perhaps ids, groups, unlabelled")
    parser.add_argument("--labels", type=Path, required=True, help="npy: N classes (-1: none), or N x C masses")
    parser.add_argument("--recipe", required=True, help="a recipe's name, such as ssl/relook")
    parser.add_argument("--to", type=Path, required=True, help="npz to write posteriors, labels and ids to")
    parser.add_argument("--seed", type=int, default=0, help="chance; 0")
    parser.add_argument("--device", default="cpu", help="cpu or cuda; cpu")
    parser.add_argument("--mode", choices=MODES, help="how a step runs on a graphics card; by itself as a graph")
    parser.add_argument("--folds", type=int, help="parts that items are left out by; 0: in sample; else the recipe's")
    parser.add_argument("--folder", type=Path, help="folder of checkpoints; beside --to")
    try:
        run(parser.parse_args(arguments))
    except RelookError as error:
        sys.stderr.write(f"relook: {error}\n")
        return 2
    return 0


def run(options: argparse.Namespace) -> None:
    """Run a recipe on files and write what it says."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("training: torch is not installed here; run pip install torch safetensors numpy") from None
    from relook.train.loop import Place
    from relook.train.parts import Work
    from relook.train.recipe import Known, made
    from relook.train.recipes import recipe

    found = recipe(options.recipe)
    if options.folds is not None:
        found = dataclasses.replace(found, folds=options.folds)
    arrays, labels = _arrays(options.images), _labels(options.labels)
    images = channels_first(arrays["images"], where=options.images)
    if "unlabelled" in arrays:
        images = np.concatenate([images, channels_first(arrays["unlabelled"], where=options.images)])
    masses = as_masses(labels, items=len(arrays["images"]), where=options.labels)
    folder = options.folder or options.to.with_name(f"{options.to.name}.trained")
    place = Place(options.device, folder, mode=options.mode)
    work = Work(torch.from_numpy(images), seed=options.seed, place=place)
    groups = arrays["groups"].tolist() if "groups" in arrays else None
    told = made(found, Known(work.images, masses, groups), work=work)
    ids = arrays["ids"] if "ids" in arrays else np.arange(len(masses))
    files.write(options.to, told.values, given=np.where(masses.sum(1) > 0, masses.argmax(1), -1), ids=ids)


def as_masses(labels: NDArray[Any], *, items: int, where: Path) -> NDArray[np.float32]:
    """Return labels, or masses as they are, as N x C masses.

    >>> as_masses(np.array([1, -1, 0]), items=3, where=Path("labels.npy")).tolist()
    [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    """
    if len(labels) != items or labels.ndim not in (1, 2) or labels.dtype.kind not in "iuf":
        raise BadInput(
            f"{where}: labels of {items:,} images were needed, a class or a row of masses each, but {labels.dtype} of "
            f"shape {labels.shape} came"
        )
    if labels.ndim == 2:
        if not np.isfinite(labels).all() or labels.min() < 0:
            raise BadInput(f"{where}: masses from 0 were needed, but others came; a row of zeros is no label")
        return labels.astype(np.float32)
    if labels.dtype.kind == "f" or labels.min() < -1 or labels.max() < 0:
        raise BadInput(f"{where}: classes from 0 were needed (-1: no label), but others came; number the classes")
    masses = np.zeros((items, int(labels.max()) + 1), np.float32)
    known = np.flatnonzero(labels >= 0)
    masses[known, labels[known]] = 1
    return masses


def channels_first(images: NDArray[Any], *, where: Path) -> NDArray[np.uint8]:
    """Return images as N x channels x H x W bytes.

    >>> channels_first(np.zeros((5, 8, 8, 3), np.uint8), where=Path("images.npz")).shape
    (5, 3, 8, 8)
    """
    if images.dtype != np.uint8 or images.ndim not in (3, 4):
        raise BadInput(
            f"{where}: images of bytes were needed, N x H x W x 3, but {images.dtype} of shape {images.shape} came"
        )
    if images.ndim == 3:
        return images[:, np.newaxis]
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)) if images.shape[3] in (1, 3) else images


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise BadInput(
            f"{path}: an npz file of images was needed, but it cannot be read ({error}); save it anew"
        ) from None
    if "images" not in arrays:
        raise BadInput(f"{path}: an array named images was needed, but {', '.join(arrays) or 'none'} came; name it so")
    return arrays


def _labels(path: Path) -> NDArray[Any]:
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{path}: an npy file of labels was needed, but it cannot be read ({error}); save it anew"
        ) from None
    if not isinstance(found, np.ndarray):
        raise BadInput(f"{path}: one array of labels was needed, but an npz file came; save it as npy")
    return found


if __name__ == "__main__":
    sys.exit(main())
