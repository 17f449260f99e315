"""How fast networks train on one graphics card, beside the plain PyTorch loop in the same run.

    python -m benchmarks.training --out rows.jsonl              # everything; needs torch, numpy and safetensors alone
    python -m benchmarks.training --parts byol --modes hand fused --batches 512 1024
    python -m benchmarks.training --parts one three --epochs 20 # shorter; seconds are extrapolated, and say so
    python -m benchmarks.training --smoke                       # on the processor, tiny: does it run?

Parts: `agree`, whether all modes take the same steps; `byol`, image pairs a second of ResNet-18 at 32 x 32 and the
share of a step that its two views take; `one`, seconds of vanilla ResNet-50 (bottlenecks, small stem), 160 epochs on
10,000 images in batches of 256; `three`, the same for three seeds side by side. Images are random bytes: what is timed
does not look at them. Each row is a line of JSON, written when it is there; seconds include recording and compiling.
"""

import argparse
import gc
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from relook.train import steps
from relook.train.augment import View, applied, chosen, drawn, normalised, statistics
from relook.train.byol import Byol
from relook.train.learners import Batch, Facts
from relook.train.loop import Training
from relook.train.material import Material
from relook.train.nets import RESNET18, RESNET50, Shape
from relook.train.places import Place
from relook.train.schedule import Schedule
from relook.train.vanilla import Vanilla

MODES = ("hand", "graph", "fused", "compiled")
"""The loop written by hand, and the modes of ours."""

TINY = Shape(blocks=(1, 1), channels=8)
LONG = Schedule(
    epochs=160, batch=256, rate=0.1, nesterov=True, decay=1e-4, warmup=0, shape="steps", drops=(80, 120), short="kept"
)


def pictures(count: int) -> Material:
    """Return random images and labels."""
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8))
    return Material(images, torch.eye(10)[torch.from_numpy(rng.integers(10, size=count))])


def waited(device: str) -> float:
    """Return the time when the device has done all that was asked of it."""
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter()


def quick(mode: str, device: str) -> Any:
    """Return the context that our trainings run in, and none for the loop written by hand."""
    return nullcontext() if mode == "hand" else steps.quick(torch.device(device))


class Plain:
    """The loop that one writes by hand: eager, autocast to bf16, channels last, images on the device."""

    def __init__(self, found: Material, method: Any, *, schedule: Schedule, seed: int, device: str) -> None:
        torch.manual_seed(seed)
        self.images, self.targets, self.weights = (each.to(device) for each in found.tensors())
        self.seen, self.method, self.schedule, self.device = statistics(found.images), method, schedule, device
        network: nn.Module = method.network(Facts(len(found.images), self.targets.shape[1]))
        self.network: Any = network.to(device).to(memory_format=torch.channels_last).train()
        self.optimizer = torch.optim.SGD(
            [each for each in self.network.parameters() if each.requires_grad],
            lr=schedule.rate,
            momentum=schedule.momentum,
            nesterov=schedule.nesterov,
            weight_decay=schedule.decay,
        )
        self.an_epoch = schedule.steps_an_epoch(len(found.images))
        self.steps = schedule.epochs * self.an_epoch

    def __iter__(self) -> Iterator[torch.Tensor]:
        epoch = torch.zeros((), device=self.device)
        for step in range(self.steps):
            number, place = divmod(step, self.an_epoch)
            if place == 0:
                order = torch.randperm(len(self.images), device=self.device)
            rows = order[place * self.schedule.batch : (place + 1) * self.schedule.batch]
            images = self.images[rows]
            views = tuple(
                normalised(drawn(images, view), self.seen).contiguous(memory_format=torch.channels_last)
                for view in self.method.views
            )
            rate = self.schedule.rate_at(step, steps=self.steps, an_epoch=self.an_epoch)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            with torch.autocast(self.images.device.type, torch.bfloat16, enabled=self.device != "cpu"):
                loss = self.network.loss(
                    views, Batch(rows, self.targets[rows], self.weights[rows], epoch.fill_(number))
                )
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.network.follow((step + 1) / self.steps)
            yield loss.detach()


