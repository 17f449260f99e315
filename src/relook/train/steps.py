"""How the forward and backward pass of a step runs: as it is written, or replayed as one CUDA graph.

A graph holds every kernel of the pass, from the pixels of a batch to the gradients, and a replay starts all of them at
once: without one, a graphics card waits for Python between the many small kernels of a network for small images. To
record a graph takes a second. `fused` takes the norms of `norms` on top of that, which takes seconds, and `compiled`
lets torch fuse whatever it can, which takes a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

Mode = Literal["plain", "graph", "fused", "compiled"]
"""How a step runs."""

Pass = Callable[[Any], Tensor]
"""What is done with a batch, a tuple of tensors and tuples: it leaves gradients behind and returns the loss."""

_WARM = 3
"""Steps that run as they are written before one is recorded: libraries choose their kernels in them."""


def mode_for(device: torch.device, mode: Mode | None) -> Mode:
    """Return the mode that was asked for; by itself a graphics card replays graphs. A processor always runs plainly.

    >>> mode_for(torch.device("cpu"), None)
    'plain'
    """
    if device.type != "cuda":
        return "plain"
    return mode or "graph"


def stepping(work: Pass, learnt: Sequence[Tensor], *, mode: Mode) -> Pass:
    """Return a pass that does the same in the given mode."""
    return work if mode == "plain" else _Replayed(work, learnt)


def compiled(function: Any, mode: Mode) -> Any:
    """Return a function, compiled where the mode asks for it."""
    return torch.compile(function) if mode == "compiled" else function


@contextmanager
def quick(device: torch.device) -> Iterator[None]:
    """Try out ways to convolve and keep the fastest, where there is a choice."""
    settings: Any = torch.backends.cudnn
    before = settings.benchmark
    settings.benchmark = device.type == "cuda" or before
    try:
        yield
    finally:
        settings.benchmark = before


def stream(device: torch.device) -> Any:
    """Return a stream of a graphics card: what stands in one runs in order, and beside what stands in others."""
    cuda: Any = torch.cuda
    return cuda.Stream(device)


def leaves(batch: Any) -> Iterator[Tensor]:
    """Yield the tensors of a batch; None stands for nothing."""
    if isinstance(batch, Tensor):
        yield batch
    elif batch is not None:
        for each in batch:
            yield from leaves(each)


def mapped(batch: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return a batch of the same build with every tensor changed."""
    if batch is None or isinstance(batch, Tensor):
        return None if batch is None else change(batch)
    parts = [mapped(each, change) for each in batch]
    return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)


@dataclass(frozen=True)
class _Recorded:
    """A graph, and the tensors that it reads and writes."""

    graph: Any
    batch: tuple[Tensor, ...]
    loss: Tensor
    slopes: tuple[Tensor | None, ...]


class _Replayed:
    """A pass that is recorded once for each length of a batch, and replayed from then on.

    `draws` says whether the pass draws from the device's chance, of which all graphs share one.
    """

    def __init__(self, work: Pass, learnt: Sequence[Tensor]) -> None:
        self.work, self.learnt = work, tuple(learnt)
        self.side = stream(self.learnt[0].device)
        self.draws = False
        self.warm: dict[int, int] = {}
        self.recorded: dict[int, _Recorded] = {}

    def __call__(self, batch: Any) -> Tensor:
        tensors = tuple(leaves(batch))
        count = len(tensors[0])
        if count not in self.recorded:
            self.warm[count] = self.warm.get(count, 0) + 1
            if self.warm[count] <= _WARM:
                return self._aside(batch)
            self.recorded[count] = self._record(batch)
        found = self.recorded[count]
        for places, sources in _alike(found.batch, tensors):
            torch._foreach_copy_(places, sources)
        found.graph.replay()
        for each, slope in zip(self.learnt, found.slopes, strict=True):
            each.grad = slope
        return found.loss.clone()

    def _aside(self, batch: Any) -> Tensor:
        """Run the pass on a stream of its own, as a recording wants it."""
        now = torch.cuda.current_stream()
        self.side.wait_stream(now)
        chance = torch.cuda.default_generators[now.device_index]
        before = chance.get_offset()
        with torch.cuda.stream(self.side):
            loss = self.work(batch)
        now.wait_stream(self.side)
        self.draws |= chance.get_offset() != before
        return loss

    def _record(self, batch: Any) -> _Recorded:
        """Record the pass without doing it; the gradients come to lie in the graph's own memory."""
        for each in self.learnt:
            each.grad = None
        places, graph = mapped(batch, torch.clone), torch.cuda.CUDAGraph()
        pool = next((known.graph.pool() for known in self.recorded.values()), None)
        with torch.cuda.graph(graph, pool=pool, stream=self.side):
            loss = self.work(places)
        return _Recorded(graph, tuple(leaves(places)), loss, tuple(each.grad for each in self.learnt))


def _alike(places: Sequence[Tensor], sources: Sequence[Tensor]) -> Iterator[tuple[list[Tensor], list[Tensor]]]:
    """Yield tensors and what is copied into them, kind by kind: those of one kind are copied at once."""
    for kind in {place.dtype for place in places}:
        pairs = [pair for pair in zip(places, sources, strict=True) if pair[0].dtype == kind]
        yield [place for place, _ in pairs], [source for _, source in pairs]
