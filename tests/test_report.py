"""The page is whole, true, safe, readable by everybody, and needs nothing but itself."""

import itertools
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from relook import BadInput, Dataset, Labels, Posteriors
from relook.cli import app
from relook.figures import DARK, LIGHT
from relook.pictures import packed
from relook.report import RankingReport, Report, gallery, headline, html, pictured, write
from relook.report.frame import POLICY, style
from relook.report.heat import heat_map
from relook.runs import Outcome, Runs, gathered, read_runs, write_runs
from tests import samples
from tests.html import Element, read

DAY = "2026-01-31"
HOSTILE = "\"><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;\u202e"


@pytest.fixture(scope="module")
def whole() -> Runs:
    return samples.runs()


@pytest.fixture(scope="module")
def page(whole: Runs) -> str:
    return html(Report(whole, DAY))


def ranking(*, unlabelled: int = 0) -> RankingReport:
    small = samples.dataset()
    given = small.given.majority().copy()
    given[:unlabelled] = -1
    blind = msgspec.structs.replace(small, truth=None, given=Labels(given, len(small.classes)))
    model = samples.posteriors(small)
    return RankingReport(blind, model, model.mean().max(1), DAY, policy="default")


def plain(runs: Runs) -> Runs:
    """Return runs without anything that may be missing."""
    return Runs(runs.rows, runs.curves)


PAGES: Mapping[str, Callable[[Runs], str]] = {
    "all there is": lambda whole: html(Report(whole, DAY)),
    "rows and curves": lambda whole: html(Report(plain(whole), DAY)),
    "one seed": lambda _: html(Report(samples.runs(seeds=1), DAY)),
    "one policy": lambda _: html(Report(samples.runs(policies=("random",), against=None), DAY)),
    "bounds alone": lambda _: html(Report(samples.runs(policies=("oracle", "minimal"), against=None), DAY)),
    "more answers than useful": lambda _: html(Report(samples.runs(answers=200), DAY)),
    "a ranking": lambda _: html(ranking()),
    "a ranking of some": lambda _: html(ranking(unlabelled=7)),
    "a ranking of nothing labelled": lambda _: html(ranking(unlabelled=60)),
    "a ranking without images": lambda _: html(
        msgspec.structs.replace(ranking(), dataset=msgspec.structs.replace(ranking().dataset, images=None))
    ),
}


@pytest.fixture(scope="module", params=PAGES)
def any_page(request: pytest.FixtureRequest, whole: Runs) -> Element:
    return read(PAGES[request.param](whole))


