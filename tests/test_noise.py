"""Noise models: they draw from the rows they tell, hit their rate, find a wanted one, and repeat the paper's labels."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from relook import noise
from relook.errors import BadInput
from relook.noise import (
    ClassDependent,
    Free,
    InstanceDependent,
    Symmetric,
    Temperature,
    TemperatureOffset,
    cifar10_asymmetric,
    draw,
    expected_rate,
    paper_code_labels,
    shares,
    with_rate,
)
from relook.rng import generator
from relook.types import FloatArray, IntArray
from tests.laws import FAULT, LAW

"""For a planted fault: the law must find it among as many examples; how small an example it is does not matter."""

Sample = Callable[[Any, FloatArray, np.random.Generator], IntArray]
Search = Callable[[Any, FloatArray, float], Any]
PaperLabels = Callable[[FloatArray, float, int], IntArray]


@st.composite
def truths(example: st.DrawFn, items: int) -> FloatArray:
    """True distributions, some of them unanimous, some tied, in a cycle of up to six rows."""
    classes = example(st.integers(2, 6))
    row = st.lists(st.integers(0, 9), min_size=classes, max_size=classes).filter(any)
    counts = np.array(example(st.lists(row, min_size=1, max_size=6)), float)
    return np.resize(counts / counts.sum(1, keepdims=True), (items, classes))


@st.composite
def models(example: st.DrawFn, truth: FloatArray) -> Any:
    """A noise model of any kind that fits the truth."""
    items, classes = truth.shape
    rng = np.random.default_rng(example(st.integers(0, 9)))
    share, tau = st.floats(0, 1), st.floats(0.2, 50)
    matrix = rng.dirichlet(np.full(classes, 0.5), classes)
    embeddings = rng.normal(0, example(st.sampled_from([0.1, 1.0, 10.0])), (items, 3))
    return example(
        st.one_of(
            st.builds(Temperature, tau),
            st.builds(TemperatureOffset, tau, st.floats(0, 20), st.sampled_from([None, matrix])),
            st.builds(Symmetric, share),
            st.builds(ClassDependent, st.just(matrix), share),
            st.builds(
                InstanceDependent, share, st.just(embeddings), st.sampled_from([0.0, 0.01, 0.1]), st.integers(0, 9)
            ),
        )
    )


def slow_row(model: Any, row: list[float], item: int) -> list[float]:
    """The distribution of one item's given label, a class at a time."""
    classes, true = range(len(row)), row.index(max(row))
    match model:
        case Temperature(tau):
            weights = [share ** (1 / tau) for share in row]
        case TemperatureOffset(tau, offset, matrix):
            hot = slow_row(Temperature(tau), row, item)
            wrong = [1 / (len(row) - 1) if matrix is None else matrix[true][c] for c in classes]
            weights = [hot[c] + (offset * wrong[c] if c != true else 0) for c in classes]
        case Symmetric(rate):
            weights = [1 - rate if c == true else rate / (len(row) - 1) for c in classes]
        case ClassDependent(matrix, strength):
            weights = [strength * matrix[true][c] + (1 - strength) * (c == true) for c in classes]
        case InstanceDependent():
            weights = slow_instance(model, true, len(row), item=item)
    return [weight / sum(weights) for weight in weights]


def slow_instance(model: InstanceDependent, true: int, classes: int, *, item: int) -> list[float]:
    """Algorithm 2 of Xia et al. for one item."""
    uniform = generator(model.seed, "flip").random(len(model.embeddings))[item]
    flip = model.rate
    if model.std:
        ends = (0 - model.rate) / model.std, (1 - model.rate) / model.std
        flip = float(scipy.stats.truncnorm.ppf(uniform, *ends, loc=model.rate, scale=model.std))
    embedding = model.embeddings[item].tolist()
    projection = generator(model.seed, "projection").standard_normal((classes, len(embedding), classes))
    logits = [sum(x * projection[true][d][c] for d, x in enumerate(embedding)) for c in range(classes)]
    top = max(logit for c, logit in enumerate(logits) if c != true)
    likely = [0.0 if c == true else float(np.exp(logit - top)) for c, logit in enumerate(logits)]
    return [1 - flip if c == true else flip * likely[c] / sum(likely) for c in range(classes)]


def slow_rate(model: Any, truth: FloatArray) -> float:
    rows = [slow_row(model, row, item) for item, row in enumerate(truth.tolist())]
    return float(np.mean([1 - rows[item][row.index(max(row))] for item, row in enumerate(truth.tolist())]))


def test_rows_are_those_of_the_slow_version() -> None:
    @LAW
    @given(st.data())
    def check(example: st.DataObject) -> None:
        truth = example.draw(truths(items=5))
        model = example.draw(models(truth))
        slow = [slow_row(model, row, item) for item, row in enumerate(truth.tolist())]
        np.testing.assert_allclose(model.rows(truth), slow, atol=1e-9)
        np.testing.assert_allclose(expected_rate(model, truth), slow_rate(model, truth), atol=1e-9)

    check()


