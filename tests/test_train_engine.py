"""The engine: members side by side, images that stream, several processes, a journal, and memory that does not do."""

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relook.errors import BadInput
from relook.train import journal, processes, progress, steps
from relook.train.batches import batches, near
from relook.train.elr import Elr
from relook.train.journal import Moment
from relook.train.learners import Batch, Facts, Method
from relook.train.loop import Member, Training, trained, trained_together
from relook.train.material import Material
from relook.train.nets import Shape
from relook.train.places import Place, device_named, fitting, room
from relook.train.schedule import Schedule
from relook.train.simclr import SimClr
from relook.train.vanilla import Vanilla
from tests.conftest import ROOT

TINY = Shape(blocks=(1,), channels=4)
PLAIN = Vanilla(shape=TINY)
SHORT = Schedule(epochs=3, batch=8, warmup=1, rate=0.1)
CPU = torch.device("cpu")


def stuff(count: int = 20) -> Material:
    rng = np.random.default_rng(1)
    images = torch.from_numpy(rng.integers(0, 256, (count, 3, 8, 8), dtype=np.uint8))
    labels = torch.eye(2)[torch.arange(count) % 2]
    return Material(images, labels, torch.linspace(0.5, 1.5, count))


def numbers(network: torch.nn.Module) -> list[torch.Tensor]:
    return [each.detach().clone() for each in network.state_dict().values()]


def same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(numbers(one), numbers(other), strict=True))


class TestTogether:
    def test_each_member_becomes_what_it_becomes_alone(self, tmp_path: Path) -> None:
        members = [
            Member(stuff(), PLAIN, SHORT, seed=0),
            Member(stuff(), PLAIN, SHORT, seed=1),
            Member(stuff(16), SimClr(shape=TINY, hidden=8, size=4), replace(SHORT, epochs=4), seed=2),
        ]
        found = trained_together(members, Place(folder=tmp_path))
        for member, one in zip(members, found, strict=True):
            alone = trained(member.found, member.method, schedule=member.schedule, seed=member.seed)
            assert same(alone.network, one.network)
        assert not same(found[0].network, found[1].network)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["member-0", "member-1", "member-2"]

    def test_the_first_is_watched(self) -> None:
        seen: list[Moment] = []
        members = [Member(stuff(), PLAIN, replace(SHORT, epochs=epochs)) for epochs in (1, 2)]
        trained_together(members, Place(watch=seen.append))
        assert [moment.steps for moment in seen] == [2]


class TestImages:
    def test_streamed_ones_make_the_same_network(self) -> None:
        whole = trained(stuff(), PLAIN, schedule=SHORT)
        streamed = trained(stuff(), PLAIN, schedule=SHORT, place=Place(most=100))
        assert same(whole.network, streamed.network)

    def test_they_stream_only_where_they_do_not_fit(self) -> None:
        images = stuff().images
        assert type(batches(images, CPU, most=images.nbytes)) is type(batches(images, CPU))
        assert type(batches(images, CPU, most=images.nbytes - 1)) is not type(batches(images, CPU))
        assert near(images, CPU, most=0) is images

    def test_a_file_that_is_mapped_streams(self, tmp_path: Path) -> None:
        found = stuff()
        np.save(tmp_path / "images.npy", found.images.numpy())
        mapped = torch.from_numpy(np.load(tmp_path / "images.npy", mmap_mode="r+", allow_pickle=False))
        place = Place(most=0)
        streamed = trained(replace(found, images=mapped), PLAIN, schedule=SHORT, place=place)
        assert same(streamed.network, trained(found, PLAIN, schedule=SHORT).network)


class TestSteps:
    def test_a_processor_runs_plainly(self) -> None:
        assert steps.mode_for(CPU, "graph") == "plain"
        assert steps.mode_for(torch.device("cuda"), None) == "graph"
        assert steps.mode_for(torch.device("cuda"), "compiled") == "compiled"

    def test_batches_are_walked_and_mapped_with_their_build(self) -> None:
        one = torch.ones(2)
        batch = Batch(one, 2 * one, 3 * one, one.sum())
        found = steps.mapped((one, None, (batch,)), lambda each: each + 1)
        assert isinstance(found[2][0], Batch)
        assert [float(each.sum()) for each in steps.leaves(found)] == [4, 4, 6, 8, 3]
        assert found[1] is None

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a graphics card")
    @pytest.mark.parametrize("mode", ["graph", "compiled"])
    def test_a_graphics_card_makes_nearly_the_same_of_every_mode(self, mode: steps.Mode) -> None:
        plain, other = (
            torch.stack(list(Training(stuff(), PLAIN, schedule=SHORT, seed=0, place=Place(device="cuda", mode=each))))
            for each in ("plain", mode)
        )
        assert torch.allclose(plain, other, rtol=0.05)


