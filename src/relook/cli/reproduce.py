"""`relook reproduce`: a table of the paper beside ours."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from relook.cli import show
from relook.errors import BadInput


def reproduce(
    name: Annotated[str | None, typer.Argument(help="Which table; without a name they are listed.")] = None,
    *,
    scale: Annotated[str, typer.Option(help="paper (all seeds), or smoke (fewer).")] = "paper",
    data_folder: Annotated[Path | None, typer.Option("--data", help="Folder of data sets; or set RELOOK_DATA.")] = None,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    jobs: Annotated[int, typer.Option(help="Runs at a time, each in a process of its own.")] = 1,
    to: Annotated[Path | None, typer.Option(help="Write NAME.json and NAME.md, with the machine, here.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the rows as JSON.")] = None,
) -> None:
    """Reproduce a table of the paper from a checkout, ours beside the paper's."""
    root = _checkout()
    if name is None:
        _list(root)
        return
    from relook.cli.simulated import check_output
    from relook.engines import side_by_side

    check_output(json)
    if to is not None and to.is_file():
        raise BadInput(f"--to {to}: a folder was needed, but a file is there; name another place")
    module = _module(root, name)
    if scale not in module.SEEDS:
        raise BadInput(f"--scale: {' or '.join(module.SEEDS)} was needed, but {scale!r} came; check the spelling")
    engine, player, pieces = side_by_side(jobs), module.player(data_folder), module.jobs(scale, seed=seed)
    found = _measured(module, engine(player, pieces), total=len(pieces))
    words = " ".join(["relook reproduce", name, "--scale", scale, "--seed", str(seed)])
    written = _write(root, name, found=found | {"command": words, "seed": seed, "scale": scale}, to=to)
    if json is not None:
        show.write_json(json, found["rows"])
        written.append(json)
    _tell(module, found)
    show.wrote(*written, following="relook simulate --dataset cifar10h --policy random,oracle")
    if not found["passed"]:
        raise typer.Exit(1)


def _checkout() -> Path:
    """Return the checkout: the one this package is in, or that of the current folder."""
    import relook

    here = Path.cwd()
    for root in (Path(relook.__file__).resolve().parents[2], here, *here.parents):
        if (root / "benchmarks" / "record.py").is_file() and (root / "src" / "relook").is_dir():
            return root
    raise BadInput(
        "reproduce: a checkout with its folder benchmarks was needed, but this relook was installed without it; "
        "clone the repository and run the command in it"
    )


def _list(root: Path) -> None:
    rows = []
    for name in _names(root):
        first = (_module(root, name).__doc__ or "").strip().splitlines()[0]
        rows.append({"name": name, "what": first})
    show.table(rows, {"name": "table", "what": ""})
    show.wrote(following=f"relook reproduce {rows[0]['name']}")


def _names(root: Path) -> list[str]:
    files = sorted((root / "benchmarks").glob("*.py"))
    return [file.stem for file in files if "\nPAPER" in file.read_text("utf-8")]


def _module(root: Path, name: str) -> ModuleType:
    from importlib import import_module

    known = _names(root)
    if name not in known:
        raise BadInput(f"reproduce: {' or '.join(known)} was needed, but {name!r} came; check the spelling")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return import_module(f"benchmarks.{name}")


def _measured(module: ModuleType, results: Any, *, total: int) -> dict[str, Any]:
    from time import perf_counter, process_time

    began, worked, found = perf_counter(), process_time(), []
    with show.progress("Reproducing", total) as step:
        for result in results:
            found.append(result)
            step()
    rows, checks = module.table(found), module.checks(found)
    return {
        "title": (module.__doc__ or "").strip(),
        "seconds": round(perf_counter() - began, 1),
        "cpu_seconds": round(process_time() - worked, 1),
        "runs": total,
        "rows": rows,
        "checks": checks,
        "passed": all(each["passed"] for each in [*rows, *checks]),
    }


def _tell(module: ModuleType, found: dict[str, Any]) -> None:
    rows = [row | {"passed": "yes" if row["passed"] else "NO"} for row in found["rows"]]
    show.table(rows, module.COLUMNS)
    for each in found["checks"]:
        show.say(f"{each['what']}: {each['found']} (needed {each['needed']}) {'holds' if each['passed'] else 'FAILS'}")
    failed = sum(not each["passed"] for each in [*found["rows"], *found["checks"]])
    verdict = "All rows are within what is allowed, and all checks hold." if not failed else f"{failed} do not agree."
    show.say(f"{verdict} {found['runs']:,} runs in {found['seconds']:.1f} s.")


def _write(root: Path, name: str, *, found: dict[str, Any], to: Path | None) -> list[Path]:
    if to is None:
        return []
    from importlib import import_module

    record = import_module("benchmarks.record")
    about = {"machine": record.machine(), "commit": record.commit()}
    module = _module(root, name)
    return list(record.write(to, name, found=about | found, columns=getattr(module, "PAGE", module.COLUMNS)))
