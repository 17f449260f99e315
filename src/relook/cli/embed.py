"""`relook embed`: what a pretrained network sees in the images of a set, for `relook rank` to learn from."""

from pathlib import Path
from typing import Annotated

import typer

from relook.cli import show


def embed(
    source: Annotated[Path, typer.Argument(help="An imported set of images.", show_default=False)],
    *,
    model: Annotated[
        str, typer.Option(help="efficientnet-lite0, -lite1 or -lite2, torchvision:NAME or timm:NAME.")
    ] = "efficientnet-lite1",
    weights: Annotated[Path | None, typer.Option(help="Weights of a network of torchvision or timm.")] = None,
    to: Annotated[Path | None, typer.Option(help="File to write, npy; else into the set.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder to keep rows in; else embedded, in the set.")] = None,
) -> None:
    """Describe the images of a set by a pretrained network, on this machine's processor.

    Nothing is downloaded: the weights come with the extra embed, or are yours. An image is described once: rows are
    kept by the content of images, so a second run costs nothing, and a larger set only what is new.
    """
    from time import monotonic

    from relook import embedding, imported
    from relook.sources import counted

    found = imported.read(source)
    frozen = embedding.model(model, weights=weights)
    began = monotonic()
    with show.progress("Embedding", len(found)) as step:
        target, made = embedding.embed(found, frozen, to=to, cache=cache, step=step)
    seconds = monotonic() - began
    rate = f", {made.new / seconds:,.0f} a second" if made.new else ""
    show.say(f"{counted(made.new, 'new image')} in {seconds:,.1f} s{rate}; {made.values.shape[1]:,} numbers each.")
    show.wrote(target, following=f"relook rank {source}" if to is None else f"relook import ... --embeddings {target}")
