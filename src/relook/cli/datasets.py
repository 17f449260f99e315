"""`relook datasets`: the published data sets that relook reads, and how to get them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relook.cli import show

if TYPE_CHECKING:
    from relook.published import Published

COLUMNS = {"name": "name", "there": "there", "licence": "licence", "citation": "citation", "what": "what"}


def datasets(
    action: Annotated[str | None, typer.Argument(help="get: download a set; without it, list them.")] = None,
    name: Annotated[str | None, typer.Argument(help="The set to get.")] = None,
    *,
    data_folder: Annotated[Path | None, typer.Option("--data", help="Folder of data sets; or set RELOOK_DATA.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the list as JSON.")] = None,
) -> None:
    """List the published data sets that relook reads, or get one: relook datasets get cifar10n.

    Files come over https from their publishers and are checked by their sums. Nothing else in relook uses the network.
    """
    from relook.errors import BadInput
    from relook.published import named

    if action is None:
        _list(data_folder, json)
        return
    if action != "get" or name is None:
        raise BadInput(f"datasets: get and the name of a set were needed, but {action!r} came; say get cifar10n")
    _get(named(name), data_folder)


def _list(data_folder: Path | None, json: Path | None) -> None:
    import os

    from relook.published import FOLDER, PUBLISHED

    folder = data_folder or os.environ.get(FOLDER)
    rows = [_row(found, None if folder is None else Path(folder)) for found in PUBLISHED.values()]
    show.table(rows, COLUMNS)
    show.say(
        "digits comes with relook's own packages." if folder else f"No folder: name it with --data, or set {FOLDER}."
    )
    show.write_json(json, rows)
    absent = next((row["name"] for row in rows if row["there"] != "there"), "cifar10n")
    show.wrote(*([json] if json is not None else []), following=f"relook datasets get {absent}")


def _row(found: "Published", folder: Path | None) -> dict[str, Any]:
    there = None if folder is None else found.state(folder)
    own = {key: getattr(found, key) for key in ("name", "licence", "citation", "what")}
    return own | {"there": there, "files": [file.name for file in found.files if not file.optional]}


def _get(found: "Published", data_folder: Path | None) -> None:
    from relook.download import obtain
    from relook.published import data_folder as chosen

    folder = chosen(data_folder, what=f"dataset {found.name}")
    before = found.state(folder)
    for file in found.files:
        if file.by_hand and found.place(folder, file.name) is None:
            kind = " (optional)" if file.optional else ""
            show.say(f"By hand{kind}: put {file.name} into {folder / found.folder}; it is at {file.page}.")
    with show.progress(f"Getting {found.name}", sum(file.most for file in found.files)) as step:
        made = obtain(found, folder, step=step)
    if made:
        show.say(f"Licence of {found.name}: {found.licence}. Cite:\n\n{found.bibtex}\n")
    elif before == "there":
        show.say(f"{found.name} is there already.")
    show.wrote(*made, following="relook datasets" if found.state(folder) != "there" else _use(found.name))


def _use(name: str) -> str:
    """Return what can be done with a set."""
    return "relook simulate --dataset cifar10h" if name == "cifar10h" else f"relook noise {name} --help"
