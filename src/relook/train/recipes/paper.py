"""What the paper's text says of training (supplementary note 2), number by number; it predicts in sample."""

from __future__ import annotations

from dataclasses import replace

from relook.train.byol import Byol
from relook.train.coteaching import CoTeaching
from relook.train.elr import Elr
from relook.train.linear import Linear
from relook.train.nets import RESNET50, Shape
from relook.train.parts import Encoder, Network
from relook.train.recipe import Recipe
from relook.train.recipes.views import CODE_HEAD, FLIPPED, RADIOGRAPH, SIMCLR, TEXT, cxr
from relook.train.schedule import Schedule
from relook.train.vanilla import Vanilla

NOTE = "the paper, supplementary note 2"

LARGE = Shape(blocks=(3, 4, 6, 3), kind="bottleneck", stem="large")
"""ResNet-50 as it is for 224 pixels."""

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
"""160 epochs of SGD at .1, a tenth of it from epochs 80 and 120 on."""

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
"""150 epochs of Adam at 1e-5; the rarer class is drawn more often."""

TUNED = replace(SLOW, epochs=100, rate=1e-6)
"""100 epochs at 1e-6 from a network that has learnt already."""

BYOL = Encoder(
    Byol(shape=RESNET50, views=(SIMCLR, SIMCLR)),
    Schedule(epochs=2500, batch=512, rate=1e-3, optimizer="adam", decay=0.0, warmup=0),
)
"""BYOL on the 10,000 images, in the same ResNet-50; 2,500 epochs of Adam along a cosine."""

_CXR = cxr(elastic=0.5, noise=0.01)

BYOL_224 = Encoder(
    Byol(shape=LARGE, momentum=0.99, views=(_CXR, _CXR)),
    Schedule(epochs=1000, batch=4800, rate=1e-3, optimizer="adam", decay=0.0, warmup=0),
)
"""BYOL on radiographs, 4,800 at a time; rate and optimiser are those of the small images, for the text gives none."""


HEAD = replace(PACE, epochs=120, rate=0.01, decay=1e-3, drops=(90,), encoder=0.0)
"""120 epochs of a linear layer with decay 1e-3; its rate is that of the released code, for the text gives none."""

HEAD_224 = replace(SLOW, epochs=100, rate=1e-4, drops=(10,), encoder=0.0)
"""100 epochs of a linear layer at 1e-4, a tenth of it after ten epochs."""

EXPECTED = 0.0
"""The share that co-teaching drops is the expected noise rate: it is estimated."""


def _recipe(method: str, network: Network, *, source: str = NOTE) -> Recipe:
    return Recipe(f"{method}/paper", (network,), source, folds=0)


RECIPES = (
    _recipe("vanilla", Network(Vanilla(shape=RESNET50, smoothing=0.1, views=(TEXT,)), PACE)),
    _recipe("vanilla-224", Network(Vanilla(shape=LARGE, views=(RADIOGRAPH,)), SLOW)),
    _recipe(
        "coteaching",
        Network(
            CoTeaching(EXPECTED, warmup=10, gradual=1, shape=RESNET50, smoothing=0.1, views=(TEXT,)),
            PACE,
            noise="estimated",
        ),
    ),
    _recipe(
        "coteaching-224",
        Network(CoTeaching(EXPECTED, warmup=20, gradual=1, shape=LARGE, views=(RADIOGRAPH,)), SLOW, noise="estimated"),
    ),
    _recipe(
        "elr",
        Network(Elr(memory=0.7, strength=3.0, shape=RESNET50, views=(TEXT,)), PACE),
        source=f"{NOTE}, with the memory and strength of Liu et al. 2020, whom the text cites",
    ),
    _recipe(
        "dropout",
        Network(Vanilla(shape=RESNET50, smoothing=0.1, dropout=0.5, passes=10, views=(TEXT,)), PACE),
        source=f"{NOTE}; dropout and passes are those of the released code, for the text gives none",
    ),
    _recipe(
        "ssl-linear",
        Network(Linear(dropout=0.0, smoothing=0.1, penalty=0.0, squash=20.0, views=(CODE_HEAD,)), HEAD, BYOL),
        source=f"{NOTE}; rate, batch and images of the head are those of the released code, for the text gives none",
    ),
    _recipe(
        "ssl-linear-224",
        Network(Linear(dropout=0.0, smoothing=0.1, penalty=0.0, squash=10.0, views=(FLIPPED,)), HEAD_224, BYOL_224),
    ),
    _recipe("ssl-finetune-224", Network(Vanilla(shape=LARGE, views=(RADIOGRAPH,)), TUNED, BYOL_224)),
    _recipe(
        "ssl-coteaching-224",
        Network(
            CoTeaching(EXPECTED, warmup=10, gradual=1, shape=LARGE, views=(RADIOGRAPH,)),
            TUNED,
            BYOL_224,
            noise="estimated",
        ),
    ),
)