class TestEveryPage:
    def test_loads_nothing(self, any_page: Element) -> None:
        assert not any_page.all("script", "link", "iframe", "object", "embed", "form", "base")
        for element in any_page.all():
            for name, value in element.attributes.items():
                assert not name.startswith("on"), f"{element.name} {name}"
                if name in ("src", "href", "srcset", "action", "poster", "data"):
                    assert value.startswith(("data:image/", "#")), f"{element.name} {name}={value[:60]}"
        css = "".join(each.text for each in any_page.all("style"))
        assert not re.search(r"url\(|@import|@font-face|https?:|//", css)
        policies = [each.attributes["content"] for each in any_page.all("meta") if "http-equiv" in each.attributes]
        assert policies == [POLICY] == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]

    def test_says_what_it_is(self, any_page: Element) -> None:
        assert any_page.all("html")[0].attributes["lang"] == "en"
        assert len(any_page.all("main")) == len(any_page.all("h1")) == len(any_page.all("title")) == 1
        assert any_page.all("title")[0].text == any_page.all("h1")[0].text
        names = [each.attributes.get("name") for each in any_page.all("meta")]
        assert {"viewport", "color-scheme"} <= set(names)

    def test_headings_step_down_one_by_one(self, any_page: Element) -> None:
        levels = [int(each.name[1]) for each in any_page.all("h1", "h2", "h3", "h4")]
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels

    def test_lists_its_sections_and_nothing_else(self, any_page: Element) -> None:
        ids = [each.attributes["id"] for each in any_page.all() if "id" in each.attributes]
        assert len(ids) == len(set(ids))
        linked = [each.attributes["href"][1:] for each in any_page.all("nav")[0].all("a")]
        assert linked == [each.attributes["id"] for each in any_page.all("section")]

    def test_every_drawing_is_told_in_words(self, any_page: Element) -> None:
        for figure in any_page.all("figure"):
            drawings = [each for each in figure.all() if each.attributes.get("role") == "img"]
            told = [each.attributes.get("aria-label", "") for each in drawings]
            told += [each.attributes.get("alt", "") for each in figure.all("img")]
            assert len(told) == 1, f"{len(told)} texts in a figure"
            assert re.search(r"\w{3}.*\d", told[0]), told
        for svg in any_page.all("svg"):
            assert svg.attributes["aria-hidden"] == "true"
            assert {"viewbox", "width", "height"} <= set(svg.attributes)

    def test_pictures_keep_their_place(self, any_page: Element) -> None:
        for image in any_page.all("img"):
            assert int(image.attributes["width"]) > 0
            assert int(image.attributes["height"]) > 0

    def test_tables_are_tables(self, any_page: Element) -> None:
        for table in any_page.all("table"):
            assert table.all("caption")[0].text
            assert all(each.attributes.get("scope") in ("col", "row", "rowgroup") for each in table.all("th"))
            width = len(table.all("thead")[0].all("th"))
            for row in table.all("tbody")[0].all("tr"):
                spans = [int(cell.attributes.get("colspan", 1)) for cell in row.all("th", "td")]
                assert sum(spans) == width

    def test_what_scrolls_is_reached_by_the_keyboard(self, any_page: Element) -> None:
        for table in any_page.all("div"):
            if table.kinds() & {"scroll", "tiles"}:
                assert table.attributes["tabindex"] == "0"
                assert table.attributes["role"] == "region"
                assert table.attributes["aria-label"]


def test_equal_reports_make_equal_pages_to_the_byte(whole: Runs, page: str, tmp_path: Path) -> None:
    assert html(Report(samples.runs(), DAY)) == page
    write(tmp_path / "deep" / "report.html", Report(whole, DAY))
    assert (tmp_path / "deep" / "report.html").read_text("utf-8") == page
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["report.html"]


def test_the_page_of_a_folder_is_that_of_the_runs(whole: Runs, page: str, tmp_path: Path) -> None:
    write_runs(tmp_path, whole)
    assert html(Report(read_runs(tmp_path), DAY)) == page


class TestHeadline:
    def test_tells_means_over_seeds(self, whole: Runs) -> None:
        ends = {name: np.mean([row["share_correct"] for row in whole.rows_of(name)]) for name in ("default", "random")}
        assert headline(whole).replace("\u00a0", " ") == (
            f"60 answers take the labels from 60.0 % to {100 * ends['default']:.1f} % correct with the default policy; "
            f"random order would reach {100 * ends['random']:.1f} %."
        )

    def test_names_another_policy_and_leaves_out_what_was_not_simulated(self) -> None:
        told = headline(samples.runs(policies=("paper",), against=None))
        assert "with the policy paper." in told
        assert "random" not in told


