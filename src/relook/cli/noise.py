"""`relook noise`: a copy of a set whose labels are wrong on purpose, to try a campaign on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relook.cli import show

if TYPE_CHECKING:
    from relook.noisy import Clean
    from relook.types import FloatArray

SOURCE, MODEL, OUT = "Source", "Noise", "Writing"


def _option(help_text: str, *names: str, panel: str) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel)


def noise(
    source: Annotated[
        str, typer.Argument(help="Folder of an imported set, or a data set's name: digits, cifar10h ...")
    ],
    *,
    to: Annotated[Path, _option("Folder for the noisy copy, an imported set.", panel=OUT)],
    model: Annotated[
        str,
        _option(
            "temperature, temperature-offset, symmetric, class-dependent or instance-dependent.", "--model", panel=MODEL
        ),
    ],
    rate: Annotated[float | None, _option("Share of labels to make wrong, as expected: 0.2.", panel=MODEL)] = None,
    seed: Annotated[int, _option("Chance: which labels go wrong.", panel=MODEL)] = 0,
    tau: Annotated[
        float | None, _option("Temperature, instead of --rate, or beside it with an offset.", panel=MODEL)
    ] = None,
    offset: Annotated[float | None, _option("Of temperature-offset: instead of --rate.", panel=MODEL)] = None,
    matrix: Annotated[str | None, _option("C x C confusions: an npy file, or cifar10-asymmetric.", panel=MODEL)] = None,
    std: Annotated[float | None, _option("Of instance-dependent: spread of the flip rates; 0.1.", panel=MODEL)] = None,
    embeddings: Annotated[
        Path | None, _option("Of instance-dependent: N x D, npy; else the set's own.", panel=MODEL)
    ] = None,
    split: Annotated[str | None, _option("One split of the set alone.", panel=SOURCE)] = None,
    question: Annotated[str | None, _option("Of chestmnist: the finding that is asked for.", panel=SOURCE)] = None,
    data_folder: Annotated[
        Path | None, _option("Folder of data sets; or set RELOOK_DATA.", "--data", panel=SOURCE)
    ] = None,
) -> None:
    """Write a copy of a clean or multi-answer set with wrong labels in it, by a noise model, and the truth beside them.

    The truth of an item is the shares of its answers; where people were not asked, its label.
    """
    from msgspec.structs import replace

    from relook.noisy import Recipe, copy
    from relook.npfiles import single

    clean = _clean(source, data_folder, split=split, question=question)
    if embeddings is not None:
        clean = replace(clean, embeddings=single(embeddings).numbers())
    recipe = Recipe(model=model, rate=rate, tau=tau, offset=offset, matrix=_matrix(matrix), std=std, seed=seed)
    with show.progress("Copying", len(clean.found)) as step:
        made, changed = copy(clean, recipe, folder=to, step=step)
    show.say(made.manifest.facts[-1])
    if not changed:
        show.say(f"{to} is that copy already.")
    show.wrote(*([to] if changed else []), following=f"relook simulate --dataset {to}")


def _clean(source: str, data_folder: Path | None, *, split: str | None, question: str | None) -> "Clean":
    from relook.datasets import NAMES
    from relook.errors import BadInput
    from relook.imported import MANIFEST
    from relook.noisy import of_imported, of_published

    published = source in NAMES
    if (Path(source) / MANIFEST).is_file() or (Path(source).is_dir() and not published):
        if question is not None:
            raise BadInput("noise: --question belongs to a data set of a name, but a folder came; leave it out")
        return of_imported(Path(source), split=split)
    if not published:
        known = ", ".join(NAMES)
        raise BadInput(f"{source}: an imported set, or one of {known}, was needed, but it is neither; check the name")
    settings = {name: value for name, value in (("split", split), ("question", question)) if value is not None}
    return of_published(source, data_folder, settings=settings)


def _matrix(named: str | None) -> "FloatArray | None":
    from relook.noise import cifar10_asymmetric
    from relook.npfiles import single

    if named is None:
        return None
    return cifar10_asymmetric() if named == "cifar10-asymmetric" else single(Path(named)).numbers()
