"""The nouns: what they count, and what they refuse at the door."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from relook.errors import BadInput
from relook.types import (
    CELLS,
    Dataset,
    FloatArray,
    IntArray,
    Labels,
    Posteriors,
    Rows,
    blocks,
    fingerprint,
    ids_fingerprint,
    majority,
    one_hot,
    true_distribution,
)
from tests.laws import LAW, catches

counts = st.integers(2, 5).flatmap(
    lambda classes: st.lists(st.lists(st.integers(0, 3), min_size=classes, max_size=classes), min_size=1, max_size=12)
)


def labels_of(*rows: Any, classes: int = 2, answers: Any = None) -> Labels:
    return Labels(np.array(rows), classes, None if answers is None else np.array(answers))


class TestMajority:
    """The class with most votes, the lowest on a tie, and -1 where nobody voted; shares are votes over their sum."""

    def law(self, how: settings, rule: Callable[[NDArray[Any]], IntArray]) -> None:
        @how
        @given(counts)
        def check(rows: list[list[int]]) -> None:
            expected = [row.index(max(row)) if any(row) else -1 for row in rows]
            assert rule(np.array(rows)).tolist() == expected
            labels = labels_of(*rows, classes=len(rows[0]))
            assert labels.majority().tolist() == expected
            shares = [[count / (sum(row) or 1) for count in row] for row in rows]
            assert labels.distribution() == pytest.approx(np.array(shares))

        check()

    def test_holds(self) -> None:
        self.law(LAW, majority)

    def test_the_highest_on_a_tie_is_caught(self) -> None:
        catches(partial(self.law, rule=lambda votes: votes.shape[1] - 1 - votes[:, ::-1].argmax(1)))

    def test_a_class_for_a_row_without_votes_is_caught(self) -> None:
        catches(partial(self.law, rule=lambda votes: votes.argmax(1)))


class TestLabel:
    """The class with more votes than any other; a tie is decided by the label that an item came with, or not at all."""

    def law(self, how: settings, rule: Callable[[Labels], IntArray]) -> None:
        @how
        @given(counts, st.integers(0, 2**32 - 1))
        def check(rows: list[list[int]], seed: int) -> None:
            came = np.random.default_rng(seed).integers(-1, len(rows[0]), len(rows))
            expected = [
                row.index(max(row)) if row.count(max(row)) == 1 else int(label)
                for row, label in zip(rows, came, strict=True)
            ]
            assert rule(Labels(np.array(rows), len(rows[0]), came_with=came)).tolist() == expected
            untied = [-1 if row.count(max(row)) > 1 else label for row, label in zip(rows, expected, strict=True)]
            assert rule(labels_of(*rows, classes=len(rows[0]))).tolist() == untied

        check()

    def test_holds(self) -> None:
        self.law(LAW, Labels.label)

    def test_the_lowest_on_a_tie_is_caught(self) -> None:
        catches(partial(self.law, rule=Labels.majority))

    def test_one_given_label_decides_a_tie_with_one_answer(self) -> None:
        assert labels_of(0, 1, -1, answers=[[0, 1], [2, 0], [1, 1]]).label().tolist() == [0, 0, -1]

    def test_what_items_came_with_has_a_class_an_item(self) -> None:
        with pytest.raises(BadInput, match=r"labels: one that each of 1 items came with was needed, but shape \(2,\)"):
            Labels(np.array([[1, 1]]), 2, came_with=np.array([0, 1]))
        with pytest.raises(BadInput, match="but item 0 has 2; are the labels of this data set"):
            Labels(np.array([[1, 1]]), 2, came_with=np.array([2]))


class TestLabels:
    """Given labels and answers are counted together, whatever they come as."""

    def test_given_and_answers_are_counted_together(self) -> None:
        labels = labels_of(0, 1, -1, answers=[[0, 2], [0, 0], [0, 0]])
        assert labels.given_counts.tolist() == [[1, 0], [0, 1], [0, 0]]
        assert labels.counts.tolist() == [[1, 2], [0, 1], [0, 0]]
        assert labels.majority().tolist() == [1, 1, -1]
        assert len(labels) == 3

    def test_whole_floats_and_lists_are_numbers(self) -> None:
        for given_labels in ([0.0, 1.0, -1.0], [0, 1, -1]):
            assert Labels(given_labels, 2).given.tolist() == [0, 1, -1]  # type: ignore[arg-type]

    @pytest.mark.parametrize("kind", ["i1", "u1", "i4", "u4", "i8", "u8", ">i4", "f8"])
    def test_the_kind_of_number_does_not_show(self, kind: str) -> None:
        rows = np.array([[100, 3], [0, 100]])
        labels = Labels(rows.astype(kind), 2, rows.astype(kind))
        assert labels.counts.tolist() == (2 * rows).tolist()
        assert labels.counts.dtype == np.int64
        assert labels.fingerprint() == Labels(rows, 2).fingerprint()

    def test_a_number_of_classes_is_a_plain_number(self) -> None:
        assert type(Labels(np.array([0]), np.int64(3)).classes) is int  # type: ignore[arg-type]

    def test_other_labels_have_another_hash(self) -> None:
        hashes = {
            labels_of(0, 1).fingerprint(),
            labels_of(1, 0).fingerprint(),
            labels_of(0, 1, 0).fingerprint(),
            labels_of([0, 1]).fingerprint(),
            labels_of([1, 0]).fingerprint(),
        }
        assert len(hashes) == 5

    def test_they_are_frozen(self) -> None:
        labels = labels_of(0, 1, answers=[[0, 1], [0, 0]])
        with pytest.raises(ValueError, match="read-only"):
            labels.given[0] = 1
        with pytest.raises(AttributeError):
            labels.classes = 3  # type: ignore[misc]

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ([], "labels: at least one item was needed, but the set is empty"),
            (np.zeros((0, 2), int), "labels: at least one item was needed, but the set is empty"),
            (
                [0, 2],
                r"labels: classes 0 to 1 were needed \(-1: unlabelled\), but item 1 has 2; are the labels of this",
            ),
            ([0, -2], "but item 1 has -2"),
            ([0, 0.5], r"labels: whole numbers were needed, but item 1 holds \[0.5\]; were probabilities passed"),
            ([[0.2, 0.8]], r"labels: whole numbers were needed, but item 0 holds \[0.2, 0.8\]"),
            ([0, np.nan], r"item 1 holds \[nan\]"),
            ([0, np.inf], r"item 1 holds \[inf\]"),
            (["cat", "dog"], "labels: whole numbers were needed, but <U3 came; map class names to numbers first"),
            ([True, False], "labels: whole numbers were needed, but bool came"),
            ([[1, 0], [0, -1]], r"labels: counts cannot be negative, but item 1 holds \[0, -1\]"),
            ([[1, 0, 0]], r"labels: N x 2 counts were needed, but shape \(1, 3\) came; one column a class"),
            ([[[1, 0]]], r"labels: one class an item or N x C counts were needed, but shape \(1, 1, 2\) came"),
            (3, r"but shape \(\) came"),
            ([[1, 0], [1]], "labels: rows of one length were needed, but their lengths differ; fill in the gaps"),
        ],
    )
    def test_what_is_no_label_is_refused(self, rows: Any, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            Labels(rows, 2)

    def test_long_rows_are_shown_in_part(self) -> None:
        with pytest.raises(BadInput, match=r"item 0 holds \[-1, 0, 0, 0, 0, 0, \.\.\.\]"):
            labels_of([-1] + [0] * 9, classes=10)

    def test_no_classes_are_refused(self) -> None:
        with pytest.raises(BadInput, match="labels: at least one class was needed, but 0 came; name the classes"):
            Labels(np.array([0]), 0)

    @pytest.mark.parametrize(
        ("answers", "message"),
        [
            ([[1, 0]], "answers: a row for each of 2 items was needed, but 1 came"),
            ([1, 0], r"answers: N x 2 counts were needed, but shape \(2,\) came"),
            ([[1, 0], [-1, 0]], "answers: counts cannot be negative, but item 1"),
            ([[0.5, 0], [0, 0]], "answers: whole numbers were needed, but item 0 holds"),
            ([[1, 0], [1]], "answers: rows of one length were needed"),
        ],
    )
    def test_what_is_no_count_of_answers_is_refused(self, answers: Any, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            Labels(np.array([0, 1]), 2, answers)


class TestPosteriors:
    """Probabilities are M x N x C rows that sum to one."""

    def test_one_model_may_come_alone(self) -> None:
        posteriors = Posteriors(np.full((5, 2), 0.5))
        assert (posteriors.models, posteriors.items, posteriors.classes) == (1, 5, 2)
        assert posteriors.mean().tolist() == [[0.5, 0.5]] * 5

    def test_the_mean_is_over_models(self) -> None:
        posteriors = Posteriors(np.array([[[1.0, 0.0]], [[0.5, 0.5]]]), in_sample=True)
        assert posteriors.mean().tolist() == [[0.75, 0.25]]
        assert posteriors.in_sample

    @pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
    def test_rounded_numbers_pass(self, kind: str) -> None:
        random = np.random.default_rng(0)
        values = random.dirichlet(np.ones(100), 50).astype(kind)
        assert Posteriors(values).values.dtype == np.dtype(kind)

    def test_they_are_frozen_and_hashed_by_content(self) -> None:
        one = Posteriors(np.array([[0.25, 0.75]]))
        with pytest.raises(ValueError, match="read-only"):
            one.values[0, 0, 0] = 1
        assert one.fingerprint() == Posteriors(np.array([[[0.25, 0.75]]])).fingerprint()
        assert one.fingerprint() != Posteriors(np.array([[0.75, 0.25]])).fingerprint()
        assert one.fingerprint() != Posteriors(np.array([[0.25, 0.75]], np.float32)).fingerprint()

    def test_columns_first_are_put_in_order(self) -> None:
        values = np.asfortranarray(np.random.default_rng(0).dirichlet(np.ones(3), 4))
        posteriors = Posteriors(values)
        assert posteriors.values.flags.c_contiguous
        assert posteriors.fingerprint() == Posteriors(np.ascontiguousarray(values)).fingerprint()

    def test_columns_first_on_disk_are_put_in_order(self, tmp_path: Path) -> None:
        np.save(tmp_path / "p.npy", np.asfortranarray(np.full((3, 2), 0.5)))
        assert Posteriors(np.load(tmp_path / "p.npy", mmap_mode="r")).values.flags.c_contiguous

    def test_a_file_stays_on_disk(self, tmp_path: Path) -> None:
        np.save(tmp_path / "p.npy", np.full((3, 2), 0.5))
        mapped = np.load(tmp_path / "p.npy", mmap_mode="r")
        posteriors = Posteriors(mapped)
        assert np.shares_memory(posteriors.values, mapped)
        assert posteriors.fingerprint() == Posteriors(np.full((3, 2), 0.5)).fingerprint()

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (
                [[0.5, 0.4]],
                r"posteriors: rows must be probabilities, but model 0, item 0 sums to 0.900; were logits passed",
            ),
            ([[2.0, 2.0]], "model 0, item 0 sums to 4.000; were logits passed"),
            (
                [[0.5, 0.5], [3.0, -2.0]],
                r"posteriors: probabilities cannot be negative, but model 0, item 1 holds \[3, -2\]",
            ),
            (
                [[0.5, 0.5], [np.nan, 0.5]],
                r"posteriors: probabilities were needed, but model 0, item 1 holds \[nan, 0.5\]",
            ),
            ([[np.inf, -np.inf]], r"item 0 holds \[inf, -inf\]; predict it again"),
            ([[[1.0, 0.0]], [[0.0, 0.5]]], "model 1, item 0 sums to 0.500"),
            ([0.5, 0.5], r"posteriors: N x C or M x N x C numbers were needed, but shape \(2,\) came"),
            (np.zeros((0, 2)), r"but shape \(1, 0, 2\) came"),
            (np.zeros((2, 0)), r"but shape \(1, 2, 0\) came"),
            ([[1, 0]], "posteriors: probabilities were needed, but int64 came; were labels passed"),
            ([["a", "b"]], "posteriors: probabilities were needed, but <U1 came"),
            ([[0.5, 0.5], [1.0]], "posteriors: rows of one length were needed"),
        ],
    )
    def test_what_is_no_probability_is_refused(self, values: Any, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            Posteriors(values)

    def test_a_bad_row_far_down_is_named(self) -> None:
        values = np.full((2, CELLS, 2), 0.5)
        values[1, 50_000] = 0.7
        with pytest.raises(BadInput, match=r"model 1, item 50000 sums to 1\.400"):
            Posteriors(values)

    def test_half_precision_logits_are_refused(self) -> None:
        with pytest.raises(BadInput, match="were logits passed"):
            Posteriors(np.array([[9.0, 3.0]], np.float16))


class TestTrueDistribution:
    """The truth comes as shares, as counts of answers or as one class an item, and is kept as shares."""

    def test_shares_counts_and_classes(self) -> None:
        assert true_distribution(np.array([[3, 1], [0, 2]]), 2).tolist() == [[0.75, 0.25], [0.0, 1.0]]
        assert true_distribution([[0.5, 0.5]], 2).tolist() == [[0.5, 0.5]]
        assert true_distribution([1, 0], 2).tolist() == [[0.0, 1.0], [1.0, 0.0]]
        assert true_distribution(np.array([[True, False]]), 2).tolist() == [[1.0, 0.0]]

    @pytest.mark.parametrize(
        ("truth", "message"),
        [
            ([0, 3], "labels: classes 0 to 1 were needed"),
            ([0, -1], "truth: every item needs a class, but item 1 has none"),
            ([0.5, 0.5], r"truth: N x 2 shares or counts were needed, but shape \(2,\) came"),
            ([[1.0, 0.0, 0.0]], r"truth: N x 2 shares or counts were needed, but shape \(1, 3\) came"),
            ([[1.0, 0.0], [0.0, 0.0]], r"truth: rows must hold shares or counts of answers, but item 1 holds \[0, 0\]"),
            ([[1.0, -0.5]], r"item 0 holds \[1, -0.5\]"),
            ([[np.nan, 1.0]], r"item 0 holds \[nan, 1\]"),
            ([[np.inf, -np.inf]], r"item 0 holds \[inf, -inf\]"),
            ([["a", "b"]], "truth: shares or counts were needed, but <U1 came; map class names to numbers"),
            ([[1.0, 0.0], [1.0]], "truth: rows of one length were needed"),
        ],
    )
    def test_what_is_no_truth_is_refused(self, truth: Any, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            true_distribution(truth, 2)


def dataset(**parts: Any) -> Dataset:
    whole: dict[str, Any] = {"name": "pets", "classes": ("cat", "dog"), "ids": ("a", "b"), "given": labels_of(0, 1)}
    return Dataset(**whole | parts)


class TestDataset:
    """Items belong together: as many labels as ids, truths, features and images."""

    def test_the_true_class_is_the_commonest(self) -> None:
        pets = dataset(truth=[[1, 3], [2, 2]])
        assert pets.true_class.tolist() == [1, 0]
        assert len(pets) == 2

    @pytest.mark.parametrize(
        ("parts", "message"),
        [
            ({"classes": ("cat",)}, "pets: labels have 2 classes, but 1 names came"),
            ({"classes": ("cat", "cat")}, "pets: class names must differ, but 'cat' comes twice"),
            ({"ids": ("a", "a")}, "pets: ids must differ, but 'a' comes twice; make them unique"),
            ({"ids": ("a",)}, "pets: 2 items have labels, but ids holds 1"),
            ({"truth": np.ones((3, 2))}, "pets: 2 items have labels, but truth holds 3"),
            ({"features": np.ones((3, 8))}, "pets: 2 items have labels, but features holds 3"),
            ({"images": []}, "pets: 2 items have labels, but images holds 0"),
            ({"truth": np.zeros((2, 2))}, "truth: rows must hold shares"),
        ],
    )
    def test_what_does_not_belong_together_is_refused(self, parts: dict[str, Any], message: str) -> None:
        with pytest.raises(BadInput, match=message):
            dataset(**parts)

    def test_without_a_truth_there_is_no_true_class(self) -> None:
        with pytest.raises(
            BadInput, match="pets: the truth was needed, but this set has none; simulate on a set that has"
        ):
            _ = dataset().true_class


class TestBlocks:
    """Blocks follow each other, cover all items, and hold about as many cells each, and one item at least."""

    def law(self, how: settings, cut: Callable[[int, int], Sequence[slice]]) -> None:
        @how
        @given(st.integers(0, 3_000), st.integers(0, 200_000))
        def check(items: int, width: int) -> None:
            end = 0
            for block in list(cut(items, width)):
                assert block.start == end
                end = block.stop
                assert block.stop - block.start == 1 or (block.stop - block.start) * width <= CELLS
            assert end == items

        check()

    def test_holds(self) -> None:
        self.law(LAW, lambda items, width: list(blocks(items, width)))

    def test_a_last_block_that_is_left_out_is_caught(self) -> None:
        catches(partial(self.law, cut=lambda items, width: list(blocks(items, width))[:-1]))

    def test_a_block_that_fits_no_cache_is_caught(self) -> None:
        catches(partial(self.law, cut=lambda items, _: [slice(0, items)]))


class TestRows:
    """What a score sees: votes at their weight, and the label they make."""

    def rows(self, given_labels: Any, **parts: Any) -> Rows:
        given_labels = np.array(given_labels)
        return Rows(np.arange(len(given_labels)), None, given_labels, **parts)

    def test_votes_are_given_labels_at_their_weight_and_answers(self) -> None:
        rows = self.rows([0, -1], answer_counts=np.array([[0, 2], [1, 0]]), given_weight=0.5)
        assert rows.votes.tolist() == [[0.5, 2.0], [1.0, 0.0]]
        assert rows.answers.tolist() == [[0.0, 2.0], [1.0, 0.0]]
        assert rows.given.tolist() == [[1.0, 0.0], [0.0, 0.0]]
        assert rows.label.tolist() == [1, 0]

    def test_without_answers_votes_are_given_labels(self) -> None:
        rows = self.rows([[2, 0], [0, 0]], given_weight=2.0)
        assert rows.votes.tolist() == [[4.0, 0.0], [0.0, 0.0]]
        assert rows.answers.tolist() == [[0.0, 0.0]] * 2
        assert rows.label.tolist() == [0, -1]
        assert not rows.untouched

    def test_where_nobody_voted_the_label_is_the_given_one(self) -> None:
        nobody = np.zeros((3, 2), int)
        assert self.rows([1, 0, -1], answer_counts=nobody, given_weight=0.0).label.tolist() == [1, 0, -1]
        counts = [[0, 3], [1, 0], [0, 0]]
        assert self.rows(counts, answer_counts=nobody, given_weight=0.0).label.tolist() == [1, 0, -1]

    def test_the_mean_is_over_models(self) -> None:
        rows = Rows(np.arange(1), np.array([[[1.0, 0.0]], [[0.0, 1.0]]]), np.array([0]))
        assert rows.mean.tolist() == [[0.5, 0.5]]
        assert len(rows) == 1


def test_one_hot() -> None:
    assert one_hot(np.array([1, -1, 0], np.int8), 2).tolist() == [[0, 1], [0, 0], [1, 0]]


def test_a_hash_tells_content_shape_and_kind_apart() -> None:
    arrays: list[FloatArray | IntArray] = [
        np.arange(6.0),
        np.arange(6.0).reshape(2, 3),
        np.arange(6.0).reshape(2, 3).T,
        np.arange(6),
        np.arange(1.0, 7.0),
    ]
    assert len({fingerprint(array) for array in arrays}) == 5
    big = np.arange(200_000)
    assert fingerprint(big) == fingerprint(big.copy()) != fingerprint(np.where(big == 199_999, 0, big))


class TestMoreItems:
    """Labels of the first items, of more items after them, and the hash of ids."""

    def test_first_and_then_are_the_whole(self) -> None:
        labels = Labels(np.array([[1, 0], [0, 2], [1, 1]]), 2, came_with=np.array([0, 1, -1]))
        rest = Labels(labels.given[2:], 2)
        whole = labels.first(2).and_then(rest)
        assert whole.given.tolist() == labels.given.tolist()
        assert whole.came_with is not None
        assert whole.came_with.tolist() == [0, 1, -1]
        assert labels.first(3) is labels
        assert Labels(np.array([0, 1]), 2, np.array([[1, 0], [0, 1]])).first(1).counts.tolist() == [[2, 0]]

    @pytest.mark.parametrize("other", [["ab", "c"], ["c", "ab"], ["a", "bc", ""], [], ["a", "b", "c"]])
    def test_other_ids_have_another_hash(self, other: list[str]) -> None:
        assert ids_fingerprint(["a", "bc"]) != ids_fingerprint(other)

    def test_any_text_is_an_id(self) -> None:
        assert len(ids_fingerprint(["\ud800", "Å", ""])) == 32
