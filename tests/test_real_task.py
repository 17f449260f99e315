"""Stored posteriors are of the task that they claim, and the table of campaigns on them notices what does not hold."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import real_task
from relook.datasets import cifar10h
from relook.errors import BadInput

KEYS = {"file", "data_set", "noise", "recipe", "seed", "in_sample", "seconds", "hardware"}


def test_the_index_tells_of_every_file() -> None:
    entries = real_task.entries()
    assert all(set(entry) == KEYS for entry in entries)
    assert {entry["file"] for entry in entries} <= {path.name for path in real_task.FOLDER.glob("*.npz")}
    assert len({(entry["recipe"], entry["seed"]) for entry in entries}) == len(entries)


def test_files_are_of_the_tasks_items_and_labels(data_dir: Path) -> None:
    dataset = cifar10h.load(data_dir, subset="paper", tau=10.0)
    for entry in real_task.entries():
        with np.load(real_task.FOLDER / entry["file"], allow_pickle=False) as found:
            assert found["posteriors"].dtype == np.float16
            assert sorted(map(str, found["ids"].tolist())) == sorted(dataset.ids)
        posteriors = real_task.stored(str(data_dir), entry["file"])
        right = float((posteriors.mean().argmax(1) == dataset.true_class).mean())
        # A model of nothing but these labels: far above chance, and it does not know them by heart.
        assert 0.7 < right < 0.9
        assert float((posteriors.mean().argmax(1) == dataset.given.given).mean()) < right


def test_posteriors_of_other_labels_are_refused(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = real_task.entries()[0]
    with np.load(real_task.FOLDER / entry["file"], allow_pickle=False) as found:
        arrays = {name: found[name] for name in found.files}
    np.savez(tmp_path / entry["file"], **(arrays | {"labels": (arrays["labels"] + 1) % 10}))
    monkeypatch.setattr(real_task, "FOLDER", tmp_path)
    with pytest.raises(BadInput, match="posteriors trained on the task's given labels were needed, but on others"):
        real_task.stored.__wrapped__(str(data_dir), entry["file"])


def played(share: float, *, alone: float = 0.9) -> list[dict[str, Any]]:
    return [
        {"file": "x", "recipe": "ssl10k", "trained": trained, "policy": policy, "seed": seed, "alone": alone}
        | {"share_correct": share if policy == "default" else 0.93, "auc": 0.9}
        for trained in range(3)
        for policy in real_task.POLICIES
        for seed in range(2)
    ]


def test_what_is_missed_is_said() -> None:
    rows = real_task.table(played(0.97))
    assert [row["passed"] for row in rows] == [True, True, True]
    assert [row["passed"] for row in real_task.table(played(0.94))] == [False, True, True]
    assert [row["passed"] for row in real_task.table(played(0.97, alone=0.7))] == [False, True, True]
    assert real_task.checks(played(0.97))[0]["passed"]
    assert not real_task.checks(played(0.92))[0]["passed"]
    assert rows[0]["asked"] == "71, 95.2 / 0.852"


def test_a_campaign_is_played(data_dir: Path) -> None:
    job = next(job for job in real_task.jobs("smoke") if job.policy == "default")
    found = real_task.player(data_dir)(job)
    assert 0.94 < found["share_correct"] < 0.97