def made(found: Material, method: Any, *, schedule: Schedule, seed: int, how: tuple[str, str]) -> Any:
    """Return a loop: the plain one, or ours in a mode."""
    mode, device = how
    if mode == "hand":
        return Plain(found, method, schedule=schedule, seed=seed, device=device)
    place = Place(device=device, mode=mode)  # type: ignore[arg-type]
    return Training(found, method, schedule=schedule, seed=seed, place=place)


def walked(walks: list[Iterator[Any]], *, streams: bool) -> Iterator[int]:
    """Take a step of each loop in turn, each on a stream of its own where that is asked for; yield the steps done."""
    if streams:
        torch.cuda.synchronize()
    own = [torch.cuda.Stream() if streams else None for _ in walks]  # type: ignore[no-untyped-call]
    done = 0
    while True:
        for walk, stream in zip(walks, own, strict=True):
            with torch.cuda.stream(stream):
                if next(walk, None) is None:
                    return
        done += 1
        yield done


# The parts.


def byol(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield image pairs a second, and the share of the views in a step."""
    device = options.device
    for batch in options.batches:
        for mode in options.modes:
            shape = TINY if options.smoke else RESNET18
            method = Byol(shape=shape, hidden=64 if options.smoke else 4096, size=32 if options.smoke else 256)
            schedule = Schedule(epochs=1000, batch=batch, rate=0.3, warmup=1)
            found = pictures(batch * 8)
            began = waited(device)
            loop = made(found, method, schedule=schedule, seed=0, how=(mode, device))
            walk = iter(loop)
            rounds = []
            with quick(mode, device):
                for _ in range(options.warm):
                    next(walk)
                ready = waited(device)
                for _ in range(3):
                    start = waited(device)
                    for _ in range(options.steps):
                        next(walk)
                    rounds.append((waited(device) - start) / options.steps)
            best = sorted(rounds)[1]
            views = seen_alone(loop, found, method, batch=batch, mode=mode, device=device, steps_=options.steps)
            yield {
                "part": "byol", "loop": mode, "batch": batch, "pairs_a_second": round(batch / best),
                "step_ms": round(1000 * best, 3), "views_ms": round(1000 * views, 3),
                "share_of_views": round(views / best, 4), "seconds_to_get_ready": round(ready - began, 1),
                "memory_gib": memory(device),
            }  # fmt: skip
            del loop, walk
            cleared(device)


def seen_alone(loop: Any, found: Material, method: Any, *, batch: int, mode: str, device: str, steps_: int) -> float:
    """Return the seconds that drawing both views of a batch takes by itself, in the way of the mode."""
    place, images = torch.device(device), found.images[:batch].to(device)
    draw, apply = (steps.compiled(each, mode if mode != "hand" else "plain") for each in (chosen, applied))

    def views() -> tuple[torch.Tensor, ...]:
        return tuple(
            normalised(
                apply(images, draw(images.shape, view, device=place), beyond=view.beyond, side=view.side), loop.seen
            ).contiguous(memory_format=torch.channels_last)
            for view in method.views
        )

    act: Callable[[], Any] = views
    for _ in range(3):
        act()
    if device != "cpu" and mode != "hand":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = views()
        act = graph.replay
        act()
        assert kept
    start = waited(device)
    for _ in range(steps_):
        act()
    return (waited(device) - start) / steps_


def long(options: argparse.Namespace, *, seeds: int) -> Iterator[dict[str, Any]]:
    """Yield the seconds of a whole training, for one seed or several."""
    device = options.device
    schedule = LONG if not options.smoke else Schedule(epochs=160, batch=64, rate=0.1, warmup=0, short="kept")
    found = pictures(200 if options.smoke else 10_000)
    method = Vanilla(shape=TINY if options.smoke else RESNET50, views=(View(crop=(0.9, 1.0), grey=0.0, hue=0.0),))
    epochs = min(options.epochs, 160)
    for mode in options.modes:
        for streams in (False, True) if seeds > 1 and device != "cpu" and mode != "hand" else (False,):
            began = waited(device)
            with quick(mode, device):
                loops = [made(found, method, schedule=schedule, seed=seed, how=(mode, device)) for seed in range(seeds)]
                for each in loops:
                    each.alone = seeds == 1
                walks = walked([iter(each) for each in loops], streams=streams)
                first = 2 * loops[0].an_epoch
                for done in walks:
                    if done == first:
                        ready = waited(device)
                    if done == epochs * loops[0].an_epoch:
                        break
            end = waited(device)
            an_epoch = (end - ready) / (epochs - 2)
            yield {
                "part": "one" if seeds == 1 else "three", "loop": mode, "streams": streams, "seeds": seeds,
                "epochs_run": epochs, "seconds": round(end - began + (160 - epochs) * an_epoch, 1),
                "extrapolated": epochs < 160, "seconds_of_two_first_epochs": round(ready - began, 1),
                "ms_a_step": round(1000 * an_epoch / loops[0].an_epoch, 3), "memory_gib": memory(device),
            }  # fmt: skip
            del loops, walks
            cleared(device)


def memory(device: str) -> float:
    """Return the most memory that was taken, in GiB."""
    return round(torch.cuda.max_memory_allocated() / 2**30, 2) if device != "cpu" else 0.0


def cleared(device: str) -> None:
    """Give memory and compiled code back, so that each row pays for its own."""
    import torch._inductor.config

    torch._inductor.config.force_disable_caches = True
    gc.collect()
    torch.compiler.reset()
    if device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def agree(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield how far the losses of each mode are from those of a step as it is written; the first 20 steps."""
    schedule, method = replace(LONG, epochs=5, batch=64, rate=0.01), Vanilla(shape=TINY if options.smoke else RESNET18)
    plain = torch.zeros(0)
    for mode in ["plain", *(each for each in options.modes if each != "hand")]:
        began = waited(options.device)
        loop = made(pictures(256), method, schedule=schedule, seed=0, how=(mode, options.device))
        losses = torch.stack(list(loop)).cpu()
        plain = losses if mode == "plain" else plain
        yield {
            "part": "agree", "loop": mode, "first": round(float(losses[0]), 5), "last": round(float(losses[-1]), 5),
            "most_apart": round(float((losses - plain).abs().max()), 5),
            "seconds": round(waited(options.device) - began, 1),
        }  # fmt: skip
        cleared(options.device)


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[dict[str, Any]]]] = {
    "agree": agree,
    "byol": byol,
    "one": lambda options: long(options, seeds=1),
    "three": lambda options: long(options, seeds=3),
}


def told(row: dict[str, Any], place: Path | None) -> None:
    """Write a row to the screen and to the end of a file."""
    line = json.dumps(row)
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    if place is not None:
        with place.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def main() -> None:
    """Measure the parts that were asked for; one that breaks says so, and the next one goes on."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--modes", nargs="*", choices=MODES, default=list(MODES))
    parser.add_argument("--batches", nargs="+", type=int, default=[512, 1024])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warm", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=160)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if options.smoke:
        options.device, options.batches, options.steps, options.warm, options.epochs = "cpu", [16], 3, 2, 4
    name = torch.cuda.get_device_name() if options.device != "cpu" else "processor"
    told({"machine": name, "torch": torch.__version__, "python": sys.version.split()[0]}, options.out)
    cleared(options.device)
    for part in options.parts:
        try:
            for row in PARTS[part](options):
                told(row, options.out)
        except Exception:  # noqa: BLE001  a part that breaks must not take the others with it
            told({"part": part, "broken": traceback.format_exc(limit=6)}, options.out)
            cleared(options.device)


if __name__ == "__main__":
    main()
