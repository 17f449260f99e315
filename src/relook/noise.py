"""Noise models: where the labels that items came with went wrong.

A noise model is a callable `(truth, rng) -> classes`: N x C true distributions in, one given label an item out. Those
here also tell, as `rows(truth)`, the distribution each label is drawn from: their noise rate is known before a draw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol, TypeVar

import msgspec
import numpy as np

from relook.errors import BadInput
from relook.rng import generator
from relook.types import FloatArray, IntArray


class Noise(Protocol):
    """Draws one given label an item from the items' true distributions."""

    def __call__(self, truth: FloatArray, rng: np.random.Generator, /) -> IntArray: ...


class NoiseModel(Protocol):
    """A noise model that tells the distribution each given label is drawn from."""

    def rows(self, truth: FloatArray) -> FloatArray:
        """Return the distribution of each item's given label, N x C."""
        ...


class Free(msgspec.Struct, frozen=True):
    """The parameter that sets a model's rate, the range it is searched in, and what to do when that is too small."""

    field: str
    low: float
    high: float
    cure: str


Model = TypeVar("Model", bound=msgspec.Struct)

_FAR = 2.0**40
_CLOSE = 1e-9


class Temperature(msgspec.Struct, frozen=True):
    """Labels from the true distribution at a temperature: p^(1/tau), renormalised, one draw an item.

    tau 1 is one more answer of the crowd; above 1 rare answers become likelier; an item without dissent stays right.

    >>> truth = np.array([[.8, .2], [1., 0.]])
    >>> Temperature(2.0).rows(truth).round(3).tolist()
    [[0.667, 0.333], [1.0, 0.0]]
    """

    tau: float = 1.0

    FREE: ClassVar[Free] = Free("tau", 2.0**-10, _FAR, "ask for less, or take TemperatureOffset")

    def __post_init__(self) -> None:
        _check_tau(self.tau)

    def rows(self, truth: FloatArray) -> FloatArray:
        """Return the distribution of each item's given label, N x C."""
        return _tempered(shares(truth), self.tau)

    def __call__(self, truth: FloatArray, rng: np.random.Generator) -> IntArray:
        return draw(self.rows(truth), rng.random(len(truth)))


class TemperatureOffset(msgspec.Struct, frozen=True, eq=False):
    """Temperature plus `offset` times a confusion of the true class, renormalised: the paper code's 50 % experiments.

    `matrix` is C x C, its diagonal unused; without one every wrong class gets 1/(C-1).

    >>> TemperatureOffset(1.0, 0.5).rows(np.array([[1., 0., 0.]])).round(3).tolist()
    [[0.667, 0.167, 0.167]]
    """

    tau: float = 1.0
    offset: float = 0.0
    matrix: FloatArray | None = None

    FREE: ClassVar[Free] = Free("offset", 0.0, _FAR, "change tau, or take a matrix that confuses every class")

    def __post_init__(self) -> None:
        _check_tau(self.tau)
        if not 0 <= self.offset < np.inf:
            raise BadInput(f"noise: offset must be 0 or more, but {self.offset} came; 0.4 doubles the paper's 30 %")
        if self.matrix is not None:
            msgspec.structs.force_setattr(self, "matrix", _square(self.matrix))

    def rows(self, truth: FloatArray) -> FloatArray:
        """Return the distribution of each item's given label, N x C."""
        truth = shares(truth)
        classes = truth.shape[1]
        wrong = np.full((classes, classes), 1 / (classes - 1)) if self.matrix is None else self.matrix.copy()
        _check_width(wrong, classes)
        np.fill_diagonal(wrong, 0.0)
        return _normalised(_tempered(truth, self.tau) + self.offset * wrong[truth.argmax(1)])

    def __call__(self, truth: FloatArray, rng: np.random.Generator) -> IntArray:
        return draw(self.rows(truth), rng.random(len(truth)))


