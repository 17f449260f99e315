"""The recipes' numbers against a table written out here from the paper's text and its released configurations."""

import pytest

from relook.errors import BadInput
from relook.train.byol import Byol
from relook.train.coteaching import CoTeaching
from relook.train.elr import Elr
from relook.train.linear import Linear
from relook.train.parts import Encoder, Heads, Network
from relook.train.recipe import Recipe, described
from relook.train.recipes import RECIPES, WHOSE, recipe
from relook.train.simclr import SimClr
from relook.train.vanilla import Vanilla
from tests import recipe_table

# method, network's blocks and kind, epochs, batch, rate, optimiser, decay, drops
SUPERVISED = {
    "vanilla/paper": ((3, 4, 6, 3), "bottleneck", 160, 256, 0.1, "sgd", 1e-4, (80, 120)),
    "vanilla/code": ((18, 18, 18), "basic", 160, 256, 0.1, "sgd", 1e-4, (80, 120)),
    "vanilla-224/paper": ((3, 4, 6, 3), "bottleneck", 150, 32, 1e-5, "adam", 1e-4, ()),
    "vanilla-224/code": ((3, 4, 6, 3), "bottleneck", 150, 32, 1e-5, "adam", 1e-4, ()),
    "coteaching/paper": ((3, 4, 6, 3), "bottleneck", 160, 256, 0.1, "sgd", 1e-4, (80, 120)),
    "coteaching/code": ((18, 18, 18), "basic", 160, 256, 0.1, "sgd", 1e-4, (80, 120)),
    "coteaching-224/paper": ((3, 4, 6, 3), "bottleneck", 150, 32, 1e-5, "adam", 1e-4, ()),
    "coteaching-224/code": ((3, 4, 6, 3), "bottleneck", 150, 32, 1e-5, "adam", 1e-4, ()),
    "elr/paper": ((3, 4, 6, 3), "bottleneck", 160, 256, 0.1, "sgd", 1e-4, (80, 120)),
    "elr/code": ((18, 18, 18), "basic", 160, 256, 0.1, "sgd", 1e-4, (80, 120)),
    "dropout/paper": ((3, 4, 6, 3), "bottleneck", 160, 256, 0.1, "sgd", 1e-4, (80, 120)),
    "dropout/code": ((18, 18, 18), "basic", 160, 256, 0.1, "sgd", 1e-4, (80, 120)),
    "ssl-finetune-224/paper": ((3, 4, 6, 3), "bottleneck", 100, 32, 1e-6, "adam", 1e-4, ()),
    "ssl-coteaching-224/paper": ((3, 4, 6, 3), "bottleneck", 100, 32, 1e-6, "adam", 1e-4, ()),
    "ssl-coteaching-224/code": ((3, 4, 6, 3), "bottleneck", 100, 32, 1e-6, "adam", 1e-4, ()),
}


def network(name: str) -> Network:
    (part,) = recipe(name).parts
    assert isinstance(part, Network)
    return part


@pytest.mark.parametrize("name", SUPERVISED)
def test_networks_and_schedules_are_those_of_the_sources(name: str) -> None:
    part = network(name)
    shape, pace = part.method.shape, part.schedule
    found = (shape.blocks, shape.kind, pace.epochs, pace.batch, pace.rate, pace.optimizer, pace.decay, pace.drops)
    assert found == SUPERVISED[name]
    assert pace.warmup == 0
    assert pace.shape == "steps"
    assert pace.short == "kept"
    if pace.optimizer == "sgd":
        assert (pace.momentum, pace.nesterov, pace.balance) == (0.9, True, 0.0)
    else:
        assert pace.balance == 1.0


