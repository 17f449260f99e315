"""Two thousand broken folders of Hugging Face: each is read or refused with a sentence, in a process that goes on."""

import json
import shutil
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relook import arrowfiles
from relook.datasets.huggingface import collection
from relook.errors import BadInput
from tests.conftest import ROOT
from tests.test_huggingface import image

FOLDERS = 2000
MEGABYTES = 1000

Fault = Callable[[Path, np.random.Generator], None]

FEATURES = {
    "image": {"_type": "Image"},
    "label": {"_type": "ClassLabel", "names": ["cat", "dog"]},
    "text": {"_type": "Value", "dtype": "string"},
    "seen": {"_type": "List", "feature": {"_type": "ClassLabel", "names": ["paw", "tail"]}},
}


def table() -> pa.Table:
    """Return rows as `datasets` saves them, made without it: it takes a second to load."""
    made = pa.table(
        {
            "image": pa.array([{"bytes": image(number), "path": None} for number in range(3)]),
            "label": [0, 1, -1],
            "text": ["woof", None, "meow"],
            "seen": pa.array([[0], [], [1, 0]], pa.list_(pa.int64())),
        }
    )
    return made.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": FEATURES}})})


def corpus(folder: Path) -> list[Path]:
    """Write sound folders: saved by `save_to_disk`, and loose files of each kind."""
    made, rows = table(), folder / "saved"
    for name in ("saved", "stream", "file", "parquet", "plain"):
        (folder / name).mkdir(parents=True)
    for place in (rows / "data-00000-of-00001.arrow", folder / "stream" / "x.arrow"):
        with pa.ipc.new_stream(str(place), made.schema) as file:
            file.write_table(made)
    (rows / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    (rows / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    with pa.ipc.new_file(str(folder / "file" / "x.arrow"), made.schema) as file:
        file.write_table(made)
    pq.write_table(made, folder / "parquet" / "train-00000-of-00001.parquet")
    pq.write_table(made.drop(["image", "seen"]), folder / "plain" / "x.parquet", compression="zstd")
    page = "---\ndataset_info: {features: [{name: label, dtype: {class_label: {names: {'0': a}}}}]}\n---\n"
    (folder / "plain" / "README.md").write_text(page)
    return [folder / name for name in ("saved", "stream", "file", "parquet", "plain")]


def _rows(folder: Path) -> Path:
    return next(path for path in sorted(folder.iterdir()) if path.suffix in (".arrow", ".parquet"))


def other_bytes(folder: Path, rng: np.random.Generator) -> None:
    path = _rows(folder)
    told = bytearray(path.read_bytes())
    for place in rng.integers(0, len(told), rng.integers(1, 20)):
        told[place] = rng.integers(256)
    path.write_bytes(told)


def other_numbers(folder: Path, rng: np.random.Generator) -> None:
    """Put huge, negative and odd numbers where there were others: lengths and offsets among them."""
    path = _rows(folder)
    told = bytearray(path.read_bytes())
    for place in rng.integers(0, max(len(told) // 8 - 1, 1), rng.integers(1, 6)) * 8:
        number = int(rng.choice([-1, 0, 1, 7, 2**31 - 1, 2**31, 2**40, -(2**62)]))
        told[place : place + 8] = struct.pack("<q", number)
    path.write_bytes(told)


def cut_off(folder: Path, rng: np.random.Generator) -> None:
    path = _rows(folder)
    told = path.read_bytes()
    path.write_bytes(told[: rng.integers(0, len(told))])


def glued(folder: Path, rng: np.random.Generator) -> None:
    path = _rows(folder)
    told = path.read_bytes()
    at, length = int(rng.integers(0, len(told))), int(rng.integers(1, 200))
    path.write_bytes(told[:at] + told[max(at - length, 0) : at] + told[at + int(rng.integers(0, length)) :])


def other_columns(folder: Path, rng: np.random.Generator) -> None:
    """Let columns be of other types than the features say."""
    odd: list[Any] = [
        pa.array([1.5, None, 2.0]),
        pa.array(["x", "", None]),
        pa.array([[1], None, []]),
        pa.array([{"a": 1}, None, {"a": 2}]),
        pa.array([b"x", None, b""]),
        pa.array([True, None, False]),
        pa.array([2**62, -(2**62), 5]),
        pa.nulls(3),
        pa.array([{"bytes": "no", "path": 3}] * 3),
        pa.array([{"bytes": b"no image", "path": "/etc/passwd"}] * 3),
        pa.array([[{"bytes": image(1), "path": None}] * 9] * 3),
        pa.array([[["deep"]], [[None]], None]),
    ]
    made = table()
    for name in rng.permutation(made.column_names)[: rng.integers(1, 4)]:
        made = made.set_column(made.column_names.index(name), str(name), odd[rng.integers(len(odd))])
    path = _rows(folder)
    if path.suffix == ".parquet":
        pq.write_table(made, path)
    else:
        with pa.ipc.new_stream(str(path), made.schema) as file:
            file.write_table(made)


def other_features(folder: Path, rng: np.random.Generator) -> None:
    odd: list[Any] = [None, 3, [], {}, "x", [None], {"_type": "ClassLabel"}, {"_type": "ClassLabel", "names": [1, 2]}]
    odd += [
        {"_type": "List"},
        {"_type": 7},
        {"_type": "Image"},
        {"names": ["a"]},
        [[[]]],
        {"_type": "ClassLabel", "names": "ab"},
    ]
    told: Any = (
        {name: odd[rng.integers(len(odd))] for name in FEATURES} if rng.integers(4) else odd[rng.integers(len(odd))]
    )
    made = table().replace_schema_metadata(
        {"huggingface": json.dumps({"info": told if rng.integers(2) else {"features": told}})}
    )
    path = _rows(folder)
    if path.suffix == ".parquet":
        pq.write_table(made, path)
    else:
        with pa.ipc.new_stream(str(path), made.schema) as file:
            file.write_table(made)


def other_records(folder: Path, rng: np.random.Generator) -> None:
    odd = [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"_data_files": 3}',
        '{"_data_files": [{"filename": "/etc/passwd"}]}',
        "[" * 9999,
    ]
    odd += [
        '{"_data_files": [null]}',
        '{"_data_files": [{"filename": "gone.arrow"}]}',
        '{"features": [1]}',
        '{"splits": [7]}',
    ]
    odd += [
        "---\n- [\n---\n",
        "---\ndataset_info: {features: [1, {name: 3}]}\n---\n",
        "---\n&a [*a]\n---\n",
        "\x00",
        "---\n",
    ]
    name = ["state.json", "dataset_info.json", "dataset_dict.json", "README.md"][rng.integers(4)]
    (folder / name).write_text(odd[rng.integers(len(odd))])


FAULTS: list[Fault] = [
    *(other_bytes, other_numbers, cut_off, glued, other_columns, other_features, other_records),
]


def ends(folder: Path, first: int, last: int) -> Counter[str]:
    """Return how often folders were read and refused; images are written as well."""
    sound, found = corpus(folder / "sound"), Counter[str]()
    (folder / "out").mkdir()
    for number in range(first, last):
        rng = np.random.default_rng([22, number])
        broken = folder / "in"
        shutil.rmtree(broken, ignore_errors=True)
        shutil.copytree(sound[int(rng.integers(len(sound)))], broken)
        FAULTS[number % len(FAULTS)](broken, rng)
        start = time.perf_counter()
        try:
            made = collection(broken)
            made.items.collect()
            for item in range(len(made)):
                if made.pictures is not None:
                    made.pictures.write(item, folder / "out")
            found["read"] += 1
        except BadInput:
            found["refused"] += 1
        if time.perf_counter() - start > 10:
            found["slow"] += 1
    return found


PROGRAM = """
import json, re, sys
from pathlib import Path
from tests.test_huggingface_bad import ends
found = ends(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
print(json.dumps([found, int(peak[1]) / 1024]))
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_thousand_broken_folders(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path), "0", str(FOLDERS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found, peak = json.loads(ran.stdout)
    assert set(found) == {"read", "refused"}
    assert min(found.values()) > FOLDERS // 20
    # The kernel's own mark: what getrusage tells of children is the largest of all that this worker ever started.
    assert peak < MEGABYTES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", "sound"]


def test_a_reader_that_trusts_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: without its door, arrow's own errors come through."""
    from contextlib import nullcontext

    monkeypatch.setattr(arrowfiles, "reading", nullcontext)
    with pytest.raises((pa.ArrowException, OSError, ValueError, KeyError)) as error:
        ends(tmp_path, 0, 200)
    assert not isinstance(error.value, BadInput)