class TestContent:
    def test_every_policy_is_named_at_its_line_in_every_chart(self, page: str) -> None:
        charts = [svg for svg in read(page).all("svg") if any("line" in path.kinds() for path in svg.all("path"))]
        drawings = [svg for svg in charts if "sample" not in svg.kinds()]
        assert len(drawings) == 6  # two sizes of two charts, and two panels
        for svg in drawings:
            named = {label.own_text for label in svg.all("text") if "name" in label.kinds()}
            assert set(samples.POLICIES) <= named

    def test_lines_differ_by_more_than_colour(self, page: str) -> None:
        svg = next(svg for svg in read(page).all("svg") if len(svg.all("text")) > 10)
        looks = [path.attributes.get("stroke-dasharray") for path in svg.all("path") if "line" in path.kinds()]
        assert len(set(looks)) >= len(samples.POLICIES) - 1

    def test_a_line_is_drawn_where_its_numbers_are(self, whole: Runs, page: str) -> None:
        svg = next(svg for svg in read(page).all("svg") if len(svg.all("text")) > 10)
        marks = {}
        for label in svg.all("text"):
            if label.attributes.get("class") == "end" and label.text.endswith("%"):
                marks[float(label.text.split("\u00a0")[0]) / 100] = float(label.attributes["y"]) - 4
        (low, bottom), (high, top) = min(marks.items()), max(marks.items())
        drawn = next(path for path in svg.all("path") if path.kinds() == {"line", "c1"})
        heights = [float(point.split()[1]) for point in drawn.attributes["d"][1:].split("L")]
        shares = low + (bottom - np.array(heights)) / (bottom - top) * (high - low)
        mean = np.mean([curve.share_correct for curve in whole.curves_of("default")], axis=0)
        assert np.allclose(shares, mean, atol=0.001)

    def test_words_hold_the_ends_of_the_lines(self, whole: Runs, page: str) -> None:
        label = next(
            each.attributes["aria-label"] for each in read(page).all("div") if each.attributes.get("role") == "img"
        )
        for name in samples.POLICIES:
            end = 100 * np.mean([row["share_correct"] for row in whole.rows_of(name)])
            assert re.search(rf"{name}: 60\.0\s% at first, {end:.1f}\s%", label), name
        assert "95 % interval" in label

    def test_the_table_holds_every_policy_bounds_apart(self, whole: Runs, page: str) -> None:
        table = read(page).all("table")[0]
        bodies = table.all("tbody")
        assert [row.text for row in bodies[1].all("th")] == ["Bounds, which know the truth", "oracle"]
        rows = {row.all("th")[0].text: [cell.own_text.strip() for cell in row.all("td")] for row in bodies[0].all("tr")}
        assert set(rows) == {"default", "paper", "margin", "random"}
        left = np.mean([row["difficult_left"] for row in whole.rows_of("paper")])
        assert rows["paper"][4] == f"{left:.0f}"
        assert [row.all("th")[0].text for row in bodies[0].all("tr")][-1] == "random"

    def test_differences_stand_beside_the_policy_they_are_from(self, page: str) -> None:
        table = read(page).all("table")[1]
        assert table.all("caption")[0].text == "The difference from paper, seed by seed"
        names = [each.text for each in table.all("tbody")[0].all("th")]
        assert "paper" not in names
        assert {"default", "margin", "random"} == set(names)
        assert re.search(r"[+\u2212]\d+\.\d\d to [+\u2212]\d+\.\d\d[0-3] of 3", table.text)

    def test_without_a_reference_nothing_is_compared(self) -> None:
        assert "seed by seed" not in html(Report(samples.runs(against=None), DAY))

    def test_the_kinds_of_visits_add_up(self, whole: Runs, page: str) -> None:
        table = next(each for each in read(page).all("table") if "What became" in each.all("caption")[0].text)
        for row in table.all("tbody")[0].all("tr"):
            numbers = [int(cell.own_text.replace(",", "")) for cell in row.all("td")]
            total = sum(whole.extra.outcomes[row.all("th")[0].text].kinds.values())
            assert numbers[-1] == round(total)
            assert abs(sum(numbers[:-1]) - total) <= 2.5

    def test_heat_maps_say_shares_of_rows(self, whole: Runs, page: str) -> None:
        maps = [svg for svg in read(page).all("svg") if "heat" in svg.kinds()]
        assert len(maps) == 4
        given = np.array(whole.extra.given["all"])
        numbers = [int(label.text) for label in maps[0].all("text") if label.text.isdigit()]
        shares = (100 * given / given.sum(1, keepdims=True)).ravel()
        assert numbers == [round(share) for share in shares if share >= 0.5]

    def test_a_heat_map_keeps_small_shares_and_leaves_out_what_rounds_to_nothing(self) -> None:
        drawn = read(heat_map(((980.0, 18.0, 2.0), (0.0, 1.0, 1.0), (0.0, 0.0, 5.0)), "abc", name="x", most=1.0))
        assert [label.text for label in drawn.all("text") if label.text.isdigit()] == ["98", "2", "50", "50", "100"]

    def test_many_classes_are_told_by_their_commonest_pairs(self) -> None:
        small = samples.dataset(items=90, classes=[f"class {number}" for number in range(30)])
        made = samples.records(small, policies=("margin",), seeds=1)
        from relook.runs import described

        page = read(html(Report(gathered(made, extra=described(small)), DAY)))
        assert not [svg for svg in page.all("svg") if "heat" in svg.kinds()]
        assert "With 30 classes a map of all pairs cannot be read." in page.text
        assert "The pairs that differ most often" in page.text

    def test_the_gallery_shows_each_item_with_what_is_known(self, whole: Runs, page: str) -> None:
        root = read(page)
        shelves = [each for each in root.all("div") if "shelf" in each.kinds()]
        assert [each.all("h3")[0].own_text.strip() for each in shelves] == [
            "Top 10 %",
            "25 to 50 %",
            "50 to 75 %",
            "Bottom 10 %",
        ]
        wrong = whole.extra.gallery[0].wrong
        assert wrong is not None
        assert f"{100 * wrong:.0f}\u00a0% of its labels are wrong" in shelves[0].all("h3")[0].text
        tile = whole.extra.gallery[0].tiles[0]
        shown = shelves[0].all("figure")[0]
        for part in (
            tile.id,
            f"rank\u00a0{tile.rank}",
            tile.given,
            f"CE\u00a0{tile.noisiness:.2f}",
            f"H\u00a0{tile.ambiguity:.2f}",
        ):
            assert part in shown.text
        bars = [each for each in shown.all("i") if "height" in each.attributes.get("style", "")]
        assert len(bars) == len(samples.CLASSES)
        assert [place for place, bar in enumerate(bars) if "given" in bar.kinds()] == [
            samples.CLASSES.index(tile.given)
        ]

    def test_how_it_was_made_holds_all_of_it(self, page: str) -> None:
        made = next(each for each in read(page).all("section") if each.attributes["id"] == "made").text
        for part in (DAY, "default, paper, margin, random, oracle", "0.1.0", "0f" * 16, "Versions"):
            assert part in made

    def test_options_that_were_not_given_are_left_out(self, whole: Runs) -> None:
        resolved = {"configuration": {"tau": [], "labels": None, "batch": 0, "folds": [{"seed": 3}, {"seed": 5}]}}
        root = read(html(Report(msgspec.structs.replace(whole, resolved=resolved), DAY)))
        made = next(each for each in root.all("section") if each.attributes["id"] == "made")
        told = [(row.all("th")[0].text, row.all("td")[0].text) for row in made.all("tbody")[1].all("tr")]
        assert told == [("batch", "0"), ("folds.1.seed", "3"), ("folds.2.seed", "5")]

    def test_what_is_missing_leaves_no_section(self, whole: Runs) -> None:
        ids = [each.attributes["id"] for each in read(html(Report(plain(whole), DAY))).all("section")]
        assert ids == ["policies", "curve", "left", "distance", "words", "made"]


