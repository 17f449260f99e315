"""Learning without labels: losses as written down slowly, and a training that goes on as if it had never stopped."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from relook.errors import BadInput
from relook.train import checkpoints
from relook.train.augment import Statistics, View
from relook.train.byol import Byol, kept
from relook.train.checkpoints import PART, Checkpoint, newest
from relook.train.coteaching import CoTeaching
from relook.train.elr import Elr
from relook.train.learners import Batch, Facts, Method
from relook.train.linear import Linear
from relook.train.loop import Place, Training, trained
from relook.train.material import Material, Trained
from relook.train.nets import Shape
from relook.train.predict import predicted
from relook.train.schedule import Schedule
from relook.train.simclr import SimClr
from relook.train.vanilla import Vanilla
from tests.killed import KINDS
from tests.learning import batch, images, soft, value

SMALL = Shape(blocks=(1, 1), channels=8)
METHODS: Mapping[str, Method] = {
    "simclr": SimClr(shape=SMALL, hidden=32, size=16),
    "byol": Byol(shape=SMALL, hidden=32, size=16),
}
FACTS = Facts(items=64, classes=0)
NOTHING = Batch(*torch.zeros(4, 0))
"""Methods without labels look at the views alone."""

SHORT = Schedule(epochs=4, batch=16, warmup=1)
FROZEN = Schedule(epochs=2, batch=16, warmup=0, encoder=0.0)


def noise(count: int = 64) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).integers(0, 256, (count, 3, 16, 16), dtype=np.uint8))


class TestLosses:
    def test_simclr_finds_each_twin_among_all_views(self) -> None:
        torch.manual_seed(0)
        network = SimClr(shape=SMALL, hidden=32, size=16, temperature=0.3).network(FACTS).eval()
        first, second = torch.rand(2, 5, 3, 16, 16)
        views = torch.cat([first, second])
        with torch.no_grad():
            places = functional.normalize(network.projector(network.encoder(views)), dim=1)
            slow = 0.0
            for one in range(10):
                others = [float(places[one] @ places[other]) / 0.3 for other in range(10) if other != one]
                twin = float(places[one] @ places[(one + 5) % 10]) / 0.3
                slow -= (twin - float(torch.logsumexp(torch.tensor(others), 0))) / 10
            assert float(network.loss((first, second), NOTHING)) == pytest.approx(slow, abs=1e-4)

    def test_byol_predicts_the_other_view_and_is_symmetric(self) -> None:
        torch.manual_seed(0)
        network = Byol(shape=SMALL, hidden=32, size=16).network(FACTS).eval()
        first, second = torch.rand(2, 5, 3, 16, 16)
        with torch.no_grad():
            said = [network.predictor(network.projector(network.encoder(view))) for view in (first, second)]
            aimed = [network.slow(view) for view in (first, second)]
            slow = sum(float((2 - 2 * functional.cosine_similarity(said[a], aimed[1 - a])).mean()) for a in range(2))
            assert float(network.loss((first, second), NOTHING)) == pytest.approx(slow, abs=1e-4)
            assert float(network.loss((second, first), NOTHING)) == pytest.approx(slow, abs=1e-4)

    def test_the_slow_copy_follows_and_does_not_learn(self) -> None:
        torch.manual_seed(0)
        network = Byol(shape=SMALL, hidden=32, size=16, momentum=0.9).network(FACTS)
        before = [each.clone() for each in network.slow.parameters()]
        torch.autograd.backward(network.loss(tuple(torch.rand(2, 8, 3, 16, 16)), NOTHING))
        assert all(each.grad is None for each in network.slow.parameters())
        fast = [*network.encoder.parameters(), *network.projector.parameters()]
        with torch.no_grad():
            for each in fast:
                each.add_(1.0)
        network.follow(0.5)
        share = kept(0.9, 0.5)
        for old, new, now in zip(before, fast, network.slow.parameters(), strict=True):
            assert torch.allclose(now, share * old + (1 - share) * new, atol=1e-6)


def same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


class TestGoesOn:
    @pytest.mark.parametrize("name", METHODS)
    @pytest.mark.parametrize("stop", [1, 3, 8, 15])
    def test_a_training_that_stopped_ends_alike_to_the_bit(self, tmp_path: Path, name: str, stop: int) -> None:
        whole = trained(Material(noise()), METHODS[name], schedule=SHORT)
        place = Place(folder=tmp_path, every=3)
        training = iter(Training(Material(noise()), METHODS[name], schedule=SHORT, seed=0, place=place))
        for _ in range(stop):
            next(training)
        again = trained(Material(noise()), METHODS[name], schedule=SHORT, place=place)
        assert same(whole.network, again.network)

    def test_another_seed_is_another_training(self) -> None:
        one, other = (
            trained(Material(noise()), METHODS["simclr"], schedule=SHORT, seed=seed).network for seed in (0, 1)
        )
        assert not same(one, other)

    def test_the_chance_of_others_is_left_alone(self) -> None:
        torch.manual_seed(5)
        before = torch.get_rng_state()
        trained(Material(noise()), METHODS["simclr"], schedule=Schedule(epochs=1, batch=32))
        assert torch.equal(torch.get_rng_state(), before)

    @pytest.mark.slow
    @pytest.mark.timeout(300)
    def test_twenty_kills_at_random_steps_change_nothing(self, tmp_path: Path) -> None:
        found = killed(tmp_path, "4")
        assert sum(int(count) for _, count, _, _ in found) >= 20
        assert {kind for kind, _, _, _ in found} == {"vanilla", "coteaching", "elr", "linear", "simclr", "byol"}
        different = [kind for kind, _, after, undisturbed in found if after != undisturbed]
        assert not different

    @pytest.mark.slow
    @pytest.mark.timeout(300)
    def test_a_network_that_is_not_restored_is_noticed(self, tmp_path: Path) -> None:
        assert all(after != undisturbed for _, _, after, undisturbed in killed(tmp_path, "1", "forgetful"))


class TestStarts:
    """Where a training begins: an encoder for any method, a learner of the same kind to go on from."""

    def test_an_encoder_that_learnt_without_labels_is_begun_with(self) -> None:
        first = trained(Material(noise()), METHODS["simclr"], schedule=SHORT)
        found = Training(Material(noise(), labels(), start=first), Linear(), schedule=FROZEN, seed=0, place=Place())
        assert same(found.learner.encoder, first.encoder)
        assert found.seen == first.seen
        for _ in found:
            pass
        assert same(found.learner.encoder, first.encoder), "frozen, with the statistics of its norms"
        assert found.learner.encoder is not first.encoder

    def test_an_encoder_may_learn_on_slowly(self) -> None:
        first = trained(Material(noise()), METHODS["simclr"], schedule=SHORT)
        slow = trained(Material(noise(), labels(), start=first), Vanilla(), schedule=replace(FROZEN, encoder=0.1))
        assert not same(slow.encoder, first.encoder)

    def test_any_module_with_features_is_an_encoder(self) -> None:
        class Foreign(torch.nn.Module):
            features = 3

            def forward(self, images: torch.Tensor) -> torch.Tensor:
                return images.mean((2, 3))

        start = Trained(Foreign(), Statistics((0.5,) * 3, (0.25,) * 3))
        found = trained(Material(noise(), labels(), start=start), CoTeaching(0.2), schedule=SHORT)
        assert found.seen == start.seen
        assert predicted(found, noise()).shape == (2, 64, 2)

    def test_an_encoder_with_an_encoder_inside_is_taken_whole(self) -> None:
        whole: Any = torch.nn.Module()
        whole.encoder = torch.nn.Linear(1, 1)
        start = Trained(whole, Statistics((0.5,) * 3, (0.25,) * 3))
        with pytest.raises(
            BadInput, match="a module that says how many features it makes was needed, but Linear does not"
        ):
            trained(Material(noise(), labels(), start=start), Vanilla(), schedule=SHORT)
        whole.features = 3
        assert start.encoder is whole

    def test_a_learner_of_the_same_kind_goes_on(self) -> None:
        method = Elr(shape=SMALL)
        first = trained(Material(noise(), labels()), method, schedule=SHORT)
        found = Training(Material(noise(), labels(), start=first), method, schedule=SHORT, seed=1, place=Place())
        assert same(found.learner, first.network)

    def test_the_one_before_is_taken_where_a_checkpoint_is_broken(self, tmp_path: Path) -> None:
        place = Place(folder=tmp_path, every=5)
        whole = trained(Material(noise()), METHODS["byol"], schedule=SHORT, place=place)
        newest_part = max(tmp_path.glob("*.safetensors"))
        newest_part.write_bytes(newest_part.read_bytes()[:-1])
        again = trained(Material(noise()), METHODS["byol"], schedule=SHORT, place=place)
        assert again.told == ("step-000000016.json is broken and passed over.",)
        assert same(whole.network, again.network)


class TestRows:
    def test_only_labelled_rows_are_learnt_from(self) -> None:
        some = labels() * (torch.arange(64) < 40)[:, None]
        schedule = Schedule(epochs=3, batch=16, warmup=0, short="kept")
        found = Training(Material(noise(), some), Elr(shape=SMALL), schedule=schedule, seed=0, place=Place())
        for _ in found:
            pass
        assert found.learner.said.any(1).nonzero()[:, 0].tolist() == list(range(40)), "all of them, and no other"

    def test_rare_classes_are_looked_at_more_often(self) -> None:
        rare = torch.eye(2)[(torch.arange(64) >= 56).long()]
        plan = Schedule(epochs=1, batch=16, balance=1.0)
        found = Training(Material(noise(), rare), Vanilla(shape=SMALL), schedule=plan, seed=0, place=Place())
        share = np.mean([float((found._order(epoch) >= 56).float().mean()) for epoch in range(50)])
        assert 0.45 < share < 0.55

    def test_epochs_are_counted_for_the_method(self) -> None:
        class Told(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.encoder, self.seen = torch.nn.Linear(1, 1), list[float]()

            def loss(self, views: tuple[torch.Tensor, ...], batch: Batch) -> torch.Tensor:
                self.seen.append(float(batch.epoch))
                return self.encoder.weight.sum()

            def follow(self, done: float) -> None:
                self.seen.append(-done)

        @dataclass(frozen=True)
        class Telling:
            views: tuple[View, ...] = (View(), View())

            def network(self, facts: Facts) -> Told:
                return Told()

        found = trained(Material(noise()), Telling(), schedule=Schedule(epochs=2, batch=32, warmup=0))
        assert found.network.seen == [0.0, -0.25, 0.5, -0.5, 1.0, -0.75, 1.5, -1.0]


def labels() -> torch.Tensor:
    return torch.eye(2)[torch.from_numpy(np.random.default_rng(3).integers(2, size=64))]


def killed(folder: Path, *words: str) -> list[list[str]]:
    """Kill trainings of every kind; return kind, kills, and the hashes of what came out of it and of what should."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path]), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.killed", str(folder), *words],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        timeout=280,
    )
    assert ran.returncode == 0, ran.stderr
    return [line.split() for line in ran.stdout.splitlines()]