class Symmetric(msgspec.Struct, frozen=True):
    """The true class, but with probability `rate` any other one, all equally likely.

    >>> Symmetric(0.2).rows(np.array([[.9, .1, 0.]])).tolist()
    [[0.8, 0.1, 0.1]]
    """

    rate: float

    FREE: ClassVar[Free] = Free("rate", 0.0, 1.0, "ask for a rate between 0 and 1")

    def __post_init__(self) -> None:
        _check_share(self.rate, "rate")

    def rows(self, truth: FloatArray) -> FloatArray:
        """Return the distribution of each item's given label, N x C."""
        truth = shares(truth)
        rows = np.full(truth.shape, self.rate / (truth.shape[1] - 1))
        rows[np.arange(len(rows)), truth.argmax(1)] = 1 - self.rate
        return rows

    def __call__(self, truth: FloatArray, rng: np.random.Generator) -> IntArray:
        return draw(self.rows(truth), rng.random(len(truth)))


class ClassDependent(msgspec.Struct, frozen=True, eq=False):
    """The true class passed through a confusion matrix, whose row y is the distribution of the given label of a true y.

    `strength` blends it with no noise at all: 0 keeps every label, 1 is the matrix as it stands.

    >>> ClassDependent(cifar10_asymmetric(), strength=0.4).rows(np.eye(10)[[2]])[0, [0, 2]].tolist()
    [0.4, 0.6]
    """

    matrix: FloatArray
    strength: float = 1.0

    FREE: ClassVar[Free] = Free("strength", 0.0, 1.0, "give a matrix with smaller diagonal entries")

    def __post_init__(self) -> None:
        matrix = _square(self.matrix)
        sums = matrix.sum(1)
        if not np.allclose(sums, 1, atol=1e-6):
            row = int(np.abs(sums - 1).argmax())
            raise BadInput(f"noise: matrix rows must sum to 1, but row {row} sums to {sums[row]:.3f}; divide by it")
        _check_share(self.strength, "strength")
        msgspec.structs.force_setattr(self, "matrix", matrix)

    def rows(self, truth: FloatArray) -> FloatArray:
        """Return the distribution of each item's given label, N x C."""
        truth = shares(truth)
        _check_width(self.matrix, truth.shape[1])
        blended: FloatArray = (1 - self.strength) * np.eye(len(self.matrix)) + self.strength * self.matrix
        rows: FloatArray = blended[truth.argmax(1)]
        return rows

    def __call__(self, truth: FloatArray, rng: np.random.Generator) -> IntArray:
        return draw(self.rows(truth), rng.random(len(truth)))


class InstanceDependent(msgspec.Struct, frozen=True, eq=False):
    """Noise that depends on the item itself (Xia et al. 2020, Algorithm 2), on embeddings, N x D.

    An item is wrong with its own flip rate, a normal draw (`rate`, `std`) truncated to 0..1; wrong labels follow the
    softmax of embedding @ W[true class] over the other classes, W normal. `std` is .1 in their paper, .01 in the code
    of active label cleaning. The longer an embedding, the more its softmax favours a single wrong class. Flip rates and
    W come from `seed`, so the model is one fixed distribution an item.

    >>> model = InstanceDependent(0.2, np.array([[1., 0.], [0., 1.]]), std=0.0)
    >>> model.rows(np.eye(3)[:2]).max(1).tolist()
    [0.8, 0.8]
    """

    rate: float
    embeddings: FloatArray
    std: float = 0.1
    seed: int = 0

    FREE: ClassVar[Free] = Free("rate", 0.0, 1.0, "give a smaller std, which reaches nearer to 0 and to 1")

    def __post_init__(self) -> None:
        _check_share(self.rate, "rate")
        if not 0 <= self.std < np.inf:
            raise BadInput(f"noise: std must be 0 or more, but {self.std} came; Xia et al. use 0.1")
        embeddings = np.asarray(self.embeddings)
        if embeddings.ndim != 2 or not embeddings.size or embeddings.dtype.kind not in "fiu":
            came = f"{embeddings.dtype} of shape {embeddings.shape}"
            raise BadInput(f"noise: embeddings must be N x D numbers, but {came} came; one row an item")
        if not np.isfinite(embeddings).all():
            row = int((~np.isfinite(embeddings).all(1)).argmax())
            raise BadInput(f"noise: embeddings must be finite, but item {row} holds NaN or an infinity; embed it again")
        msgspec.structs.force_setattr(self, "embeddings", embeddings)

    def flip_rates(self) -> FloatArray:
        """Return each item's probability of a wrong label, N."""
        uniforms = generator(self.seed, "flip").random(len(self.embeddings))
        return _truncated_normal(uniforms, mean=self.rate, std=self.std)

    def rows(self, truth: FloatArray) -> FloatArray:
        """Return the distribution of each item's given label, N x C."""
        truth = shares(truth)
        if len(truth) != len(self.embeddings):
            came = f"{len(truth)} items and {len(self.embeddings)} embeddings"
            raise BadInput(f"noise: one embedding an item was needed, but {came} came; pass those of the same items")
        true_class, classes = truth.argmax(1), truth.shape[1]
        projection = generator(self.seed, "projection").standard_normal((classes, self.embeddings.shape[1], classes))
        logits, everyone = np.empty(truth.shape), np.arange(len(truth))
        for true in range(classes):
            logits[true_class == true] = self.embeddings[true_class == true].astype(np.float64) @ projection[true]
        logits[everyone, true_class] = -np.inf
        rows: FloatArray = np.exp(logits - logits.max(1, keepdims=True))
        flip = self.flip_rates()
        rows *= (flip / rows.sum(1))[:, np.newaxis]
        rows[everyone, true_class] = 1 - flip
        return rows

    def __call__(self, truth: FloatArray, rng: np.random.Generator) -> IntArray:
        return draw(self.rows(truth), rng.random(len(truth)))


