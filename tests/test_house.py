"""The house rules hold in the whole package, and each of them catches a fault planted for it."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.house import RULES, WORKPLACES, Finding, Module

SOURCE = ROOT / "src"

EXCEPTIONS: Mapping[tuple[str, str], str] = {
    (
        "thawed_struct",
        "relook.ledger:Item",
    ): "the state of an item changes; as a record it takes half the room, by the million",
    ("many_parameters", "relook.campaign:Campaign.tell"): "lease, answer and time are the three columns of one event",
    ("many_parameters", "relook.campaign:Campaign.undo"): "person, number and time are the three columns of one event",
    ("many_parameters", "relook.campaign:Campaign.replay"): "what it reads a log with, in the order of the log",
    ("many_parameters", "relook.cli.import_:import_"): "an option of the command line is a parameter",
    ("boolean_parameter", "relook.cli.import_:import_(allow_missing)"): "a switch of the command line is a parameter",
    ("boolean_parameter", "relook.cli.import_:import_(dry_run)"): "a switch of the command line is a parameter",
    ("many_parameters", "relook.cli.tour:tour"): "an option of the command line is a parameter",
    ("many_parameters", "relook.cli.reproduce:reproduce"): "an option of the command line is a parameter",
    ("many_parameters", "relook.cli.rank:rank"): "an option of the command line is a parameter",
    ("boolean_parameter", "relook.cli.rank:rank(allow_missing)"): "a switch of the command line is a parameter",
    ("boolean_parameter", "relook.cli.rank:rank(trust_order)"): "a switch of the command line is a parameter",
    ("many_parameters", "relook.cli.export:export"): "an option of the command line is a parameter",
    ("boolean_parameter", "relook.cli.export:export(changes)"): "a switch of the command line is a parameter",
    ("boolean_parameter", "relook.cli.export:export(copy)"): "a switch of the command line is a parameter",
    ("boolean_parameter", "relook.cli.export:export(replace)"): "a switch of the command line is a parameter",
    ("boolean_parameter", "relook.cli.answers:answers(strict)"): "a switch of the command line is a parameter",
    ("boolean_parameter", "relook.cli.answers:answers(train)"): "a switch of the command line is a parameter",
    ("many_parameters", "relook.cli.new:new"): "an option of the command line is a parameter",
    ("boolean_parameter", "relook.cli.next_:next_(again)"): "a switch of the command line is a parameter",
    ("many_parameters", "relook.cli.set_:set_"): "an option of the command line is a parameter",
    ("boolean_parameter", "relook.cli.set_:set_(close)"): "a switch of the command line is a parameter",
    ("boolean_parameter", "relook.cli.set_:set_(reopen)"): "a switch of the command line is a parameter",
    ("many_parameters", "relook.cli.simulate:simulate"): "an option of the command line is a parameter",
    ("many_parameters", "relook.cli.noise:noise"): "an option of the command line is a parameter",
    ("printing", "relook.train.__main__:main"): "a program of its own: what was wrong is said where errors go",
    ("many_parameters", "relook.cli.train:train"): "an option of the command line is a parameter",
    ("many_parameters", "relook.methods:_of_selector.fitted"): "the (dataset, labels, settings) of every method",
    ("many_parameters", "relook.methods:_of_networks.trained_so"): "the (dataset, labels, settings) of every method",
    ("network", "relook.download"): "relook datasets get downloads published sets, and nothing else uses the network",
    ("many_parameters", "relook.train.kernels:sums"): "a kernel takes each tensor and each size by itself",
    ("many_parameters", "relook.train.kernels:settled"): "a kernel takes each tensor and each size by itself",
    ("many_parameters", "relook.train.kernels:normed"): "a kernel takes each tensor and each size by itself",
    ("many_parameters", "relook.train.kernels:slope_sums"): "a kernel takes each tensor and each size by itself",
    ("many_parameters", "relook.train.kernels:slopes_settled"): "a kernel takes each tensor and each size by itself",
    ("many_parameters", "relook.train.kernels:slopes"): "a kernel takes each tensor and each size by itself",
    ("many_parameters", "relook.retraining:Trainer.__call__"): "the (dataset, labels, seed) of every trainer",
    ("many_parameters", "relook.rng:uniform"): "the (seed, item, n) of the crowd, always said in this order",
    (
        "many_parameters",
        "relook.scores:score_items",
    ): "score, labels and posteriors are one noun each and cannot be mixed up",
}
"""(rule, place) -> why it may be broken there. One that is not needed any more fails."""

PLANTED: Mapping[str, tuple[str, ...]] = {
    "long_function": ("def long():\n    '''Doc.'''\n" + "    x = 1\n" * 41,),
    "complex_function": (
        "def maze(x):\n    '''Doc.'''\n" + "    if x: pass\n" * 10,
        "def maze(x):\n    '''Doc.'''\n    return " + " + ".join(["(1 if x else 2)"] * 5 + ["[i for i in x]"] * 5),
    ),
    "many_parameters": (
        "def wide(a, b, *, c, d, e, f):\n    '''Doc.'''",
        "def loose(a, b, c):\n    '''Doc.'''",
        "class A:\n    '''Doc.'''\n    def loose(self, a, b, c):\n        '''Doc.'''",
    ),
    "long_module": ("'''Doc.'''\n" + "x = 1\n" * 400,),
    "boolean_parameter": (
        "def fit(x, *, fast=False):\n    '''Doc.'''",
        "def fit(x, fast: bool):\n    '''Doc.'''",
        "def fit(x, fast: bool | None = None):\n    '''Doc.'''",
        "def _fit(x, *, fast: bool = True):\n    pass",
    ),
    "mutable_default": (
        "def grow(seen=[]):\n    '''Doc.'''",
        "def grow(*, seen=dict()):\n    '''Doc.'''",
        "def grow(seen=np.zeros(3)):\n    '''Doc.'''",
    ),
    "open_keywords": ("def plot(x, **kwargs):\n    '''Doc.'''",),
    "inheritance": ("class Dog(Animal):\n    '''Doc.'''", "class Dog(zoo.Animal[int]):\n    '''Doc.'''"),
    "thawed_struct": (
        "class A(msgspec.Struct):\n    '''Doc.'''",
        "class A(Struct, frozen=False):\n    '''Doc.'''",
    ),
    "undocumented": (
        "x = 1",
        "'''Doc.'''\ndef public():\n    return 1",
        "'''Doc.'''\nclass A:\n    '''Doc.'''\n    def method(self):\n        return 1",
    ),
    "forbidden_name": (
        "def get_labels():\n    '''Doc.'''",
        "def compute_phi():\n    '''Doc.'''",
        "def label_utils():\n    '''Doc.'''",
        "class LabelManager:\n    '''Doc.'''",
        "class BaseScore:\n    '''Doc.'''",
        "def read(data):\n    '''Doc.'''",
        "def clean(noisy_labels):\n    '''Doc.'''",
    ),
    "global_chance": (
        "import random",
        "from numpy.random import shuffle",
        "def draw():\n    '''Doc.'''\n    return np.random.uniform()",
        "draw = np.random.default_rng()",
        "draw = np.random.RandomState()",
    ),
    "global_statement": ("def count():\n    '''Doc.'''\n    global n\n    n += 1",),
    "printing": ("def tell():\n    '''Doc.'''\n    print('hello')", "sys.stdout.write('hello')"),
    "clock": ("now = time.time()", "now = datetime.datetime.now()"),
    "pickles": (
        "import pickle",
        "from joblib import dump",
        "x = np.load('x.npy')",
        "x = np.load('x.npy', allow_pickle=True)",
        "x = np.lib.format.read_array(f, allow_pickle=True)",
        "x = torch.load('x.pt')",
    ),
    "network": ("import urllib.request", "def fetch():\n    '''Doc.'''\n    import requests"),
    "heavy_import": (
        "import polars",
        "from sklearn.linear_model import LogisticRegression",
        "import typer",
        "try:\n    import torch\nexcept ImportError:\n    torch = None",
        "class A:\n    '''Doc.'''\n    from PIL import Image",
    ),
    "misplaced_import": (
        "def draw():\n    '''Doc.'''\n    import matplotlib.pyplot",
        "def fit():\n    '''Doc.'''\n    from sklearn.svm import SVC",
    ),
    "open_todo": ("x = 1  # TODO make it two", "# FIXME: later"),
}

SOUND = '''"""A module that keeps the rules."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np

