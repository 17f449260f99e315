"""Our own defaults: networks that predict items whose labels they never saw, and encoders with heads in closed form."""

from __future__ import annotations

from dataclasses import replace

from relook.train.augment import View
from relook.train.nets import RESNET18, Shape
from relook.train.parts import Encoder, Heads, Knn, Lda, Network
from relook.train.predict import MIRRORED
from relook.train.recipe import Recipe
from relook.train.recipes.views import RADIOGRAPH
from relook.train.schedule import Schedule
from relook.train.simclr import SimClr
from relook.train.vanilla import Vanilla

OURS = "our default"

LARGE = Shape(blocks=(3, 4, 6, 3), kind="bottleneck", stem="large")

CROPPED = View(crop=(0.6, 1.0), grey=0.0)

PACE = Schedule(epochs=60, batch=128, rate=0.1, momentum=0.9, nesterov=True, decay=5e-4, warmup=3, short="kept")
"""Sixty epochs along a cosine: five folds of it cost two trainings of the paper's."""

PACE_224 = Schedule(epochs=60, batch=32, rate=1e-4, optimizer="adam", decay=1e-4, warmup=3, short="kept", balance=1.0)

RENEWED = replace(PACE, epochs=20, rate=0.01, warmup=0)
RENEWED_224 = replace(PACE_224, epochs=20, rate=1e-5, warmup=0)
"""An update from the last networks: a third of the way, at a tenth of the rate."""

SIMCLR = Encoder(
    SimClr(temperature=0.2),
    Schedule(epochs=230, batch=512, rate=0.3, momentum=0.9, decay=5e-4, warmup=5),
)
"""SimCLR on all images that are there: one minute of a large graphics card for 10,000 small ones."""


def _small(method: str, network: Network) -> Recipe:
    return Recipe(f"{method}/relook", (replace(network, looks=MIRRORED, renewed=RENEWED),), OURS)


def _large(method: str, network: Network) -> Recipe:
    return Recipe(f"{method}-224/relook", (replace(network, looks=MIRRORED, renewed=RENEWED_224),), OURS)


RECIPES = (
    _small("vanilla", Network(Vanilla(shape=RESNET18, views=(CROPPED,)), PACE)),
    _large("vanilla", Network(Vanilla(shape=LARGE, views=(RADIOGRAPH,)), PACE_224)),
    _small("dropout", Network(Vanilla(shape=RESNET18, dropout=0.5, passes=10, views=(CROPPED,)), PACE)),
    Recipe("ssl/relook", (Heads((SIMCLR,), (Lda(shrinkage=0.1), Knn())),), OURS, joined="mean"),
    Recipe(
        "ssl10k",
        (Heads((replace(SIMCLR, copies=2),), (Lda(shrinkage=0.1), Knn())),),
        f"{OURS} for the 10,000 test images of CIFAR-10",
        joined="mean",
        unlabelled="cifar10:test",
    ),
    Recipe(
        "ssl60k",
        (Heads((replace(SIMCLR, copies=2),), (Lda(shrinkage=0.1), Knn())),),
        f"{OURS} for the 60,000 images of CIFAR-10",
        joined="mean",
        unlabelled="cifar10",
    ),
)
