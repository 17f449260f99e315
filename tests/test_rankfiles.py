"""Files of class probabilities: mapped, known by their content, and removed when they are old."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from relook import rankfiles
from relook.errors import BadInput
from relook.events import Ranking
from relook.types import Posteriors


def some(seed: int) -> Posteriors:
    values = np.random.default_rng(seed).random((2, 5, 3))
    return Posteriors(values / values.sum(2, keepdims=True))


def ranking(number: int, posteriors: Posteriors | None) -> Ranking:
    return Ranking(number, {}, None if posteriors is None else posteriors.fingerprint(), in_sample=False, at=0.0)


def test_what_is_written_is_mapped_back(tmp_path: Path) -> None:
    path = rankfiles.place(tmp_path, 7)
    rankfiles.write(some(0), path)
    found = rankfiles.read(path, fingerprint=some(0).fingerprint())
    np.testing.assert_array_equal(found.values, some(0).values)
    owner: object = found.values
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    assert isinstance(owner, mmap.mmap), "the disk's own bytes, not a copy"
    assert [each.name for each in path.parent.iterdir()] == ["000007.npy"]


def test_another_file_is_not_taken_for_it(tmp_path: Path) -> None:
    path = rankfiles.place(tmp_path, 1)
    rankfiles.write(some(0), path)
    with pytest.raises(BadInput, match="or rank anew with relook retrain"):
        rankfiles.read(path, fingerprint=some(1).fingerprint())
    path.unlink()
    with pytest.raises(BadInput, match="the class probabilities of a ranking were needed, but the file is gone"):
        rankfiles.read(path)


def test_a_ranking_without_a_file_of_its_own_has_that_of_one_before(tmp_path: Path) -> None:
    rankfiles.write(some(0), rankfiles.place(tmp_path, 1))
    rankfiles.write(some(1), rankfiles.place(tmp_path, 2))
    events = [ranking(1, some(0)), ranking(2, some(1)), ranking(3, some(1))]
    found = rankfiles.find(tmp_path, events)
    assert found is not None
    assert found.fingerprint() == some(1).fingerprint()
    assert rankfiles.find(tmp_path, [*events, ranking(4, None)]) is None
    with pytest.raises(BadInput, match="or rank anew with relook retrain"):
        rankfiles.find(tmp_path, [ranking(1, some(2))])
    with pytest.raises(BadInput, match="the file is gone"):
        rankfiles.find(tmp_path, [ranking(9, some(2))])


def test_the_first_and_the_last_stay(tmp_path: Path) -> None:
    for number in (1, 2, 3, 10, 11):
        rankfiles.write(some(number), rankfiles.place(tmp_path, number))
    assert rankfiles.discard(tmp_path, keep=2) == [1, 10, 11]
    assert rankfiles.discard(tmp_path, keep=9) == [1, 10, 11]
    assert sorted(path.name for path in (tmp_path / "rankings").iterdir()) == ["000001.npy", "000010.npy", "000011.npy"]
