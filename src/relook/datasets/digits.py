"""Handwritten digits that come with scikit-learn, with a simulated crowd and noise that depend on the image."""

from __future__ import annotations

import warnings

import numpy as np

from relook.errors import BadInput
from relook.noise import InstanceDependent, with_rate
from relook.rng import generator
from relook.types import Dataset, FloatArray, IntArray, Labels

_CONFUSION = 0.45
_SHARPNESS = 1.5


def load(*, seed: int = 0, rate: float = 0.2) -> Dataset:
    """Return 1,797 digits whose given labels are wrong at an expected rate, depending on the image.

    The true distribution of an image is what people would answer who sometimes see it blurred: a digit that a blurred
    view makes ambiguous is answered wrongly up to 45 % of the time, most hardly ever; a single answer is right 94.5 %
    of the time. The images and the crowd are the same for every seed, the given labels are not.

    >>> digits = load(seed=1)
    >>> len(digits), digits.features.shape, digits.images[0].shape
    (1797, (1797, 64), (8, 8))
    """
    from sklearn.datasets import load_digits

    if not 0 <= rate <= 1:
        raise BadInput(f"digits: a noise rate from 0 to 1 was needed, but {rate} came; 20 % is 0.2")
    pixels, digit = load_digits(return_X_y=True)
    features: FloatArray = pixels / 16
    truth = _answers_of_a_crowd(features, digit)
    # Flip rates spread by .1 as in Xia et al., or less where a rate near 0 or 1 leaves no room for it.
    spread = min(0.1, rate / 2, (1 - rate) / 2)
    noise = with_rate(InstanceDependent(rate, features - features.mean(0), spread, seed), truth, rate=rate)
    return Dataset(
        name="digits",
        classes=tuple("0123456789"),
        ids=tuple(str(row) for row in range(len(digit))),
        given=Labels(noise(truth, generator(seed, "digits", "given")), 10),
        truth=truth,
        features=features,
        images=list(np.rint(features * 255).astype(np.uint8).reshape(-1, 8, 8)),
    )


def _answers_of_a_crowd(features: FloatArray, digit: IntArray) -> FloatArray:
    """Return N x 10 shares of answers: mostly the true digit, else what a blurred view of the image suggests."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from threadpoolctl import threadpool_limits

    blurred = features.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(len(features), 16)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        seen: FloatArray = cross_val_predict(
            LogisticRegression(C=100.0, max_iter=1000),
            blurred,
            digit,
            cv=StratifiedKFold(10, shuffle=True, random_state=0),
            method="predict_proba",
        )
    seen = seen**_SHARPNESS
    seen *= _CONFUSION / seen.sum(1, keepdims=True)
    # Below one half, whatever is confused with the true digit stays less likely than it.
    seen[np.arange(len(digit)), digit] += 1 - _CONFUSION
    return seen
