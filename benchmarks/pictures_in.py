"""Importing 50,000 images beside a bare loop that reads and hashes them, in one run.

    RELOOK_DATA=DIR python -m benchmarks.pictures_in [--to FOLDER]

DIR holds `cifar10/images.tar.xz`; its 50,000 training images are unpacked into a folder for as long as it takes. Ours
is the whole import: the walk, the classes, size and SHA-256 of every file, a look at every header, both tables, the
manifest and a progress bar. Bare is `os.walk`, `open`, `read` and `sha256`, and keeps nothing. The two take turns; each
is run once before, so that neither finds the files colder than the other.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks import record

TURNS = 7
FACTOR = 2.0
"""How many times the bare loop an import may take, in CPU and by the clock."""


def unpacked(data: Path, to: Path) -> Path:
    """Write the training images of CIFAR-10 as files in a folder a class."""
    with tarfile.open(data / "cifar10" / "images.tar.xz") as archive:
        archive.extractall(to, [member for member in archive if member.name.startswith("train/")], filter="data")
    return to / "train"


def bare(root: Path, target: Path) -> int:  # noqa: ARG001  # called as ours is
    """Read and hash every file, and do nothing else."""
    number = 0
    for folder, _, names in os.walk(root):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:  # noqa: PTH118, PTH123  # as bare as it gets
                hashlib.sha256(file.read()).hexdigest()
            number += 1
    return number


def ours(root: Path, target: Path) -> int:
    """Import the folder."""
    from relook import imported
    from relook.cli import show
    from relook.datasets import folder

    found = folder.collection(root)
    with show.progress("Reading images", len(found)) as step:
        made, _ = imported.write(found, target, origin=imported.Origin(root=root), step=step)
    return len(made)


def timed(work: Callable[[Path, Path], int], root: Path, target: Path) -> tuple[float, float]:
    """Return CPU seconds and seconds on the clock."""
    began, at = process_time(), perf_counter()
    work(root, target)
    took = process_time() - began, perf_counter() - at
    shutil.rmtree(target, ignore_errors=True)
    return took


def alone(name: str, root: Path, target: Path) -> tuple[float, float]:
    """Return what it takes as a program of its own, Python's start and all imports with it."""
    work = f"from benchmarks import pictures_in; pictures_in.{name}(Path({str(root)!r}), Path({str(target)!r}))"
    program = f"from pathlib import Path; {work}"
    before, at = os.times(), perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, cwd=record.ROOT)
    wall, after = perf_counter() - at, os.times()
    shutil.rmtree(target, ignore_errors=True)
    return after.children_user + after.children_system - before.children_user - before.children_system, wall


def measured(root: Path, target: Path) -> list[dict[str, Any]]:
    """Return the figures of both, in turns."""
    ways: dict[str, Callable[[str, Callable[[Path, Path], int]], tuple[float, float]]] = {
        "in one process": lambda _, work: timed(work, root, target),
        "as a program": lambda name, _: alone(name, root, target),
    }
    rows = []
    for way, run in ways.items():
        took: dict[str, list[tuple[float, float]]] = {"bare": [], "ours": []}
        for turn in range(TURNS + 1):
            for name, work in (("bare", bare), ("ours", ours)):
                figures = run(name, work)
                if turn:
                    took[name].append(figures)
        for name, several in took.items():
            cpu, wall = (median(figures[place] for figures in several) for place in (0, 1))
            rows.append({"way": way, "name": name, "cpu": round(cpu, 3), "wall": round(wall, 3)})
    return rows


def checks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return whether an import takes no more than it may; Python's start and the imports are told, and not judged."""
    found = []
    for way in dict.fromkeys(row["way"] for row in rows):
        by_name = {row["name"]: row for row in rows if row["way"] == way}
        for what in ("cpu", "wall"):
            ratio = by_name["ours"][what] / by_name["bare"][what]
            judged = way == "in one process"
            found.append(
                {
                    "what": f"{way}: {what} of ours to that of bare",
                    "needed": f"<= {FACTOR}" if judged else "",
                    "found": round(ratio, 2),
                    "holds": ratio <= FACTOR if judged else "",
                }
            )
    return found


def main() -> None:
    """Measure, print, and keep the figures with the machine and the commit beside them."""
    parser = argparse.ArgumentParser(description="Time the import of 50,000 images beside a bare read and hash.")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("RELOOK_DATA", "../shared/data")))
    parser.add_argument("--to", type=Path, help="folder for pictures_in.json and pictures_in.md")
    options = parser.parse_args()
    # The bar is drawn as on a terminal, wherever it goes.
    os.environ["TTY_COMPATIBLE"] = "1"
    began = perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        root = unpacked(options.data, Path(scratch))
        rows = measured(root, Path(scratch) / "set")
    found = {
        "title": "Import of 50,000 images (CIFAR-10 as JPEG files of 0.9 kB, by class) beside a bare read and hash.",
        "command": "python -m benchmarks.pictures_in", "machine": record.machine(), "commit": record.commit(),
        "seconds": round(perf_counter() - began, 1), "seed": 0, "rows": rows, "checks": checks(rows),
    }  # fmt: skip
    sys.stdout.write(record.page("pictures_in", found, columns=COLUMNS))
    if options.to is not None:
        record.write(options.to, "pictures_in", found=found, columns=COLUMNS)


COLUMNS = {"way": "measured", "name": "name", "cpu": "CPU s, median of 7", "wall": "wall s, median of 7"}

if __name__ == "__main__":
    main()
