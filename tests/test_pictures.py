"""Images are read upright, as bytes, and what is no image of ours is refused before anything is decoded."""

import os
import warnings
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from relook import pictures
from relook.errors import BadInput
from relook.pictures import eight_bit, full_depth, inside, linked, packed, small
from tests import odd
from tests.odd import Odd, noise, odd_images, png, saved, tiff

ODD = odd_images()
GREY = noise(9, 7).astype(np.uint8)
FILE = png(GREY, 8, 0)


@pytest.mark.parametrize("name", ODD)
def test_odd_images_are_read_as_they_were_meant(name: str, tmp_path: Path) -> None:
    image: Odd = ODD[name]
    path = tmp_path / "image"
    path.write_bytes(image.content)
    seen = eight_bit(path)
    assert seen.dtype == np.uint8
    assert seen.shape == image.seen.shape
    assert np.abs(seen.astype(int) - image.seen.astype(int)).max() <= image.within
    assert linked(tmp_path, [["image"]]).sizes == [len(image.content)]
    deep = full_depth(path)
    assert np.array_equal(deep, seen if image.deep is None else image.deep)
    assert deep.dtype == (np.uint8 if image.deep is None else np.uint16)


def test_there_are_many_of_them() -> None:
    assert len(ODD) >= 120


def test_a_reader_that_did_nothing_would_be_noticed() -> None:
    """The plain path turns nothing upright, lays nothing over white, and cuts off deep greys."""
    wrong = 0
    for image in ODD.values():
        with warnings.catch_warnings(action="ignore"):
            seen = Image.open(BytesIO(image.content)).convert("L" if image.seen.ndim == 2 else "RGB")
        plain = np.asarray(seen).astype(int)
        wrong += plain.shape != image.seen.shape or np.abs(plain - image.seen).max() > image.within
    assert wrong > 40


NAMES = [*odd.NAMES, "a\\b.png", "/".join(["deep"] * 40) + "/a.png", "JPEG.JPG"]


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_are_found(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(FILE)
    assert linked(tmp_path, [[name]]).names == [name]


def test_every_file_is_weighed_and_known_by_its_hash(tmp_path: Path) -> None:
    large = png(noise(300, 400), 8, 0)
    assert len(large) > 1 << 16
    (tmp_path / "a.png").write_bytes(FILE)
    (tmp_path / "b.png").write_bytes(large)
    steps: list[int] = []
    found = linked(tmp_path, [["a.png", "b.png"], [], ["a.png"]], step=steps.append)
    assert (found.items, found.names) == ([0, 0, 2], ["a.png", "b.png", "a.png"])
    assert found.sizes == [len(FILE), len(large), len(FILE)]
    assert found.hashes[0] == found.hashes[2] != found.hashes[1]
    assert sum(steps) == 3


def test_pages_that_are_not_looked_at_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.tif").write_bytes(ODD["tiff of two pages"].content)
    assert linked(tmp_path, [["a.tif"]], called="pets").facts == (
        "pets: the first page is taken of 1 TIFF with more than one.",
    )


@pytest.mark.parametrize("name", ["/etc/passwd", "C:\\a.png", "c:a.png", "../a.png", "cat/../../a.png", "cat/..", ".."])
def test_paths_that_lead_out_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"starts elsewhere; cut it|leads out; move the file"):
        linked(tmp_path, [[name]])


@pytest.mark.parametrize("name", ["", "cat//a.png", "cat/./a.png", "cat/", "a\0.png"])
def test_what_is_no_path_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=r"the path of a file was needed, but .* came; write folder/name"):
        inside(name, called="pets.csv")


def test_links_are_followed_inside_only(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "cat").mkdir(parents=True)
    (root / "cat" / "a.png").write_bytes(FILE)
    (tmp_path / "b.png").write_bytes(FILE)
    (root / "b.png").symlink_to("cat/a.png")
    (root / "dog").symlink_to("cat")
    assert len(linked(root, [["b.png"], ["dog/a.png"]]).sizes) == 2
    (root / "c.png").symlink_to("../b.png")
    (root / "out").symlink_to(tmp_path)
    for name in ("c.png", "out/b.png"):
        with pytest.raises(BadInput, match="inside the folder was needed, but a link leads out of it; copy"):
            linked(root, [[name]])
    (tmp_path / "way").symlink_to(root)
    assert len(linked(tmp_path / "way", [["cat/a.png"]]).sizes) == 1


