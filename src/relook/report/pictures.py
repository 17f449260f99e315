"""Items as small pictures: chosen from parts of a ranking, made small, and laid out with what is known of each."""

from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relook.curves import difficult
from relook.errors import BadInput
from relook.pictures import SIDE, packed
from relook.report.markup import THIN, attributes, percent, rounded, text
from relook.runs import Shelf, Tile
from relook.scores import Score, ambiguity, noisiness, phi, score_items
from relook.thumbnails import LinkedImages
from relook.types import Dataset, FloatArray, Posteriors

PARTS = (("Top 10 %", 0.0, 0.1), ("25 to 50 %", 0.25, 0.5), ("50 to 75 %", 0.5, 0.75), ("Bottom 10 %", 0.9, 1.0))
"""The parts of a ranking that the paper shows, by title, from where and to where."""

_BARS = 12
_TINY = 16


def gallery(
    dataset: Dataset, posteriors: Posteriors, *, score: Score = phi, tiles: int = 10, side: int = SIDE
) -> tuple[Shelf, ...]:
    """Return pictures from four parts of a ranking, evenly spread over each, as the paper shows it.

    >>> images = [np.zeros((8, 8), np.uint8)] * 2
    >>> from relook import Labels
    >>> dataset = Dataset("two", ("cat", "dog"), ("a", "b"), Labels([0, 0], 2), images=images)
    >>> [[tile.id for tile in shelf.tiles] for shelf in gallery(dataset, Posteriors([[.9, .1], [.2, .8]]))]
    [['b'], ['b'], ['a'], ['a']]
    """
    if dataset.images is None:
        raise BadInput(f"{dataset.name}: a gallery needs images, but this set has none; load it with images")
    order = np.argsort(-score_items(score, dataset.given, posteriors), kind="stable")
    shelves = []
    for title, begin, end in PARTS:
        first = min(int(begin * len(order)), len(order) - 1)
        last = min(max(int(end * len(order)) - 1, first), len(order) - 1)
        ranks = np.unique(np.rint(np.linspace(first, last, tiles)).astype(np.int64))
        shown = tuple(pictured(dataset, posteriors, ranks=ranks, order=order, side=side))
        shelves.append(Shelf(title, shown, *_faults(dataset, order[first : last + 1])))
    return tuple(shelves)


def pictured(
    dataset: Dataset, posteriors: Posteriors, *, ranks: NDArray[Any], order: NDArray[Any], side: int = SIDE
) -> list[Tile]:
    """Return the items at some ranks (from 0) of an order as pictures with what is known of each."""
    items = np.asarray(order)[ranks]
    if dataset.images is None:
        raise BadInput(f"{dataset.name}: a gallery needs images, but this set has none; load it with images")
    noisy, hard = (score_items(score, dataset.given, posteriors) for score in (noisiness, ambiguity))
    given, mean = dataset.given.label(), posteriors.mean()
    tiles = []
    for rank, item in zip(ranks.tolist(), items.tolist(), strict=True):
        truth = None if dataset.truth is None else _shares(dataset.truth[item])
        label = dataset.classes[given[item]] if given[item] >= 0 else "none"
        image = _packed(dataset.images, item, side=side)
        scores = float(noisy[item]), float(hard[item])
        tiles.append(Tile(dataset.ids[item], rank + 1, label, *scores, image, truth, _shares(mean[item])))
    return tiles


def shelves_shown(shelves: Sequence[Shelf], classes: Sequence[str]) -> str:
    """Return the gallery as rows of pictures, each with its title."""
    shown = ""
    for shelf in shelves:
        if shelf.tiles:
            heading = f"<h3>{text(shelf.title)}{_told(shelf)}</h3>"
            shown += f'<div class="shelf">{heading}{tiles_shown(shelf.tiles, classes, title=shelf.title)}</div>'
    return shown


def _packed(images: Sequence[Any], item: int, *, side: int) -> bytes:
    """Return an image made small: the images of an imported set keep theirs."""
    if isinstance(images, LinkedImages):
        return images.packed(item, side=side)
    return packed(np.asarray(images[item]), side=side)


