"""What the paper's released code does, from its configurations; it predicts in sample, on images drawn anew.

Left out is what has no counterpart here: half precision of 16 bits instead of bfloat16, and images that are not brought
to mean 0 and deviation 1.
"""

from __future__ import annotations

from dataclasses import replace

from relook.train.byol import Byol
from relook.train.coteaching import CoTeaching
from relook.train.elr import Elr
from relook.train.linear import Linear
from relook.train.nets import Shape, released
from relook.train.parts import Encoder, Network
from relook.train.predict import Looks
from relook.train.recipe import Recipe
from relook.train.recipes.views import BOLTS, CODE, CODE_HEAD, RADIOGRAPH, cxr
from relook.train.schedule import Schedule
from relook.train.vanilla import Vanilla

CONFIGS = "the released code, configs/models"

RESNET110 = released(110)

LARGE = Shape(blocks=(3, 4, 6, 3), kind="bottleneck", stem="large")

PACE = Schedule(
    epochs=160,
    batch=256,
    rate=0.1,
    momentum=0.9,
    nesterov=True,
    decay=1e-4,
    warmup=0,
    shape="steps",
    drops=(80, 120),
    short="kept",
)

SLOW = Schedule(
    epochs=150,
    batch=32,
    rate=1e-5,
    optimizer="adam",
    decay=1e-4,
    warmup=0,
    shape="steps",
    short="kept",
    balance=1.0,
)

RENEWED = replace(PACE, epochs=20, rate=0.0025, drops=())
"""An update: 20 epochs at a constant rate, from the last networks."""

RENEWED_224 = replace(SLOW, epochs=20, rate=1e-6)
"""The same for radiographs, as a comment of the code says."""

BYOL = Encoder(
    Byol(
        shape=Shape(blocks=(3, 4, 6, 3), kind="bottleneck", stem="pooled"),
        hidden=2048,
        size=128,
        views=(BOLTS, BOLTS),
    ),
    Schedule(
        epochs=2500,
        batch=512,
        rate=1e-3,
        optimizer="adam",
        decay=1e-6,
        decayed="weights",
        lars=0.001,
        warmup=10,
        least=1e-4,
    ),
)
"""BYOL on all 10,000 images: Adam inside LARS, ten epochs of warm-up, never slower than 1e-4."""

_CXR = cxr(elastic=0.4, noise=0.05, gamma=(0.5, 1.5))

BYOL_224 = Encoder(
    Byol(shape=LARGE, hidden=2048, size=128, views=(_CXR, _CXR)),
    replace(BYOL.schedule, epochs=1500, batch=2400),
)


HEAD = replace(PACE, epochs=120, rate=0.01, decay=1e-3, drops=(90,), encoder=0.0)

TUNED_224 = replace(SLOW, epochs=100, rate=1e-6)

_SMALL = Network(Vanilla(), PACE, looks=Looks(drawn=1, view=CODE), renewed=RENEWED)
_LARGE = Network(Vanilla(), SLOW, looks=Looks(drawn=1, view=RADIOGRAPH), renewed=RENEWED_224)
"""One look at an image, which is drawn as in training: so the released code predicts."""


def _recipe(method: str, network: Network) -> Recipe:
    return Recipe(f"{method}/code", (network,), CONFIGS, folds=0)


RECIPES = (
    _recipe("vanilla", replace(_SMALL, method=Vanilla(shape=RESNET110, features="unit", views=(CODE,)))),
    _recipe("vanilla-224", replace(_LARGE, method=Vanilla(shape=LARGE, views=(RADIOGRAPH,)))),
    _recipe(
        "coteaching",
        replace(
            _SMALL,
            method=CoTeaching(0.28, warmup=25, gradual=1, shape=RESNET110, features="unit", views=(CODE,)),
        ),
    ),
    _recipe(
        "coteaching-224",
        replace(_LARGE, method=CoTeaching(0.15, warmup=20, gradual=1, shape=LARGE, views=(RADIOGRAPH,))),
    ),
    _recipe(
        "elr",
        replace(_SMALL, method=Elr(memory=0.9, strength=3.0, shape=RESNET110, features="unit", views=(CODE,))),
    ),
    _recipe(
        "dropout",
        replace(
            _SMALL,
            method=Vanilla(shape=RESNET110, features="unit", dropout=0.5, passes=10, views=(CODE,)),
        ),
    ),
    _recipe(
        "ssl-linear",
        Network(
            Linear(dropout=0.2, smoothing=0.1, penalty=0.3, bound=10.0, views=(CODE_HEAD,)),
            HEAD,
            BYOL,
            looks=Looks(drawn=10, view=CODE_HEAD),
            renewed=replace(HEAD, epochs=20, rate=0.0025, drops=()),
        ),
    ),
    _recipe(
        "ssl-coteaching-224",
        replace(
            _LARGE,
            method=CoTeaching(0.15, warmup=10, gradual=1, shape=LARGE, views=(RADIOGRAPH,)),
            schedule=TUNED_224,
            start=BYOL_224,
            looks=Looks(drawn=10, view=RADIOGRAPH),
            renewed=replace(RENEWED_224, rate=1e-5),
        ),
    ),
)