class TestHostileNames:
    def test_of_a_simulation(self, whole: Runs) -> None:
        first = samples.POLICIES[0]
        rename = {first: HOSTILE}
        rows = tuple(row | {"policy": rename.get(row["policy"], row["policy"])} for row in whole.rows)
        curves = {(rename.get(policy, policy), seed): curve for (policy, seed), curve in whole.curves.items()}
        shelves = tuple(
            msgspec.structs.replace(
                shelf,
                title=HOSTILE,
                tiles=tuple(msgspec.structs.replace(tile, id=HOSTILE, given=HOSTILE) for tile in shelf.tiles),
            )
            for shelf in whole.extra.gallery
        )
        outcomes: dict[str, Outcome] = {rename.get(name, name): each for name, each in whole.extra.outcomes.items()}
        extra = msgspec.structs.replace(
            whole.extra,
            dataset=HOSTILE,
            classes=(HOSTILE, "b", "c"),
            outcomes=outcomes,
            gallery=shelves,
            ranked_by=HOSTILE,
        )
        self._check(html(Report(Runs(rows, curves, {HOSTILE: {HOSTILE: [HOSTILE]}, "x": HOSTILE}, extra), HOSTILE)))

    def test_of_a_ranking(self) -> None:
        report = ranking()
        ids = (HOSTILE, *report.dataset.ids[1:])
        dataset = msgspec.structs.replace(report.dataset, name=HOSTILE, ids=ids, classes=(HOSTILE, "b", "c"))
        top = np.zeros(len(dataset))
        top[0] = 1
        hostile = msgspec.structs.replace(
            report, dataset=dataset, priority=top, made=HOSTILE, policy=HOSTILE, resolved={HOSTILE: HOSTILE}
        )
        self._check(html(hostile))

    def _check(self, page: str) -> None:
        root = read(page)
        assert not root.all("script")
        assert all(each.attributes["src"].startswith("data:image/") for each in root.all("img"))
        assert all(not name.startswith("on") for each in root.all() for name in each.attributes)
        assert HOSTILE in root.text
        assert "<script>alert" not in page


