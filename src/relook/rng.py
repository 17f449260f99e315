"""Chance as an argument: streams named by a seed and words, and uniforms that depend on (seed, item, nth) alone."""

import hashlib

import numpy as np
from numpy.typing import NDArray

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def generator(seed: int, *names: str | int) -> np.random.Generator:
    """Return the random stream that belongs to a seed and a path of names.

    >>> generator(0, "noise", "digits").integers(100) == generator(0, "noise", "digits").integers(100)
    np.True_
    """
    return np.random.default_rng(_digest(seed, *names))


def uniform(seed: int, items: NDArray[np.integer], nth: int) -> NDArray[np.float64]:
    """Return one number in [0, 1) an item, which depends on (seed, item, nth) only.

    Asking in another order, or for other items, never changes an item's number, so that two policies face the same
    crowd.

    >>> bool(uniform(7, np.array([3, 5]), 0)[1] == uniform(7, np.array([5]), 0)[0])
    True
    """
    key = np.uint64(_digest(seed, "uniform", nth) & 0xFFFFFFFFFFFFFFFF)
    mixed = (np.asarray(items).astype(np.uint64) + np.uint64(1)) * _STEP + key
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX_1
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX_2
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _digest(seed: int, *names: str | int) -> int:
    words = "\x1f".join([str(seed), *(str(name) for name in names)])
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=16).digest(), "little")