class TestDraws:
    """The law: of many labels, each class has as many as its expected number, within six deviations."""

    def law(self, sample: Sample, how: settings = LAW) -> None:
        @how
        @given(st.data(), st.integers(0, 2**32))
        def check(example: st.DataObject, seed: int) -> None:
            truth = example.draw(truths(items=800))
            model = example.draw(models(truth))
            rows, true = model.rows(truth), truth.argmax(1)
            classes = sample(model, truth, np.random.default_rng(seed))
            assert classes.shape == (800,)
            assert (rows[np.arange(800), classes] > 0).all()
            wrong = 1 - rows[np.arange(800), true]
            assert abs((classes != true).sum() - wrong.sum()) <= 6 * np.sqrt((wrong * (1 - wrong)).sum()) + 6
            room = 6 * np.sqrt((rows * (1 - rows)).sum(0)) + 6
            assert (np.abs(np.bincount(classes, minlength=rows.shape[1]) - rows.sum(0)) <= room).all()

        check()

    def test_holds(self) -> None:
        self.law(lambda model, truth, rng: model(truth, rng))

    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(lambda _, truth, rng: draw(truth, rng.random(len(truth))), id="draws from the truth"),
            pytest.param(
                lambda model, truth, rng: draw(model.rows(truth), np.full(len(truth), rng.random())), id="one for all"
            ),
            pytest.param(lambda _, truth, rng: rng.integers(0, truth.shape[1], len(truth)), id="every class alike"),
        ],
    )
    def test_fault_is_caught(self, fault: Sample) -> None:
        with pytest.raises(AssertionError):
            self.law(fault, FAULT)


class TestWithRate:
    """The law: asked for the rate that some parameter gives, the search finds a model of that rate."""

    def law(self, search: Search, how: settings = LAW) -> None:
        @how
        @given(st.data())
        def check(example: st.DataObject) -> None:
            truth = example.draw(truths(items=4))
            model = example.draw(models(truth))
            wanted = slow_rate(model, truth)
            start = msgspec.structs.replace(model, **{model.FREE.field: 0.5})
            assert slow_rate(search(start, truth, wanted), truth) == pytest.approx(wanted, abs=1e-8)

        check()

    def test_holds(self) -> None:
        self.law(lambda model, truth, rate: with_rate(model, truth, rate=min(max(rate, 0.0), 1.0)))

    def test_a_search_on_draws_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def realised(model: Any, truth: FloatArray) -> float:
            return float((model(truth, np.random.default_rng(0)) != truth.argmax(1)).mean())

        monkeypatch.setattr(noise, "expected_rate", realised)
        with pytest.raises((AssertionError, BadInput)):
            self.law(lambda model, truth, rate: with_rate(model, truth, rate=min(max(rate, 0.0), 1.0)), FAULT)

    def test_a_short_search_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(noise, "_root", lambda _, *, low, high: np.sqrt(low * high) if low else (low + high) / 2)
        with pytest.raises(AssertionError):
            self.law(lambda model, truth, rate: with_rate(model, truth, rate=min(max(rate, 0.0), 1.0)), FAULT)

    def test_other_parameters_stay(self) -> None:
        truth = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
        found = with_rate(TemperatureOffset(3.0, matrix=np.ones((3, 3))), truth, rate=0.6)
        assert found.tau == 3.0
        assert found.matrix is not None
        assert with_rate(InstanceDependent(0.1, np.eye(2), std=0.01, seed=8), truth, rate=0.3).seed == 8

    @pytest.mark.parametrize(
        ("model", "rate", "message"),
        [
            (Temperature(), 0.4, r"0\.400 was asked for, but Temperature reaches 0\.000 to 0\.333 .*TemperatureOffset"),
            (TemperatureOffset(1.0, matrix=np.eye(3)), 0.9, r"reaches 0\.267 to 0\.267 .*its offset; change tau, or"),
            (ClassDependent(np.eye(3) / 2 + 1 / 6), 0.5, r"reaches 0\.000 to 0\.333 .*smaller diagonal entries"),
            (InstanceDependent(0.2, np.eye(3)), 0.01, r"reaches 0\.0.. to 0\.9.. .*its rate; give a smaller std"),
        ],
    )
    def test_out_of_reach(self, model: Any, rate: float, message: str) -> None:
        truth = np.array([[0.6, 0.4, 0.0], [0.0, 1.0, 0.0], [0.3, 0.6, 0.1]])
        with pytest.raises(BadInput, match=message):
            with_rate(model, truth[[0, 1, 0]] if isinstance(model, Temperature) else truth, rate=rate)

    def test_a_model_of_ones_own_names_its_parameter(self) -> None:
        class Fixed(msgspec.Struct, frozen=True):
            share: float = 0.5

            def rows(self, truth: FloatArray) -> FloatArray:
                right: FloatArray = np.eye(truth.shape[1])[truth.argmax(1)]
                blend: FloatArray = (1 - self.share) * right + self.share / truth.shape[1]
                return blend

        class Named(Fixed, frozen=True):
            FREE: ClassVar[Free] = Free("share", 0.0, 1.0, "no more than uniform")

        with pytest.raises(BadInput, match="a parameter to search was needed, but Fixed names none as FREE"):
            with_rate(Fixed(), np.eye(4), rate=0.3)
        assert with_rate(Named(), np.eye(4), rate=0.3).share == pytest.approx(0.4)


