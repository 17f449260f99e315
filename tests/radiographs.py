"""Files of the RSNA's pneumonia challenge and of the NIH, in their published columns, made for tests."""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

PAPER = ((367, 441), (3_988, 8_551), (1_101, 5_567), (556, 6_113))
"""The paper's table: radiographs with and without opacity (RSNA), a row a category of the NIH's findings."""

FINDINGS = (
    (["Pneumonia"], ["Infiltration", "Pneumonia"], ["PNEUMONIA", "Consolidation"]),
    (["Infiltration"], ["Consolidation", "Effusion"], ["Atelectasis", "infiltration"]),
    (["Effusion"], ["Mass", "Nodule"], ["Cardiomegaly"]),
    (["No Finding"],),
)


class Case:
    """One radiograph: its id, its NIH findings, whether radiologists saw an opacity, and how sure each reader was."""

    def __init__(self, name: str, findings: Sequence[str], *, opacity: bool, boxes: Sequence[str] = ()) -> None:
        self.name, self.findings, self.opacity, self.boxes = name, list(findings), opacity, list(boxes)


def cases(cells: Sequence[tuple[int, int]] = PAPER, *, seed: int = 0) -> list[Case]:
    """Return as many radiographs of each kind as the cells say, mixed; one in ten was read with some doubt."""
    rng = np.random.default_rng(seed)
    kinds = [
        (category, opacity)
        for category, cell in enumerate(cells)
        for opacity, number in ((True, cell[0]), (False, cell[1]))
        for _ in range(number)
    ]
    found = []
    for number in rng.permutation(len(kinds)):
        category, opacity = kinds[number]
        findings = FINDINGS[category][number % len(FINDINGS[category])]
        doubtful = number % 10 == 0
        sure = ["Lung Opacity (Low Prob)"] * 2 if doubtful else ["Lung Opacity (Low Prob)", "Lung Opacity (High Prob)"]
        boxes = sure if opacity else sure[:1] if doubtful else []
        found.append(Case(f"{number:08x}-rsna", findings, opacity=opacity, boxes=boxes))
    return found


def write(folder: Path, found: Sequence[Case], *, extra: int = 3, leave_out: Iterable[str] = ()) -> Path:
    """Write the published files into the folder `rsna`; `extra` radiographs of the mapping have no RSNA label."""
    there = folder / "rsna"
    there.mkdir(parents=True, exist_ok=True)
    boxes = [(case, row) for case in found for row in range(2 if case.opacity else 1)]
    _table(
        there / "stage_2_train_labels.csv",
        ["patientId", "x", "y", "width", "height", "Target"],
        ([case.name, *([10 + row, 20, 5, 5] if case.opacity else [""] * 4), int(case.opacity)] for case, row in boxes),
    )
    _table(
        there / "stage_2_detailed_class_info.csv",
        ["patientId", "class"],
        ([case.name, "Lung Opacity" if case.opacity else "Normal"] for case, _ in boxes),
    )
    entries = [_entry(case, number) for number, case in enumerate(found)]
    entries += [_entry(Case(f"test-{n}", ["Mass"], opacity=False), len(found) + n) for n in range(extra)]
    (there / "pneumonia-challenge-dataset-mappings_2018.json").write_text(json.dumps(entries), "utf-8")
    _table(
        there / "RSNA_pneumonia_all_probs.csv",
        ["patientId", "StudyInstanceUID", "labelName", "x"],
        ([case.name, f"1.2.{number}", box, 3] for number, case in enumerate(found) for box in case.boxes),
    )
    for name in leave_out:
        (there / name).unlink()
    return folder


def _entry(case: Case, number: int) -> dict[str, Any]:
    return {
        "subset_img_id": case.name,
        "img_id": f"{number // 2:08d}_{number % 2:03d}.png",
        "orig_labels": case.findings,
        "StudyInstanceUID": f"1.2.{number}",
        "SOPInstanceUID": f"1.2.{number}.1",
    }


def _table(path: Path, heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(heading)
        writer.writerows(rows)
