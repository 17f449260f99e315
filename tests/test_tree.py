"""A walk finds every file once, follows no link, and says what it left out."""

import os
from pathlib import Path

import pytest
from PIL import Image

from relook.errors import BadInput
from relook.pictures import SUFFIXES
from relook.tree import OTHER_PICTURES, alike, plainly, tree, with_images


def planted(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def test_paths_come_in_order_from_the_folder_on(tmp_path: Path) -> None:
    found = tree(planted(tmp_path, "dog/2.png", "cat/b/1.JPG", "cat/a.webp", "z.tif", "cat/10.png"))
    assert found.images == ("cat/10.png", "cat/a.webp", "cat/b/1.JPG", "dog/2.png", "z.tif")
    assert (found.folders, found.facts()) == (("cat", "dog"), ())


def test_what_systems_leave_behind_is_skipped_and_told(tmp_path: Path) -> None:
    planted(tmp_path, "cat/1.png", ".DS_Store", "cat/._1.png", "cat/Thumbs.db", "__MACOSX/cat/1.png", ".git/a.png")
    found = tree(tmp_path)
    assert (found.images, found.skipped, found.folders) == (("cat/1.png",), 5, ("cat",))
    assert found.facts() == (f"{tmp_path}: 5 hidden or left-over files skipped.",)


def test_other_files_are_counted_by_their_endings(tmp_path: Path) -> None:
    found = tree(planted(tmp_path, "cat/1.png", "cat/1.txt", "labels.csv", "README", "cat/2.TXT"))
    assert (found.others, found.beside) == ((("", 1), (".csv", 1), (".txt", 2)), ("README", "labels.csv"))
    assert found.facts()[0].endswith("4 files left out that are no images (without an ending 1, .csv 1, .txt 2).")


def test_other_pictures_are_refused(tmp_path: Path) -> None:
    planted(tmp_path, "cat/1.png", "cat/3.gif", "cat/2.SVG")
    with pytest.raises(
        BadInput, match=r"cat/2\.SVG: PNG, JPEG, WebP or TIFF was needed, but 2 pictures of other kinds"
    ):
        tree(tmp_path)
    Image.init()
    assert set(Image.registered_extensions()) <= OTHER_PICTURES | set(SUFFIXES)


def test_links_to_folders_are_left_out_and_told(tmp_path: Path) -> None:
    planted(tmp_path, "cat/1.png")
    (tmp_path / "cat" / "round").symlink_to("..")
    (tmp_path / "kitten").symlink_to("cat")
    (tmp_path / "cat" / "2.png").symlink_to("1.png")
    found = tree(tmp_path)
    assert found.images == ("cat/1.png", "cat/2.png")
    assert found.facts() == (f"{tmp_path}: 2 links to folders left out.",)


@pytest.mark.parametrize("target", ["/etc", "../secret", "../secret/1.png", "/dev/zero"])
def test_links_that_lead_out_are_refused(target: str, tmp_path: Path) -> None:
    planted(tmp_path, "secret/1.png", "pets/cat/1.png")
    (tmp_path / "pets" / "dog.png").symlink_to(target)
    with pytest.raises(BadInput, match=r"dog\.png: files inside the folder were needed, but this link leads out of it"):
        tree(tmp_path / "pets")


def test_a_root_that_is_a_link_is_followed(tmp_path: Path) -> None:
    planted(tmp_path, "pets/cat/1.png")
    (tmp_path / "here").symlink_to("pets")
    assert tree(tmp_path / "here").images == ("cat/1.png",)


def test_folders_may_lie_deep(tmp_path: Path) -> None:
    planted(tmp_path, "a/" * 300 + "1.png")
    assert tree(tmp_path).images == ("a/" * 300 + "1.png",)


def test_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/cat/caf\xe9.png")).touch()
    with pytest.raises(BadInput, match=r"names of files in UTF-8 were needed, but b'cat/caf.xe9.png' came; rename"):
        tree(tmp_path)


def test_what_is_no_folder_of_images_is_refused(tmp_path: Path) -> None:
    planted(tmp_path, "file.png", "empty/a.txt")
    with pytest.raises(BadInput, match="a folder of images was needed, but this is a file"):
        tree(tmp_path / "file.png")
    with pytest.raises(BadInput, match="a folder of images was needed, but there is none of this name; check"):
        tree(tmp_path / "gone")
    with pytest.raises(BadInput, match="at least one image was needed, but none lies in it; name the folder"):
        with_images(tmp_path / "empty")


def test_a_folder_that_may_not_be_listed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(tmp_path, "cat/1.png")

    def locked(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", locked)
    with pytest.raises(BadInput, match=r"a folder that can be listed was needed, but it cannot .Permission denied"):
        tree(tmp_path)


def test_names_alike_are_kept_apart_and_told(tmp_path: Path) -> None:
    planted(tmp_path, "Cat/1.png", "cat/1.png", "caf\u00e9/1.png", "cafe\u0301/1.png")
    found = tree(tmp_path)
    assert len(found.images) == 4
    (fact,) = found.facts()
    assert "told apart by case or Unicode form alone, and kept apart: " in fact
    assert fact.endswith("'Cat' and 'cat'.")
    assert alike(["stra\u00dfe", "STRASSE", "a"]) == [("stra\u00dfe", "STRASSE")]
    assert plainly("\u212b") == plainly("\u00e5") == plainly("A\u030a")
