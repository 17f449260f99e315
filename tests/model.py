"""A campaign in plain words: lists and dictionaries, slow and easy to check. It shares no code with the real one."""

from math import inf
from random import Random
from typing import NamedTuple

CANNOT_TELL, NONE_OF_THESE = -1, -2
UNSETTLED, UNCLEAR, OUTSIDE, DISPUTED = -1, -2, -3, -4
VOTES = ("label", "draw")
REFUSED = "refused"


class Setting(NamedTuple):
    """What a campaign is run by: `given` counts what was said before, a row an item; `rule` is a name and a number."""

    given: list[list[int]]
    weight: float
    rule: tuple[str, float]
    returns: bool
    batch: int
    budget: int
    panel: int | None
    lease_seconds: float


class Standing(NamedTuple):
    lease: int
    item: int
    who: str | None
    answer: int
    purpose: str


class Held(NamedTuple):
    item: int
    who: str | None
    until: float
    purpose: str


class Model:
    """The same questions and answers as `relook.campaign.Campaign`, with an item's chance of class 0 as its score."""

    apart = 0

    def __init__(self, setting: Setting, chances: list[float]) -> None:
        self.setting = setting
        self.budget = setting.budget
        self.items = list(range(len(setting.given)))
        self.chances = chances
        self.answers: list[Standing] = []
        self.paid = 0
        self.leases: dict[int, Held] = {}
        self.purposes: dict[int, str] = {}
        self.given_back: dict[str, list[int]] = {}
        self.told: dict[int, tuple[int, bool]] = {}
        self.verdicts = dict.fromkeys(self.items, UNSETTLED)
        self.scores: dict[int, float | None] = {item: self.score(item) for item in self.items}
        self.counted = 0
        self.last_lease = 0
        self.closed = False
        self.words: dict[int, tuple[str, int]] = {}
        self.gold: list[int] = []
        self.withdrawn: set[int] = set()
        self.unranked: set[int] = set()
        self.mixed: str | None = None
        self.checked: dict[str, set[int]] = {}
        self.drawn: dict[int, int] = {}
        self.draws = 0
        self.awaited: dict[int, int] = {}
        self.paused: set[str | None] = set()
        self.removed: set[str | None] = set()

    def said(self, item: int) -> list[int]:
        return [each.answer for each in self.answers if each.item == item and each.purpose in VOTES]

    def seen(self, who: str | None) -> list[int]:
        return [each.item for each in self.answers if each.who == who and who is not None and each.purpose in VOTES]

    def score(self, item: int) -> float:
        return self.chances[item] - len([answer for answer in self.said(item) if answer >= 0]) / 8

    def is_begun(self, item: int) -> bool:
        return self.verdicts[item] == UNSETTLED and bool(self.said(item))

    def is_wanted(self, item: int) -> bool:
        if item in self.words or item in self.withdrawn or item in self.unranked:
            return False
        if self.verdicts[item] == UNSETTLED:
            return True
        somebody_left = self.setting.panel is None or len(self.said(item)) < self.setting.panel
        return self.setting.returns and self.verdicts[item] >= 0 and somebody_left

    def ask(self, who: str | None, now: float) -> tuple[int, int, int, str] | str | None:
        """Return the lease's number, the item, how many answered it, and what for; REFUSED to somebody removed."""
        self.pass_time(now)
        if self.closed or self.paid + len(self.leases) >= self.budget:
            return None
        if who in self.removed:
            return REFUSED
        if who in self.paused or None in self.paused:
            return None
        item, purpose = self.mixed_in(who) or (self.to_check(who), "draw")
        if item is None:
            item = self.best(who)
            purpose = "draw" if item in self.awaited else "label"
        if item is None:
            return None
        self.last_lease += 1
        self.leases[self.last_lease] = Held(item, who, now + self.setting.lease_seconds, purpose)
        self.purposes[self.last_lease] = purpose
        if who is not None and item in self.given_back.get(who, []):
            self.given_back[who].remove(item)
        if who is not None and purpose not in VOTES:
            self.checked.setdefault(who, set()).add(item)
        return self.last_lease, item, len(self.said(item)), purpose

    def mixed_in(self, who: str | None) -> tuple[int, str] | None:
        if self.mixed is None or who is None:
            return None
        held = [lease.item for lease in self.leases.values()]
        done = self.checked.get(who, set()) | self.withdrawn | set(held)
        if self.mixed == "gold":
            left = [item for item in self.gold if item not in done and item not in self.seen(who)]
        else:
            own = [each for each in self.answers if each.who == who][::-1][self.apart :]
            votes = [each.item for each in own if each.purpose in VOTES]
            left = [i for i in votes if i not in done and i not in self.words and i not in self.awaited]
        return (left[0], self.mixed) if left else None

    def to_check(self, who: str | None) -> int | None:
        held = [lease.item for lease in self.leases.values()]
        gone = [*held, *self.seen(who), *(self.given_back.get(who, []) if who is not None else [])]
        left = [item for item in self.awaited if item not in gone]
        return min(left, key=lambda item: self.awaited[item], default=None)

    def best(self, who: str | None) -> int | None:
        held = [lease.item for lease in self.leases.values()]
        given_back = self.given_back.get(who, []) if who is not None else []
        free = [item for item in self.items if item not in held + self.seen(who)]
        open_to_them = [item for item in free if self.is_wanted(item)]
        fresh = [item for item in open_to_them if item not in given_back]
        keys = {item: inf if self.is_begun(item) else self.scores[item] for item in fresh}
        ready = {item: key for item, key in keys.items() if key is not None}
        waiting = {item: self.score(item) for item in keys if item not in ready}
        for choice in (ready, waiting):
            if choice:
                return min(item for item in choice if choice[item] == max(choice.values()))
        return next((i for i in given_back if i in open_to_them or (i in free and i in self.awaited)), None)

    def tell(self, lease: tuple[int, int, str | None], answer: int, now: float) -> tuple[bool, int] | None:
        """Return whether the answer counts, and the verdict; None if another answer came before."""
        number, item, who = lease
        self.pass_time(now)
        if number in self.told:
            return (self.told[number][1], self.verdicts[item]) if self.told[number][0] == answer else None
        self.told[number] = answer, number in self.leases
        if number not in self.leases:
            return False, self.verdicts[item]
        purpose = self.leases.pop(number).purpose
        self.paid += 1
        self.answers.append(Standing(number, item, who, answer, purpose))
        if purpose not in VOTES:
            self.offer(item)
        else:
            self.counted += 1
            if purpose == "draw":
                self.awaited.pop(item, None)
            self.change(item)
        return True, self.verdicts[item]

    def skip(self, number: int, now: float) -> bool:
        self.pass_time(now)
        if number not in self.leases:
            return False
        item, who = self.leases[number][:2]
        if who is not None and self.leases[number].purpose in VOTES:
            self.given_back.setdefault(who, []).append(item)
        self.end(number)
        return True

    def undo(self, who: str | None, k: int, now: float) -> list[tuple[int, int]] | None:
        """Return the leases whose answers were taken back, and the verdicts after; None if there are not so many."""
        self.pass_time(now)
        own = [answer for answer in self.answers if answer.who == who]
        if self.closed or not 1 <= k <= len(own):
            return None
        undone = []
        for answer in own[: -k - 1 : -1]:
            self.paid -= 1
            self.take_out(answer)
            if answer.purpose in VOTES:
                self.change(answer.item)
            elif who is not None:
                self.checked[who].discard(answer.item)
            undone.append((answer.lease, self.verdicts[answer.item]))
        return undone

    def take_out(self, answer: Standing) -> None:
        self.answers.remove(answer)
        item = answer.item
        if answer.purpose == "draw" and item not in self.withdrawn and item not in self.gold:
            self.awaited[item] = self.drawn[item]

    def speak(self, item: int, kind: str, verdict: int) -> None:
        """Have the last word: a reviewer's, that of who knows the label, or that it is disputed indeed."""
        self.words[item] = (kind, verdict)
        if kind == "gold":
            self.gold += [] if item in self.gold else [item]
            self.awaited.pop(item, None)
        self.change(item)

    def retract(self, item: int) -> None:
        del self.words[item]
        self.change(item)

    def draw(self, items: list[int]) -> None:
        for item in items:
            self.draws += 1
            self.drawn[item] = self.awaited[item] = self.draws

    def alter(self, setting: Setting) -> None:
        """Go by another rule from here on."""
        self.setting = setting
        for item in self.items:
            if self.said(item):
                self.verdicts[item] = self.judge(item)
        self.scores = {item: self.score(item) for item in self.items}

    def remove(self, who: str, *, void: bool) -> None:
        for number in [number for number, lease in self.leases.items() if lease.who == who]:
            self.end(number)
        self.removed.add(who)
        self.paused.discard(who)
        if void:
            own = [answer for answer in self.answers if answer.who == who]
            for answer in own:
                self.take_out(answer)
            self.checked.pop(who, None)
            for answer in own:
                if answer.purpose in VOTES:
                    self.change(answer.item)

    def add(self, given: list[list[int]]) -> None:
        for each in given:
            item = len(self.items)
            self.items.append(item)
            self.unranked.add(item)
            self.setting.given.append(each)
            self.chances.append(0.0)
            self.verdicts[item], self.scores[item] = UNSETTLED, 0.0

    def withdraw(self, items: list[int]) -> None:
        for number in [number for number, lease in self.leases.items() if lease.item in items]:
            self.end(number)
        for item in items:
            self.withdrawn.add(item)
            self.awaited.pop(item, None)
            self.change(item)

    def renew(self, now: float) -> None:
        until = now + self.setting.lease_seconds
        self.leases = {number: lease._replace(until=until) for number, lease in self.leases.items()}

    def rank(self, chances: list[float], now: float) -> None:
        self.pass_time(now)
        self.chances = chances
        self.unranked.clear()
        self.scores = {item: self.score(item) for item in self.items}

    def close(self, now: float) -> None:
        self.pass_time(now)
        self.leases = {}
        self.closed = True

    def pass_time(self, now: float) -> None:
        for number in [number for number, lease in self.leases.items() if lease.until <= now]:
            self.end(number)

    def end(self, number: int) -> None:
        self.offer(self.leases.pop(number).item)

    def offer(self, item: int) -> None:
        if self.scores[item] is None and self.setting.batch == 1:
            self.score_anew()

    def change(self, item: int) -> None:
        """Judge an item whose answers changed; it waits for a new score until so many answers have come."""
        self.verdicts[item] = self.judge(item)
        self.scores[item] = None if self.is_wanted(item) and not self.is_begun(item) else 0.0
        if self.counted % self.setting.batch == 0:
            self.score_anew()

    def score_anew(self) -> None:
        held = [lease.item for lease in self.leases.values()]
        for item in self.items:
            if self.scores[item] is None and item not in held:
                self.scores[item] = self.score(item)

    def judge(self, item: int) -> int:
        if item in self.words:
            return self.words[item][1]
        said = self.said(item)
        given, weight = self.setting.given[item], self.setting.weight
        votes = [weight * count + said.count(label) for label, count in enumerate(given)]
        if any(answer >= 0 for answer in said):
            label = self.settled(item, votes)
            if label is not None:
                return label
        if said.count(CANNOT_TELL) >= 2:
            return UNCLEAR
        if said.count(NONE_OF_THESE) >= 2:
            return OUTSIDE
        return DISPUTED if self.setting.panel is not None and len(said) >= self.setting.panel else UNSETTLED

    def final(self) -> list[int]:
        """What an item was settled as, else the class that most said before: -1 on a tie, or if nobody did."""
        before = [given.index(max(given)) if given.count(max(given)) == 1 else -1 for given in self.setting.given]
        return [self.verdicts[item] if self.verdicts[item] >= 0 else before[item] for item in self.items]

    def settled(self, item: int, votes: list[float]) -> int | None:
        name, number = self.setting.rule
        first, second = sorted(votes, reverse=True)[:2]
        if name == "confidence":
            belief = self.belief(item, len(votes))
            return belief.index(max(belief)) if max(belief) >= 1 - number else None
        enough = {"majority": sum(votes) > 1, "agree": first >= number, "margin": first - second >= number}
        return votes.index(first) if first > second and enough[name] else None

    def belief(self, item: int, classes: int) -> list[float]:
        chances = [self.chances[item], 1 - self.chances[item]] + [0.0] * (classes - 2)
        squares = [chance**2 for chance in chances]
        sharpened = [0.99 * square / sum(squares) + 0.001 for square in squares]
        belief = list(sharpened)
        for answer in self.said(item):
            for label in range(classes):
                if answer >= 0:
                    share = 0.98 * (answer == label) + 0.02 * sharpened[answer]
                    belief[label] *= 0.95 * share + 0.05 / classes
        return [each / sum(belief) for each in belief]


def some_setting(random: Random) -> Setting:
    """A campaign of one to five items, of any kind."""
    classes, several = random.randint(2, 4), random.random() < 0.3
    rules = [("majority", 0.0), ("agree", 1.0), ("agree", 2.0), ("margin", 2.0), ("confidence", 0.1)]
    given = []
    for _ in range(random.randint(1, 5)):
        label = random.randrange(-1, classes)
        given.append([random.randint(0, 2) if several else int(each == label) for each in range(classes)])
    return Setting(
        given,
        random.choice([1, 1, 0, 0.5, 2, 0.1]),
        random.choice(rules),
        returns=random.random() < 0.5,
        batch=random.randint(1, 4),
        budget=random.choice([3, 8, 15, 60]),
        panel=random.choice([None, None, 1, 2, 3]),
        lease_seconds=10.0,
    )


def some_chances(random: Random, items: int) -> list[float]:
    """Chances of class 0 in 64ths, which no arithmetic rounds."""
    return [random.randint(0, 64) / 64 for _ in range(items)]
