"""Our own defaults: networks that predict items whose labels they never saw, and encoders with heads in closed form."""

from __future__ import annotations

from dataclasses import replace

from relook.train.augment import PLAIN, View
from relook.train.coteaching import CoTeaching
from relook.train.elr import Elr
from relook.train.linear import Linear
from relook.train.nets import RESNET18, Shape
from relook.train.parts import QUICK, Encoder, Heads, Knn, Lda, Network
from relook.train.predict import MIRRORED
from relook.train.recipe import Recipe
from relook.train.recipes.views import RADIOGRAPH, cxr
from relook.train.schedule import Schedule
from relook.train.simclr import SimClr
from relook.train.vanilla import Vanilla

OURS = "our default"

LARGE = Shape(blocks=(3, 4, 6, 3), kind="bottleneck", stem="large")

DRAWN_224 = cxr(elastic=0.5, noise=0.01)
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


SIMCLR_224 = Encoder(
    SimClr(shape=Shape(stem="large"), temperature=0.2, views=(DRAWN_224, DRAWN_224)),
    Schedule(epochs=200, batch=256, rate=0.15, momentum=0.9, decay=5e-4, warmup=5),
)
"""The same on radiographs of 224 pixels."""

SIMCLR_32 = Encoder(
    SimClr(temperature=0.2, views=(View(side=24), View(solarised=0.2, side=24))),
    Schedule(epochs=300, batch=512, rate=0.3, momentum=0.9, decay=5e-4, warmup=5),
)
"""For images of 32 pixels: views of 24 cost less and made a better encoder."""

SIMCLR_60K = replace(SIMCLR_32, schedule=replace(SIMCLR_32.schedule, epochs=100))
"""Six times as many images a third as often."""

HEAD = replace(PACE, epochs=60, rate=0.01, decay=1e-3, encoder=0.0)
HEAD_224 = replace(HEAD, batch=32, balance=1.0)
"""A linear layer alone learns; the encoder stays as it is."""

TUNED = replace(PACE, rate=0.02, encoder=0.3)
TUNED_224 = replace(PACE_224, encoder=0.3)
"""The encoder learns too, at a third of the rate."""

TUNED_32 = replace(PACE, epochs=20, batch=256, warmup=2, encoder=0.2)
"""Twenty epochs suffice; after forty the wrong labels were known by heart."""

TINY = Shape(blocks=(1, 1), channels=8)
TINY_PACE = replace(QUICK, epochs=4)
TINY_SIMCLR = Encoder(SimClr(shape=TINY, hidden=32, size=16), Schedule(epochs=3, batch=128, rate=0.1, warmup=1))
"""To see that things work: seconds of a laptop."""

HEADS = (Lda(shrinkage=0.1), Knn(neighbours=30, temperature=0.1))
"""Two heads in closed form, whose mistakes differ: they are averaged."""

SHRUNK = Lda(shrinkage=0.3)

ESTIMATED = 0.0
"""The share that co-teaching drops is the noise rate, which is estimated."""


def _small(method: str, network: Network) -> Recipe:
    return Recipe(f"{method}/relook", (replace(network, looks=MIRRORED, renewed=RENEWED),), OURS)


def _large(method: str, network: Network) -> Recipe:
    return Recipe(f"{method}-224/relook", (replace(network, looks=MIRRORED, renewed=RENEWED_224),), OURS)


def _cifar(name: str, encoder: Encoder, *, unlabelled: str) -> Recipe:
    """Return discriminants on an encoder, and the encoder tuned by ELR: half of what is said each."""
    tuned = Network(_ELR_32, TUNED_32, encoder, looks=MIRRORED, renewed=RENEWED)
    return Recipe(name, (Heads((encoder,), (SHRUNK,)), tuned), OURS, joined="mean", unlabelled=unlabelled)


_ELR = Elr(memory=0.7, strength=3.0, views=(CROPPED,))
_ELR_32 = Elr(
    memory=0.7, strength=3.0, views=(View(crop=(0.6, 1.0), brightness=0.3, contrast=0.3, hue=0.03, grey=0.0),)
)
_ELR_224 = Elr(memory=0.7, strength=3.0, shape=LARGE, views=(RADIOGRAPH,))
_TWO = CoTeaching(ESTIMATED, warmup=10, gradual=10, views=(CROPPED,))
_TWO_224 = CoTeaching(ESTIMATED, warmup=10, gradual=10, shape=LARGE, views=(RADIOGRAPH,))

RECIPES = (
    _small("vanilla", Network(Vanilla(shape=RESNET18, views=(CROPPED,)), PACE)),
    _large("vanilla", Network(Vanilla(shape=LARGE, views=(RADIOGRAPH,)), PACE_224)),
    _small("coteaching", Network(_TWO, PACE, noise="estimated")),
    _large("coteaching", Network(_TWO_224, PACE_224, noise="estimated")),
    _small("elr", Network(_ELR, PACE)),
    _large("elr", Network(_ELR_224, PACE_224)),
    _small("dropout", Network(Vanilla(shape=RESNET18, dropout=0.5, passes=10, views=(CROPPED,)), PACE)),
    _large("dropout", Network(Vanilla(shape=LARGE, dropout=0.5, passes=10, views=(RADIOGRAPH,)), PACE_224)),
    _small("ssl-linear", Network(Linear(views=(CROPPED,)), HEAD, SIMCLR)),
    _large("ssl-linear", Network(Linear(views=(RADIOGRAPH,)), HEAD_224, SIMCLR_224)),
    _small("ssl-finetune", Network(_ELR, TUNED, SIMCLR)),
    _large("ssl-finetune", Network(_ELR_224, TUNED_224, SIMCLR_224)),
    _small("ssl-coteaching", Network(_TWO, TUNED, SIMCLR, noise="estimated")),
    _large("ssl-coteaching", Network(_TWO_224, TUNED_224, SIMCLR_224, noise="estimated")),
    Recipe("ssl/relook", (Heads((SIMCLR,), HEADS),), OURS, joined="mean"),
    Recipe("ssl-224/relook", (Heads((SIMCLR_224,), HEADS),), OURS, joined="mean"),
    Recipe("tiny", (Network(Vanilla(shape=TINY, views=(PLAIN,)), TINY_PACE, renewed=TINY_PACE),), OURS, folds=2),
    Recipe("tiny-ssl", (Heads((TINY_SIMCLR,), HEADS),), OURS, folds=2, joined="mean"),
    _cifar("ssl10k", SIMCLR_32, unlabelled="cifar10:test"),
    _cifar("ssl60k", SIMCLR_60K, unlabelled="cifar10"),
    Recipe(
        "all",
        (
            Heads((replace(SIMCLR, copies=2),), HEADS),
            Network(_ELR, TUNED, replace(SIMCLR, copies=2), copies=2, looks=MIRRORED, renewed=RENEWED),
        ),
        OURS,
        joined="mean",
        unlabelled="cifar10",
    ),
)