def test_smoothing_is_the_texts_alone_and_features_of_unit_length_the_codes() -> None:
    for method in ("vanilla", "dropout"):
        paper, code = network(f"{method}/paper").method, network(f"{method}/code").method
        assert (paper.smoothing, paper.features, code.smoothing, code.features) == (0.1, "plain", 0.0, "unit")
    assert isinstance(network("elr/code").method, Elr)
    assert (network("elr/code").method.memory, network("elr/code").method.strength) == (0.9, 3.0)
    assert (network("elr/paper").method.memory, network("elr/paper").method.strength) == (0.7, 3.0)
    for whose in ("paper", "code", "relook"):
        dropout = network(f"dropout/{whose}").method
        assert isinstance(dropout, Vanilla)
        assert (dropout.dropout, dropout.passes) == (0.5, 10)


@pytest.mark.parametrize(
    ("name", "noise", "warmup"),
    [
        ("coteaching/paper", "estimated", 10),
        ("coteaching/code", 0.28, 25),
        ("coteaching-224/paper", "estimated", 20),
        ("coteaching-224/code", 0.15, 20),
        ("ssl-coteaching-224/paper", "estimated", 10),
        ("ssl-coteaching-224/code", 0.15, 10),
    ],
)
def test_co_teaching_drops_what_its_source_says(name: str, noise: float | str, warmup: int) -> None:
    part = network(name)
    assert isinstance(part.method, CoTeaching)
    assert part.noise == ("estimated" if noise == "estimated" else "fixed")
    assert part.method.warmup == warmup
    assert part.method.gradual == 1, "the full rate at once"
    assert noise in ("estimated", part.method.noise)


def test_byol_of_text_and_code() -> None:
    paper, code = network("ssl-linear/paper").start, network("ssl-linear/code").start
    assert paper is not None
    assert code is not None
    for encoder in (paper, code):
        assert isinstance(encoder.method, Byol)
        pace = encoder.schedule
        assert (pace.epochs, pace.batch, pace.rate, pace.optimizer) == (2500, 512, 1e-3, "adam")
        assert encoder.method.momentum == 0.99
    assert (code.method.hidden, code.method.size, code.method.shape.stem) == (2048, 128, "pooled")
    pace = code.schedule
    assert (pace.decay, pace.decayed, pace.warmup, pace.least) == (1e-6, "weights", 10, 1e-4)
    assert pace.lars > 0
    large = {whose: network(f"ssl-coteaching-224/{whose}").start for whose in ("paper", "code")}
    assert {whose: (each.schedule.epochs, each.schedule.batch) for whose, each in large.items() if each} == {
        "paper": (1000, 4800),
        "code": (1500, 2400),
    }
    views = {whose: each.method.views[0] for whose, each in large.items() if each}
    assert {whose: (view.elastic, view.noise, view.gamma) for whose, view in views.items()} == {
        "paper": (0.5, 0.01, (1.0, 1.0)),
        "code": (0.4, 0.05, (0.5, 1.5)),
    }
    assert {(view.crop, view.rotation, view.shear, view.hole) for view in views.values()} == {
        ((0.4, 1.0), 180.0, 40.0, (0.15, 0.4))
    }


def test_linear_heads_of_text_and_code() -> None:
    paper, code, large = (
        network(f"{name}") for name in ("ssl-linear/paper", "ssl-linear/code", "ssl-linear-224/paper")
    )
    for part in (paper, code, large):
        assert isinstance(part.method, Linear)
        assert part.method.smoothing == 0.1
        assert part.schedule.encoder == 0.0
    assert (paper.method.squash, paper.method.penalty, paper.method.dropout) == (20.0, 0.0, 0.0)
    assert (code.method.squash, code.method.penalty, code.method.bound, code.method.dropout) == (0.0, 0.3, 10.0, 0.2)
    assert (large.method.squash, large.schedule.epochs, large.schedule.rate, large.schedule.drops) == (
        10.0,
        100,
        1e-4,
        (10,),
    )
    pace = code.schedule
    assert (pace.epochs, pace.rate, pace.drops, pace.decay, pace.batch) == (120, 0.01, (90,), 1e-3, 256)
    assert (paper.schedule.epochs, paper.schedule.decay) == (120, 1e-3)