def _faults(dataset: Dataset, items: NDArray[Any]) -> tuple[float | None, float | None]:
    """Return which share of some items has a wrong label, and which is difficult, where the truth is known."""
    if dataset.truth is None:
        return None, None
    wrong = dataset.given.label()[items] != dataset.true_class[items]
    return float(wrong.mean()), float(difficult(dataset.truth[items]).mean())


def _told(shelf: Shelf) -> str:
    if shelf.wrong is None or shelf.difficult is None:
        return ""
    told = f"{rounded(shelf.wrong)} of its labels are wrong, {rounded(shelf.difficult)} of its items difficult"
    return f" <small>{text(told)}</small>"


def tiles_shown(tiles: Sequence[Tile], classes: Sequence[str], *, title: str) -> str:
    """Return pictures side by side."""
    shown = "".join(_tile(tile, classes) for tile in tiles)
    return f'<div class="tiles" tabindex="0" role="region" aria-label="{text(title)}">{shown}</div>'


def _tile(tile: Tile, classes: Sequence[str]) -> str:
    shares, source = (tile.truth, "people say") if tile.truth is not None else (tile.posterior, "the model says")
    told = "" if shares is None else f"; {source} {_leaders(shares, classes)}"
    kind = "png" if tile.image.startswith(b"\x89PNG") else "jpeg"
    width, height = _measures(tile.image)
    tiny = "tiny" if max(width, height) <= _TINY else None
    source_uri = f"data:image/{kind};base64,{b64encode(tile.image).decode()}"
    picture = attributes(
        {
            "src": source_uri,
            "alt": f"Item {tile.id}, given {tile.given}{told}",
            "width": width,
            "height": height,
            "class": tiny,
        }
    )
    bars = "" if shares is None else _bars(shares, classes, given=tile.given)
    named = f"<b>{text(tile.given)}</b>{_verdict(shares, classes, given=tile.given)}"
    measures = f"<small>CE{THIN}{tile.noisiness:.2f} H{THIN}{tile.ambiguity:.2f}</small>"
    place = f'<small class="id" title="{text(tile.id)}">{text(tile.id)}</small><small>rank{THIN}{tile.rank:,}</small>'
    return f'<figure class="tile"><img{picture}><figcaption>{named}{bars}{measures}{place}</figcaption></figure>'


def _verdict(shares: Sequence[float] | None, classes: Sequence[str], *, given: str) -> str:
    if shares is None:
        return ""
    likeliest = classes[int(np.argmax(shares))]
    if likeliest == given:
        return '<span class="right">as given</span>'
    return f'<span class="other">\u2192 {text(likeliest)}</span>'


def _bars(shares: Sequence[float], classes: Sequence[str], *, given: str) -> str:
    """Draw a distribution as tiny bars; with many classes only the likeliest are drawn."""
    places = (
        range(len(shares)) if len(shares) <= _BARS else np.argsort(-np.asarray(shares), kind="stable")[:_BARS].tolist()
    )
    parts = ""
    for place in places:
        kind = "given" if classes[place] == given else None
        look = {"class": kind, "style": f"height:{max(100 * shares[place], 3):.0f}%"}
        parts += f"<i{attributes(look | {'title': f'{classes[place]} {percent(shares[place], 0)}'})}></i>"
    return f'<span class="spark" aria-hidden="true">{parts}</span>{_named(shares, classes)}'


def _leaders(shares: Sequence[float], classes: Sequence[str]) -> str:
    return ", ".join(f"{name} {percent(share, 0)}" for name, share in _top(shares, classes))


def _named(shares: Sequence[float], classes: Sequence[str]) -> str:
    """Name the two likeliest classes, a line each, whether there is a second one or not: tiles stay aligned."""
    lines = [f"<span>{text(name)}</span><i>{percent(share, 0)}</i>" for name, share in _top(shares, classes)]
    return "".join(f'<small class="share">{line}</small>' for line in [*lines, THIN][:2])


def _top(shares: Sequence[float], classes: Sequence[str]) -> list[tuple[str, float]]:
    places = np.argsort(-np.asarray(shares), kind="stable")[:2].tolist()
    return [(classes[place], shares[place]) for place in places if shares[place] >= 0.005]


def _measures(image: bytes) -> tuple[int, int]:
    from PIL import Image

    width, height = Image.open(BytesIO(image)).size
    return width, height


def _shares(row: FloatArray) -> tuple[float, ...]:
    return tuple(round(float(share), 4) for share in row)