class TestSize:
    def test_forty_large_images_and_long_curves_stay_below_two_megabytes(self, whole: Runs) -> None:
        rng = np.random.default_rng(0)
        small = samples.dataset()
        noise = [rng.integers(0, 256, (700, 500, 3), dtype=np.uint8) for _ in range(10)]
        large = msgspec.structs.replace(small, images=[noise[number % 10] for number in range(len(small))])
        shelves = gallery(large, samples.posteriors(small))
        assert sum(len(shelf.tiles) for shelf in shelves) >= 30
        long = {
            key: type(curve)(
                *(
                    np.interp(np.linspace(0, 60, 200_001), np.arange(61), getattr(curve, name))
                    for name in curve.__struct_fields__
                )
            )
            for key, curve in whole.curves.items()
        }
        extra = msgspec.structs.replace(whole.extra, gallery=shelves)
        page = html(Report(msgspec.structs.replace(whole, curves=long, extra=extra), DAY))
        assert len(page.encode()) < 2_000_000

    def test_a_tiny_image_is_kept_to_the_pixel_and_a_large_one_made_small(self) -> None:
        from io import BytesIO

        from PIL import Image

        tiny = np.arange(64, dtype=np.uint8).reshape(8, 8)
        assert np.array_equal(np.asarray(Image.open(BytesIO(packed(tiny)))), tiny)
        large = Image.open(BytesIO(packed(np.zeros((400, 800, 3), np.uint8))))
        assert large.size == (144, 72)

    @pytest.mark.parametrize(
        "pixels",
        [np.zeros((8, 8)), np.zeros((8, 8, 4), np.uint8), np.zeros(8, np.uint8)],
        ids=["floats", "four", "flat"],
    )
    def test_what_is_no_image_is_refused(self, pixels: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]") -> None:
        with pytest.raises(
            BadInput, match=r"image: uint8 of shape H x W or H x W x 3 was needed, but .* came; convert it"
        ):
            packed(pixels)


class TestGallery:
    def test_parts_are_where_they_say(self) -> None:
        rng = np.random.default_rng(1)
        items = 200
        values = rng.dirichlet(np.ones(2), items)
        names = tuple(map(str, range(items)))
        images = [np.zeros((4, 4), np.uint8)] * items
        dataset = Dataset("many", ("a", "b"), names, Labels(np.zeros(items, int), 2), images=images)
        ranks = [[tile.rank for tile in shelf.tiles] for shelf in gallery(dataset, Posteriors(values))]
        assert [(each[0], each[-1], len(each)) for each in ranks] == [
            (1, 20, 10),
            (51, 100, 10),
            (101, 150, 10),
            (181, 200, 10),
        ]

    def test_a_part_tells_how_much_of_it_is_wrong(self) -> None:
        # The model is always sure of the true class, so the wrong labels come first.
        truth = np.eye(2)[np.arange(100) % 2]
        given = np.where(np.arange(100) < 7, 1 - truth.argmax(1), truth.argmax(1))
        images = [np.zeros((4, 4), np.uint8)] * 100
        names = tuple(map(str, range(100)))
        dataset = Dataset("sure", ("a", "b"), names, Labels(given, 2), truth=truth, images=images)
        shelves = gallery(dataset, Posteriors(0.9 * truth + 0.05))
        assert [shelf.wrong for shelf in shelves] == [0.7, 0, 0, 0]
        assert [shelf.difficult for shelf in shelves] == [0, 0, 0, 0]

    def test_a_tile_tells_the_items_own_numbers(self) -> None:
        small, model = samples.dataset(), samples.posteriors(samples.dataset())
        tile = pictured(small, model, ranks=np.array([0]), order=np.array([17, 3]))[0]
        given, mean = small.given.majority()[17], model.mean()[17]
        assert (tile.id, tile.rank, tile.given) == ("item-017", 1, samples.CLASSES[given])
        assert tile.noisiness == pytest.approx(-np.log(mean[given]))
        assert tile.ambiguity == pytest.approx(-(mean * np.log(mean)).sum())
        assert tile.truth == pytest.approx(samples.truth_of(small)[17], abs=1e-4)

    def test_a_set_without_images_is_refused(self) -> None:
        blind = msgspec.structs.replace(samples.dataset(), images=None)
        with pytest.raises(BadInput, match="small: a gallery needs images, but this set has none; load it with images"):
            gallery(blind, samples.posteriors(blind))


