"""`relook train`: posteriors of every item, out of sample, by a method of one's choice, as a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relook.cli import show

if TYPE_CHECKING:
    from relook.types import Dataset, FloatArray

SOURCE, LEARN, OUT = "Source", "Learning", "Writing"


def _option(help_text: str, *names: str, panel: str) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel)


def train(
    source: Annotated[
        str, typer.Argument(help="Folder of an imported set, or a data set's name: digits, cifar10h ...")
    ],
    *,
    to: Annotated[Path, _option("File for posteriors, labels and ids: npz.", panel=OUT)],
    method: Annotated[
        str | None,
        _option("lda, logistic, knn, or average (default); networks: vanilla, coteaching, elr, ssl ...", panel=LEARN),
    ] = None,
    recipe: Annotated[
        str | None, _option("Of networks: such as coteaching/paper; else our own of the method.", panel=LEARN)
    ] = None,
    device: Annotated[str, _option("Of networks: cpu or cuda.", panel=LEARN)] = "cpu",
    folder: Annotated[
        Path | None, _option("Of networks: keeps what is reached; beside --to by default.", panel=LEARN)
    ] = None,
    unlabelled: Annotated[
        str | None, _option("Of networks: further images; cifar10, cifar10:test, or npy.", panel=LEARN)
    ] = None,
    embeddings: Annotated[
        list[Path] | None, _option("N x D, in the items' order: npy. Several are joined.", panel=LEARN)
    ] = None,
    texts: Annotated[
        str, _option("What describes texts: pieces of their words, or minilm, a network.", panel=LEARN)
    ] = "pieces",
    folds: Annotated[
        int | None, _option("Parts that items are left out by; 5, or as the recipe has it; 0: in sample.", panel=LEARN)
    ] = None,
    repeats: Annotated[int, _option("How often the parts are cut anew; the mean counts.", panel=LEARN)] = 1,
    seed: Annotated[int, _option("Chance: who is left out with whom.", panel=LEARN)] = 0,
    labels: Annotated[
        Path | None, _option("Learn from these, by id or in order, instead of the given ones.", panel=SOURCE)
    ] = None,
    split: Annotated[str | None, _option("One split of the set alone.", panel=SOURCE)] = None,
    data_folder: Annotated[
        Path | None, _option("Folder of data sets; or set RELOOK_DATA.", "--data", panel=SOURCE)
    ] = None,
    subset: Annotated[str | None, _option("Of cifar10h: paper (default) or all.", panel=SOURCE)] = None,
    tau: Annotated[float | None, _option("Of cifar10h: temperature of the labels; 10.", panel=SOURCE)] = None,
    images: Annotated[str | None, _option("Of cifar10h: folder with its images.", panel=SOURCE)] = None,
) -> None:
    """Learn class probabilities of every item from the labels as they are, each by models that never saw that item.

    Items of one group, say of one patient, are never split. The file serves `relook rank` and `relook simulate`.
    """
    from time import monotonic

    from relook import networks
    from relook.methods import Settings, check_target, relabelled, sentence, trained, write

    check_target(to)
    method = method or (networks.BY_RECIPE if recipe else "average")
    if source == "cifar10h" and method in networks.METHODS and images is None:
        from relook.published import data_folder as found_folder

        images = str(found_folder(data_folder, what=f"images for {method}"))
    named = {"split": split, "subset": subset, "tau": tau, "images": images}
    dataset, own = _dataset(source, data_folder, settings={key: value for key, value in named.items() if value})
    if labels is not None:
        from relook.inputs import labels as read

        dataset = relabelled(dataset, read(labels))
    tables = _tables(embeddings, dataset) if embeddings else own
    network = networks.Settings(
        recipe=recipe,
        device=device,
        folder=str(folder or to.with_name(f"{to.name}.trained")),
        unlabelled=unlabelled,
        data=None if data_folder is None else str(data_folder),
    )
    settings = Settings(folds, repeats, seed, tables, texts, network=network)
    began = monotonic()
    made = trained(method, dataset, settings=settings)
    show.say(f"{dataset.name}: {len(dataset):,} items, {len(dataset.classes)} classes. {sentence(made)}")
    show.say(f"{monotonic() - began:.1f} s.")
    write(made, dataset, path=to)
    show.wrote(to, following=_next(source, to))


def _dataset(
    source: str, data_folder: Path | None, *, settings: dict[str, Any]
) -> "tuple[Dataset, tuple[FloatArray, ...] | None]":
    """Return a data set, and the embeddings that came along with it."""
    from relook import datasets
    from relook.errors import BadInput
    from relook.imported import MANIFEST, read

    if (Path(source) / MANIFEST).is_file() or (Path(source).is_dir() and source not in datasets.NAMES):
        others = [key for key in settings if key != "split"]
        if others:
            raise BadInput(f"train: --{others[0]} belongs to a data set of a name, but a folder came; leave it out")
        found = read(Path(source))
        split = settings.get("split")
        came = found.vectors("embeddings", split)
        return found.dataset(split), None if came is None else (came,)
    if source == "cifar10h":
        settings = {"subset": "paper", "tau": 10.0} | settings
    return datasets.load(source, data_folder, settings=settings), None


def _tables(paths: list[Path], dataset: "Dataset") -> "tuple[FloatArray, ...]":
    from relook.worlds import array, of_items

    return tuple(of_items(array(str(path), option="embeddings"), dataset, option="embeddings") for path in paths)


def _next(source: str, to: Path) -> str:
    from relook.datasets import NAMES

    return (
        f"relook simulate --dataset {source} --probabilities {to}"
        if source in NAMES
        else (f"relook rank {source} --probabilities {to}")
    )