class TestPaperCode:
    """The law: all labels at once are those of `RandomState.choice`, called row by row."""

    def law(self, labels: PaperLabels, how: settings = LAW) -> None:
        @how
        @given(truths(items=40), st.floats(0.5, 50), st.integers(0, 2**32 - 1))
        def check(truth: FloatArray, tau: float, seed: int) -> None:
            random = np.random.RandomState(seed)
            hot = truth ** (1.0 / tau)
            hot = hot / hot.sum(1, keepdims=True)
            one_by_one = [int(random.choice(truth.shape[1], 1, p=row)[0]) for row in hot]
            assert labels(truth, tau, seed).tolist() == one_by_one

        check()

    def test_holds(self) -> None:
        self.law(lambda truth, tau, seed: paper_code_labels(truth, tau, seed=seed))

    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(lambda truth, _, seed: paper_code_labels(truth, 1.0, seed=seed), id="without the temperature"),
            pytest.param(lambda truth, tau, seed: paper_code_labels(truth[::-1], tau, seed=seed)[::-1], id="backwards"),
            pytest.param(
                lambda truth, tau, seed: Temperature(tau)(truth, np.random.default_rng(seed)), id="other stream"
            ),
        ],
    )
    def test_fault_is_caught(self, fault: PaperLabels) -> None:
        with pytest.raises(AssertionError):
            self.law(fault, FAULT)


def test_ties_of_draw_and_threshold_go_up() -> None:
    rows = np.array([[0.0, 0.5, 0.5, 0.0]] * 4)
    assert draw(rows, np.array([0.0, 0.4999, 0.5, np.nextafter(1, 0)])).tolist() == [1, 1, 2, 2]


def test_more_classes_than_a_byte_holds() -> None:
    rows = np.full((3, 300), 1 / 300)
    assert draw(rows, np.array([0.0, 0.9001, 0.9999])).tolist() == [0, 270, 299]


def test_instance_dependent_noise_depends_on_the_instance() -> None:
    truth = np.resize(np.eye(4)[[2]], (200, 4))
    embeddings = np.random.default_rng(0).normal(size=(200, 5))
    model = InstanceDependent(0.3, embeddings)
    rows = model.rows(truth)
    assert len(np.unique(rows.argsort(1)[:, 2])) == 3, "the likeliest wrong class is not the same for all"
    assert 0.05 < model.flip_rates().std() < 0.15
    assert np.array_equal(rows, InstanceDependent(0.3, embeddings).rows(truth))
    assert not np.allclose(rows, InstanceDependent(0.3, embeddings, seed=1).rows(truth))


@pytest.mark.parametrize("mean", [0.0, 0.02, 0.5, 1.0])
def test_flip_rates_follow_the_truncated_normal(mean: float) -> None:
    rates = InstanceDependent(mean, np.zeros((20_000, 1)), std=0.1).flip_rates()
    law = scipy.stats.truncnorm((0 - mean) / 0.1, (1 - mean) / 0.1, loc=mean, scale=0.1)
    assert rates.min() >= 0
    assert rates.max() <= 1
    assert scipy.stats.kstest(rates, law.cdf).pvalue > 1e-6


class TestCifar10h:
    """Known numbers on the real answers."""

    @pytest.fixture
    def truth(self, data_dir: Path) -> FloatArray:
        counts = np.load(data_dir / "cifar10h" / "cifar10h-counts.npy", allow_pickle=False)
        truth: FloatArray = counts / counts.sum(1, keepdims=True)
        return truth

    def test_temperatures_of_15_and_30_percent(self, truth: FloatArray) -> None:
        assert with_rate(Temperature(), truth, rate=0.15).tau == pytest.approx(2.285, abs=5e-4)
        assert with_rate(Temperature(), truth, rate=0.30).tau == pytest.approx(15.51, abs=5e-3)

    def test_half_is_out_of_reach_of_temperature_alone(self, truth: FloatArray) -> None:
        with pytest.raises(BadInput, match=r"0\.500 was asked for, but Temperature reaches 0\.000 to 0\.329"):
            with_rate(Temperature(), truth, rate=0.5)

    def test_offsets_of_the_50_percent_experiments(self, truth: FloatArray) -> None:
        symmetric = TemperatureOffset(10.0, 0.4)
        asymmetric = TemperatureOffset(10.0, 1.5, cifar10_asymmetric())
        assert expected_rate(symmetric, truth) == pytest.approx(0.491, abs=0.005)
        assert expected_rate(asymmetric, truth) == pytest.approx(0.489, abs=0.005)


