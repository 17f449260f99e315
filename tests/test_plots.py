"""Figures as files: of the kind their name says, equal for equal runs, without a trace in matplotlib's own state."""

import html
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import msgspec
import numpy as np
import pytest

from relook import BadInput
from relook.plots import (
    cleaning_curves,
    confusion,
    gallery,
    noise_left,
    noise_pattern,
    total_variation,
    write_figures,
)
from relook.runs import Runs
from tests import samples
from tests.conftest import ROOT

Draw = Callable[[Path, Runs], None]
FIGURES: dict[str, Draw] = {
    "cleaning-curves": cleaning_curves,
    "noise-left": noise_left,
    "total-variation": total_variation,
    "noise-pattern": noise_pattern,
    "confusion": confusion,
    "gallery": lambda path, runs: gallery(path, runs.extra.gallery, classes=runs.extra.classes),
}


@pytest.fixture(scope="module")
def whole() -> Runs:
    return samples.runs()


def words(path: Path) -> str:
    """Return what an SVG says: matplotlib notes the text of each drawn word in a comment."""
    return html.unescape("\n".join(re.findall(r"<!-- (.*?) -->", path.read_text("utf-8"))))


@pytest.mark.parametrize("name", FIGURES)
class TestEveryFigure:
    def test_is_of_the_kind_its_name_says(self, name: str, whole: Runs, tmp_path: Path) -> None:
        from PIL import Image

        FIGURES[name](tmp_path / "deep" / "figure.png", whole)
        with Image.open(tmp_path / "deep" / "figure.png") as image:
            assert image.format == "PNG"
            assert min(image.size) > 300
            assert np.asarray(image.convert("L")).std() > 5
        FIGURES[name](tmp_path / "figure.svg", whole)
        assert ET.parse(tmp_path / "figure.svg").getroot().tag.endswith("svg")

    @pytest.mark.parametrize("kind", [".png", ".svg"])
    def test_is_equal_for_equal_runs(self, name: str, kind: str, whole: Runs, tmp_path: Path) -> None:
        one, other = tmp_path / f"one{kind}", tmp_path / f"other{kind}"
        FIGURES[name](one, whole)
        FIGURES[name](other, samples.runs())
        assert one.read_bytes() == other.read_bytes()
        assert b"<dc:date>" not in one.read_bytes()

    def test_of_another_kind_is_refused_and_nothing_is_written(self, name: str, whole: Runs, tmp_path: Path) -> None:
        with pytest.raises(
            BadInput, match=r"a file ending in \.png or \.svg was needed, but figure\.pdf came; rename it"
        ):
            FIGURES[name](tmp_path / "figure.pdf", whole)
        assert list(tmp_path.iterdir()) == []


def test_curves_name_every_policy_and_its_end(whole: Runs, tmp_path: Path) -> None:
    cleaning_curves(tmp_path / "curves.svg", whole)
    said = words(tmp_path / "curves.svg")
    for policy in samples.POLICIES:
        end = 100 * np.mean([row["share_correct"] for row in whole.rows_of(policy)])
        assert f"{policy}  {end:.1f} %" in said
    assert "minimal" in said
    assert {"60 %", "100 %", "answers", "labels correct"} <= set(said.splitlines())


def test_a_title_can_be_given(whole: Runs, tmp_path: Path) -> None:
    cleaning_curves(tmp_path / "curves.svg", whole, title="my labels")
    assert "my labels" in words(tmp_path / "curves.svg").splitlines()


def test_both_panels_of_noise_left_hold_their_counts(whole: Runs, tmp_path: Path) -> None:
    noise_left(tmp_path / "left.svg", whole)
    said = words(tmp_path / "left.svg")
    for quantity in ("clear_left", "difficult_left"):
        left = np.mean([row[quantity] for row in whole.rows_of("random")])
        assert f"random  {left:,.0f}" in said
    assert "wrong labels left on clear items" in said
    assert "wrong labels left on difficult items" in said


