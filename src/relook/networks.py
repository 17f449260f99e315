"""Networks on a data set: its images as one block of bytes, what is known of their labels, and a recipe run on both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput, MissingExtra
from relook.types import Dataset, FloatArray, Posteriors

if TYPE_CHECKING:
    from relook.train.recipe import Recipe


class Run(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a recipe is run: over so many folds (0: in sample; None: as the recipe has it), on a device.

    `folder` keeps what a training has reached, so that one that was stopped goes on.
    """

    recipe: str
    folds: int | None = None
    device: str = "cpu"
    folder: str | None = None
