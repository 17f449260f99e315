"""Named policies, and rules of one's own from a file or package."""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from relook.activelab import ActiveLab
from relook.errors import BadInput
from relook.rules import Policy
from relook.scores import (
    RandomOrder,
    Score,
    TrueValue,
    ValuePerAnswer,
    ambiguity,
    bald,
    is_rowwise,
    margin,
    noisiness,
    phi,
    phi_clipped,
    phi_ensemble,
    rows_of,
    self_confidence,
)
from relook.stopping import Agree, Majority, Margin, Stop
from relook.types import FloatArray, Labels, Posteriors, Rows, one_hot

REFIT = 50
"""A rule that is fitted to the whole set is fitted anew after no fewer answers: fewer hardly move its constants."""


class Setting(msgspec.Struct, frozen=True, eq=False):
    """What a policy may depend on besides its name; only the bounds look at the truth."""

    truth: FloatArray | None = None
    seed: int = 0
    stop: Stop = Majority()
    given_weight: float = 1.0
    batch: int = 1


def _by(score: Score, name: str, *, setting: Setting) -> Policy:
    """A policy that asks about each item once."""
    return Policy(name, score, setting.stop, given_weight=setting.given_weight, batch=setting.batch)


def _one_pass(score: Score) -> Callable[[str, Setting], Policy]:
    return lambda name, setting: _by(score, name, setting=setting)


def _again(policy: Policy) -> Policy:
    return msgspec.structs.replace(policy, returns=True)


def _ensemble(score: Score) -> Callable[[str, Setting], Policy]:
    def made(name: str, setting: Setting) -> Policy:
        @wraps(score)
        def of_several(rows: Rows) -> FloatArray:
            if len(rows.probabilities) < 2:
                raise BadInput(
                    f"policy {name}: probabilities of several models, M x N x C, were needed, but those of one came; "
                    "pass more models, or take paper or ce"
                )
            return score(rows)

        return _by(of_several, name, setting=setting)

    return made


def _default(name: str, setting: Setting) -> Policy:
    agree = float(setting.stop.k) if isinstance(setting.stop, Agree) else 0.0
    lead = float(setting.stop.k) if isinstance(setting.stop, Margin) else 1.0
    return _again(_by(ValuePerAnswer(agree=agree, lead=lead), name, setting=setting))


def _random(name: str, setting: Setting) -> Policy:
    return _by(RandomOrder(setting.seed), name, setting=setting)


def _oracle_once(name: str, setting: Setting) -> Policy:
    return _by(TrueValue(_truth(name, setting)), name, setting=setting)


def _oracle(name: str, setting: Setting) -> Policy:
    return _again(_oracle_once(name, setting))


def _minimal(name: str, setting: Setting) -> Policy:
    truth = _truth(name, setting)
    return _by(TrueValue(one_hot(truth.argmax(1), truth.shape[1]).astype(np.float64)), name, setting=setting)


def _activelab(name: str, setting: Setting) -> Policy:
    rarely = msgspec.structs.replace(setting, batch=max(setting.batch, REFIT))
    return _again(_by(ActiveLab(), name, setting=rarely))


POLICIES: dict[str, tuple[Callable[[str, Setting], Policy], str]] = {
    "default": (_default, "value per answer; asks again while doubt remains"),
    "paper": (_one_pass(phi), "noisiness minus ambiguity, the paper's equation; one pass"),
    "paper-code": (
        _one_pass(phi_clipped),
        "the paper's released code: ambiguity counts only above 0.3 log C; one pass",
    ),
    "ce": (_one_pass(noisiness), "noisiness alone; one pass"),
    "entropy": (_one_pass(ambiguity), "ambiguity alone; one pass"),
    "margin": (_one_pass(margin), "likeliest other class against the label; one pass"),
    "self-confidence": (_one_pass(self_confidence), "one minus the label's probability; one pass"),
    "bald": (_ensemble(bald), "what several models disagree about; one pass"),
    "phi-ensemble": (
        _ensemble(phi_ensemble),
        "the paper's equation, entropy marginalised over several models; one pass",
    ),
    "ce-ensemble": (_ensemble(noisiness), "noisiness by the average of several models; one pass"),
    "activelab": (_activelab, "the ordering of ActiveLab, a rival; asks again"),
    "random": (_random, "a random order; one pass"),
    "oracle": (_oracle, "knows the true distributions; asks again (a bound)"),
    "oracle-once": (_oracle_once, "knows the true distributions; one pass (a bound)"),
    "minimal": (_minimal, "knows what is wrong, and its annotator never errs (a bound)"),
}
"""Every named policy: how it is made, and what it does in a line."""

