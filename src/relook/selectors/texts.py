"""Numbers that describe texts, made from the texts alone: no model that was learnt elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relook.errors import BadInput
from relook.rng import generator
from relook.types import FloatArray

WORDS, TOPICS = 50_000, 128
"""Pieces of words that are known at most, and how many numbers describe a text in the end."""


def described(texts: Sequence[str], *, seed: int = 0) -> FloatArray:
    """Return numbers that describe each text, N x D: its pieces of words, weighed by how rare they are, in few topics.

    >>> described(["a cough", "a fracture", "some cough"]).shape
    (3, 2)
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    pieces = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), max_features=WORDS, sublinear_tf=True)
    try:
        table = pieces.fit_transform(texts)
    except ValueError:
        raise BadInput("texts: words were needed to learn from, but all texts are empty; check the column") from None
    topics = min(TOPICS, *(size - 1 for size in table.shape))
    if topics < 1:
        return np.asarray(table.toarray())
    chance = np.random.RandomState(int(generator(seed, "topics").integers(2**31)))
    # Texts that are all alike vary by nothing, and their share of that is no number.
    with np.errstate(invalid="ignore"):
        return np.asarray(TruncatedSVD(topics, random_state=chance).fit_transform(table))
