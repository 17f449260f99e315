"""Trainings that are killed in the middle of a step, as a script: trainings are forked from one process that has torch.

    python -m tests.killed FOLDER KILLS [forgetful]

prints a line a kind of training: its name, how often it was killed, a hash of what it had learnt at the end, and that
of one that nobody disturbed. Forgetful trainings do not restore the network, which shows that the hash would notice.
"""

import hashlib
import os
import select
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from relook.train.augment import View
from relook.train.byol import Byol
from relook.train.coteaching import CoTeaching
from relook.train.elr import Elr
from relook.train.learners import Method
from relook.train.linear import Linear
from relook.train.loop import Place, Training
from relook.train.material import Material
from relook.train.nets import Shape
from relook.train.schedule import Schedule
from relook.train.simclr import SimClr
from relook.train.vanilla import Vanilla

TINY = Shape(blocks=(1,), channels=4)
SGD = Schedule(epochs=8, batch=16, warmup=1, nesterov=True, short="kept", balance=0.5)
ADAM = Schedule(epochs=8, batch=16, warmup=0, optimizer="adam", rate=1e-3, lars=0.02, shape="steps", drops=(4, 8))
ONE = (View(),)
KINDS: Mapping[str, tuple[Method, Schedule]] = {
    "vanilla": (Vanilla(shape=TINY, dropout=0.2, views=ONE), SGD),
    "coteaching": (CoTeaching(0.3, warmup=1, gradual=2, shape=TINY), SGD),
    "elr": (Elr(shape=TINY), SGD),
    "linear": (Linear(shape=TINY), ADAM),
    "simclr": (SimClr(shape=TINY, hidden=8, size=8), ADAM),
    "byol": (Byol(shape=TINY, hidden=8, size=8), SGD),
}


def noise() -> Material:
    """Images and labels without sense."""
    rng = np.random.default_rng(1)
    images = torch.from_numpy(rng.integers(0, 256, (70, 3, 8, 8), dtype=np.uint8))
    return Material(images, torch.eye(3)[torch.from_numpy(rng.integers(3, size=70))])


def training(kind: str, *, folder: Path | None = None) -> Training:
    method, schedule = KINDS[kind]
    return Training(noise(), method, schedule=schedule, seed=0, place=Place(folder=folder, every=4))


def told(found: Training) -> str:
    """Return a hash of all that a training has learnt."""
    whole = hashlib.blake2b(digest_size=8)
    for tensor in found.learner.state_dict().values():
        whole.update(tensor.contiguous().view(-1).view(torch.uint8).numpy())
    return whole.hexdigest()


def _child(kind: str, folder: Path, *, pipe: int, forgetful: bool) -> None:
    """Train, and write a letter after each step, the hash at the end."""
    found = training(kind, folder=folder)
    if forgetful:
        found.learner.load_state_dict = str
    for _ in found:
        os.write(pipe, b".")
    os.write(pipe, b"=" + told(found).encode())
    os._exit(0)


def attempt(kind: str, folder: Path, *, steps: int, late: float, forgetful: bool) -> bytes:
    """Train in a child that is killed `late` seconds after so many steps (not, where they are below 0)."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        _child(kind, folder, pipe=into, forgetful=forgetful)
    os.close(into)
    read = b""
    while piece := os.read(out, 100):
        read += piece
        if 0 <= steps <= read.count(b"."):
            select.select([], [], [], late)
            os.kill(child, signal.SIGKILL)
            steps = -1
    os.waitpid(child, 0)
    os.close(out)
    return read


def hunted(kind: str, folder: Path, *, kills: int, forgetful: bool) -> str:
    """Kill so many trainings at random steps, each going on where the last one was, and let one come to its end."""
    rng = np.random.default_rng(list(KINDS).index(kind))
    killed = 0
    for _ in range(kills):
        steps, late = int(rng.integers(5 if forgetful else 1, 12)), float(rng.uniform(0, 0.01))
        killed += b"=" not in attempt(kind, folder, steps=steps, late=late, forgetful=forgetful)
    hashes = (
        attempt(kind, place, steps=-1, late=0, forgetful=forgetful).partition(b"=")[2].decode()
        for place in (folder, folder / "undisturbed")
    )
    return f"{kind} {killed} {' '.join(hashes)}"


def main() -> None:
    torch.set_num_threads(1)  # so that a fork is a whole process, and small networks are quick
    folder, kills, forgetful = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] == ["forgetful"]
    next(iter(training("vanilla")))  # what torch imports at the first step is imported once
    for kind in [*KINDS][:: 3 if forgetful else 1]:
        sys.stdout.write(hunted(kind, folder / kind, kills=kills, forgetful=forgetful) + "\n")


if __name__ == "__main__":
    main()
