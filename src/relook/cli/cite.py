"""`relook cite`: what to cite for a simulation, and a sentence for the methods section with its numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relook.cli import show
from relook.published import PUBLISHED

if TYPE_CHECKING:
    from relook.runs import Runs

PAPER = """@article{bernhardt2022active,
  title   = {Active label cleaning for improved dataset quality under resource constraints},
  author  = {Bernhardt, M{\\'e}lanie and Castro, Daniel C. and Tanno, Ryutaro and Schwaighofer, Anton
             and Tezcan, Kerem C. and Monteiro, Miguel and Bannur, Shruthi and Lungren, Matthew P. and Nori, Aditya
             and Glocker, Ben and Alvarez-Valle, Javier and Oktay, Ozan},
  journal = {Nature Communications},
  volume  = {13},
  pages   = {1161},
  year    = {2022},
  doi     = {10.1038/s41467-022-28818-3}
}"""

SOFTWARE = """@software{relook,
  title   = {relook: active label cleaning},
  author  = {{The relook maintainers}},
  version = {VERSION}
}"""

DIGITS = """@misc{alpaydin1998optical,
  title  = {Optical recognition of handwritten digits},
  author = {Alpaydin, Ethem and Kaynak, Cenk},
  note   = {UCI Machine Learning Repository},
  year   = {1998},
  doi    = {10.24432/C50P49}
}"""

NOISE = """@inproceedings{xia2020part,
  title     = {Part-dependent label noise: Towards instance-dependent label noise},
  author    = {Xia, Xiaobo and Liu, Tongliang and Han, Bo and Wang, Nannan and Gong, Mingming and Liu, Haifeng
               and Niu, Gang and Tao, Dacheng and Sugiyama, Masashi},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2020}
}"""

ACTIVELAB = """@misc{goh2023activelab,
  title  = {{ActiveLab}: Active learning with re-labeling by multiple annotators},
  author = {Goh, Hui Wen and Mueller, Jonas},
  eprint = {2301.11856},
  archiveprefix = {arXiv},
  year   = {2023}
}"""

BALD = """@misc{houlsby2011bayesian,
  title  = {Bayesian active learning for classification and preference learning},
  author = {Houlsby, Neil and Husz{\\'a}r, Ferenc and Ghahramani, Zoubin and Lengyel, M{\\'a}t{\\'e}},
  eprint = {1112.5745},
  archiveprefix = {arXiv},
  year   = {2011}
}"""

DATASETS = {
    "cifar10h": ("CIFAR-10H \\citep{peterson2019human}", (PUBLISHED["cifar10h"].bibtex,)),
    "digits": (
        "handwritten digits \\citep{alpaydin1998optical} with instance-dependent noise \\citep{xia2020part}",
        (DIGITS, NOISE),
    ),
}
"""What a named data set is called in a sentence, and its entries."""

POLICIES = {"activelab": ACTIVELAB, "bald": BALD}
"""Policies that others have published."""


def cite(
    run: Annotated[Path | None, typer.Argument(help="A folder that relook simulate or relook demo wrote.")] = None,
) -> None:
    """Print what to cite: the paper, relook and the data set as BibTeX, and a sentence with the numbers of a run."""
    import relook

    entries = [PAPER, SOFTWARE.replace("VERSION", relook.__version__)]
    if run is None:
        show.say("\n\n".join(entries))
        show.wrote(following="relook simulate --dataset digits")
        return
    from relook.runs import read_runs

    runs = read_runs(run)
    named = DATASETS.get(runs.resolved.get("configuration", {}).get("dataset") or "", ("", ()))
    entries += [*named[1], *(POLICIES[policy] for policy in runs.policies if policy in POLICIES)]
    show.say("\n\n".join(entries))
    show.say("\n" + sentence(runs, dataset=named[0] or _escaped(runs.extra.dataset or "our data")) + "\n")
    show.wrote(following=f"relook report {run}")


def sentence(runs: "Runs", *, dataset: str) -> str:
    """Return the sentence for the methods section, as LaTeX."""
    from relook.figures import bounds, rules

    resolved = runs.resolved
    first = runs.curves_of(runs.policies[0])[0]
    version = resolved.get("versions", {}).get("relook", "")
    budget = resolved.get("case", {}).get("answers", max(row["answers"] for row in runs.rows))
    seeds = len({row["seed"] for row in runs.rows})
    told = [_reached(runs, policy) for policy in rules(runs)]
    above = [_reached(runs, policy) for policy in bounds(runs)]
    mean = f" (means over {seeds} seeds)" if seeds > 1 else " (one seed)"
    limits = f" As bounds, {_listed(above)}." if above else ""
    return (
        f"We simulated label cleaning with relook {version} \\citep{{relook}}, which implements active label cleaning "
        f"\\citep{{bernhardt2022active}}, on {dataset} ({runs.extra.items:,} items, "
        f"{_percent(1 - float(first.share_correct[0]))} of the given labels wrong). With {budget:,} answers "
        f"{_people(resolved)}, {_settled(resolved)}, {_listed(told or above)}{mean}.{limits if told else ''}"
    )


def _reached(runs: "Runs", policy: str) -> str:
    from statistics import fmean, stdev

    rows = runs.rows_of(policy)
    shares, auc = [row["share_correct"] for row in rows], fmean(row["auc"] for row in rows)
    spread = f" (SD {100 * stdev(shares):.2f})" if len(shares) > 1 else ""
    reached = f"reached {_percent(fmean(shares))}{spread} correct labels, area under the curve {auc:.3f}"
    return f"the policy {_escaped(policy)} {reached}"


def _people(resolved: dict[str, Any]) -> str:
    configuration = resolved.get("configuration", {})
    if configuration.get("protocol") == "paper-code":
        return "drawn from the true label distributions by the protocol of the paper's released code"
    panel = configuration.get("annotators")
    return f"of a panel of {panel} people" if panel else "drawn from the true label distributions"


def _settled(resolved: dict[str, Any]) -> str:
    rule = resolved.get("case", {}).get("settle", "paper")
    if rule == "paper":
        return "an item being settled once a class has the most votes, the given label's among them"
    return f"an item being settled by the rule {rule}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\\,\\%"


def _escaped(text: str) -> str:
    """Return a text as LaTeX takes it."""
    return "".join(f"\\{letter}" if letter in "_%#&$" else letter for letter in text)
