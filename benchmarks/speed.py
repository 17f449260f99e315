"""Our side of the timing harness, and the speed figures that need no rival.

A harness that times several programs on the same inputs calls `scores` and `simulate` with its inputs. Run as a script
it measures the figures of relook alone, in CPU seconds, and prints them as JSON:

    python -m benchmarks.speed [--data FOLDER] [--harness rivals.jsonl] [--to FOLDER]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time, time
from typing import Any

import numpy as np

from relook.annotators import Crowd, SequentialCrowd
from relook.curves import curve
from relook.datasets import load
from relook.metrics import picks
from relook.policies import named
from relook.scores import phi, score_items, top
from relook.simulation import Simulation, play
from relook.types import FloatArray, Labels, Posteriors, true_distribution

WORST = 1_000

CHECKS = ("errors_in_top", "picked", "accuracy", "answers")

RATIOS = [
    ("scores", "1000000", "plain: phi numpy blocks", 1.5),
    ("scores", "10000000", "plain: phi numpy blocks", 1.5),
    ("simulate", "cifar10h/2900", "plain: CE, both curves", 2.0),
    ("simulate", "50000/20000", "plain: CE, both curves", 2.0),
    ("simulate", "cifar10h/2900", "paper code CROSS_ENTROPY", 100.0),
]
"""What a figure of the harness may be: task, size, against whom, and the factor."""


def scores(inputs: Any) -> dict[str, Any]:
    """Check posteriors and labels, score every item by the paper's equation, and find the items to ask about first."""
    posteriors = Posteriors(inputs.posteriors)
    labels = Labels(inputs.labels, posteriors.classes)
    return {"top": top(score_items(phi, labels, posteriors), WORST)}


def simulate(inputs: Any, policy: str = "ce") -> dict[str, Any]:
    """Play the paper's campaign through `ask` and `tell` by the released code's protocol, all curves included."""
    given = Labels(inputs.initial.argmax(1), inputs.initial.shape[1])
    truth = true_distribution(inputs.counts, given.classes)
    people = [SequentialCrowd(truth, inputs.seed)]
    plan = Simulation(named(policy), inputs.budget, people, Posteriors(inputs.posteriors), "paper-code")
    campaign = play(given, plan)
    share = float(curve(campaign.events, given, truth=truth).share_correct[-1])
    visits = picks(campaign.events)
    return {"answers": campaign.spent, "visits": len(visits), "accuracy": 100 * share, "picked": visits}


def queue(inputs: Any) -> dict[str, Any]:
    """Ask and tell through the one writer on SQLite: each lease and each answer is on the disk before it is told."""
    from relook import store
    from relook.campaign import Campaign
    from relook.writer import Writer

    shares = np.random.default_rng(0).random(inputs.items)
    given, posteriors = Labels(np.zeros(inputs.items, np.int64), 2), Posteriors(np.stack([shares, 1 - shares], 1))
    campaign = Campaign(given, named("margin"), budget=inputs.steps, posteriors=posteriors)
    inputs.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=inputs.folder) as name:
        store.create(Path(name), campaign, written="now")
        rankings: Any = {1: posteriors}
        with closing(
            Writer(
                store.opened(Path(name)),
                lambda events: Campaign.replay(events, given, named("margin"), rankings=rankings),
            )
        ) as writer:
            began = perf_counter()
            for _ in range(inputs.steps):
                lease = writer.do(lambda campaign, now: campaign.ask("Ada", now))
                writer.do(lambda campaign, now, lease=lease: campaign.tell(lease, 1, now))
            return {"per_second": inputs.steps / (perf_counter() - began)}


def paper_posteriors(truth: FloatArray) -> Posteriors:
    """Return the artificial posteriors that the figures of the default policy were asked for."""
    logits = np.log(truth + 0.02) + np.random.default_rng(0).normal(0, 1.4, truth.shape)
    shares = np.exp(logits)
    return Posteriors(shares / shares.sum(1, keepdims=True))


def default_campaign(data: Path) -> dict[str, float]:
    """Time the default policy's 4,455 answers on the paper's 5,000 images, and a one-pass policy's beside it."""
    dataset = load("cifar10h", data, settings={"subset": "paper", "tau": 10.0})
    assert dataset.truth is not None
    posteriors = paper_posteriors(np.asarray(dataset.truth))
    out = {}
    for policy in ("default", "paper"):
        seconds = []
        for seed in range(5):
            crowd = Crowd(np.asarray(dataset.truth), seed)
            crowd(0, 0)
            began = process_time()
            play(dataset.given, Simulation(named(policy), 4_455, [crowd], posteriors))
            seconds.append(process_time() - began)
        out[f"{policy}: 4,455 answers, CPU s (least of 5)"] = round(min(seconds), 4)
        out[f"{policy}: 4,455 answers, CPU s (median of 5)"] = round(sorted(seconds)[2], 4)
    return out


def start_up() -> dict[str, float]:
    """Time cold starts over that of numpy: the least CPU seconds of several."""
    python = sys.executable
    commands = {
        "numpy": [python, "-c", "import numpy"],
        "import relook": [python, "-c", "import relook"],
        "from relook import simulate": [python, "-c", "from relook import simulate"],
        "relook --help": [
            python,
            "-c",
            "from relook.cli import main; import sys; sys.argv = ['relook', '--help']; main()",
        ],
    }
    least = {name: min(_cpu(command) for _ in range(7)) for name, command in commands.items()}
    rows = {f"{name}, CPU s": round(seconds, 3) for name, seconds in least.items()}
    over = {
        f"{name}, CPU s over numpy": round(seconds - least["numpy"], 3)
        for name, seconds in least.items()
        if name != "numpy"
    }
    return rows | over