def cifar10_asymmetric() -> FloatArray:
    """Return CIFAR-10's usual confusions: bird to plane, truck to car, deer to horse, cat to dog and dog to cat.

    >>> int(cifar10_asymmetric()[9].argmax())
    1
    """
    matrix = np.eye(10)
    for true, wrong in ((2, 0), (9, 1), (4, 7), (3, 5), (5, 3)):
        matrix[true, [true, wrong]] = 0.0, 1.0
    return matrix


def expected_rate(model: NoiseModel, truth: FloatArray) -> float:
    """Return the share of items whose given label is expected to differ from the true class (the lowest one on a tie).

    >>> expected_rate(Symmetric(0.25), np.eye(4))
    0.25
    """
    truth = shares(truth)
    if isinstance(model, InstanceDependent) and len(model.embeddings) == len(truth):
        # The same number, without a product of N x D by D x C at every step of a search.
        return float(model.flip_rates().mean())
    return float(1 - model.rows(truth)[np.arange(len(truth)), truth.argmax(1)].mean())


def with_rate(model: Model, truth: FloatArray, *, rate: float) -> Model:
    """Return the model with the parameter at which its expected noise rate on this truth is the wanted one.

    It is tau of `Temperature`, offset of `TemperatureOffset`, strength of `ClassDependent`, rate of the others; a model
    of one's own names its parameter in a class variable `FREE`.

    >>> round(with_rate(Temperature(), np.array([[.9, .1], [.6, .4]]), rate=0.4).tau, 2)
    3.15
    """
    _check_share(rate, "rate")
    free: Free | None = getattr(model, "FREE", None)
    if free is None:
        name = type(model).__name__
        raise BadInput(f"noise: a parameter to search was needed, but {name} names none as FREE; set it yourself")

    def at(value: float) -> Model:
        return msgspec.structs.replace(model, **{free.field: value})

    def excess(value: float) -> float:
        return expected_rate(at(value), truth) - rate  # type: ignore[arg-type]  # what says FREE is a noise model

    low, high = free.low, free.high
    least, most = excess(low), excess(high)
    if least > _CLOSE or most < -_CLOSE:
        raise BadInput(
            f"noise: a rate of {rate:.3f} was asked for, but {type(model).__name__} reaches {least + rate:.3f} to "
            f"{most + rate:.3f} on this truth, whatever its {free.field}; {free.cure}"
        )
    return at(_root(excess, low=low, high=high))


def paper_code_labels(truth: FloatArray, tau: float, *, seed: int = 1234) -> IntArray:
    """Return the given labels exactly as the released code of the paper draws them.

    One draw an item, in order, by a fresh `RandomState(seed).choice(C, 1, p=row)` on p^(1/tau) / sum; here all at once.

    >>> paper_code_labels(np.array([[.6, .4], [.5, .5], [1., 0.]]), 10.0).tolist()
    [0, 1, 0]
    """
    _check_tau(tau)
    rows = _normalised(np.power(shares(truth), 1.0 / tau))
    return draw(rows, np.random.RandomState(seed).random_sample(len(rows)))


