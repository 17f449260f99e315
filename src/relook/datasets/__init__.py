"""Data sets by name: `load("digits")`, `load("cifar10h", folder)`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from relook.datasets import cifar10h, digits
from relook.errors import BadInput
from relook.types import Dataset

FOLDER = "RELOOK_DATA"
"""The environment variable that says where data sets lie, when no folder is given."""

EMBEDDED: Mapping[str, Callable[..., Dataset]] = MappingProxyType({"digits": digits.load})
"""Data sets that come with relook's own dependencies."""

IN_FOLDER: Mapping[str, Callable[..., Dataset]] = MappingProxyType({"cifar10h": cifar10h.load})
"""Data sets whose files lie in the user's folder, in the layout of their publishers."""


def load(name: str, folder: str | Path | None = None, *, settings: Mapping[str, Any] | None = None) -> Dataset:
    """Return a data set by its name; `settings` are the keywords of its own `load`.

    The folder falls back to the environment variable RELOOK_DATA.

    >>> len(load("digits", settings={"rate": 0.1}))
    1797
    """
    chosen = dict(settings or {})
    if name in EMBEDDED:
        _check_settings(EMBEDDED[name], chosen, name=name)
        return EMBEDDED[name](**chosen)
    if name not in IN_FOLDER:
        known = ", ".join(sorted([*EMBEDDED, *IN_FOLDER]))
        raise BadInput(f"dataset: one of {known} was needed, but {name!r} came; pass arrays for a set of your own")
    _check_settings(IN_FOLDER[name], chosen, name=name)
    found = folder if folder is not None else os.environ.get(FOLDER)
    if not found:
        raise BadInput(f"dataset {name}: a folder was needed, but none was given; name it, or set {FOLDER} to it")
    return IN_FOLDER[name](Path(found), **chosen)


def _check_settings(loader: Callable[..., Dataset], settings: Mapping[str, Any], *, name: str) -> None:
    known = [part.name for part in inspect.signature(loader).parameters.values() if part.kind is part.KEYWORD_ONLY]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise BadInput(f"dataset {name}: its settings are {', '.join(known)}, but {unknown[0]!r} came; leave it out")