def test_the_pattern_of_the_noise_is_that_of_the_given_labels(whole: Runs, tmp_path: Path) -> None:
    noise_pattern(tmp_path / "pattern.svg", whole)
    said = words(tmp_path / "pattern.svg").splitlines()
    counts = np.array(whole.extra.given["all"])
    shares = [f"{share:.0f}" for share in (100 * counts / counts.sum(1, keepdims=True)).ravel() if share >= 0.5]
    first = said[: said.index("difficult items, given labels")]
    assert [word for word in first if word.isdigit()][: len(shares)] == shares


def test_confusion_can_be_that_of_any_policy(whole: Runs, tmp_path: Path) -> None:
    confusion(tmp_path / "random.svg", whole, policy="random")
    assert "all items, after random" in words(tmp_path / "random.svg")
    with pytest.raises(
        BadInput, match="confusion, after ce: counts of labels by class were needed, but the runs hold none"
    ):
        confusion(tmp_path / "ce.svg", whole, policy="ce")


def test_a_gallery_without_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="gallery: at least one picture was needed, but none came"):
        gallery(tmp_path / "gallery.png", (), classes=("a", "b"))


def test_a_gallery_says_what_is_known_of_each_item(whole: Runs, tmp_path: Path) -> None:
    gallery(tmp_path / "gallery.svg", whole.extra.gallery, classes=whole.extra.classes)
    said = words(tmp_path / "gallery.svg")
    for shelf in whole.extra.gallery:
        assert shelf.title in said
        for tile in shelf.tiles:
            assert f"CE {tile.noisiness:.2f}   H {tile.ambiguity:.2f}" in said


def test_grey_images_stay_grey(whole: Runs, tmp_path: Path) -> None:
    from PIL import Image

    tile = whole.extra.gallery[0].tiles[0]
    assert Image.open(BytesIO(tile.image)).mode == "L"
    shelf = msgspec.structs.replace(whole.extra.gallery[0], tiles=(tile,))
    gallery(tmp_path / "gallery.png", (shelf,), classes=whole.extra.classes)
    pixels = np.asarray(Image.open(tmp_path / "gallery.png").convert("RGB"), np.int64)
    picture = pixels[40:150, 20:140]
    assert np.abs(picture[..., 0] - picture[..., 2]).max() == 0


class TestAll:
    def test_every_figure_is_written_in_both_kinds(self, whole: Runs, tmp_path: Path) -> None:
        paths = write_figures(tmp_path, whole)
        assert {path.name for path in paths} == {f"{name}{kind}" for name in FIGURES for kind in (".png", ".svg")}
        assert all(path.stat().st_size > 1000 for path in paths)

    def test_what_the_runs_cannot_show_is_left_out(self, whole: Runs, tmp_path: Path) -> None:
        paths = write_figures(tmp_path, Runs(whole.rows, whole.curves), kinds=(".svg",))
        assert [path.stem for path in paths] == ["cleaning-curves", "noise-left", "total-variation"]

    @pytest.mark.parametrize(
        ("policies", "answers", "seeds"),
        [(("oracle", "minimal"), 200, 2), (("random",), 1, 1)],
        ids=["bounds", "little"],
    )
    def test_odd_simulations_are_drawn_too(
        self, policies: tuple[str, ...], answers: int, seeds: int, tmp_path: Path
    ) -> None:
        odd = samples.runs(policies=policies, answers=answers, seeds=seeds, against=None)
        assert len(write_figures(tmp_path, odd, kinds=(".png",))) == 6


def test_matplotlib_is_loaded_at_its_use_and_left_as_it_was(tmp_path: Path) -> None:
    code = f"""
import sys
import relook.plots
assert "matplotlib" not in sys.modules, "loaded too soon"
from pathlib import Path
from tests import samples
import matplotlib
before = matplotlib.rcParams.copy()
relook.plots.write_figures(Path({str(tmp_path)!r}), samples.runs(seeds=1))
assert matplotlib.rcParams.copy() == before, "settings were changed"
assert "matplotlib.pyplot" not in sys.modules, "pyplot holds figures for ever"
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=100
    )
    assert ran.returncode == 0, ran.stderr