class TestRanking:
    def test_counts_what_the_model_would_label_otherwise(self) -> None:
        report = ranking(unlabelled=7)
        given, suggested = report.dataset.given.majority(), report.posteriors.mean().argmax(1)
        differ = int(((given >= 0) & (given != suggested)).sum())
        root = read(html(report))
        assert root.all("h1")[0].text == f"The model would label {differ} of 53 items differently."
        assert f"{100 * (1 - differ / 53):.1f}\u00a0%" in root.text
        assert "7 items came without a label." in root.text

    def test_the_histogram_counts_every_labelled_item(self) -> None:
        drawing = next(each for each in read(html(ranking(unlabelled=7))).all("div") if "histogram" in each.kinds())
        assert sum(int(bar.attributes["title"]) for bar in drawing.all("i")) == 53

    def test_the_table_begins_with_the_highest_priority(self) -> None:
        report = ranking()
        table = next(each for each in read(html(report)).all("table") if "The first" in each.all("caption")[0].text)
        ids = [row.all("th")[0].text for row in table.all("tbody")[0].all("tr")]
        order = np.argsort(-report.priority, kind="stable")
        assert ids == [report.dataset.ids[item] for item in order[:50]]

    def test_priorities_of_another_set_are_refused(self) -> None:
        with pytest.raises(
            BadInput, match="ranking report: priorities of 60 items were needed, but 3 came; rank again"
        ):
            msgspec.structs.replace(ranking(), priority=np.zeros(3))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as the WCAG defines it."""
    dim, bright = sorted(_luminance(colour) for colour in (one, other))
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def mixed(over: str, under: str, share: float) -> str:
    """Return a colour laid over another at some opacity."""
    pairs = [(int(over[place : place + 2], 16), int(under[place : place + 2], 16)) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(share * top + (1 - share) * below):02x}" for top, below in pairs)


PALETTES = [
    dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", style(), re.DOTALL)
]


@pytest.mark.parametrize("colours", PALETTES, ids=["light", "dark", "print"])
class TestContrast:
    def test_words_reach_level_aa(self, colours: dict[str, str]) -> None:
        for ink in ("ink", "soft", "l1", "hard"):
            assert contrast(colours[ink], colours["paper"]) >= 4.5, ink
        for ground in ("clear", "hard"):
            assert contrast(colours["on"], colours[ground]) >= 4.5, ground
        for ground in ("clear-soft", "hard-soft", "was", "same"):
            assert contrast(colours["ink"], colours[ground]) >= 4.5, ground

    def test_numbers_in_a_heat_map_reach_level_aa(self, colours: dict[str, str]) -> None:
        assert contrast(colours["ink"], mixed(colours["heat"], colours["paper"], 0.62)) >= 4.5

    def test_lines_and_marks_reach_what_graphics_need(self, colours: dict[str, str]) -> None:
        for line in ("l0", "l1", "l2", "l3", "l4", "l5", "clear", "hard"):
            assert contrast(colours[line], colours["paper"]) >= 3, line


def test_the_page_and_the_figures_share_their_colours() -> None:
    light, dark, printed = ([palette[f"l{number}"] for number in range(6)] for palette in PALETTES)
    assert (tuple(light), tuple(dark), tuple(printed)) == (LIGHT, DARK, LIGHT)


class TestCommand:
    def test_page_and_figures_come_from_the_folder_alone(self, whole: Runs, page: str, tmp_path: Path) -> None:
        write_runs(tmp_path / "runs", whole)
        ran = CliRunner().invoke(app, ["report", str(tmp_path / "runs"), "--date", DAY, "--figures", "svg"])
        assert ran.exit_code == 0, ran.output
        assert (tmp_path / "runs" / "report.html").read_text("utf-8") == page
        assert {path.suffix for path in (tmp_path / "runs" / "figures").iterdir()} == {".svg"}
        assert "60 answers take the labels from" in ran.output
        assert "Next: relook" in ran.output

    def test_the_page_goes_where_it_is_sent(self, whole: Runs, tmp_path: Path) -> None:
        write_runs(tmp_path / "runs", whole)
        to = tmp_path / "elsewhere" / "page.html"
        ran = CliRunner().invoke(app, ["report", str(tmp_path / "runs"), "--to", str(to), "--figures", "none"])
        assert ran.exit_code == 0, ran.output
        assert to.is_file()
        assert not (to.parent / "figures").exists()
        assert not (tmp_path / "runs" / "report.html").exists()

    def test_a_page_by_another_name_is_refused_and_nothing_is_written(self, whole: Runs, tmp_path: Path) -> None:
        write_runs(tmp_path / "runs", whole)
        before = sorted(tmp_path.rglob("*"))
        ran = CliRunner().invoke(app, ["report", str(tmp_path / "runs"), "--to", str(tmp_path / "page.pdf")])
        assert isinstance(ran.exception, BadInput)
        assert re.search(
            r"report: a page must name an HTML file, but .*page\.pdf came; call it page\.html", str(ran.exception)
        )
        assert sorted(tmp_path.rglob("*")) == before


FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)


def browse(chromium: str, folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    ran = subprocess.run(
        [chromium, *FLAGS, f"--user-data-dir={folder / 'profile'}", *options],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran


@pytest.mark.slow
class TestBrowser:
    @pytest.mark.parametrize("width", [360, 768, 1280])
    def test_nothing_is_wider_than_the_page(self, chromium: str, page: str, tmp_path: Path, width: int) -> None:
        probe = "<script>document.title = 'wide ' + document.documentElement.scrollWidth + ' of ' + innerWidth</script>"
        # Headless windows have a least width, so the page is looked at through a frame of the width.
        inside = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page).replace(
            "</body>", probe + "</body>"
        )
        (tmp_path / "inside.html").write_text(inside, "utf-8")
        around = f'<iframe src="inside.html" width="{width}" height="900" style="border:0" onload="'
        around += "document.title = frames[0].document.title" + '"></iframe>'
        (tmp_path / "around.html").write_text(around, "utf-8")
        options = ("--allow-file-access-from-files", "--virtual-time-budget=3000", "--dump-dom")
        dumped = browse(chromium, tmp_path, *options, f"file://{tmp_path / 'around.html'}").stdout
        found = re.search(r"<title>wide (\d+) of (\d+)</title>", dumped)
        assert found is not None, dumped[:500]
        assert int(found[2]) == width
        assert int(found[1]) <= width

    @pytest.mark.parametrize(("scheme", "dark"), [(1, False), (0, True)], ids=["light", "dark"])
    def test_a_browser_shows_it_in_both_schemes_and_misses_nothing(
        self, chromium: str, page: str, tmp_path: Path, *, scheme: int, dark: bool
    ) -> None:
        from PIL import Image

        (tmp_path / "page.html").write_text(page, "utf-8")
        shot = tmp_path / "shot.png"
        options = (f"--blink-settings=preferredColorScheme={scheme}", "--window-size=1280,1600", f"--screenshot={shot}")
        told = browse(chromium, tmp_path, *options, f"file://{tmp_path / 'page.html'}").stderr
        assert not re.search(r"Refused|Content Security Policy|ERR_|Failed to load", told), told
        brightness = np.asarray(Image.open(shot).convert("L")).mean()
        assert brightness < 80 if dark else brightness > 200
