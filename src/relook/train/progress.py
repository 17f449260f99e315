"""A bar on a terminal: how far a training is, how fast, and how long it will take. Elsewhere it is silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from relook.train.journal import Moment

_WIDTH = 24


def bar(stream: TextIO) -> Callable[[Moment], None]:
    """Return what shows a moment on a terminal, and nothing anywhere else."""
    return (lambda moment: _drawn(moment, stream)) if stream.isatty() else _silent


def line(moment: Moment) -> str:
    """Return a moment in words.

    >>> line(Moment(39, 156, epoch=1.0, loss=2.25, rate=0.1, images_a_second=17500.0, seconds=40.0, left=120.0))
    '[######                  ] epoch 1.0 of 4, 17,500 images/s, 2 min 0 s left, loss 2.2500'
    """
    share = moment.step / moment.steps
    done = "#" * int(_WIDTH * share)
    epochs = moment.epoch / share if share else 0
    loss = "" if moment.loss is None else f", loss {moment.loss:.4f}"
    return (
        f"[{done:<{_WIDTH}}] epoch {moment.epoch:.1f} of {epochs:.0f}, {moment.images_a_second:,.0f} images/s, "
        f"{_spoken(moment.left)} left{loss}"
    )


def _spoken(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _drawn(moment: Moment, stream: TextIO) -> None:
    stream.write("\r\x1b[K" + line(moment) + ("\n" if moment.step == moment.steps else ""))
    stream.flush()


def _silent(moment: Moment) -> None:
    """Show nothing."""
