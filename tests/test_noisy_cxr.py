"""NoisyCXR comes out of the published files as the paper and its released code have it: to the radiograph."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from relook import datasets
from relook.collection import GIVEN
from relook.datasets import noisy_cxr
from relook.datasets.noisy_cxr import CATEGORIES, CLASSES, Benchmark, benchmark, collection, correspondence, load
from relook.errors import BadInput
from tests import radiographs
from tests.malformed import read_or_refused
from tests.radiographs import PAPER, Case

MAPPING = "pneumonia-challenge-dataset-mappings_2018.json"
BOXES = "RSNA_pneumonia_all_probs.csv"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All 26,684 radiographs of the paper's table, in the published columns."""
    return radiographs.write(tmp_path_factory.mktemp("cxr"), radiographs.cases(), extra=3_316)


@pytest.fixture(scope="module")
def made(folder: Path) -> Benchmark:
    return benchmark(folder)


def few(folder: Path, **changes: object) -> Path:
    """Six radiographs, one of them difficult."""
    low, high = "Lung Opacity (Low Prob)", "Lung Opacity (High Prob)"
    found = [
        Case("a", ["Pneumonia"], opacity=True, boxes=[low, high]),
        Case("b", ["Infiltration"], opacity=True, boxes=[low, low]),
        Case("c", ["Infiltration"], opacity=False, boxes=[low]),
        Case("d", ["Mass"], opacity=False),
        Case("e", ["No Finding"], opacity=True, boxes=[]),
        Case("f", ["Consolidation"], opacity=False),
    ]
    return radiographs.write(folder, found, **changes)  # type: ignore[arg-type]


def cells(made: Benchmark, labels: str) -> list[tuple[int, int]]:
    table = correspondence(made)
    return [(row[CLASSES[1]], row[CLASSES[0]]) for row in table.iter_rows(named=True) if row["labels"] == labels]


class TestPaper:
    def test_eight_cells_of_nih_and_rsna(self, made: Benchmark) -> None:
        assert cells(made, "NIH") == list(PAPER)
        assert cells(made, "") == [(6_012, 20_672)]
        assert correspondence(made)[""].to_list() == [*CATEGORIES, *CLASSES[::-1], "Total"]

    def test_exactly_1253_flips_within_three_deviations(self, made: Benchmark) -> None:
        middle = made.table["category"].to_numpy() == CATEGORIES[1]
        opacity = made.table["opacity"].to_numpy()
        flipped = middle & (made.given != opacity)
        assert flipped.sum() == 1_253
        assert abs(int((flipped & opacity).sum()) - 398) <= 50
        assert made.facts[-1] == "1,253 labels of Consolidation/infiltration (not pneumonia) flipped."

    def test_the_paper_s_four_cells_come_of_the_paper_s_flips(self, folder: Path, made: Benchmark) -> None:
        """Its table implies 1,254 flips: 399 with an opacity and 855 without."""
        middle = made.table.filter(made.table["category"] == CATEGORIES[1])
        flips = [
            *middle.filter(middle["opacity"])["id"].to_list()[:399],
            *middle.filter(~middle["opacity"])["id"].to_list()[:855],
        ]
        given = benchmark(folder, flips=flips)
        assert cells(given, "NoisyCXR") == [(3_956, 1_296), (2_056, 19_376)]
        assert round(100 * (given.given != given.table["opacity"].to_numpy()).mean(), 1) == 12.6
        assert np.array_equal(given.splits["train"], made.splits["train"]), "the split is the seed's all the same"

    def test_quarter_of_the_middle_flipped(self, folder: Path) -> None:
        full = load(folder, rate=0.25)
        wrong = full.given.given != full.true_class
        assert round(100 * wrong.mean(), 1) == 19.6
        assert round(100 * wrong[full.given.given == 1].mean()) == 43

    def test_halves(self, folder: Path, made: Benchmark) -> None:
        train, val = load(folder, split="train"), load(folder, split="val")
        assert (len(train), len(val)) == (13_342, 13_342)
        assert set(train.ids).isdisjoint(val.ids)
        assert (train.name, val.name) == ("noisy_cxr-train", "noisy_cxr-val")
        table = made.table
        assert train.ids[0] == table["id"][int(made.splits["train"][0])]

    def test_is_drawn_as_the_released_code_draws(self, made: Benchmark) -> None:
        """One RandomState(1234): a choice among the names of the middle group, then a permutation of all."""
        random = np.random.RandomState(1234)
        names = made.table.filter(made.table["category"] == CATEGORIES[1])["id"].to_numpy()
        selected = set(random.choice(names, replace=False, size=int(len(names) * 0.10)))
        order = random.permutation(np.arange(len(made.table)))
        opacity, middle = made.table["opacity"].to_numpy(), np.isin(made.table["id"].to_numpy(), names)
        flipped = made.table["id"].to_numpy()[middle & (made.given != opacity)]
        assert set(flipped) == selected
        assert np.array_equal(made.splits["train"], order[:13_342])
        assert np.array_equal(made.splits["val"], order[13_342:])

    def test_truth_of_the_difficult(self, folder: Path, made: Benchmark) -> None:
        full = load(folder)
        assert full.truth is not None
        assert np.unique(full.truth[:, 1].round(2)).tolist() == [0, 0.33, 0.67, 1]
        difficult, opacity = made.table["difficult"].to_numpy(), made.table["opacity"].to_numpy()
        assert np.array_equal(difficult, np.isclose(full.truth.max(1), 2 / 3))
        assert np.array_equal(full.true_class == 1, opacity)

    @pytest.mark.slow
    def test_real_labels_of_the_challenge(self, data_dir: Path, tmp_path: Path) -> None:
        """The RSNA's own files, with the NIH's findings made up for them: 26,605 patients, 6,000 of them positive."""
        there = tmp_path / "rsna"
        there.mkdir()
        for name in ("stage_2_train_labels.csv", "stage_2_detailed_class_info.csv"):
            (there / name).symlink_to(data_dir / "rsna" / name)
        with (data_dir / "rsna" / "stage_2_train_labels.csv").open() as file:
            names = list(dict.fromkeys(row["patientId"] for row in csv.DictReader(file)))
        kinds = [kind for kinds in radiographs.FINDINGS for kind in kinds]
        entries = [{"subset_img_id": name, "orig_labels": kinds[n % len(kinds)]} for n, name in enumerate(names)]
        (there / MAPPING).write_text(json.dumps(entries))
        full = load(tmp_path)
        assert len(full) == 26_605
        assert int((full.true_class == 1).sum()) == 6_000
        assert full.groups is None
        made = benchmark(tmp_path)
        assert sum(sum(cell) for cell in cells(made, "NIH")) == 26_605
        assert "There is no RSNA_pneumonia_all_probs.csv: which radiographs are difficult" in " ".join(made.facts)