class TestCheckpoints:
    def found(self, step: int = 1) -> Checkpoint:
        return Checkpoint(step, {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(3)}, {"seed": 0})

    def test_what_was_written_is_read(self, tmp_path: Path) -> None:
        checkpoints.write(tmp_path, self.found())
        read, told = newest(tmp_path, about={"seed": 0})
        assert read is not None
        assert (read.step, told) == (1, ())
        assert {name: tensor.tolist() for name, tensor in read.tensors.items()} == {"a": [[0, 1, 2], [3, 4, 5]], "b": 3}

    def test_parts_are_small_and_large_tensors_are_cut(self, tmp_path: Path) -> None:
        large = torch.arange(3 * PART // 4 + 7, dtype=torch.float32).reshape(-1, 1)
        many = {f"t{number}": torch.full((2**20,), float(number)) for number in range(9)}
        checkpoints.write(tmp_path, Checkpoint(1, {"large": large} | many, {}))
        assert max(path.stat().st_size for path in tmp_path.iterdir()) <= 16 * 2**20
        read, _ = newest(tmp_path, about={})
        assert read is not None
        assert torch.equal(read.tensors["large"], large)
        assert all(torch.equal(read.tensors[name], tensor) for name, tensor in many.items())

    def test_two_are_kept(self, tmp_path: Path) -> None:
        for step in (1, 2, 3):
            checkpoints.write(tmp_path, self.found(step))
        assert sorted(path.name for path in tmp_path.glob("*.json")) == ["step-000000002.json", "step-000000003.json"]
        assert len(list(tmp_path.iterdir())) == 4

    @pytest.mark.parametrize("harm", ["cut", "flip", "gone", "json"])
    def test_a_broken_one_is_passed_over(self, tmp_path: Path, harm: str) -> None:
        for step in (1, 2):
            checkpoints.write(tmp_path, self.found(step))
        part, about = tmp_path / "step-000000002.0.safetensors", tmp_path / "step-000000002.json"
        content = part.read_bytes()
        if harm == "cut":
            part.write_bytes(content[:-3])
        elif harm == "flip":
            part.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        elif harm == "gone":
            part.unlink()
        else:
            about.write_text(about.read_text()[:-9])
        read, told = newest(tmp_path, about={"seed": 0})
        assert read is not None
        assert read.step == 1
        assert told == ("step-000000002.json is broken and passed over.",)

    def test_where_all_are_broken_there_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "step-000000001.json").write_text(json.dumps({"step": 1}))
        assert newest(tmp_path, about={})[0] is None

    def test_one_of_another_training_is_refused(self, tmp_path: Path) -> None:
        checkpoints.write(tmp_path, self.found())
        with pytest.raises(BadInput, match="a training with these settings was needed, but one with others is there"):
            newest(tmp_path, about={"seed": 1})


