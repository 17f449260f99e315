"""What is written appears whole or not at all, is known again as ours, and never lies over anybody's own."""

import os
from pathlib import Path

import pytest

from relook.errors import BadInput
from relook.whole import about, beside, check_target, content, drafted, is_own, whole


def written(target: Path, text: str) -> None:
    with whole(target, {"rule": "vote"}) as draft:
        if target.suffix:
            draft.write_text(text)
        else:
            (draft / "deep").mkdir(parents=True)
            (draft / "deep" / "a.txt").write_text(text)


@pytest.mark.parametrize("name", ["labels.txt", "labels"])
def test_what_was_written_is_ours_until_somebody_changes_it(name: str, tmp_path: Path) -> None:
    target = tmp_path / name
    for text in ("first", "second one"):
        check_target(target)
        written(target, text)
        assert is_own(target)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, f"{name}.about.json"]
    inside = target if target.suffix else target / "deep" / "a.txt"
    inside.write_text("changed by hand")
    assert not is_own(target)
    with pytest.raises(BadInput, match="relook did not write"):
        check_target(target)
    check_target(target, over="any")


def test_a_file_of_somebody_else_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "labels.txt"
    target.write_text("mine")
    with pytest.raises(BadInput, match="a new file was needed, but relook did not write this one; add --replace"):
        check_target(target)
    check_target(target, over="any")
    about(target).write_text("{ no json")
    assert not is_own(target)


def test_a_folder_of_somebody_else_is_never_written_over(tmp_path: Path) -> None:
    target = tmp_path / "labels"
    target.mkdir()
    check_target(target)
    (target / "mine").write_text("mine")
    with pytest.raises(BadInput, match="a new folder was needed, but this one holds what relook did not write; name"):
        check_target(target, over="any")


def fail(target: Path) -> None:
    """Write half of something, and no more."""
    with whole(target, {}) as draft:
        if draft.suffix:
            draft.write_text("half")
        else:
            draft.mkdir()
        raise OSError("disk full")


def test_a_draft_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    for name in ("labels.txt", "labels"):
        written(tmp_path / name, "first")
        before = content(tmp_path / name)
        with pytest.raises(OSError, match="disk full"):
            fail(tmp_path / name)
        assert content(tmp_path / name) == before
        assert is_own(tmp_path / name)
    assert len(list(tmp_path.iterdir())) == 4


def filled(place: Path) -> None:
    if place.is_dir():
        place = place / "deep"
    place.write_text("d")
    raise OSError("no space left")


def test_a_file_that_fails_leaves_no_draft(tmp_path: Path) -> None:
    with drafted(tmp_path / "a.txt") as draft:
        draft.write_text("cat")
    with pytest.raises(OSError, match="no space left"), drafted(tmp_path / "a.txt") as draft:
        filled(draft)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "cat")]


def test_nothing_is_left_beside(tmp_path: Path) -> None:
    with beside(tmp_path / "x") as made:
        assert made == tmp_path / f".x-{os.getpid()}"
    with pytest.raises(OSError, match="no space left"), beside(tmp_path / "x") as made:
        filled(made)
    assert list(tmp_path.iterdir()) == []


def test_what_is_read_is_never_written_over(tmp_path: Path) -> None:
    source = tmp_path / "in" / "labels.txt"
    source.parent.mkdir()
    source.write_text("mine")
    for target in (source, source.parent, tmp_path / "in" / ".." / "in" / "labels.txt"):
        with pytest.raises(BadInput, match="a place beside the source was needed, but"):
            check_target(target, sources=[source], over="any")
    check_target(tmp_path / "in" / "other.txt", sources=[source])
    for target in (source.parent, tmp_path / "in" / "other.txt"):
        with pytest.raises(BadInput, match="was needed, for sets stay as they are; name another"):
            check_target(target, kept=source.parent)


def test_places_that_nothing_can_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a folder to write into was needed, but"):
        check_target(tmp_path / "none" / "labels.txt")
    (tmp_path / "link.txt").symlink_to(tmp_path / "elsewhere.txt")
    with pytest.raises(
        BadInput, match="a name of its own was needed, but this one is a link to elsewhere; name another"
    ):
        check_target(tmp_path / "link.txt", over="any")


def test_content_tells_names_and_sizes_apart(tmp_path: Path) -> None:
    contents = set()
    for name, text in (("a", "x"), ("b", "x"), ("a", "xx")):
        folder = tmp_path / f"{name}{text}"
        folder.mkdir()
        (folder / name).write_text(text)
        contents.add(content(folder))
    assert len(contents) == 3