class TestJournal:
    def lines(self, folder: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / journal.NAME).read_text().splitlines()]

    def test_a_line_an_epoch_with_its_mean_loss(self, tmp_path: Path) -> None:
        place = Place(folder=tmp_path)
        losses = [float(loss) for loss in Training(stuff(), PLAIN, schedule=SHORT, seed=0, place=place)]
        found = self.lines(tmp_path)
        assert [(line["step"], line["epoch"], line["steps"]) for line in found] == [(2, 1, 6), (4, 2, 6), (6, 3, 6)]
        assert [line["loss"] for line in found] == pytest.approx([sum(losses[i : i + 2]) / 2 for i in (0, 2, 4)])
        assert [line["rate"] for line in found] == pytest.approx(
            [SHORT.rate_at(step, steps=6, an_epoch=2) for step in (1, 3, 5)]
        )
        assert all(line["images_a_second"] > 0 for line in found)
        assert sorted(line["seconds"] for line in found) == [line["seconds"] for line in found]

    @pytest.mark.parametrize("stop", [1, 2, 3, 5])
    def test_it_goes_on_and_doubles_nothing(self, tmp_path: Path, stop: int) -> None:
        def told(folder: Path) -> list[tuple[int, float]]:
            return [(line["step"], line["loss"]) for line in self.lines(folder)]

        place = Place(folder=tmp_path / "whole", every=1)
        trained(stuff(), PLAIN, schedule=SHORT, place=place)
        (tmp_path / "stopped").mkdir()
        place = Place(folder=tmp_path / "stopped", every=3)
        walk: Any = iter(Training(stuff(), PLAIN, schedule=SHORT, seed=0, place=place))
        for _ in range(stop):
            next(walk)
        walk.close()
        with (tmp_path / "stopped" / journal.NAME).open("a") as file:
            file.write('{"step": 5, "lo')
        trained(stuff(), PLAIN, schedule=SHORT, place=place)
        assert told(tmp_path / "stopped") == told(tmp_path / "whole")

    def test_who_watches_is_told_to_the_end(self) -> None:
        seen: list[Moment] = []
        trained(stuff(), PLAIN, schedule=SHORT, place=Place(watch=seen.append))
        assert [moment.step for moment in seen if moment.step % 2 == 0] == [2, 4, 6]
        assert seen[-1].left == 0
        assert seen[0].left == pytest.approx(seen[0].seconds / 2 * 4, abs=0.002)  # both are told in milliseconds
        assert seen[0].loss is not None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class TestBar:
    MOMENT = Moment(
        step=50, steps=100, epoch=5, loss=0.5, rate=0.1, images_a_second=1234.4, seconds=3600.0, left=3600.0
    )

    def test_a_terminal_shows_how_far_how_fast_and_how_long(self) -> None:
        screen = Terminal()
        show = progress.bar(screen)
        show(self.MOMENT)
        show(replace(self.MOMENT, step=100, epoch=10, left=0.0))
        first, second = screen.getvalue().split("\r\x1b[K")[1:]
        assert first == "[############            ] epoch 5.0 of 10, 1,234 images/s, 1 h 0 min left, loss 0.5000"
        assert second.endswith("epoch 10.0 of 10, 1,234 images/s, 0 s left, loss 0.5000\n")

    def test_elsewhere_it_is_silent(self) -> None:
        screen = io.StringIO()
        progress.bar(screen)(self.MOMENT)
        assert screen.getvalue() == ""

    def test_before_the_first_epoch_there_is_no_loss(self) -> None:
        told = progress.line(replace(self.MOMENT, step=1, epoch=0.1, loss=None, left=75.0))
        assert told == "[                        ] epoch 0.1 of 10, 1,234 images/s, 1 min 15 s left"


@dataclass(frozen=True)
class Greedy:
    """A method that asks for more memory than there is, or breaks in another way, once it has learnt a step."""

    words: str = ""
    views: tuple[Any, ...] = PLAIN.views

    def network(self, facts: Any) -> Any:
        network: Any = PLAIN.network(facts)
        network.loss = self.loss
        return network

    def loss(self, views: tuple[torch.Tensor, ...], batch: Batch) -> torch.Tensor:
        if self.words:
            raise RuntimeError(self.words)
        return torch.empty(2**58)


