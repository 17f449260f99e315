"""Learning without labels: losses as written down slowly, and a training that goes on as if it had never stopped."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from relook.errors import BadInput
from relook.train import checkpoints
from relook.train.augment import View
from relook.train.byol import Byol, kept
from relook.train.checkpoints import PART, Checkpoint, newest
from relook.train.learners import Batch, Facts, Method
from relook.train.loop import Place, Training, trained
from relook.train.material import Material
from relook.train.nets import Shape
from relook.train.predict import embedded
from relook.train.schedule import Schedule
from relook.train.simclr import SimClr

SMALL = Shape(blocks=(1, 1), channels=8)
METHODS: Mapping[str, Method] = {
    "simclr": SimClr(shape=SMALL, hidden=32, size=16),
    "byol": Byol(shape=SMALL, hidden=32, size=16),
}
FACTS = Facts(items=64, classes=0)
NOTHING = Batch(*torch.zeros(4, 0))
"""Methods without labels look at the views alone."""

SHORT = Schedule(epochs=4, batch=16, warmup=1)


def noise(count: int = 64) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).integers(0, 256, (count, 3, 16, 16), dtype=np.uint8))


def stripes(count: int = 480) -> tuple[torch.Tensor, np.ndarray]:
    """Images of upright or lying stripes, of any colour, width and place: pixels alone do not tell which."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(2, size=count)
    waves = np.sin(np.arange(16) * rng.uniform(0.9, 1.6, (count, 1)) + rng.uniform(0, 7, (count, 1)))
    flat = np.broadcast_to(waves[:, np.newaxis], (count, 16, 16))
    planes = np.where(kinds[:, np.newaxis, np.newaxis] == 1, flat, flat.transpose(0, 2, 1))
    colours = rng.uniform(0.3, 1, (count, 3, 1, 1))
    return torch.from_numpy((127 + 100 * planes[:, np.newaxis] * colours).astype(np.uint8)), kinds


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

    def test_the_rate_rises_and_falls(self) -> None:
        rates = [Schedule(rate=2.0, warmup=1).rate_at(step, steps=100, an_epoch=10) for step in range(100)]
        assert rates[0] == 0
        assert rates[10] == pytest.approx(2 * 0.5 * (1 + np.cos(np.pi * 0.1)))
        assert max(rates) == rates[10]
        assert rates[-1] < 0.001


class TestLearns:
    @pytest.mark.slow
    def test_stripes_are_told_apart_without_a_label(self) -> None:
        images, kinds = stripes()
        method = SimClr(shape=SMALL, hidden=64, size=32, views=(View(hue=0.5, grey=0.5), View(hue=0.5, grey=0.5)))
        found = trained(Material(images), method, schedule=Schedule(epochs=12, batch=60, rate=0.1, warmup=1))
        learnt = embedded(found, images).numpy()
        assert _right(learnt, kinds) > 0.9
        assert _right(images.flatten(1).numpy() / 255, kinds) < 0.75


def _right(features: np.ndarray, kinds: np.ndarray) -> float:
    """The share of the second half that a linear fit to the first half tells right."""
    table = np.c_[(features - features.mean(0)) / (features.std(0) + 1e-6), np.ones(len(features))]
    half = len(table) // 2
    ridge = table[:half].T @ table[:half] + 10 * np.eye(table.shape[1])
    weights = np.linalg.solve(ridge, table[:half].T @ (2 * kinds[:half] - 1))
    return float(((table[half:] @ weights > 0) == kinds[half:]).mean())


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
    def test_twenty_kills_change_nothing(self, tmp_path: Path) -> None:
        script = tmp_path / "train.py"
        script.write_text(
            "import sys\nfrom tests.test_train_loop import METHODS, noise\n"
            "from relook.train.loop import Place, Training\nfrom relook.train.material import Material\n"
            "from relook.train.schedule import Schedule\nfrom pathlib import Path\nimport torch\n"
            "plan = Schedule(epochs=60, batch=16, warmup=1)\n"
            "place = Place(folder=Path(sys.argv[1]), every=5)\n"
            "training = Training(Material(noise()), METHODS['simclr'], schedule=plan, seed=0, place=place)\n"
            "for _ in training:\n    print('step', flush=True)\n"
            "print(sum(float(p.detach().double().sum()) for p in training.learner.parameters()).hex())\n"
        )
        folder, kills, rng = tmp_path / "kept", 0, np.random.default_rng(0)
        while True:
            steps = int(rng.integers(5, 15)) if kills < 20 else 10_000
            done, last = _run(script, folder, steps=steps)
            if done:
                break
            kills += 1
        assert kills == 20
        plan = Schedule(epochs=60, batch=16, warmup=1)
        training = Training(Material(noise()), METHODS["simclr"], schedule=plan, seed=0, place=Place())
        for _ in training:
            pass
        total = sum(float(each.detach().double().sum()) for each in training.learner.parameters())
        assert last == float(total).hex()


def _run(script: Path, folder: Path, *, steps: int) -> tuple[bool, str]:
    """Run a training, and kill it after so many steps; say whether it came to its end, and its last line."""
    words = [sys.executable, str(script), str(folder)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        last = ""
        for count, line in enumerate(process.stdout, 1):
            last = line.strip()
            if count >= steps and last == "step":
                process.send_signal(signal.SIGKILL)
                break
        process.wait()
        return process.returncode == 0, last


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


def test_what_cannot_be_learnt_from_is_refused() -> None:
    method = METHODS["simclr"]
    with pytest.raises(BadInput, match=r"N x channels x H x W bytes were needed, but torch\.float32 of shape"):
        trained(Material(torch.zeros(20, 3, 8, 8)), method)
    with pytest.raises(BadInput, match="a batch of at most 64 images was needed, but 512 came; take"):
        trained(Material(noise()), method)


ALONE = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("msgspec", "polars", "typer", "rich", "PIL", "sklearn", "scipy", "matplotlib"):
            raise ImportError(name)

sys.meta_path.insert(0, Refused())
from relook.train import augment, byol, checkpoints, nets, predict, simclr, vanilla
try:
    import relook.types
except ImportError as error:
    print("alone, without", error)
"""


def test_it_starts_with_torch_numpy_and_safetensors_alone() -> None:
    ran = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "alone, without msgspec\n"), ran.stderr
