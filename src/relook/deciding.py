"""What people decide about a campaign: each decision is one event that says by whom, and may say why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

import numpy as np

from relook.decided import hash_of, is_drawable, verdict_of
from relook.errors import BadInput, NotAllowed
from relook.events import (
    DISPUTED,
    Added,
    Adjudicated,
    Budget,
    Changed,
    Closed,
    Confirmed,
    Drawn,
    Event,
    Gold,
    Guideline,
    Joined,
    Mixed,
    Paused,
    Removed,
    Reopened,
    Resumed,
    Retracted,
    Role,
    Verdicts,
    Withdrawn,
)
from relook.judging import Judge
from relook.rules import Policy, check_answer, check_budget, check_name
from relook.types import Labels, ids_fingerprint

if TYPE_CHECKING:
    from relook.campaign import Campaign
    from relook.ledger import Ledger

_E = TypeVar("_E", bound=Event)


class Decisions:
    """What one person decides; made by `Campaign.by`.

    >>> from relook.campaign import Campaign
    >>> from relook.policies import named
    >>> campaign = Campaign(Labels([0, 1], 2), named("random"), budget=9)
    >>> campaign.by("Ada", "blurred").adjudicate(1, 0).verdict
    0
    """

    def __init__(self, campaign: Campaign, by: str, *, why: str | None = None) -> None:
        self._campaign = campaign
        self._by = by
        self._why = why

    def adjudicate(self, item: int, answer: int, *, now: float = 0.0) -> Adjudicated:
        """Have the last word on an item: a class, `CANNOT_TELL` or `NONE_OF_THESE`; a later word replaces it."""
        ledger, now = self._begin("adjudicate", now)
        answer, item = check_answer(answer, ledger.given.classes), _asked_of(ledger, item)
        if isinstance(ledger.words.get(item), Gold):
            raise NotAllowed(f"adjudicate: the label of item {item} is known, but a word on it came; make it gold anew")
        return self._record(Adjudicated(item, answer, verdict_of(answer), self._by, now, self._why))

    def confirm(self, item: int, *, now: float = 0.0) -> Confirmed:
        """Say that people do disagree about an item: it stays disputed."""
        ledger, now = self._begin("confirm", now)
        state = ledger.items.get(_asked_of(ledger, item))
        if state is None or state.verdict != DISPUTED or item in ledger.words:
            raise NotAllowed(f"confirm: a disputed item was needed, but item {item} is none; adjudicate it instead")
        return self._record(Confirmed(item, self._by, now, self._why))

    def retract(self, item: int, *, now: float = 0.0) -> Retracted:
        """Take a reviewer's word on an item back: people's answers decide again."""
        ledger, now = self._begin("retract", now)
        if not isinstance(ledger.words.get(item), Adjudicated | Confirmed):
            raise NotAllowed(f"retract: a reviewer's word was needed, but nobody spoke of item {item}; name another")
        state = ledger.items[item]
        verdict = self._judge().of_people(item, ledger.tally(state), heard=state.heard)
        return self._record(Retracted(item, verdict, self._by, now, self._why))

    def know(self, item: int, label: int, *, now: float = 0.0) -> Gold:
        """Make an item gold: its label is known and final, whatever people say."""
        ledger, now = self._begin("gold", now)
        label, item = check_answer(label, ledger.given.classes), _asked_of(ledger, item)
        if label < 0:
            raise BadInput(f"gold: a class was needed for item {item}, but {label} came; adjudicate it instead")
        return self._record(Gold(item, label, self._by, now, self._why))

    def mix(self, *, gold: float = 0.0, repeat: float = 0.0, now: float = 0.0) -> Mixed:
        """Mix gold items and repeats into what people are asked, at these shares."""
        _, now = self._begin("mix", now)
        if not (gold >= 0 and repeat >= 0 and gold + repeat <= 1):
            raise BadInput(
                f"mix: shares of at most 1 together were needed, but {gold} and {repeat} came; take .05 each"
            )
        return self._record(Mixed(float(gold), float(repeat), self._by, now, self._why))

    def draw(self, items: Sequence[int], chances: Sequence[float], *, now: float = 0.0) -> Drawn:
        """Have these items checked before all others; each had this chance of being drawn."""
        ledger, now = self._begin("draw", now)
        drawn = [_asked_of(ledger, item) for item in items]
        if not len(set(drawn)) == len(drawn) == len(chances) > 0:
            raise BadInput(
                f"draw: items that differ and a chance each were needed, but {len(drawn)} and {len(chances)} came"
            )
        if not all(0 < chance <= 1 for chance in chances):
            raise BadInput(
                f"draw: chances above 0 up to 1 were needed, but {min(chances)} to {max(chances)} came; say each"
            )
        for item in drawn:
            if not (is_drawable(ledger, item) and self._campaign.is_ranked(item)):
                raise NotAllowed(
                    f"draw: item {item} is gold or came after the ranking, but was drawn; draw among others"
                )
        return self._record(Drawn(drawn, [float(chance) for chance in chances], self._by, now, self._why))

    def budget(self, total: int, *, hours: float | None = None, now: float = 0.0) -> Budget:
        """Set the budget, all answers told; `hours` where it was agreed in them."""
        ledger, now = self._begin("budget", now)
        total, least = check_budget(total), ledger.spent + ledger.reserved
        if total < least:
            raise NotAllowed(
                f"budget: {ledger.spent} answers are spent and {ledger.reserved} are being given, but {total} came; "
                f"set {least} or more"
            )
        return self._record(Budget(total, self._by, now, hours, self._why))

    def change(self, policy: Policy, *, panel: int | None, now: float = 0.0) -> Changed:
        """Go on by another policy or stopping rule, and with so many people (None: no end of them).

        Everything that people spoke of is judged anew, and all items are ordered anew.
        """
        campaign = self._campaign
        ledger, now = self._begin("change", now)
        if panel is not None and panel < 1:
            raise BadInput(
                f"change: a panel of one person at least was needed, but {panel} came; leave it open by None"
            )
        if campaign.posteriors is not None and campaign.posteriors.items != len(ledger.given):
            raise NotAllowed(
                f"change: a ranking of all {len(ledger.given)} items was needed first, but the last one knows "
                f"{campaign.posteriors.items}; rank with posteriors of all"
            )
        changed = Changed(policy.record(), panel, [], self._by, now, self._why)
        before = ledger.policy, ledger.panel
        judge = Judge(ledger, policy, posteriors=campaign.posteriors)
        ledger.hold(changed.policy)
        ledger.panel = panel
        changed.verdicts.extend(_other(judge))
        ledger.hold(before[0])
        ledger.panel = before[1]
        campaign.change(changed, policy)
        return changed

    def guide(self, text: str, *, now: float = 0.0) -> Guideline:
        """Give people the next version of what they answer by."""
        ledger, now = self._begin("guideline", now)
        version = 1 if ledger.guideline is None else ledger.guideline.version + 1
        return self._record(Guideline(version, hash_of(text), text, self._by, now, self._why))

    def join(self, name: str, role: Role = "annotator", *, now: float = 0.0) -> Joined:
        """Let somebody take part, or in another role from here on."""
        _, now = self._begin("join", now)
        if role not in get_args(Role):
            raise BadInput(f"join: annotator, reviewer or manager was needed, but {role!r} came; take one of these")
        return self._record(Joined(check_name(name), role, self._by, now, self._why))

    def pause(self, name: str | None = None, *, now: float = 0.0) -> Paused:
        """Ask this person nothing more for now, or nobody; what they hold they may still answer."""
        ledger, now = self._begin("pause", now)
        if name in ledger.paused:
            raise NotAllowed(f"pause: {_whom(name)} was paused already, but again it came; resume first")
        return self._record(Paused(name, self._by, now, self._why))

    def resume(self, name: str | None = None, *, now: float = 0.0) -> Resumed:
        """Ask this person again, or everybody."""
        ledger, now = self._begin("resume", now)
        if name not in ledger.paused:
            raise NotAllowed(f"resume: {_whom(name)} is not paused, but was to be resumed; nothing is to be done")
        return self._record(Resumed(name, self._by, now, self._why))

    def remove(self, name: str, answers: Literal["stand", "void"] = "stand", *, now: float = 0.0) -> Removed:
        """Let somebody take part no longer: what they hold ends, and their answers stand or count no more."""
        campaign = self._campaign
        ledger, now = self._begin("remove", now)
        if name in ledger.removed or (name not in ledger.people and name not in ledger.book.numbers):
            raise NotAllowed(f"remove: somebody who takes part was needed, but {name} does not; check the name")
        if answers not in ("stand", "void"):
            raise BadInput(f"remove: stand or void was needed, but {answers!r} came; say what becomes of their answers")
        for number in [number for number, lease in ledger.leases.items() if lease.annotator == name]:
            campaign.expire(number, now)
        verdicts = [] if answers == "stand" else self._without(name)
        return self._record(Removed(name, answers == "stand", verdicts, self._by, now, self._why))

    def add(self, given: Labels, ids: Iterable[str] | None = None, *, now: float = 0.0) -> Added:
        """Take more items in, with their given labels; they are asked about from the next ranking on."""
        ledger, now = self._begin("add", now)
        if given.answers is not None or (given.classes, given.given.ndim) != (
            ledger.given.classes,
            ledger.given.given.ndim,
        ):
            raise BadInput(
                f"add: given labels of {ledger.given.classes} classes in the form of the first ones were needed, but "
                "others came; other classes need another campaign"
            )
        came_with = None if given.came_with is None else given.came_with.tolist()
        known = None if ids is None else ids_fingerprint(ids)
        return self._record(Added(len(ledger.given), given.given.tolist(), known, self._by, now, came_with, self._why))

    def withdraw(self, items: Sequence[int], *, now: float = 0.0) -> Withdrawn:
        """Ask about these items no more: who holds one loses it, and what was said of them stays."""
        ledger, now = self._begin("withdraw", now)
        gone = [_asked_of(ledger, item) for item in items]
        if not len(set(gone)) == len(gone) > 0:
            raise BadInput(f"withdraw: items that differ were needed, but {len(gone)} came, some twice; name each once")
        for number in [number for number, lease in ledger.leases.items() if lease.item in gone]:
            self._campaign.expire(number, now)
        return self._record(Withdrawn(gone, self._by, now, self._why))

    def close(self, *, now: float = 0.0) -> Closed:
        """End the campaign: open leases expire, and later answers are kept but do not count."""
        return self._campaign.close(now, by=self._by, why=self._why)

    def reopen(self, *, now: float = 0.0) -> Reopened:
        """Let a closed campaign go on."""
        campaign = self._campaign
        now = campaign.pass_time(now)
        if not campaign.ledger.closed:
            raise NotAllowed("reopen: a closed campaign was needed, but this one runs; nothing is to be done")
        return self._record(Reopened(self._by, now, self._why))

    def _begin(self, action: str, now: float) -> tuple[Ledger, float]:
        now = self._campaign.pass_time(now)
        self._campaign.need_running(action)
        return self._campaign.ledger, now

    def _record(self, event: _E) -> _E:
        self._campaign.record(event)
        return event

    def _judge(self) -> Judge:
        campaign = self._campaign
        return Judge(campaign.ledger, campaign.policy, posteriors=campaign.posteriors)

    def _without(self, name: str) -> Verdicts:
        """Return the verdicts that change where this person's answers count no more."""
        ledger, judge, verdicts = self._campaign.ledger, self._judge(), []
        for row in ledger.book.of(name):
            item = ledger.book.item[row]
            state = ledger.items[item]
            if ledger.book.is_check(row) or item in ledger.words:
                continue
            verdict = judge.verdict_with(item, state, answer=ledger.book.answer[row], by=-1)
            if verdict != state.verdict:
                verdicts.append((item, verdict))
        return verdicts


def _other(judge: Judge) -> Verdicts:
    """Return the verdicts that this judge gives otherwise."""
    judged = ((item, state, judge.verdict(item, state)) for item, state in judge.ledger.items.items() if state.heard)
    return [(item, verdict) for item, state, verdict in judged if verdict != state.verdict]


def _asked_of(ledger: Ledger, item: int) -> int:
    """Return an item's number, or refuse one that there is none of, or that was withdrawn."""
    number = int(np.asarray(item))
    if not 0 <= number < len(ledger.given):
        raise BadInput(f"item: a number from 0 to {len(ledger.given) - 1} was needed, but {item} came; look at the ids")
    if number in ledger.withdrawn:
        raise NotAllowed(f"item {number}: one of the campaign was needed, but it was withdrawn; add it anew")
    return number


def _whom(name: str | None) -> str:
    return "the campaign" if name is None else name