class TestMemory:
    def test_the_batch_to_try_is_named(self) -> None:
        with pytest.raises(
            BadInput, match="memory for 8 images at once was needed, but cpu has less; try a batch of 4"
        ):
            trained(stuff(), Greedy("DefaultCPUAllocator: can't allocate memory"), schedule=SHORT)

    def test_what_no_batch_can_help_is_said(self) -> None:
        with pytest.raises(BadInput, match="memory for one image was needed, but cpu does not hold it beside the netw"):
            trained(stuff(), Greedy(), schedule=SHORT)

    def test_other_errors_stay_what_they_are(self) -> None:
        with pytest.raises(RuntimeError, match="shapes"):
            trained(stuff(), Greedy("shapes do not fit"), schedule=SHORT)

    def test_what_a_graphics_card_lacks_counts(self) -> None:
        words = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.80 GiB"
        with pytest.raises(BadInput, match="try a batch of"), room(1024, CPU):
            raise torch.OutOfMemoryError(words)

    def test_it_is_halved_until_it_fits(self) -> None:
        assert [fitting(600, need=10, free=free) for free in (1e6, 3000, 2999, 700, 9)] == [300, 300, 150, 37, 0]


class TestDevices:
    def test_one_that_is_none(self) -> None:
        with pytest.raises(BadInput, match="the name of a device was needed, but gpu came; take cpu, cuda or cuda:1"):
            device_named("gpu")

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card")
    def test_none_is_there(self) -> None:
        with pytest.raises(
            BadInput, match="a graphics card was needed for cuda, but this machine has none; take the device cpu"
        ):
            trained(stuff(), PLAIN, schedule=SHORT, place=Place(device="cuda"))

    def test_too_high_a_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        monkeypatch.setenv("LOCAL_RANK", "1")
        assert device_named("cuda") == torch.device("cuda", 1)
        with pytest.raises(BadInput, match="graphics card 2 was needed, but 2 are there, counted from 0; take a lower"):
            device_named("cuda:2")


METHODS: dict[str, Method] = {"vanilla": PLAIN, "simclr": SimClr(shape=TINY, hidden=8, size=4), "elr": Elr(shape=TINY)}

SCRIPT = """
import sys
from pathlib import Path
import torch
from safetensors.torch import save_file
from relook.train import processes
from relook.train.loop import Training, trained
from relook.train.places import Place
from tests.test_train_engine import METHODS, SHARED, stuff
folder = Path(sys.argv[1])
with processes.together(torch.device("cpu")):
    rank = processes.number()
    assert processes.count() == 2
    for name in METHODS:
        place = Place(folder=folder / name, every=2)
        walk = iter(Training(stuff(), METHODS[name], schedule=SHARED, seed=0, place=place))
        for _ in range(3):
            next(walk)
        walk.close()
        torch.distributed.barrier()
        found = trained(stuff(), METHODS[name], schedule=SHARED, place=place)
        kept = {key: value.contiguous() for key, value in found.network.state_dict().items()}
        save_file(kept, folder / f"{name}.{rank}.safetensors")
"""

SHARED = replace(SHORT, batch=7, short="kept")


class TestProcesses:
    @pytest.mark.slow
    @pytest.mark.timeout(300)
    def test_two_make_the_network_that_one_makes(self, tmp_path: Path) -> None:
        from safetensors.torch import load_file

        script = tmp_path / "train.py"
        script.write_text(SCRIPT)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "OMP_NUM_THREADS": "1"}
        ran = subprocess.run(
            [*command, str(script), str(tmp_path)], capture_output=True, text=True, check=False, env=env
        )
        assert ran.returncode == 0, ran.stderr
        for name, method in METHODS.items():
            alone = trained(stuff(), method, schedule=SHARED).network.state_dict()
            first, second = (load_file(tmp_path / f"{name}.{rank}.safetensors") for rank in range(2))
            for key, value in alone.items():
                assert torch.equal(first[key], second[key]), key
                assert torch.allclose(first[key].double(), value.double(), rtol=1e-3, atol=1e-4), key
            lines = journal.read(tmp_path / name / journal.NAME)
            assert [line["step"] for line in lines] == [3, 6, 9]

    def test_one_alone_changes_nothing(self) -> None:
        assert (processes.count(), processes.number(), processes.part(7)) == (1, 0, slice(0, 7))
        value = torch.ones(2)
        assert processes.mean(value) is value

    def test_what_methods_remember_is_told_from_norms(self) -> None:
        network = Elr(shape=TINY).network(Facts(items=20, classes=2))
        assert list(processes.memories(network)) == ["said"]
