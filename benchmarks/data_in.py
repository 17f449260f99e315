"""What reading tables costs: a million rows of csv beside polars' own read, ten million of parquet, with their memory.

    python -m benchmarks.data_in [--to FOLDER]

Each figure is measured in a process of its own, in CPU seconds of all its threads, and the memory is its peak.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import process_time, time
from typing import Any

from benchmarks import record

TURNS = 5
RATIO, MEGABYTES = 10.0, 1_000

LONG = {"what": "what", "rows": "rows", "seconds": "CPU seconds", "peak": "peak MB", "ratio": "times polars"}


def csv_million(folder: Path, rows: int = 1_000_000) -> list[dict[str, Any]]:
    """Read a csv file of ids, labels, texts like paths, and splits: by polars, into a collection, and into a set."""
    path = folder / "million.csv"
    _table(rows).sink_csv(path)
    return _compared(path, ("polars", "collection", "import"), rows=rows)


def parquet_ten_million(folder: Path, rows: int = 10_000_000) -> list[dict[str, Any]]:
    """Scan a parquet file of ids, labels, texts like paths, and splits, and import it, which never loads it whole."""
    path = folder / "ten_million.parquet"
    _table(rows).sink_parquet(path)
    return _compared(path, ("polars", "collection", "import"), rows=rows)


def _table(rows: int) -> Any:
    import polars as pl

    row = pl.col("row")
    return pl.LazyFrame({"row": range(rows)}).select(
        id=pl.format("item-{}", row),
        label=pl.format("class-{}", (row * 7919) % 10),
        text=pl.format("images/part-{}/{}.png", row % 1000, row),
        split=pl.when(row % 10 == 0).then(pl.lit("test")).otherwise(pl.lit("train")),
    )


def _compared(path: Path, tasks: Sequence[str], *, rows: int) -> list[dict[str, Any]]:
    """Measure tasks in turn, several times, and return the medians; the first task is what others are compared with."""
    found: dict[str, list[dict[str, float]]] = {task: [] for task in tasks}
    for _ in range(TURNS):
        for task in tasks:
            found[task].append(_apart(task, path))
    lines = []
    for task, measured in found.items():
        seconds = statistics.median(run["seconds"] for run in measured)
        base = statistics.median(run["seconds"] for run in found[tasks[0]])
        lines.append(
            {
                "what": f"{path.suffix[1:]}: {task}",
                "rows": rows,
                "seconds": round(seconds, 2),
                "peak": round(max(run["peak"] for run in measured)),
                "ratio": round(seconds / base, 1),
            }
        )
    return lines


def _apart(task: str, path: Path) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.data_in", "--measure", task, "--path", str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=record.ROOT,
    )
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def _measure(task: str, path: Path) -> dict[str, float]:
    """Do one task in this process, with all modules imported before, and return its CPU seconds and its peak."""
    import polars as pl

    from relook import imported
    from relook.datasets import table

    started = process_time()
    if task == "polars":
        (pl.read_csv if path.suffix == ".csv" else pl.read_parquet)(path)
    else:
        found = table.collection(path)
        if task == "import":
            with tempfile.TemporaryDirectory() as folder:
                origin = imported.Origin((imported.source_file(path),))
                imported.write(found, Path(folder) / "set", origin=origin)
    return {"seconds": process_time() - started, "peak": _peak()}


def _peak() -> float:
    """Return the peak of this process alone, in megabytes; a child inherits its parent's `ru_maxrss`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def main() -> int:
    """Measure all, print it, write it where it is wanted, and say with the status whether all bounds hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", type=Path)
    parser.add_argument("--measure")
    parser.add_argument("--path", type=Path)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(_measure(asked.measure, asked.path)))
        return 0
    started = time()
    with tempfile.TemporaryDirectory() as folder:
        rows = csv_million(Path(folder)) + parquet_ten_million(Path(folder))
    checks = [
        {
            "what": f"{line['what']}, {line['rows']:,} rows",
            "needed": f"at most {RATIO:g} times polars' own read, {MEGABYTES:,} MB",
            "found": f"{line['ratio']} times, {line['peak']:,} MB",
            "holds": line["ratio"] <= RATIO and line["peak"] <= MEGABYTES,
        }
        for line in rows
        if line["what"].startswith("csv") and not line["what"].endswith("polars")
    ]
    result = {
        "title": __doc__.partition("\n")[0] if __doc__ else "",
        "command": "python -m benchmarks.data_in",
        "machine": record.machine(),
        "commit": record.commit(),
        "seconds": round(time() - started),
        "seed": "none",
        "rows": rows,
        "checks": checks,
    }
    print(record.page("data_in", result, columns=LONG))
    if asked.to is not None:
        record.write(asked.to, "data_in", found=result, columns=LONG)
    return 0 if all(check["holds"] for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