def test_images_are_drawn_as_the_sources_say() -> None:
    code = network("vanilla/code").method.views[0]
    assert (code.rotation, code.shift, code.shear, code.crop, code.flip) == (15.0, 0.05, 5.0, (0.9, 1.0), 0.5)
    assert (code.brightness, code.contrast, code.saturation, code.hue, code.colour) == (0.5, 0.5, 0.5, 0.0, 1.0)
    assert network("vanilla/paper").method.views[0].crop == (1.0, 1.0)
    head = network("ssl-linear/code").method.views[0]
    assert (head.rotation, head.crop) == (0.0, (0.9, 1.0))
    chest = network("vanilla-224/paper").method.views[0]
    assert (chest.rotation, chest.shear, chest.crop, chest.brightness, chest.saturation) == (30, 15, (0.8, 1.0), 0.2, 0)


def test_the_code_looks_at_drawn_images_and_is_renewed_slowly() -> None:
    assert {name: network(name).looks.drawn for name in ("vanilla/code", "coteaching/code", "ssl-linear/code")} == {
        "vanilla/code": 1,
        "coteaching/code": 1,
        "ssl-linear/code": 10,
    }
    renewed = network("coteaching/code").renewed
    assert renewed is not None
    assert (renewed.epochs, renewed.rate, renewed.drops) == (20, 0.0025, ())
    large = network("ssl-coteaching-224/code").renewed
    assert large is not None
    assert (large.epochs, large.rate) == (20, 1e-5)


def test_the_paper_predicts_in_sample_and_we_do_not() -> None:
    for name, each in RECIPES.items():
        assert (each.folds == 0) == name.endswith(("/paper", "/code"))
        assert each.source
        assert each.name == name


def test_our_encoder_is_simclr_as_measured() -> None:
    (part,) = recipe("ssl").parts
    assert isinstance(part, Heads)
    (encoder,) = part.encoders
    assert isinstance(encoder, Encoder)
    assert isinstance(encoder.method, SimClr)
    pace = encoder.schedule
    assert (pace.rate, pace.decay, pace.batch, pace.warmup, encoder.method.temperature) == (0.3, 5e-4, 512, 5, 0.2)
    assert 200 <= pace.epochs <= 400
    assert {name: recipe(name).unlabelled for name in ("ssl10k", "ssl60k", "all")} == {
        "ssl10k": "cifar10:test",
        "ssl60k": "cifar10",
        "all": "cifar10",
    }


def test_every_method_has_its_recipes() -> None:
    methods = ("vanilla", "coteaching", "elr", "dropout", "ssl-linear")
    assert {f"{method}/{whose}" for method in methods for whose in WHOSE} <= set(RECIPES)
    assert {"ssl-finetune/relook", "ssl-coteaching/relook", "ssl-coteaching-224/code"} <= set(RECIPES)


def test_a_recipe_is_found_by_its_method_and_unknown_ones_get_near_names() -> None:
    assert recipe("coteaching") == recipe("coteaching/relook")
    with pytest.raises(BadInput, match="near it are coteaching/paper, coteaching-224/paper"):
        recipe("coteaching/papper")


def test_a_recipe_is_told_as_json_with_the_kinds_of_its_parts() -> None:
    told = described(recipe("coteaching/paper"))
    assert (told["kind"], told["name"], told["folds"]) == ("Recipe", "coteaching/paper", 0)
    assert told["parts"][0]["kind"] == "Network"
    assert told["parts"][0]["method"]["kind"] == "CoTeaching"
    assert told["parts"][0]["method"]["shape"]["blocks"] == [3, 4, 6, 3]
    assert isinstance(recipe("all"), Recipe)


def test_the_table_of_recipes_is_current() -> None:
    assert recipe_table.PAGE.read_text("utf-8") == recipe_table.page(), "docs/recipe-table.md is stale: run `make docs`"
