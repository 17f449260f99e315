"""A configuration says what it means, or is refused with the key and the nearest known one."""

from typing import Any

import msgspec
import pytest

from relook.config import Cell, Grid, grid
from relook.errors import BadInput


def read(**table: Any) -> Grid:
    return grid(table, where="grid.toml")


def test_lists_come_as_lists_as_one_value_or_as_text_with_commas() -> None:
    for answers in ([100, "oracle"], "100,oracle", "100, oracle"):
        assert read(answers=answers).answers == (100, "oracle")
    assert read(answers=100).answers == (100,)
    assert read(tau="2,10").tau == (2.0, 10.0)
    assert read(tau=2).tau == (2.0,)
    assert read(policy="default,mine.py:score").policy == ("default", "mine.py:score")
    assert read(batch="1,50").batch == (1, 50)


def test_seeds_are_counted_from_the_first_or_listed() -> None:
    assert read().seeds == (0, 1, 2, 3, 4)
    assert read(seed=7).seeds == (7, 8, 9, 10, 11)
    assert read(seed=7, seeds=2).seeds == (7, 8)
    assert read(seeds=[3]).seeds == (3,)
    assert read(seeds=[3, 11]).seeds == (3, 11)


def test_cells_are_every_combination_of_the_axes() -> None:
    found = read(tau=[2, 10], answers=[100, "oracle"], settle="paper,people:2", batch=[1, 50])
    cells = found.cells()
    assert len(cells) == len({cell.name(found.varying()) for cell in cells}) == 16
    assert cells[0] == Cell(2.0, 100, "paper", 1)
    assert cells[-1] == Cell(10.0, "oracle", "people:2", 50)
    assert found.varying() == ("tau", "answers", "settle", "batch")
    assert read(dataset="digits").cells() == [Cell(None, "paper-code", "paper", 1)]
    assert read(dataset="digits").varying() == ()


def test_a_grid_reads_back_from_what_is_written_beside_the_rows() -> None:
    first = read(dataset="cifar10h", tau=[2, 10], answers="30,oracle", seeds=[1, 5], annotators=3, subset="all")
    table = msgspec.json.decode(msgspec.json.encode(first))
    assert read(**table) == first


@pytest.mark.parametrize(
    ("key", "near"),
    [("policies", "policy"), ("budget", "answers"), ("seads", "seeds"), ("probability", "probabilities")],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(key: str, near: str) -> None:
    with pytest.raises(BadInput, match=rf"grid.toml: its keys .* but '{key}' came; is {near} meant\?"):
        read(**{key: 1})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"answers": "many"}, "answers: a number of answers, paper-code or oracle was needed, but 'many' came"),
        ({"answers": 2.5}, r"answers: .* but 2.5 came"),
        ({"answers": True}, r"answers: .* but True came"),
        ({"answers": -1}, "answers: whole numbers of 1 or more were needed, but -1 came"),
        ({"subset": "half"}, "subset: paper or all was needed, but 'half' came"),
        ({"protocol": "inexact"}, "protocol: exact or paper-code was needed, but 'inexact' came"),
        ({"seeds": 0}, "seeds: at least 1 run a policy was needed, but 0 came"),
        ({"seeds": [-1, 2]}, "seeds: whole numbers of 0 or more were needed, but -1 came"),
        ({"seeds": "three"}, "grid.toml: seeds needs"),
        ({"seed": "one"}, "grid.toml: seeds needs int, got str"),
        ({"batch": 0}, "batch: whole numbers of 1 or more were needed, but 0 came"),
        ({"batch": "often"}, "grid.toml: batch needs int, got str"),
        ({"tau": 0}, "tau: a temperature above 0 was needed, but 0 came"),
        ({"tau": float("nan")}, "tau: a temperature above 0 was needed, but nan came"),
        ({"policy": "paper,paper"}, "policy: its values must differ, but paper comes twice"),
        ({"policy": "paper,,ce"}, "policy: a value was needed between the commas"),
        ({"policy": []}, "policy: at least one value was needed"),
        ({"annotators": 1}, "annotators: a panel of at least 2 people was needed, but 1 came"),
        ({"annotators": 3, "protocol": "paper-code"}, "annotators: .* but a panel of 3 came"),
        ({"dataset": 3}, "grid.toml: dataset needs str.*; look the key up in relook simulate --help"),
    ],
)
def test_a_bad_value_is_refused_with_its_key(table: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read(**table)
