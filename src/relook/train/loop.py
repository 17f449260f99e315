"""One loop for every method: views of a batch, a loss, a step, and the same again, from wherever it stopped.

All chance of a step comes from the seed and the step's number, so a training that goes on after it was killed takes the
very steps that it would have taken, and one that runs beside others takes those that it would have taken alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from relook.train import checkpoints, material, norms, places, processes, steps
from relook.train.augment import Statistics, applied, chosen, normalised, statistics, taken
from relook.train.batches import batches, near
from relook.train.checkpoints import Checkpoint
from relook.train.journal import Journal
from relook.train.learners import Batch, Facts, Method
from relook.train.material import Material, Trained
from relook.train.places import device_named, room
from relook.train.schedule import Schedule, optimizer, stepped

Place = places.Place
HERE = places.HERE

SCHEDULE = Schedule()
"""Two hundred epochs: on 10,000 small images two minutes of a large graphics card, for 73 of 100 labels right."""


@dataclass(frozen=True)
class Member:
    """One of several networks that are trained side by side: what it learns from, how, how long, and its seed."""

    found: Material
    method: Method
    schedule: Schedule = SCHEDULE
    seed: int = 0


def trained(
    found: Material, method: Method, *, schedule: Schedule = SCHEDULE, seed: int = 0, place: Place = HERE
) -> Trained:
    """Return the network that a method makes of images and their targets."""
    (only,) = _trained([Member(found, method, schedule, seed)], [place])
    return only


def trained_together(members: Sequence[Member], place: Place = HERE) -> list[Trained]:
    """Return several networks, trained side by side on one device: seeds, folds, or the members of an ensemble.

    Each becomes what it would have become alone. On a graphics card each has a stream of its own, so that networks too
    small to keep the card busy share it. A folder holds one for each, `member-0` and so on; the first is watched.
    """
    own = [
        replace(
            place,
            folder=None if place.folder is None else place.folder / f"member-{number}",
            watch=None if number else place.watch,
        )
        for number in range(len(members))
    ]
    return _trained(members, own)


def _trained(members: Sequence[Member], own: Sequence[Place]) -> list[Trained]:
    device = device_named(own[0].device)
    with ExitStack() as around:
        around.enter_context(torch.cuda.device(device) if device.type == "cuda" else nullcontext())
        around.enter_context(chance_kept(device.type))
        around.enter_context(processes.together(device))
        around.enter_context(room(max(member.schedule.batch for member in members), device))
        around.enter_context(steps.quick(device))
        # Members that learn from the same images share them.
        kept = {id(each.found.images): near(each.found.images, device, most=own[0].most) for each in members}
        trainings = [
            Training(
                replace(each.found, images=kept[id(each.found.images)]),
                each.method,
                schedule=each.schedule,
                seed=each.seed,
                place=place,
            )
            for each, place in zip(members, own, strict=True)
        ]
        for each in trainings:
            each.alone = each.alone and len(trainings) == 1
        _side_by_side(trainings, device)
        return [Trained(each.learner.eval(), each.seen, each.told) for each in trainings]


def _side_by_side(trainings: Sequence[Training], device: torch.device) -> None:
    """Take a step of each in turn, each on its own stream where there are streams."""
    if device.type != "cuda" or len(trainings) == 1:
        running = [iter(each) for each in trainings]
        while running:
            running = [walk for walk in running if next(walk, None) is not None]
        return
    beside = [(each, iter(each), steps.stream(device)) for each in trainings]
    torch.cuda.synchronize(device)
    while beside:
        beside = [one for one in beside if _stepped_aside(one[0], one[1], stream=one[2])]
    torch.cuda.synchronize(device)


def _stepped_aside(training: Training, walk: Iterator[Tensor], *, stream: Any) -> bool:
    """Take a step on a stream, and say whether there was one to take."""
    with torch.cuda.stream(stream):
        went = next(walk, None) is not None
    # Graphs share one source of chance: those that draw from it take turns.
    if getattr(training.passed, "draws", False):
        stream.synchronize()
    return went


class Training:
    """A training that can be walked through step by step; each step yields its loss, on the device."""

    def __init__(self, found: Material, method: Method, *, schedule: Schedule, seed: int, place: Place) -> None:
        material.check(found, schedule)
        material.check_labels(found, method)
        self.method, self.schedule, self.seed, self.place = method, schedule, seed, place
        self.device = torch.device(device_named(place.device))
        self.size = found.images.shape[1:]
        self.batches = batches(found.images, self.device, most=place.most)
        _, self.targets, self.weights = (each.to(self.device) for each in found.tensors())
        self.seen: Statistics = statistics(found.images) if found.start is None else found.start.seen
        self.told: tuple[str, ...] = ()
        self.learner = self._begun(found)
        self.optimizer = optimizer(self.learner, schedule)
        self.params = [each for group in self.optimizer.param_groups for each in group["params"]]
        mode = self.mode = steps.mode_for(self.device, place.mode if processes.count() == 1 else "plain")
        self.plain = self.learner.loss, chosen, applied
        self.quick = tuple(steps.compiled(each, mode) for each in self.plain)
        self.passed = steps.stepping(self._pass, self.params, mode=mode)
        self.learnt = found.learnt()
        self.chances = found.chances(schedule.balance)
        self.an_epoch = schedule.steps_an_epoch(len(self.learnt))
        self.steps = schedule.epochs * self.an_epoch
        self.alone = processes.count() == 1
        self._known = -1, torch.empty(0)
        self._heard = torch.zeros((), device=self.device)
        self._epochs = torch.zeros((), dtype=torch.float64, device=self.device)
        settings: Any = method
        described = {"name": type(method).__name__} | asdict(settings)
        self.about = {"method": described, "schedule": asdict(schedule), "seed": seed, "material": found.hashed()}

    def __iter__(self) -> Iterator[Tensor]:
        begin = self._resumed()
        writes = processes.number() == 0
        journal = Journal(self.place.folder if writes else None, step=begin, watch=self.place.watch if writes else None)
        fast = norms.fast(self.learner) if self.mode == "fused" else nullcontext()
        with fast, processes.norms_shared(self.learner):
            for step in range(begin, self.steps):
                loss = self._stepped(step)
                self._tell(journal, step, loss=loss)
                due = (step + 1) % self.place.every == 0 or step + 1 == self.steps
                if due and writes and self.place.folder is not None:
                    checkpoints.write(self.place.folder, self._state(step + 1))
                yield loss

    def _begun(self, found: Material) -> Any:
        """Return the network that the training begins with."""
        sow(self.seed, "network")
        encoder = None if found.start is None else found.start.encoder
        facts = Facts(len(found.images), self.targets.shape[1], self.size[0], encoder)
        learner: Any = self.method.network(facts)
        if found.start is not None and isinstance(found.start.network, type(learner)):
            material.go_on(learner, found.start.network)
        return learner.to(self.device).to(memory_format=torch.channels_last).train()

    def _order(self, epoch: int) -> Tensor:
        """Return the order in which an epoch looks at the items; the last one asked for is kept."""
        if self._known[0] != epoch:
            sow(self.seed, "order", epoch)
            count = len(self.learnt)
            if self.chances is None:
                order = torch.randperm(count)
            else:
                order = torch.multinomial(self.chances, count, replacement=True)
            self._known = epoch, self.learnt[order].to(self.batches.home)
        return self._known[1]

    def _rows(self, step: int) -> Tensor:
        """Return the rows of a step's batch, where the images lie."""
        epoch, place = divmod(step, self.an_epoch)
        return self._order(epoch)[place * self.schedule.batch : (place + 1) * self.schedule.batch]

    def _stepped(self, step: int) -> Tensor:
        rows = self._rows(step)
        part = processes.part(len(rows))
        following = self._rows(step + 1) if (step + 1) % self.an_epoch else None
        images = self.batches(rows[part], following=None if following is None else following[part])
        rows = rows.to(self.device)
        sow(self.seed, "step", step)
        # Others draw at the same time, or take other parts of the batch: the numbers are drawn here, for all of it.
        numbers = None if self.alone else taken(self._numbers(len(rows), chosen), part)
        weights, mine, epochs = self.weights[rows], rows[part], self._epochs.fill_(step / self.an_epoch)
        share = weights[part].sum() * processes.count() / weights.sum() if processes.count() > 1 else None
        batch = Batch(mine, self.targets[mine], weights[part], epochs)
        with processes.memories_shared(self.learner):
            loss = self.passed((images, numbers, batch, share))
        processes.add_slopes(self.params)
        rate = self.schedule.rate_at(step, steps=self.steps, an_epoch=self.an_epoch)
        stepped(self.optimizer, self.schedule, rate=rate)
        self.learner.follow((step + 1) / self.steps)
        return processes.mean(loss)

    def _numbers(self, count: int, draw: Any) -> tuple[Any, ...]:
        return tuple(draw((count, *self.size), view, device=self.device) for view in self.method.views)

    def _pass(self, given: tuple[Tensor, Any, Batch, Tensor | None]) -> Tensor:
        """Leave the gradients of a batch behind, and return its loss."""
        images, numbers, batch, share = given
        # The last batch of an epoch may be short: to compile for it as well would take longer than it saves.
        learn, draw, apply = self.quick if len(images) == self.schedule.batch else self.plain
        numbers = self._numbers(len(images), draw) if numbers is None else numbers
        views = tuple(
            normalised(apply(images, each, beyond=view.beyond, side=view.side), self.seen).contiguous(
                memory_format=torch.channels_last
            )
            for each, view in zip(numbers, self.method.views, strict=True)
        )
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            loss = learn(views, batch)
        if share is not None:
            loss = loss * share
        loss.backward()
        return loss.detach()

    def _tell(self, journal: Journal, step: int, *, loss: Tensor) -> None:
        """Keep account of the losses, and tell those who want to know how far the training is."""
        self._heard += loss
        rate = self.schedule.rate_at(step, steps=self.steps, an_epoch=self.an_epoch)
        looked = journal.stepped(len(self._rows(step)))
        whole = (step + 1) % self.an_epoch == 0
        if whole and journal.asked:
            journal.loss = float(self._heard) / self.an_epoch
        if whole or looked:
            moment = journal.moment(step + 1, steps=self.steps, an_epoch=self.an_epoch, rate=rate)
            (journal.write if whole else journal.show)(moment)
        if whole:
            self._heard.zero_()

    def _state(self, step: int) -> Checkpoint:
        tensors = {f"network.{name}": tensor for name, tensor in self.learner.state_dict().items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            kept = {name: value for name, value in state.items() if value is not None}
            tensors |= {f"optimizer.{number}.{name}": value for name, value in kept.items()}
        return Checkpoint(step, tensors | {"loop.heard": self._heard}, self.about)

    def _resumed(self) -> int:
        """Go on from the newest checkpoint, where there is one, and return the next step."""
        if self.place.folder is None or not self.place.folder.is_dir():
            return 0
        found, self.told = checkpoints.newest(self.place.folder, about=self.about)
        if found is None:
            return 0
        network: dict[str, Tensor] = {}
        known = self.optimizer.state_dict()
        known["state"] = {}
        for name, tensor in found.tensors.items():
            kind, _, own = name.partition(".")
            if kind == "network":
                network[own] = tensor
            elif kind == "optimizer":
                number, _, part = own.partition(".")
                known["state"].setdefault(int(number), {})[part] = tensor
        self.learner.load_state_dict(network)
        self.optimizer.load_state_dict(known)
        self._heard.copy_(found.tensors["loop.heard"])
        return found.step


def sow(seed: int, *names: str | int) -> None:
    """Set the chance of what follows: it depends on the seed and these names alone."""
    words = "\x1f".join([str(seed), *map(str, names)])
    torch.manual_seed(int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), "little") >> 1)


@contextmanager
def chance_kept(device: str) -> Iterator[None]:
    """Leave the chance of everybody else as it was."""
    with torch.random.fork_rng(devices=[] if device == "cpu" else [torch.cuda.current_device()]):
        yield
