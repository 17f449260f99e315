"""How far a training is, as lines of JSON beside its checkpoints: one an epoch, after a kill as without one."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = "metrics.jsonl"
"""The file of lines in a training's folder."""

_OFTEN = 0.5
"""Seconds between two looks at a training."""


@dataclass(frozen=True)
class Moment:
    """How far a training is: steps and epochs done, the last epoch's mean loss, the rate, images a second, seconds.

    `left` are the seconds to the end at the speed of this process, and stand in no line.
    """

    step: int
    steps: int
    epoch: float
    loss: float | None
    rate: float
    images_a_second: float
    seconds: float
    left: float


class Journal:
    """Writes a line for every epoch, and tells whoever watches how far a training is."""

    def __init__(self, folder: Path | None, *, step: int, watch: Callable[[Moment], None] | None) -> None:
        self.place = None if folder is None else folder / NAME
        self.watch, self.begin = watch, step
        known = [] if self.place is None else _kept(self.place, step)
        self.loss: float | None = known[-1]["loss"] if known else None
        self.before: float = known[-1]["seconds"] if known else 0.0
        self.began = self.last = self.shown = time.perf_counter()
        self.images = 0

    @property
    def asked(self) -> bool:
        """Whether anybody wants to know."""
        return self.place is not None or self.watch is not None

    def stepped(self, images: int) -> bool:
        """Count the images of a step, and say whether somebody is to be shown how far the training is."""
        self.images += images
        return self.watch is not None and time.perf_counter() - self.shown > _OFTEN

    def moment(self, step: int, *, steps: int, an_epoch: int, rate: float) -> Moment:
        """Return how far the training is."""
        now = time.perf_counter()
        speed = self.images / max(now - self.last, 1e-9)
        seconds = now - self.began
        return Moment(
            step=step,
            steps=steps,
            epoch=step / an_epoch,
            loss=self.loss,
            rate=rate,
            images_a_second=round(speed, 1),
            seconds=round(self.before + seconds, 3),
            left=seconds / (step - self.begin) * (steps - step),
        )

    def show(self, moment: Moment) -> None:
        """Tell whoever watches."""
        self.shown = time.perf_counter()
        if self.watch is not None:
            self.watch(moment)

    def write(self, moment: Moment) -> None:
        """Write the line of an epoch that is done."""
        self.last, self.images = time.perf_counter(), 0
        if self.place is not None:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            with self.place.open("a", encoding="utf-8") as file:
                line = asdict(moment)
                del line["left"]
                file.write(json.dumps(line) + "\n")
        self.show(moment)


def read(place: Path) -> list[dict[str, float]]:
    """Return the whole lines of a journal; the last one of a killed training may be torn."""
    lines = place.read_text("utf-8").splitlines() if place.exists() else []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


def _kept(place: Path, step: int) -> list[dict[str, float]]:
    """Keep the lines up to a step: what came after it will come again."""
    known = [line for line in read(place) if line["step"] <= step]
    if place.exists():
        part = place.with_name(f".{place.name}.{os.getpid()}")
        part.write_text("".join(json.dumps(line) + "\n" for line in known), "utf-8")
        part.replace(place)
    return known