ENSEMBLES = ("bald", "phi-ensemble", "ce-ensemble")
"""Policies that mean nothing with a single model."""

BOUNDS = ("oracle", "oracle-once", "minimal")
"""Policies that look at the truth: bounds to compare with, not rules to use."""


def named(text: str, setting: Setting = Setting()) -> Policy:
    """Return the policy a user means by a name, or by `file.py:function` or `package.module:name` for a rule of their
    own.

    >>> named("paper").returns, named("default").returns
    (False, True)
    """
    if text in POLICIES:
        return POLICIES[text][0](text, setting)
    if ":" in text:
        return _own(text, setting)
    raise BadInput(
        f"policy: one of {', '.join(POLICIES)}, or mine.py:function, was needed, but {text!r} came; check the spelling"
    )


def _own(text: str, setting: Setting) -> Policy:
    rule = loaded(text)
    if isinstance(rule, type) or not (callable(rule) or isinstance(rule, Policy)):
        is_a = "a class; name one made of it" if isinstance(rule, type) else f"a {type(rule).__name__}; name another"
        raise BadInput(f"policy: {text} must be a score or a Policy, but it is {is_a}")
    if _makes_policy(rule):
        rule = rule(setting)
    return msgspec.structs.replace(rule, name=text) if isinstance(rule, Policy) else _one_pass(rule)(text, setting)


def _makes_policy(rule: Any) -> bool:
    """Whether a function says that it returns a Policy: then it is called with the setting."""
    hint = getattr(rule, "__annotations__", {}).get("return")
    return hint is Policy or (isinstance(hint, str) and hint.rpartition(".")[2] == "Policy")


def loaded(text: str, *, what: str = "policy") -> Any:
    """Return what a user means by `file.py:name` or `package.module:name`."""
    place, _, name = text.rpartition(":")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except Exception as error:
        raise BadInput(
            f"{what}: {place} could not be loaded ({type(error).__name__}: {error}); "
            "mend it, or give file.py:function or package.module:name"
        ) from error
    if not hasattr(module, name):
        raise BadInput(
            f"{what}: {place} has nothing called {name}; it has {', '.join(n for n in vars(module) if n[0] != '_')}"
        )
    return getattr(module, name)


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    name = _free_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Records in the file look up their own module by its name while they are made.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _free_name(path: Path) -> str:
    """Return the file's own name, unless another module bears it already: mine.py must not replace a library."""
    bearer = sys.modules.get(path.stem)
    if bearer is None or getattr(bearer, "__file__", None) == str(path.absolute()):
        return path.stem
    return f"{path.stem}_{hashlib.blake2b(str(path.absolute()).encode(), digest_size=4).hexdigest()}"


def check_rule(policy: Policy, labels: Labels, *, posteriors: Posteriors | None, rows: int = 64) -> None:
    """Check on some rows that a score looks at one row at a time, unless it says `rowwise = False`.

    >>> check_rule(named("margin"), Labels([0, 1], 2), posteriors=Posteriors([[.9, .1], [.8, .2]]))
    """
    if not is_rowwise(policy.score):
        return
    count = min(rows, len(labels))
    fit = getattr(policy.score, "fit", None)
    score = policy.score if fit is None else fit(labels, posteriors)
    together = np.asarray(score(rows_of(labels, posteriors, block=slice(0, count), given_weight=policy.given_weight)))
    for row in range(count):
        alone = score(rows_of(labels, posteriors, block=slice(row, row + 1), given_weight=policy.given_weight))
        if not np.array_equal(alone[0], together[row], equal_nan=True):
            raise BadInput(
                f"policy {policy.name}: item {row} scores {float(alone[0]):.6g} alone but {float(together[row]):.6g} "
                "among others; set `rowwise = False` on the rule if it must look at several rows"
            )


def _truth(name: str, setting: Setting) -> FloatArray:
    if setting.truth is None:
        raise BadInput(f"policy {name}: it is a bound and needs the truth, but none came; pass --truth or leave it out")
    return setting.truth
