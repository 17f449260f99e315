"""The class probabilities behind each ranking of a campaign, as files: `rankings/000001.npy` is ranking 1's.

A file appears whole or not at all and is mapped rather than read. The log names each by its content, so that a file
that was cut or swapped is never taken for the one that was ranked by.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from relook import npfiles
from relook.errors import BadInput
from relook.events import Ranking
from relook.types import Posteriors
from relook.whole import drafted, synced

FOLDER = "rankings"
"""The folder of the files in a campaign's own."""


def place(folder: Path, number: int) -> Path:
    """Return where the file of a ranking lies.

    >>> place(Path("fix"), 3).as_posix()
    'fix/rankings/000003.npy'
    """
    return folder / FOLDER / f"{number:06d}.npy"


def write(posteriors: Posteriors, path: Path) -> None:
    """Write class probabilities, whole or not at all, and on the disk before the name is there."""
    path.parent.mkdir(exist_ok=True)
    with drafted(path) as draft:
        with draft.open("wb") as file:
            np.save(file, posteriors.values, allow_pickle=False)
        synced(draft)


def read(path: Path, *, fingerprint: str | None = None) -> Posteriors:
    """Return the class probabilities of a file, mapped, and refuse others than those of this fingerprint."""
    if not path.is_file():
        raise BadInput(f"{path}: the class probabilities of a ranking were needed, but the file is gone; restore it")
    found = Posteriors(npfiles.single(path).array())
    if fingerprint is not None and found.fingerprint() != fingerprint:
        raise BadInput(
            f"{path}: class probabilities {fingerprint} were needed, but {found.fingerprint()} came; restore the file, "
            "or rank anew with relook retrain"
        )
    return found


def find(folder: Path, rankings: Sequence[Ranking]) -> Posteriors | None:
    """Return the class probabilities of the last of these rankings, or None where it has none.

    A ranking that only follows another rule has those of one before it, and no file of its own.
    """
    wanted = rankings[-1].posteriors
    if wanted is None:
        return None
    places = [place(folder, event.number) for event in reversed(rankings) if event.posteriors == wanted]
    return read(next((path for path in places if path.is_file()), places[0]), fingerprint=wanted)


def discard(folder: Path, *, keep: int) -> list[int]:
    """Remove the files of old rankings, and return the numbers of those that stay.

    What stays is the first, which tells how all began, and the last `keep`: that in force, and those before it.
    """
    numbers = sorted(int(path.stem) for path in (folder / FOLDER).glob("*.npy") if path.stem.isdigit())
    stay = [number for number in numbers if number == numbers[0] or number in numbers[-keep:]]
    for number in set(numbers) - set(stay):
        place(folder, number).unlink(missing_ok=True)
    return stay
