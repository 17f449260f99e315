"""Recipes by their names, METHOD/WHOSE: what the paper's text says, what its released code does, and our own default.

A method that ends in -224 is for radiographs of 224 pixels, the others for small images in colour.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from relook.errors import BadInput
from relook.train.recipe import Recipe
from relook.train.recipes import code, ours, paper

WHOSE = ("paper", "code", "relook")
"""Where a recipe is from: the paper's text, its released code, or here."""

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {each.name: each for each in (*paper.RECIPES, *code.RECIPES, *ours.RECIPES)}
)
"""Every recipe by its name."""


def recipe(name: str) -> Recipe:
    """Return a recipe by its name; a method alone means our own default of it.

    >>> recipe("vanilla").name, recipe("vanilla/paper").folds
    ('vanilla/relook', 0)
    """
    known = name if name in RECIPES else f"{name}/relook"
    if known not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, 3, cutoff=0.0)
        raise BadInput(f"recipe: a name that is known was needed, but {name!r} came; near it are {', '.join(near)}")
    return RECIPES[known]
