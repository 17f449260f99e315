"""What a training has reached, on disk: safetensors in parts of at most 16 MiB and a JSON file that names their hashes.

The JSON file is written last and takes its name at once, so a checkpoint is there whole or not at all. One whose parts
are not what it says is passed over, and the one before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load, save
from torch import Tensor, cat

from relook.errors import BadInput

PART = 16 * 2**20 - 2**16
"""Bytes of tensors that go into one part; its heading needs the rest."""

_PIECE = "#"

KEPT = 2
"""So many checkpoints are kept: the newest, and the one before it in case that one is broken."""


@dataclass(frozen=True)
class Checkpoint:
    """The tensors of a training by their names, the step it is at, and what it was started with."""

    step: int
    tensors: Mapping[str, Tensor]
    about: Mapping[str, Any]


def write(folder: Path, found: Checkpoint) -> Path:
    """Write a checkpoint, take older ones away, and return the file that names its parts."""
    folder.mkdir(parents=True, exist_ok=True)
    parts: dict[str, str] = {}
    for number, tensors in enumerate(_parted(found.tensors)):
        content = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
        name = f"step-{found.step:09d}.{number}.safetensors"
        _put(folder / name, content)
        parts[name] = hashlib.sha256(content).hexdigest()
    described = {"step": found.step, "about": found.about, "parts": parts}
    place = folder / f"step-{found.step:09d}.json"
    _put(place, json.dumps(described, indent=1).encode())
    for old in _places(folder)[KEPT:]:
        _remove(old)
    return place


def newest(folder: Path, *, about: Mapping[str, Any]) -> tuple[Checkpoint | None, tuple[str, ...]]:
    """Return the newest checkpoint that is whole, and a sentence for each newer one that is not.

    One that was started with anything else is refused.
    """
    told: list[str] = []
    for place in _places(folder):
        found = _read(place)
        if found is None:
            told.append(f"{place.name} is broken and passed over.")
            continue
        if json.loads(json.dumps(found.about)) != json.loads(json.dumps(about)):
            raise BadInput(
                f"{folder}: a training with these settings was needed, but one with others is there; name "
                "another folder"
            )
        return found, tuple(told)
    return None, tuple(told)


def _places(folder: Path) -> list[Path]:
    """Return the files that name parts, newest first."""
    return sorted(folder.glob("step-*.json"), reverse=True)


def _read(place: Path) -> Checkpoint | None:
    tensors: dict[str, Tensor] = {}
    try:
        described = json.loads(place.read_bytes())
        for name, expected in described["parts"].items():
            content = (place.parent / Path(name).name).read_bytes()
            if hashlib.sha256(content).hexdigest() != expected:
                return None
            tensors.update(load(content))
        return Checkpoint(described["step"], _joined(tensors), described["about"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _parted(tensors: Mapping[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """Yield groups of pieces of at most one part's size."""
    group: dict[str, Tensor] = {}
    size = 0
    for name, tensor in tensors.items():
        for place, piece in enumerate(_pieces(tensor)):
            if group and size + piece.nbytes > PART:
                yield group
                group, size = {}, 0
            group[f"{name}{_PIECE}{place}"] = piece
            size += piece.nbytes
    yield group


def _pieces(tensor: Tensor) -> Iterator[Tensor]:
    """Yield a tensor, cut along its first axis where it is larger than a part."""
    if tensor.nbytes <= PART or not tensor.ndim:
        yield tensor
        return
    rows = max(1, PART * len(tensor) // tensor.nbytes)
    yield from (tensor[first : first + rows] for first in range(0, len(tensor), rows))


def _joined(pieces: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found: dict[str, list[tuple[int, Tensor]]] = {}
    for key, piece in pieces.items():
        name, _, place = key.rpartition(_PIECE)
        found.setdefault(name, []).append((int(place), piece))
    ordered = {name: [piece for _, piece in sorted(parts, key=lambda part: part[0])] for name, parts in found.items()}
    return {name: parts[0] if len(parts) == 1 else cat(parts) for name, parts in ordered.items()}


def _put(place: Path, content: bytes) -> None:
    part = place.with_name(f".{place.name}.{os.getpid()}")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(place)


def _remove(place: Path) -> None:
    for part in place.parent.glob(f"{place.stem}.*"):
        part.unlink(missing_ok=True)
