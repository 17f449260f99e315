"""Conformance suites: run them on a rule of your own before you trust a run with it.

Each is a plain function that returns nothing, or raises `BadInput` with what was needed, what came, and what to do.
They try the rule in a few tiny worlds; a rule that belongs to one data set (it holds embeddings, say) is given its own.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import product
from typing import Any

import msgspec
import numpy as np

from relook.annotators import Annotator, Crowd
from relook.campaign import Campaign
from relook.errors import BadInput, NotStored
from relook.events import (
    CANNOT_TELL,
    NONE_OF_THESE,
    Answer,
    Budget,
    Closed,
    Event,
    Expired,
    Lease,
    Started,
    Undone,
    from_lines,
    to_lines,
)
from relook.logbook import Counted, Entry, Head, Store, Sums, chained, checked, entry
from relook.metrics import picks
from relook.policies import check_rule
from relook.rng import generator
from relook.rules import Policy, Terms
from relook.scores import Score
from relook.stopping import Stop, uses_belief
from relook.types import FloatArray, IntArray, Labels, Posteriors, Rows

PANEL = ("Ada", "Grace", "Hedy")
"""The people of a small campaign in which nobody may answer an item twice."""


class TinyWorld(msgspec.Struct, frozen=True, eq=False):
    """A data set small enough to try everything on: labels, posteriors and the truth, N x C."""

    name: str
    labels: Labels
    posteriors: Posteriors
    truth: FloatArray


def tiny_worlds(seed: int = 0) -> tuple[TinyWorld, ...]:
    """Return worlds that differ in what rules trip over: classes, models, precision, unlabelled items, answers, counts.

    >>> [world.name for world in tiny_worlds()][:2]
    ['2 classes', '3 classes, some unlabelled']
    """
    two, three, five = (_plain(f"{classes} classes", seed, classes=classes) for classes in (2, 3, 5))
    return (
        two,
        _without(three, seed, count=5),
        _answered(_without(five, seed, count=3), seed),
        _of_models(five, seed, models=9),
        _single_precision(five),
        _counted(_answered(three, seed), seed),
        _certain(_of_models(three, seed, models=2)),
        _first(two),
    )


def check_score(score: Score, *, worlds: Sequence[TinyWorld] | None = None) -> None:
    """Check that a score gives a finite number a row, alike every time, and leaves what it is shown alone.

    Unless it says `rowwise = False`, a row must score alike to the bit alone and among others.

    >>> from relook.scores import margin
    >>> check_score(margin)
    """
    for world in tiny_worlds() if worlds is None else worlds:
        with _in(world):
            _check_score(score, world)


def check_stop(rule: Stop) -> None:
    """Check that a stopping rule says yes or no, alike every time, settles no tie, and settles what all agree on.

    >>> from relook.stopping import Agree
    >>> check_stop(Agree(3))
    """
    looks = uses_belief(rule)
    for counts in product(range(4), repeat=3):
        for weight in (1.0, 0.5):
            votes = [count * weight for count in counts]
            settled = _settled(rule, votes, belief=_softmax(votes) if looks else None)
            if settled and votes.count(max(votes)) > 1:
                raise BadInput(
                    f"check_stop: a tie settles nothing, but {votes} was settled; wait until one class is ahead"
                )
    if not _settled(rule, [1000.0, 0.0, 0.0], belief=np.array([1.0, 0.0, 0.0]) if looks else None):
        raise BadInput(
            "check_stop: what all agree on must be settled some day, but 1,000 votes for one class were not; "
            "an item would eat up the budget"
        )


def check_annotator(annotator: Annotator, *, items: int, classes: int, answers: int = 3) -> None:
    """Check that an annotator's nth answer on an item is a class or a code, and the same whenever it is asked for.

    >>> check_annotator(Crowd(np.array([[.5, .5], [0., 1.]]), seed=0), items=2, classes=2)
    """
    asked = list(product(range(min(items, 50)), range(answers)))
    first = {question: annotator(*question) for question in asked}
    for (item, nth), answer in first.items():
        where = f"check_annotator: item {item}, answer {nth}"
        if type(answer) is not int:
            raise BadInput(f"{where}: a Python int was needed, but {type(answer).__name__} came; wrap it in int()")
        if not NONE_OF_THESE <= answer < classes:
            codes = f"{CANNOT_TELL} or {NONE_OF_THESE}"
            raise BadInput(f"{where}: a class from 0 to {classes - 1}, {codes} was needed, but {answer} came")
    for item, nth in reversed(asked):
        again = annotator(item, nth)
        if again != first[item, nth]:
            raise BadInput(
                f"check_annotator: item {item}, answer {nth} was {first[item, nth]}, but {again} when asked for in "
                "another order; let it depend on (seed, item, nth) only, so that policies face the same crowd"
            )


def check_policy(policy: Policy, *, worlds: Sequence[TinyWorld] | None = None) -> None:
    """Check a policy's score and stopping rule, and run small campaigns by it.

    A campaign never overspends, ends, asks again about settled items only where the policy `returns`, and goes on
    alike when it is taken up from its log.

    >>> from relook.policies import named
    >>> check_policy(named("default"))
    """
    tried = tiny_worlds() if worlds is None else tuple(worlds)
    check_score(policy.score, worlds=tried)
    check_stop(policy.stop)
    for world, people in product(tried, ((None,), PANEL)):
        for budget in (0, 1, len(world.labels) // 2, 3 * len(world.labels)):
            with _in(world):
                _check_campaign(policy, world, budget=budget, people=people)


@contextmanager
def _in(world: TinyWorld) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"in the tiny world {world.name!r} of relook.testing")
        raise


def _check_score(score: Score, world: TinyWorld) -> None:
    labels, posteriors = world.labels, world.posteriors
    fit: Callable[..., Score] | None = getattr(score, "fit", None)
    fitted = score if fit is None else fit(labels, posteriors)
    shown, kept = _own_rows(labels, posteriors), _own_rows(labels, posteriors)
    scores = np.asarray(fitted(shown))
    if scores.shape != (len(labels),):
        raise BadInput(f"check_score: {len(labels)} rows need as many numbers, but shape {scores.shape} came")
    if not np.isfinite(scores).all():
        item = int((~np.isfinite(scores)).argmax())
        raise BadInput(f"check_score: finite numbers were needed, but item {item} got {scores[item]}; guard the rule")
    for part in kept.__struct_fields__:
        if not np.array_equal(getattr(shown, part), getattr(kept, part)):
            raise BadInput(f"check_score: a score must not write into what it sees, but it did into {part}; copy it")
    if not np.array_equal(np.asarray(fitted(kept)), scores):
        raise BadInput("check_score: the same rows must score alike twice, but they did not; take chance from a seed")
    check_rule(Policy("of check_score", fitted), labels, posteriors=posteriors)


def _own_rows(labels: Labels, posteriors: Posteriors) -> Rows:
    """All rows, in arrays of their own that a faulty rule could write into."""
    answers = None if labels.answers is None else labels.answers.copy()
    items = np.arange(len(labels))
    return Rows(items, posteriors.values.copy(), labels.given.copy(), answers, labels.classes)


def _settled(rule: Stop, votes: list[float], *, belief: FloatArray | None) -> bool:
    shown, shown_belief = list(votes), None if belief is None else belief.copy()
    answer: Any = rule(shown, shown_belief)
    if not isinstance(answer, bool | np.bool_):
        raise BadInput(f"check_stop: yes or no was needed, but {answer!r} came for {votes}; return a bool")
    if shown != votes or not np.array_equal(shown_belief, belief):  # type: ignore[arg-type]
        raise BadInput(f"check_stop: a rule must not write into what it sees, but it did into {votes}; copy it")
    if rule(list(votes), belief) != answer:
        raise BadInput(f"check_stop: the same votes must be judged alike twice, but {votes} were not")
    return bool(answer)


def _check_campaign(policy: Policy, world: TinyWorld, *, budget: int, people: Sequence[str | None]) -> None:
    labels = Labels(world.labels.given, world.labels.classes)
    terms = Terms(panel=None if people == (None,) else len(people))
    campaign = Campaign(labels, policy, budget=budget, posteriors=world.posteriors, terms=terms)
    _play(campaign, world, people=people)
    visited = picks(campaign.events).tolist()
    if not policy.returns and len(set(visited)) < len(visited):
        raise BadInput("check_policy: a policy that does not return asks about an item once, but it came back")
    events = from_lines(to_lines(campaign.events))
    for length in (len(events), _place(events, budget // 3)):
        again = Campaign.replay(events[:length], labels, policy, rankings={1: world.posteriors, 2: world.posteriors})
        _play(again, world, people=people)
        if again.events != campaign.events or again.final().tolist() != campaign.final().tolist():
            raise BadInput("check_policy: taken up from its log, a campaign must go on alike; keep no state in a rule")


def _play(campaign: Campaign, world: TinyWorld, *, people: Sequence[str | None]) -> None:
    """Ask and tell to the end, and rank anew half-way."""
    crowd = Crowd(world.truth, seed=0)
    while True:
        if campaign.spent == campaign.budget // 2 and campaign.ledger.ranking == 1:
            campaign.rank(world.posteriors)
        lease = _asked(campaign, people)
        if lease is None:
            return
        if campaign.spent + campaign.reserved > campaign.budget:
            raise BadInput(f"check_policy: {campaign.budget} answers were the budget, but one more was asked for")
        campaign.tell(lease, crowd(lease.item, lease.nth))


def _asked(campaign: Campaign, people: Sequence[str | None]) -> Lease | None:
    """Lease an item to whoever finds one; they take turns."""
    turn = campaign.spent % len(people)
    leases = (campaign.ask(person) for person in (*people[turn:], *people[:turn]))
    return next((lease for lease in leases if lease is not None), None)


def _place(events: Sequence[Event], answers: int) -> int:
    """Return the length of the log after so many answers."""
    told = [place for place, event in enumerate(events) if isinstance(event, Answer)]
    return told[answers - 1] + 1 if answers and told else 2


def _plain(name: str, seed: int, *, classes: int) -> TinyWorld:
    """Thirty items: one model, one given label each, no answers; truth, labels and posteriors disagree now and then."""
    rng = generator(seed, "tiny world", name)
    truth = rng.dirichlet(np.full(classes, 0.3), 30)
    given: IntArray = np.array([rng.choice(classes, p=0.7 * row + 0.3 / classes) for row in truth])
    return TinyWorld(name, Labels(given, classes), Posteriors(_guesses(truth, rng)), truth)


def _guesses(truth: FloatArray, rng: np.random.Generator) -> FloatArray:
    values = rng.dirichlet(np.ones(truth.shape[1]), len(truth)) * np.sqrt(truth) + 0.01
    return np.asarray(values / values.sum(1, keepdims=True))


def _without(world: TinyWorld, seed: int, *, count: int) -> TinyWorld:
    given = world.labels.given.copy()
    given[generator(seed, "unlabelled", world.name).permutation(len(given))[:count]] = -1
    return _changed(world, "some unlabelled", labels=Labels(given, world.labels.classes, world.labels.answers))


def _answered(world: TinyWorld, seed: int) -> TinyWorld:
    """The same after answers on half of the items."""
    rng = generator(seed, "answers", world.name)
    answers = rng.poisson(2 * world.truth * rng.integers(0, 2, (len(world.truth), 1)))
    return _changed(world, "answers", labels=Labels(world.labels.given, world.labels.classes, answers))


def _counted(world: TinyWorld, seed: int) -> TinyWorld:
    """The same with several given labels an item, and none for some."""
    counts = generator(seed, "given counts", world.name).poisson(1.5 * world.truth)
    return _changed(world, "given counts", labels=Labels(counts, world.labels.classes, world.labels.answers))


def _of_models(world: TinyWorld, seed: int, *, models: int) -> TinyWorld:
    rng = generator(seed, "models", world.name)
    values = np.stack([_guesses(world.truth, rng) for _ in range(models)])
    return _changed(world, f"{models} models", posteriors=Posteriors(values))


def _single_precision(world: TinyWorld) -> TinyWorld:
    return _changed(world, "single precision", posteriors=Posteriors(world.posteriors.values.astype(np.float32)))


def _certain(world: TinyWorld) -> TinyWorld:
    """The same with models that put all probability on one class."""
    values = world.posteriors.values
    return _changed(world, "certain", posteriors=Posteriors(np.eye(values.shape[2])[values.argmax(2)]))


def _first(world: TinyWorld) -> TinyWorld:
    labels, posteriors = (
        Labels(world.labels.given[:1], world.labels.classes),
        Posteriors(world.posteriors.values[:, :1]),
    )
    return TinyWorld(f"{world.name}, one item", labels, posteriors, world.truth[:1])


def _changed(
    world: TinyWorld, how: str, *, labels: Labels | None = None, posteriors: Posteriors | None = None
) -> TinyWorld:
    return TinyWorld(f"{world.name}, {how}", labels or world.labels, posteriors or world.posteriors, world.truth)


def _softmax(votes: Sequence[float]) -> FloatArray:
    shares: FloatArray = np.exp(np.asarray(votes) - max(votes))
    return np.asarray(shares / shares.sum())


def check_store(made: Callable[[Labels], AbstractContextManager[Store]]) -> None:
    """Check that a store keeps a log, the sums and the answers that count, and refuses what may never be.

    `made` gives a store of a campaign on these labels whose log is empty. What it refuses leaves it as it was, whole
    groups of rows included.

    >>> from contextlib import closing
    >>> from relook.store.memory import Memory
    >>> check_store(lambda given: closing(Memory(given)))
    """
    given = Labels(np.array([[1, 0], [0, 2]]), 2, came_with=np.array([0, -1]))
    with made(given) as store:
        _is(store.head, Head(), what="an empty log")
        _keeps(store)
        _refuses(store)
        before = _kept(store)
        store.reopen()
        _is(_kept(store), before, what="the same after it was opened again")
        _is([row.seq for row in store.rows(after=3)][:2], [4, 5], what="rows after the third")
        _is(store.given().fingerprint(), given.fingerprint(), what="the labels it was made with")


_TERMS: dict[str, Any] = {"policy": {}, "lease_seconds": 9.0, "panel": None, "seed": 0, "ids": None, "at": 0.0}
_STARTED = Started(1, "0", "hash", 2, 2, 3, **_TERMS)


def _lease(number: int, item: int = 0, *, annotator: str | None = "Ada") -> Lease:
    return Lease(number, item, annotator, 0, 1.0, 10.0)


def _answer(number: int, item: int = 0, *, annotator: str | None = "Ada") -> Answer:
    return Answer(number, item, annotator, 1, 1, counted=True, verdict=-1, at=2.0)


def _keeps(store: Store) -> None:
    _append(store, entry([_STARTED]), entry([_lease(1)], key="k1", result='"first"'))
    _append(
        store,
        entry([_answer(1)], key="k2", result="null"),
        entry([_lease(2, 1, annotator=None), _answer(2, 1, annotator=None)]),
    )
    _is(store.sums(), Sums(spent=2, reserved=0, budget=3), what="two of three answers spent")
    _is(store.counted(), [Counted(1, 0, "Ada", 1), Counted(2, 1, None, 1)], what="two answers that count")
    _append(
        store, entry([Undone(2, 1, 1, -1, 2.0)]), entry([_lease(3, 1, annotator=None), _answer(3, 1, annotator=None)])
    )
    _append(store, entry([_lease(4), Expired(4, 11.0)]), entry([Closed(12.0)]))
    _is(store.sums(), Sums(spent=2, reserved=0, budget=3), what="an undone answer to be free")
    _is([answer.lease for answer in store.counted()], [1, 3], what="an undone answer to count no longer")
    _is(store.results(["k1", "k2", "k3"]), {"k1": '"first"', "k2": "null"}, what="the results of keys")
    _is([row.key for row in checked(store.rows())][:3], [None, "k1", "k2"], what="a chain of all rows")


def _refuses(store: Store) -> None:
    late = Answer(4, 0, "Ada", 1, 1, counted=False, verdict=-1, at=13.0)
    poisons = {
        "more than the budget": [entry([_lease(5)]), entry([_lease(6, 1)])],
        "a second answer of one person": [entry([_lease(5), _answer(5)])],
        "a key twice": [entry([late], key="k1", result="1")],
        "an expiry of nothing": [entry([Expired(5, 14.0)])],
        "a budget below what is spent": [entry([Budget(1, by="Ada", at=14.0)])],
    }
    for what, poison in poisons.items():
        before = _kept(store)
        try:
            _append(store, entry([late]), *poison)
        except NotStored:
            store.reopen()
        else:
            raise BadInput(f"check_store: {what} must be refused, but it was kept; let the database see to it")
        _is(_kept(store), before, what=f"nothing kept of rows with {what}")
    _append(store, entry([late]), entry([late]))


def _append(store: Store, *entries: Entry) -> None:
    store.append(chained(entries, store.head, written="2026-11-19T12:00:00Z"))


def _kept(store: Store) -> tuple[Any, ...]:
    return list(store.rows()), store.head, store.sums(), store.counted()


def _is(found: Any, wanted: Any, *, what: str) -> None:
    if found != wanted:
        raise BadInput(f"check_store: {what} was needed, but {found} came, not {wanted}; see relook.logbook.Store")