ALONE = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("msgspec", "polars", "typer", "rich", "PIL", "sklearn", "scipy", "matplotlib"):
            raise ImportError(name)

sys.meta_path.insert(0, Refused())
import importlib, pkgutil, relook.train
for found in pkgutil.iter_modules(relook.train.__path__):
    if found.name != "kernels":  # Triton's, which norms load on a graphics card
        importlib.import_module(f"relook.train.{found.name}")
try:
    import relook.types
except ImportError as error:
    print("alone, without", error)
"""


def test_it_starts_with_torch_numpy_and_safetensors_alone() -> None:
    ran = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "alone, without msgspec\n"), ran.stderr


@pytest.mark.slow
def test_losses_are_one_graph_each() -> None:
    """No loss looks at a number on its way: a graphics card would wait for it, and a compiled step would break."""
    for kind, (method, _) in KINDS.items():
        torch.manual_seed(0)
        network = method.network(Facts(12, 3)).eval()
        views = tuple(images() for _ in method.views)
        compiled: Any = torch.compile(network.loss, backend="eager", fullgraph=True)
        for epoch in (0.0, 1.5, 7.0):
            plain = copy.deepcopy(network).loss(views, batch(soft(), epoch=epoch))
            found = compiled(views, batch(soft(), epoch=epoch))
            assert value(found) == pytest.approx(value(plain), rel=1e-5), kind
