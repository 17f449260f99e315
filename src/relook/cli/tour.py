"""`relook tour`: import, rank and report in one, for a first look at labels."""

from pathlib import Path
from typing import Annotated

import typer

from relook.cli import show
from relook.cli.import_ import bring_in
from relook.cli.rank import Out, set_of, tell_ranking


def tour(
    source: Annotated[Path, typer.Argument(help="A folder, a table, arrays, JSON or an archive.", show_default=False)],
    *,
    to: Annotated[Path | None, typer.Option(help="Folder to make; the source's name and -relook by default.")] = None,
    embeddings: Annotated[Path | None, typer.Option(help="N x D: npy, npz, parquet or csv.")] = None,
    probabilities: Annotated[
        Path | None, typer.Option("--probabilities", "--pred-probs", help="N x C of a model.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Rank this split alone.")] = None,
    seed: Annotated[int, typer.Option(help="Chance, where a model is fitted.")] = 0,
) -> None:
    """Import a source, rank its labels and write a page about them: a first look in one command.

    `relook import` and `relook rank` have all the options that a source may need.
    """
    from relook.intake import WANTED
    from relook.policies import named

    folder = to or Path(f"{source.name.split('.')[0] or 'set'}-relook")
    along = {"embeddings": embeddings, "probabilities": probabilities}
    made, _ = bring_in(source, folder, wanted=WANTED, along=along)
    both, images = set_of(made, split=split, seed=seed)
    out = Out(folder / "ranking.csv", report=folder / "report.html")
    written = tell_ranking(both, named("default"), out=out, images=images)
    show.wrote(folder, *written, following=f"relook export {folder} --to labels.csv")
