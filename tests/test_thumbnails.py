"""Small pictures are made once, kept in the set, and never of a file that has changed."""

import hashlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from relook import Labels, Posteriors
from relook.engines.processes import Processes
from relook.engines.serial import serial
from relook.errors import BadInput
from relook.pictures import eight_bit
from relook.report import gallery
from relook.thumbnails import LinkedImages, make_all
from relook.types import Dataset
from tests.odd import noise, png


def linked(folder: Path, *sides: int) -> LinkedImages:
    (folder / "files").mkdir()
    names, hashes = [], []
    for number, side in enumerate(sides):
        content = png(noise(side, side + 10, seed=number), 8, 0)
        (folder / "files" / f"{number}.png").write_bytes(content)
        names.append([f"{number}.png"])
        hashes.append([hashlib.sha256(content).hexdigest()])
    return LinkedImages(folder / "files", names, hashes=hashes, kept=folder / "kept")


def kept(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "kept").rglob("*") if path.is_file())


def test_they_are_made_when_first_looked_at_and_kept(tmp_path: Path) -> None:
    images = linked(tmp_path, 20, 400)
    assert not kept(tmp_path)
    first = [images.packed(0), images.packed(1)]
    assert Image.open(BytesIO(first[0])).size == (30, 20)
    assert max(Image.open(BytesIO(first[1])).size) == 144
    assert len(kept(tmp_path)) == 2
    (tmp_path / "files" / "1.png").unlink()
    assert images.packed(1) == first[1]
    with pytest.raises(BadInput, match="a file that can be read was needed"):
        images[1]


def test_another_size_is_made_anew(tmp_path: Path) -> None:
    images = linked(tmp_path, 400)
    assert max(Image.open(BytesIO(images.packed(0, side=50))).size) == 50
    assert not kept(tmp_path)


def test_a_torn_one_is_made_again(tmp_path: Path) -> None:
    images = linked(tmp_path, 20)
    whole = images.packed(0)
    kept(tmp_path)[0].write_bytes(b"")
    assert images.packed(0) == whole
    assert kept(tmp_path)[0].read_bytes() == whole


def test_a_file_that_has_changed_is_not_shown(tmp_path: Path) -> None:
    images = linked(tmp_path, 20)
    (tmp_path / "files" / "0.png").write_bytes(png(noise(5, 5), 8, 0))
    for look in (images.packed, images.__getitem__):
        with pytest.raises(BadInput, match="the image that was imported was needed, but the file has changed; import"):
            look(0)


def test_a_set_that_may_not_be_written_to_is_looked_at_all_the_same(tmp_path: Path) -> None:
    images = linked(tmp_path, 20)
    (tmp_path / "kept").touch()
    assert images.packed(0)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_links_inside_the_folder_are_followed_and_others_are_not(tmp_path: Path) -> None:
    linked(tmp_path, 20)
    (tmp_path / "files" / "cat").mkdir()
    (tmp_path / "files" / "cat" / "1.png").symlink_to("../0.png")
    hashes = [[hashlib.sha256((tmp_path / "files" / "0.png").read_bytes()).hexdigest()]]
    assert LinkedImages(tmp_path / "files", [["cat/1.png"]], hashes=hashes)[0].shape == (20, 30)
    with pytest.raises(BadInput, match="a link leads out of it"):
        LinkedImages(tmp_path / "files" / "cat", [["1.png"]], hashes=hashes)[0]
    (tmp_path / "one.png").symlink_to("files/0.png")
    assert eight_bit(tmp_path / "one.png").shape == (20, 30)


@pytest.mark.parametrize("engine", [serial, Processes(2)])
def test_all_are_made_on_request_and_failures_listed(engine: object, tmp_path: Path) -> None:
    images = linked(tmp_path, *[12] * 150)
    (tmp_path / "files" / "70.png").write_bytes(b"changed")
    steps: list[int] = []
    assert callable(engine)
    wrong = make_all(images, engine=engine, step=steps.append)
    assert len(kept(tmp_path)) == 149
    assert sum(steps) == 150
    assert [message.split(": ")[0] for message in wrong] == [str(tmp_path / "files" / "70.png")]


def test_the_report_shows_the_kept_ones(tmp_path: Path) -> None:
    images = linked(tmp_path, 300, 300)
    shown_as: Any = images
    dataset = Dataset("two", ("cat", "dog"), ("a", "b"), Labels(np.array([0, 1]), 2), images=shown_as)
    shelves = gallery(dataset, Posteriors(np.array([[0.9, 0.1], [0.2, 0.8]])))
    shown = {tile.image for shelf in shelves for tile in shelf.tiles}
    assert shown == {path.read_bytes() for path in kept(tmp_path)}