from relook.errors import BadInput

if TYPE_CHECKING:
    import polars


class Wrong(BadInput):
    """An exception."""


class Rule(Protocol):
    """A protocol."""

    def __call__(self, votes: Sequence[float]) -> float: ...


class Setting(msgspec.Struct, frozen=True):
    """A record."""

    k: int = 2


def drawn(items: int, classes: int, *, seed: int, weight: float = 1.0, name: str | None = None) -> "polars.DataFrame":
    """Say hello."""
    import polars

    # TODO(#12) draw from the truth
    rng = np.random.default_rng(seed)
    np.load("x.npy", allow_pickle=False)
    return polars.DataFrame({"x": [rng.random() if weight else 0.0 for _ in range(items)]})


def _private(difficult: bool, **settings: int) -> None:
    def nested() -> None:
        return None
'''


def modules() -> list[Module]:
    files = sorted((SOURCE / "relook").rglob("*.py"))
    return [Module(_module_name(file), file.read_text("utf-8")) for file in files]


def _module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("rule", RULES)
def test_rule_holds_in_the_package(rule: str) -> None:
    found = [finding for module in modules() for finding in RULES[rule](module)]
    excused = {place for name, place in EXCEPTIONS if name == rule}
    broken = [f"{place}: {what}" for place, what in found if place not in excused]
    assert not broken, f"{RULES[rule].__doc__}\n" + "\n".join(broken)


def test_exceptions_have_reasons_and_are_needed() -> None:
    breaking = {(rule, place) for module in modules() for rule, check in RULES.items() for place, _ in check(module)}
    stale = [key for key in EXCEPTIONS if key not in breaking]
    assert not stale, f"exceptions that nothing needs any more: {stale}"
    bare = [key for key, reason in EXCEPTIONS.items() if len(reason.split()) < 3]
    assert not bare, f"exceptions without a reason: {bare}"


@pytest.mark.parametrize(("rule", "fault"), [(rule, fault) for rule, faults in PLANTED.items() for fault in faults])
def test_planted_fault_is_reported(rule: str, fault: str) -> None:
    assert list(RULES[rule](Module("relook.planted", fault)))


def test_every_rule_has_a_planted_fault() -> None:
    assert set(PLANTED) == set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_sound_module_breaks_no_rule(rule: str) -> None:
    assert list(RULES[rule](Module("relook.sound", SOUND))) == []


def test_place_names_the_function_of_a_fault() -> None:
    module = Module(
        "relook.planted", "class A:\n    '''Doc.'''\n    def f(self):\n        '''Doc.'''\n        print(1)"
    )
    assert list(RULES["printing"](module)) == [Finding("relook.planted:A.f", "print in the library")]


def test_module_names_are_checked_too() -> None:
    assert list(RULES["forbidden_name"](Module("relook.utils", "'''Doc.'''")))


@pytest.mark.parametrize("part", ["cli", "cli.rank"])
def test_the_command_line_may_talk_and_look_at_the_clock(part: str) -> None:
    module = Module(f"relook.{part}", "'''Doc.'''\nimport typer\nprint(time.time())")
    assert [rule for rule, check in RULES.items() if list(check(module))] == []


def tracked_files() -> list[Path]:
    """Return what git tracks, or every file where the sources came without git."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    hidden = (".venv", ".git", "__pycache__", "site", "dist", "build")
    return [file for file in ROOT.rglob("*") if file.is_file() and not set(hidden) & set(file.parts)]


def workplace_paths(text: str) -> list[str]:
    return [
        f"line {number}: {line.strip()[:80]}"
        for number, line in enumerate(text.splitlines(), 1)
        if WORKPLACES.search(line)
    ]


def test_no_file_names_a_machine() -> None:
    broken = [
        f"{file.relative_to(ROOT)} {line}"
        for file in tracked_files()
        for line in workplace_paths(file.read_text("utf-8", errors="replace"))
    ]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("path", ["/wo" + "rk/main/x.py", "/tm" + "p/w/venv", "/ho" + "me/ann/x", "/ro" + "ot/x"])
def test_planted_machine_path_is_reported(path: str) -> None:
    assert workplace_paths(f"first\nread {path} here") == [f"line 2: read {path} here"]