def draw(rows: FloatArray, uniforms: FloatArray) -> IntArray:
    """Return one class a row, N: the first whose running share exceeds the row's uniform number.

    >>> draw(np.array([[.5, .5], [.5, .5]]), np.array([.49, .5])).tolist()
    [0, 1]
    """
    return first_above(running_shares(rows), uniforms).astype(np.int64)


def running_shares(rows: FloatArray) -> FloatArray:
    """Return each row's running sums over its total, C x N: a column an item, to compare all items at once."""
    steps = np.ascontiguousarray(rows.cumsum(1).T)
    steps /= steps[-1]
    return steps


def first_above(steps: FloatArray, uniforms: FloatArray) -> IntArray:
    """Return the first class whose running share exceeds the uniform number, N, in the smallest type that holds it."""
    below: IntArray = (steps <= uniforms).sum(0, dtype=np.uint8 if len(steps) < 256 else np.int64)
    return below


def shares(truth: FloatArray) -> FloatArray:
    """Return the truth as it came, after a check that its rows are distributions.

    They are not divided by their sum again: the last bit of a draw's threshold would move, and with it a reproduction.

    >>> shares(np.array([[.25, .75]])).tolist()
    [[0.25, 0.75]]
    """
    values = np.asarray(truth)
    if values.ndim != 2 or values.shape[1] < 2 or not len(values):
        raise BadInput(f"truth: N x C shares, C 2 or more, were needed, but shape {values.shape} came; one row an item")
    values = values.astype(np.float64, copy=False)
    sums = values.sum(1)
    bad = ~((np.abs(sums - 1) <= 1e-6) & (values.min(1) >= 0))
    if bad.any():
        row = int(bad.argmax())
        came = f"item {row} sums to {sums[row]:.3f} with a least entry of {values[row].min():.3f}"
        raise BadInput(f"truth: rows must be shares of 0 or more that sum to 1, but {came}; divide counts by their sum")
    return values


def _root(excess: Callable[[float], float], *, low: float, high: float) -> float:
    """Bisect between low and high; the geometric middle where the range spans many powers of ten."""
    for _ in range(200):
        middle = float(np.sqrt(low * high)) if low > 0 else (low + high) / 2
        found = excess(middle)
        if abs(found) <= 1e-13 or not low < middle < high:
            break
        low, high = (middle, high) if found < 0 else (low, middle)
    return middle


def _tempered(truth: FloatArray, tau: float) -> FloatArray:
    # Divided by the largest share first: at a low temperature all powers of a flat row would underflow to zero.
    return _normalised(np.power(truth / truth.max(1, keepdims=True), 1 / tau))


def _normalised(rows: FloatArray) -> FloatArray:
    totals: FloatArray = rows.sum(1, keepdims=True)
    return rows / totals


def _truncated_normal(uniforms: FloatArray, *, mean: float, std: float) -> FloatArray:
    """Return quantiles of the normal law cut to 0..1."""
    from scipy.special import ndtr, ndtri

    if std == 0:
        return np.full(len(uniforms), mean)
    low, high = ndtr((0 - mean) / std), ndtr((1 - mean) / std)
    # The clip is for quantiles whose uniform number rounds to an end of 0..1: their normal quantile is infinite.
    quantiles: FloatArray = np.clip(mean + std * ndtri(low + uniforms * (high - low)), 0, 1)
    return quantiles


def _check_tau(tau: float) -> None:
    if not 0 < tau < np.inf:
        raise BadInput(f"noise: tau must be above 0, but {tau} came; 1 leaves the distribution as it is")


def _check_share(value: float, name: str) -> None:
    if not 0 <= value <= 1:
        raise BadInput(f"noise: {name} must lie in 0 to 1, but {value} came; 0.2 is 20 %")


def _check_width(matrix: FloatArray, classes: int) -> None:
    if len(matrix) != classes:
        came = f"{len(matrix)} x {len(matrix)}"
        raise BadInput(f"noise: a {classes} x {classes} matrix was needed, but {came} came; one row a true class")


def _square(matrix: FloatArray) -> FloatArray:
    values = np.asarray(matrix, np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) < 2:
        raise BadInput(f"noise: the matrix must be C x C, but shape {values.shape} came; one row a true class")
    if not (np.isfinite(values).all() and values.min() >= 0):
        row = int((~(np.isfinite(values).all(1) & (values.min(1) >= 0))).argmax())
        raise BadInput(f"noise: the matrix must hold numbers of 0 or more, but row {row} does not; check it")
    return values
