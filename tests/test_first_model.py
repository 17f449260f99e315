"""A first model is made from what comes with a set, out of sample, and says from what."""

import numpy as np
import pytest

from relook.datasets import digits
from relook.errors import BadInput
from relook.first_model import predicted, sentence
from relook.selectors import named
from relook.selectors.average import Average
from relook.types import Dataset, FloatArray, Labels

ITEMS = 300
TRUE = np.arange(ITEMS) % 3
WORDS = ("cough and fever", "broken wrist", "blurred vision")


def described(**parts: object) -> Dataset:
    ids = [str(item) for item in range(ITEMS)]
    return Dataset("visits", ("lung", "bone", "eye"), ids, Labels(TRUE, 3), **parts)  # type: ignore[arg-type]


def texts() -> list[str]:
    return [f"{WORDS[label]} {item % 5}" for item, label in enumerate(TRUE.tolist())]


def images() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [(rng.random((9, 7, 3)) * 60 + 90 * np.eye(3)[label]).astype(np.uint8) for label in TRUE.tolist()]


def agreement(dataset: Dataset, embeddings: FloatArray | None = None) -> float:
    posteriors = predicted(dataset, embeddings=embeddings)
    assert not posteriors.in_sample
    return float((posteriors.mean().argmax(1) == TRUE).mean())


def test_texts_and_images_tell_classes_apart() -> None:
    assert agreement(described(texts=texts())) == 1.0
    assert agreement(described(images=images())) > 0.95
    shuffled = np.random.default_rng(0).permutation(np.array(texts())).tolist()
    assert agreement(described(texts=shuffled)) < 0.5


def test_embeddings_go_before_all_else() -> None:
    embeddings = np.eye(3)[TRUE]
    posteriors = predicted(described(images=images(), texts=texts()), embeddings=embeddings)
    assert sentence(posteriors).startswith(
        "Out of sample, 5 folds: the mean of linear discriminants, logistic regression and nearest neighbours on the "
        "embeddings that came along. Agrees with 100.0% of the given labels; log loss "
    )
    assert (posteriors.mean().argmax(1) == TRUE).all()


def test_one_text_alike_is_one_topic() -> None:
    posteriors = predicted(described(texts=["same"] * ITEMS))
    assert "pieces of the words" in sentence(posteriors)
    assert np.allclose(posteriors.mean(), 1 / 3, atol=0.05)


def test_groups_are_kept_together() -> None:
    dataset = described(features=np.eye(3)[TRUE], groups=[str(item // 3) for item in range(ITEMS)])
    assert "5 folds that keep groups together" in sentence(predicted(dataset))


def test_items_without_an_embedding_get_the_shares_of_the_classes() -> None:
    embeddings = np.eye(3)[TRUE]
    embeddings[[4, 9]] = np.nan
    groups = [str(item // 2) for item in range(ITEMS)]
    for parts in ({}, {"groups": groups}):
        posteriors = predicted(described(**parts), embeddings=embeddings)
        assert "2 items without an embedding: predicted by how common the classes are." in sentence(posteriors)
        assert np.allclose(posteriors.mean()[[4, 9]], 1 / 3, atol=0.01)
        assert (posteriors.mean().argmax(1) == TRUE)[np.isfinite(embeddings).all(1)].all()


def test_several_embeddings_are_joined() -> None:
    """Each tells two classes apart, so that neither alone tells all three."""
    one, other = np.eye(3)[TRUE][:, :1] * 3.0, np.eye(3)[TRUE][:, 1:2] * 1e-3
    both = predicted(described(), embeddings=(one, other))
    assert "2 embeddings joined" in sentence(both)
    assert (both.mean().argmax(1) == TRUE).all()
    for alone in (one, other):
        assert (predicted(described(), embeddings=alone).mean().argmax(1) == TRUE).mean() < 0.8


def test_the_sentence_tells_what_was_asked_for() -> None:
    dataset = described(features=np.eye(3)[TRUE])
    for selector, words in (
        (named("lda", folds=3, repeats=2), "Out of sample, 2 times 3 folds: linear discriminants on the numbers"),
        (named("knn"), "Out of sample, no item with a vote on itself: nearest neighbours on the numbers"),
        (Average((named("logistic"),)), "Out of sample, 5 folds: logistic regression on the numbers"),
    ):
        assert sentence(predicted(dataset, selector=selector)).startswith(words)


def test_what_nothing_can_be_fitted_to_is_refused() -> None:
    with pytest.raises(BadInput, match="the set holds names alone, nothing to fit a model to; import it with"):
        predicted(described())
    with pytest.raises(BadInput, match="embeddings of its items were needed, but all are missing; join them anew"):
        predicted(described(), embeddings=np.full((ITEMS, 2), np.nan))
    with pytest.raises(BadInput, match="words were needed to learn from, but all texts are empty; check the column"):
        predicted(described(texts=[""] * ITEMS))


def test_digits_are_read_from_their_numbers() -> None:
    dataset = digits.load()
    assert (predicted(dataset).mean().argmax(1) == dataset.true_class).mean() > 0.9