def test_what_is_no_ordinary_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "empty.png").touch()
    with pytest.raises(BadInput, match=r"pipe\.png: an ordinary file was needed, but it is none; leave"):
        linked(tmp_path, [["pipe.png"]])
    for name in ("folder.png", "gone.png"):
        with pytest.raises(BadInput, match=r"a file that can be read was needed, but it cannot .*; check the path"):
            linked(tmp_path, [[name]])
    with pytest.raises(BadInput, match="image was needed, but an empty file came; save it"):
        eight_bit(tmp_path / "empty.png")


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.png").open("wb") as file:
        file.write(FILE)
        file.truncate(pictures.LARGEST + 1)
    with pytest.raises(BadInput, match="an image of at most 400 MB was needed, but 400 MB came; make it"):
        linked(tmp_path, [["a.png"]])


def test_damage_behind_the_header_is_noticed_when_it_is_looked_at(tmp_path: Path) -> None:
    middle = FILE.index(b"IDAT") + 8
    (tmp_path / "a.png").write_bytes(FILE[:middle] + b"damaged!" + FILE[middle + 8 :])
    with pytest.raises(BadInput, match=r"an image was needed, but it cannot be read .*; save it again as a PNG"):
        eight_bit(tmp_path / "a.png")


def test_a_tiff_that_nobody_can_read_is_refused_when_it_comes_in(tmp_path: Path) -> None:
    (tmp_path / "a.tif").write_bytes(tiff(noise(4, 4, 5), 8, 8))
    with pytest.raises(BadInput, match=r"a\.tif: an image was needed, but it cannot be read"):
        linked(tmp_path, [["a.tif"]])


def test_pixels_of_other_kinds_are_refused(tmp_path: Path) -> None:
    image = Image.fromarray(np.full((4, 4), 70_000, np.int32))
    with pytest.raises(BadInput, match="greys from 0 to 65,535 were needed, but 70,000 to 70,000 came; save"):
        pictures._as_bytes(image, "a.tif")
    with pytest.raises(BadInput, match="pixels of 8 or 16 bits were needed, but fractions came"):
        pictures._as_bytes(Image.fromarray(np.ones((4, 4), np.float32)), "a.tif")


@pytest.mark.parametrize(
    ("content", "made"),
    [
        (FILE, "PNG"),
        (saved(Image.fromarray(noise(400, 800, 3).astype(np.uint8)), "JPEG"), "JPEG"),
        (ODD["jpeg orientation 6"].content, "PNG"),
        (ODD["tiff rgb 16 >"].content, "PNG"),
    ],
)
def test_small_pictures_are_small(content: bytes, made: str) -> None:
    image = Image.open(BytesIO(small(content, place="a")))
    assert image.format == made
    assert max(image.size) <= pictures.SIDE


def test_a_tiny_picture_is_kept_to_the_pixel() -> None:
    assert np.array_equal(np.asarray(Image.open(BytesIO(small(FILE, place="a.png")))), GREY)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_small_picture_looks_like_the_large_one(kind: str) -> None:
    y, x = np.mgrid[:900, :1300]
    large = np.stack([x / 6, y / 5, (x + y) / 10], axis=2).astype(np.uint8)
    content = saved(Image.fromarray(large), kind)
    one = np.asarray(Image.open(BytesIO(small(content, place="a"))), int)
    other = np.asarray(Image.open(BytesIO(packed(large))), int)
    assert one.shape == other.shape == (100, 144, 3)
    assert np.abs(one - other).mean() < 3


def test_warnings_and_settings_are_left_as_they_are(tmp_path: Path) -> None:
    large = png(np.zeros((9500, 9500), np.uint8), 8, 0)
    (tmp_path / "a.png").write_bytes(large)
    assert eight_bit(tmp_path / "a.png").shape == (9500, 9500)
    with pytest.warns(Image.DecompressionBombWarning):
        Image.open(BytesIO(large))