class TestFiles:
    def test_what_becomes_of_six(self, tmp_path: Path) -> None:
        full = load(few(tmp_path), rate=0.0)
        assert full.ids == ["a", "b", "c", "d", "e", "f"]
        assert full.given.given.tolist() == [1, 1, 0, 0, 0, 0]
        assert full.truth is not None
        assert full.truth[:, 1].round(2).tolist() == [1, 0.67, 0.33, 0, 1, 0]
        assert full.groups == ["00000000", "00000000", "00000001", "00000001", "00000002", "00000002"]
        facts = benchmark(tmp_path, rate=0.0).facts
        assert facts[1] == "Left out: 3 of the mapping, 0 of the labels."

    def test_collection_keeps_what_labels_were_made_of(self, tmp_path: Path) -> None:
        found = collection(few(tmp_path))
        items = found.items.collect()
        assert set(items["split"]) == {"train", "val"}
        assert items["column:category"].to_list()[:2] == [CATEGORIES[0], CATEGORIES[1]]
        assert items["column:findings"][0] == "pneumonia"
        assert items["column:rsna"][4] == CLASSES[1]
        assert set(found.answers["annotator"]) == {GIVEN}
        assert datasets.collection("noisy_cxr", tmp_path).ids.to_list() == found.ids.to_list()

    def test_findings_of_the_nih_s_own_table(self, tmp_path: Path) -> None:
        few(tmp_path)
        path = tmp_path / "rsna" / MAPPING
        entries = json.loads(path.read_text())
        rows = [f"{entry['img_id']},{'|'.join(entry.pop('orig_labels'))},41" for entry in entries]
        path.write_text(json.dumps(entries))
        with pytest.raises(BadInput, match=r"but an entry has none; put Data_Entry_2017\.csv beside it"):
            load(tmp_path)
        table = tmp_path / "rsna" / "Data_Entry_2017.csv"
        table.write_text("\n".join(["Image Index,Finding Labels,Age", *rows]))
        assert load(tmp_path, rate=0.0).given.given.tolist() == [1, 1, 0, 0, 0, 0]
        table.write_text("\n".join(["Image Index,Finding Labels,Age", *rows[1:]]))
        with pytest.raises(BadInput, match=r"entry 0: the NIH's findings were needed, but it has no orig_labels"):
            load(tmp_path)

    def test_radiographs(self, tmp_path: Path) -> None:
        few(tmp_path)
        with pytest.raises(BadInput, match=r"a\.png was needed, but there is no such file; write the radiographs"):
            load(tmp_path, images=tmp_path)
        for name in "abcdef":
            Image.new("L", (4, 3), 7).save(tmp_path / f"{name}.png")
        images = load(tmp_path, images=tmp_path).images
        assert images is not None
        assert (len(images), images[5].shape) == (6, (3, 4))

    def test_without_readers_nothing_is_difficult(self, tmp_path: Path) -> None:
        full = load(few(tmp_path, leave_out=[BOXES]))
        assert full.truth is not None
        assert np.unique(full.truth).tolist() == [0, 1]