def _cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def many_runs(data: Path) -> dict[str, float]:
    """Time 100 seeds of six policies through the command that a user types, fitting and pictures included."""
    embeddings = data / "embeddings" / "cifar10-test-byol60k.npy"
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-c", "from relook.cli import main; main()", "simulate", "--dataset", "cifar10h",
            "--data", str(data), "--embeddings", str(embeddings), "--policy", "random,oracle,paper,margin,ce,default",
            "--answers", "4455", "--seeds", "100", "--to", str(Path(folder) / "runs"),
        ]  # fmt: skip
        return {"100 seeds x 6 policies, CPU s": round(_cpu(command), 1)}


def checks(figures: dict[str, float], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Say of each figure that was asked for whether it holds; those that need the harness only where it was run."""
    asked = [
        ("default: 4,455 answers, CPU s (median of 5)", 0.25),
        ("import relook, CPU s over numpy", 0.05),
        ("relook --help, CPU s over numpy", 0.1),
        ("100 seeds x 6 policies, CPU s", 100.0),
    ]
    found = [(what, f"at most {most}", figures[what], figures[what] <= most) for what, most in asked]
    cpu = {(row["task"], row["size"], row["name"]): min(row["cpu"]) for row in rows if row["status"] == "ok"}
    for task, size, other, factor in RATIOS:
        ours, theirs = cpu.get((task, size, "ours")), cpu.get((task, size, other))
        if ours is not None and theirs is not None:
            # A rival is to be slower by the factor, a plain loop faster by no more than it.
            rival = other.startswith("paper code")
            ratio = theirs / ours if rival else ours / theirs
            what = f"{task} {size}: {other} / ours" if rival else f"{task} {size}: ours / {other}"
            holds = ratio >= factor if rival else ratio <= factor
            found.append((what, f"{'at least' if rival else 'at most'} {factor}", round(ratio, 2), holds))
    found += extrapolated(rows)
    return [dict(zip(("what", "needed", "found", "holds"), row, strict=True)) for row in found]


def extrapolated(rows: list[dict[str, Any]]) -> list[tuple[str, str, float, bool]]:
    """Compare a long campaign with the paper's code: its every visit costs the same, so some stand for all."""
    known = {(row["size"], row["name"]): row for row in rows if row["task"] == "simulate" and row["status"] == "ok"}
    ours, theirs = known.get(("50000/20000", "ours")), known.get(("50000/500", "paper code CROSS_ENTROPY"))
    if ours is None or theirs is None:
        return []
    visit = min(theirs["cpu"]) / theirs["result"]["visits"]
    ratio = visit * ours["result"]["visits"] / min(ours["cpu"])
    what = f"simulate 50000/20000: paper code, {theirs['result']['visits']} visits extrapolated / ours"
    return [(what, "at least 700", round(ratio), ratio >= 700)]


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the harness as a row of the table."""
    if row["status"] != "ok":
        return {
            "task": row["task"],
            "size": row["size"],
            "name": row["name"],
            "cpu": row["status"],
            "wall": "",
            "check": "",
        }
    check = ", ".join(f"{key} {value}" for key, value in row["result"].items() if key in CHECKS)
    wall = round(sorted(row["seconds"])[len(row["seconds"]) // 2], 4)
    return {
        "task": row["task"], "size": row["size"], "name": row["name"],
        "cpu": round(min(row["cpu"]), 4), "wall": wall, "check": f"{check}; peak {row['peak_mib']} MiB",
    }  # fmt: skip


def main() -> None:
    """Measure, print, and keep the figures with the machine and the commit beside them."""
    from benchmarks import record

    parser = argparse.ArgumentParser(description="Measure relook's own speed figures, in CPU seconds.")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("RELOOK_DATA", "../shared/data")))
    parser.add_argument("--harness", type=Path, help="JSON lines that the harness of the rivals wrote")
    parser.add_argument("--to", type=Path, help="folder for speed.json and speed.md")
    options = parser.parse_args()
    began = time()
    figures = default_campaign(options.data) | start_up() | many_runs(options.data)
    rows = [json.loads(line) for line in options.harness.read_text().splitlines()] if options.harness else []
    own = [
        {"task": "own", "size": "", "name": what, "cpu": value, "wall": "", "check": ""}
        for what, value in figures.items()
    ]
    found = {
        "title": "CPU seconds of relook, of a plain loop, and of rivals, on the same inputs in one run.",
        "command": "python -m benchmarks.speed --harness rivals.jsonl", "machine": record.machine(),
        "commit": record.commit(), "seconds": round(time() - began, 1), "seed": 0,
        "rows": [*own, *(shown(row) for row in rows)], "checks": checks(figures, rows),
    }  # fmt: skip
    sys.stdout.write(json.dumps(found["checks"], indent=1) + "\n")
    if options.to is not None:
        columns = {
            "task": "task",
            "size": "size",
            "name": "name",
            "cpu": "CPU s, least",
            "wall": "wall s, median",
            "check": "check",
        }
        record.write(options.to, "speed", found=found, columns=columns)


if __name__ == "__main__":
    main()
