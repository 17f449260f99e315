"""`python -m relook.train`: with torch, numpy and safetensors alone; every sentence; the same command goes on."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relook.errors import BadInput
from relook.train.__main__ import as_masses, channels_first, main
from relook.types import Posteriors

BARE = """
import sys
import torch

torch.set_num_threads(1)
from relook.train.__main__ import main

code = main(sys.argv[1:])
needless = {"msgspec", "polars", "sklearn", "scipy", "PIL", "typer", "rich", "threadpoolctl"} & set(sys.modules)
if needless:
    sys.stderr.write(f"imported: {needless}")
sys.exit(code)
"""
"""A run that tells which packages it has imported beside torch, numpy and safetensors."""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with images, ids, further images, and labels of all items but three."""
    rng = np.random.default_rng(0)
    label = np.arange(40) % 2
    images = rng.integers(0, 60, (40, 8, 8, 3)).astype(np.uint8)
    images[label == 1, :4] += 150
    np.savez(
        tmp_path / "images.npz",
        images=images,
        ids=np.arange(100, 140),
        unlabelled=images[:, ::-1],
        groups=np.arange(40) // 4,
    )
    label[:3] = -1
    np.save(tmp_path / "labels.npy", label)
    return tmp_path


def arguments(folder: Path, *, recipe: str = "tiny", to: str = "out.npz") -> list[str]:
    """Return the arguments of a run."""
    named = {"images": folder / "images.npz", "labels": folder / "labels.npy", "recipe": recipe, "to": folder / to}
    return [part for name, value in named.items() for part in (f"--{name}", str(value))]


@pytest.mark.slow
def test_a_bare_machine_trains_and_goes_on(files: Path) -> None:
    batch = [sys.executable, "-c", BARE, *arguments(files), "--folds", "2", "--seed", "3"]
    assert subprocess.run(batch, check=False, capture_output=True, text=True).stderr == ""
    with np.load(files / "out.npz", allow_pickle=False) as found:
        assert found["posteriors"].dtype == np.float16
        assert Posteriors(found["posteriors"]).values.shape == (1, 40, 2)
        assert found["ids"].tolist() == list(range(100, 140))
        assert found["labels"][:5].tolist() == [-1, -1, -1, 1, 0]
        first = found["posteriors"]
    kept = {path: path.stat().st_mtime_ns for path in (files / "out.npz.trained").rglob("*.safetensors")}
    assert kept
    subprocess.run(batch, check=True)
    assert {path: path.stat().st_mtime_ns for path in (files / "out.npz.trained").rglob("*.safetensors")} == kept
    with np.load(files / "out.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["posteriors"], first)


def test_bad_input_is_a_sentence_and_leaves_nothing(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(files, recipe="vannilla")) == 2
    assert "near it are" in capsys.readouterr().err
    np.save(files / "labels.npy", np.zeros(9, np.int64))
    assert main(arguments(files)) == 2
    assert "labels of 40 images were needed, a class or a row of masses each" in capsys.readouterr().err
    (files / "labels.npy").write_bytes(b"no array")
    assert main(arguments(files)) == 2
    assert "an npy file of labels was needed, but it cannot be read" in capsys.readouterr().err
    np.savez(files / "labels.npz", a=[1])
    (files / "labels.npz").replace(files / "labels.npy")
    assert main(arguments(files)) == 2
    assert "one array of labels was needed, but an npz file came" in capsys.readouterr().err
    np.savez(files / "images.npz", pictures=[1])
    assert main(arguments(files)) == 2
    assert "an array named images was needed, but pictures came" in capsys.readouterr().err
    (files / "images.npz").write_bytes(b"no archive")
    assert main(arguments(files)) == 2
    assert "an npz file of images was needed, but it cannot be read" in capsys.readouterr().err
    assert not (files / "out.npz").exists()


def test_labels_and_images_that_cannot_be() -> None:
    place = Path("x.npy")
    with pytest.raises(BadInput, match="masses from 0 were needed, but others came"):
        as_masses(np.array([[0.5, -0.5]]), items=1, where=place)
    for bad in ([-2, 1], [-1, -1]):
        with pytest.raises(BadInput, match="number the classes"):
            as_masses(np.array(bad), items=2, where=place)
    with pytest.raises(BadInput, match="images of bytes were needed, N x H x W x 3, but float64"):
        channels_first(np.zeros((2, 4, 4, 3)), where=place)
    assert channels_first(np.zeros((2, 4, 5), np.uint8), where=place).shape == (2, 1, 4, 5)
    assert as_masses(np.array([[0.5, 2.0]]), items=1, where=place).tolist() == [[0.5, 2.0]]


def test_torch_is_asked_for_where_it_is_missing(files: Path) -> None:
    code = BARE.replace("import torch\n\ntorch.set_num_threads(1)\n", "sys.modules['torch'] = None\n")
    said = subprocess.run([sys.executable, "-c", code, *arguments(files)], check=False, capture_output=True, text=True)
    assert said.returncode == 2
    assert "torch is not installed here; run pip install torch safetensors numpy" in said.stderr
