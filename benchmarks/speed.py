"""Our side of the timing harness, and the speed figures that need no rival.

A harness that times several programs on the same inputs calls `scores` and `simulate` with its inputs. Run as a script
it measures the figures of relook alone, in CPU seconds, and prints them as JSON:

    python benchmarks/speed.py [--data FOLDER] [--to FILE]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from time import process_time
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure relook's own speed figures, in CPU seconds.")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("RELOOK_DATA", "../shared/data")))
    parser.add_argument("--to", type=Path, help="write the figures there as JSON")
    options = parser.parse_args()
    figures = default_campaign(options.data) | start_up()
    text = json.dumps(figures, indent=2)
    sys.stdout.write(text + "\n")
    if options.to is not None:
        options.to.write_text(text + "\n")


if __name__ == "__main__":
    main()
