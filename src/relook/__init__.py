"""relook: spend a relabelling budget where it matters.

Names are loaded when they are first used, so that `import relook` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "BadInput": "relook.errors",
    "BadLog": "relook.errors",
    "Campaign": "relook.campaign",
    "Crowd": "relook.annotators",
    "Curve": "relook.curves",
    "Dataset": "relook.types",
    "Labels": "relook.types",
    "NotAllowed": "relook.errors",
    "Policy": "relook.rules",
    "Posteriors": "relook.types",
    "Rows": "relook.types",
    "Run": "relook.simulation",
    "Setting": "relook.policies",
    "Simulation": "relook.simulation",
    "Terms": "relook.rules",
    "curve": "relook.curves",
    "named": "relook.policies",
    "score_items": "relook.scores",
    "simulate": "relook.simulation",
    "top": "relook.scores",
}

__all__ = [
    "BadInput",
    "BadLog",
    "Campaign",
    "Crowd",
    "Curve",
    "Dataset",
    "Labels",
    "NotAllowed",
    "Policy",
    "Posteriors",
    "Rows",
    "Run",
    "Setting",
    "Simulation",
    "Terms",
    "curve",
    "named",
    "score_items",
    "simulate",
    "top",
]

if TYPE_CHECKING:
    from relook.annotators import Crowd
    from relook.campaign import Campaign
    from relook.curves import Curve, curve
    from relook.errors import BadInput, BadLog, NotAllowed
    from relook.policies import Setting, named
    from relook.rules import Policy, Terms
    from relook.scores import score_items, top
    from relook.simulation import Run, Simulation, simulate
    from relook.types import Dataset, Labels, Posteriors, Rows


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'relook' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*_HOMES, "__version__"]