def test_cifar10_asymmetric_moves_five_classes() -> None:
    matrix = cifar10_asymmetric()
    assert matrix.argmax(1).tolist() == [0, 1, 0, 5, 7, 3, 6, 7, 8, 1]
    assert matrix.sum(1).tolist() == [1.0] * 10


def test_shares_are_handed_on_to_the_bit() -> None:
    counts = np.random.default_rng(0).integers(1, 60, (500, 7))
    truth = counts / counts.sum(1, keepdims=True)
    assert shares(truth) is truth
    assert any(row.sum() != 1 for row in truth), "else dividing again would change nothing"


EYE = np.eye(3)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Temperature(0.0), "tau must be above 0, but 0.0 came; 1 leaves"),
        (lambda: Temperature(float("nan")), "tau must be above 0, but nan came"),
        (lambda: TemperatureOffset(-1.0), "tau must be above 0, but -1.0 came"),
        (lambda: TemperatureOffset(2.0, -0.1), "offset must be 0 or more, but -0.1 came; 0.4 doubles"),
        (lambda: TemperatureOffset(2.0, 0.1, np.ones((2, 3))), r"the matrix must be C x C, but shape \(2, 3\) came"),
        (lambda: TemperatureOffset(2.0, 0.1, np.eye(4)).rows(EYE), "a 3 x 3 matrix was needed, but 4 x 4 came"),
        (lambda: Symmetric(20.0), "rate must lie in 0 to 1, but 20.0 came; 0.2 is 20 %"),
        (lambda: ClassDependent(EYE, 1.5), "strength must lie in 0 to 1, but 1.5 came"),
        (lambda: ClassDependent(EYE * 2), "matrix rows must sum to 1, but row 0 sums to 2.000; divide by it"),
        (lambda: ClassDependent(-EYE), "must hold numbers of 0 or more, but row 0 does not"),
        (lambda: ClassDependent(np.where(EYE > 0, np.nan, 0)), "must hold numbers of 0 or more, but row 0 does not"),
        (lambda: ClassDependent(np.eye(4)).rows(EYE), "a 3 x 3 matrix was needed, but 4 x 4 came; one row a true"),
        (lambda: InstanceDependent(0.2, EYE, std=-1.0), "std must be 0 or more, but -1.0 came; Xia et al. use 0.1"),
        (lambda: InstanceDependent(1.2, EYE), "rate must lie in 0 to 1, but 1.2 came"),
        (lambda: InstanceDependent(0.2, np.ones(3)), r"embeddings must be N x D numbers, but float64 of shape \(3,\)"),
        (lambda: InstanceDependent(0.2, np.array([["a"]])), "embeddings must be N x D numbers, but <U1"),
        (
            lambda: InstanceDependent(0.2, np.array([[0.0], [np.nan]])),
            "embeddings must be finite, but item 1 holds NaN",
        ),
        (lambda: InstanceDependent(0.2, np.eye(2)).rows(EYE), "one embedding an item was needed, but 3 items and 2"),
        (lambda: with_rate(Symmetric(0.1), EYE, rate=1.5), "rate must lie in 0 to 1, but 1.5 came"),
        (lambda: paper_code_labels(EYE, 0.0), "tau must be above 0, but 0.0 came"),
        (lambda: shares(np.array([1.0])), r"N x C shares, C 2 or more, were needed, but shape \(1,\) came"),
        (lambda: shares(np.ones((3, 1))), r"N x C shares, C 2 or more, were needed, but shape \(3, 1\) came"),
        (lambda: shares(np.ones((0, 3))), r"N x C shares, C 2 or more, were needed, but shape \(0, 3\) came"),
        (
            lambda: shares(np.array([[0.5, 0.5], [3.0, 1.0]])),
            "item 1 sums to 4.000 with a least entry of 1.000; divide",
        ),
        (
            lambda: shares(np.array([[1.5, -0.5]])),
            "rows must be shares of 0 or more .* item 0 sums to 1.000 with a least",
        ),
        (lambda: shares(np.array([[np.nan, 1.0]])), "item 0 sums to nan"),
        (lambda: shares(np.array([[0.0, 0.0]])), "item 0 sums to 0.000"),
    ],
)
def test_bad_input(act: Callable[[], Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        act()