class TestBadFiles:
    @pytest.mark.parametrize("name", ["stage_2_train_labels.csv", "stage_2_detailed_class_info.csv", MAPPING])
    def test_missing(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(BadInput, match=f"{name} was needed, but there is no such file; get {name} from"):
            load(few(tmp_path, leave_out=[name]))

    @pytest.mark.parametrize(
        ("name", "text", "message"),
        [
            (MAPPING, "{}", "a list of entries was needed, but Expected `array`"),
            (MAPPING, "[]", "a list of entries was needed, but it is empty; get the file again"),
            (MAPPING, '[{"img_id": "a"}]', "a list of entries was needed, but Object missing required field"),
            (
                MAPPING,
                '[{"subset_img_id": "z", "orig_labels": "Mass"}]',
                "but none of 6 is there; are they of the same",
            ),
            (
                MAPPING,
                '[{"subset_img_id": "a", "orig_labels": ""}, {"subset_img_id": "a", "orig_labels": "x"}]',
                "a has",
            ),
            (
                "stage_2_train_labels.csv",
                "patientId,Target\na,2\n",
                "line 2: a Target of 0 or 1 was needed, but 2 came",
            ),
            ("stage_2_train_labels.csv", "patientId,Target\na,yes\n", "line 2: a whole number was needed in column Ta"),
            (
                "stage_2_train_labels.csv",
                "patientId,Target\na,1\na,0\n",
                "one label a radiograph was needed, but a has two that differ",
            ),
            (
                BOXES,
                "StudyInstanceUID,labelName\n1.2.0,Maybe\n",
                r"line 2: a labelName was needed \(.+but 'Maybe' came",
            ),
            (BOXES, "StudyInstanceUID\n1.2.0\n", "a column 'labelName' was needed, but it has StudyInstanceUID"),
        ],
    )
    def test_refused(self, tmp_path: Path, name: str, text: str, message: str) -> None:
        few(tmp_path)
        (tmp_path / "rsna" / name).write_text(text)
        with pytest.raises(BadInput, match=message):
            load(tmp_path)

    def test_too_long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(noisy_cxr, "_MOST_BYTES", 10)
        with pytest.raises(BadInput, match="at most 10 bytes were needed, but it is longer; is it another file"):
            load(few(tmp_path))

    def test_settings(self, tmp_path: Path) -> None:
        few(tmp_path)
        with pytest.raises(BadInput, match="the split must be all, train or val, but 'test' came"):
            load(tmp_path, split="test")
        with pytest.raises(BadInput, match="a rate of flips from 0 to 1 was needed, but 10 came; the paper has"):
            load(tmp_path, rate=10)
        with pytest.raises(BadInput, match=r"to flip, but 'a', which is none, came; leave it out"):
            load(tmp_path, flips=["a"])
        with pytest.raises(BadInput, match=r"to flip, but one twice came; leave it out"):
            load(tmp_path, flips=["b", "b"])


# Whatever stands in one of the files: a benchmark, or one kind of refusal.


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, bytes]:
    there = few(tmp_path_factory.mktemp("fuzz")) / "rsna"
    load(there.parent)  # what is imported at the first use would be taken for something that runs
    return {path: path.read_bytes() for path in sorted(there.iterdir())}


_PIECES = [
    b'"',
    b",",
    b"\n",
    b"\r",
    b"\0",
    b"[",
    b"{" * 40,
    b"null",
    b"Pneumonia",
    b"\xff",
    b"1.2.0",
    b"a,",
    b"-1",
    b"nan",
]


@pytest.mark.slow
@settings(max_examples=2_000)
@given(data=st.data())
def test_two_thousand_malformed_files(sound: dict[Path, bytes], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(sound)))
    content = bytearray(sound[path])
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 9))] = data.draw(st.sampled_from(_PIECES) | st.binary(max_size=3))
    path.write_bytes(content)
    read_or_refused(lambda: load(path.parent.parent), path.parent)
    path.write_bytes(sound[path])
