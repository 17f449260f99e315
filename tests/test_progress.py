"""Where a campaign stands: counted by hand beside what is told."""

import numpy as np

from relook.campaign import Campaign
from relook.events import CANNOT_TELL, NONE_OF_THESE
from relook.pace import Pace
from relook.policies import Setting, named
from relook.progress import Person, progress
from relook.rules import Terms
from relook.stopping import Agree
from relook.types import Labels

SAYS = {"Ada": [0, 1, CANNOT_TELL, 0, NONE_OF_THESE, 0], "Bo": [1, 1, CANNOT_TELL, 0, NONE_OF_THESE, 1]}


def test_everything_is_counted() -> None:
    policy = named("random", Setting(stop=Agree(2), given_weight=0.0))
    terms = Terms(panel=2, lease_seconds=1000.0, hours=2.0)
    made = Campaign(Labels(np.zeros(8, int), 2), policy, budget=20, terms=terms)
    for name in SAYS:
        while (lease := made.ask(name, 2.0)) is not None and lease.item < 6:
            made.tell(lease, SAYS[name][lease.item], 2.0)
        if name == "Ada":
            for number, held in list(made.ledger.leases.items()):
                assert number
                made.skip(held, 2.0)
    made.by("Eva").join("Cy", now=3.0)
    made.by("Eva").pause("Cy", now=3.0)
    stands = progress(made.ledger, made.events, now=63.0)
    seen = {item for item in range(6) if made.ledger.items.get(item) is not None and made.ledger.items[item].heard}
    assert stands.seen == len(seen)
    assert (stands.budget, stands.spent, stands.reserved) == (20, made.spent, made.reserved)
    assert stands.left == 20 - made.spent - made.reserved
    assert (stands.pace, stands.hours, stands.ranking, stands.since) == (Pace(), 2.0, 1, made.spent)
    assert stands.age == 63.0
    verdicts = [made.status(item) for item in seen]
    assert stands.settled == verdicts.count("settled")
    assert (stands.disputed, stands.unclear, stands.outside, stands.waiting) == tuple(
        verdicts.count(name) for name in ("disputed", "unclear", "outside", "unsettled")
    )
    assert stands.changed == sum(made.verdict(item) == 1 for item in seen)
    assert [person.name for person in stands.people] == ["Ada", "Bo", "Cy"]
    assert stands.people[2] == Person("Cy", part="paused")
    assert sum(person.answers for person in stands.people) == made.spent
    assert sum(person.holds for person in stands.people) == made.reserved


def test_late_answers_and_agreement_are_told_apart() -> None:
    made = Campaign(Labels(np.zeros(3, int), 2), named("random"), budget=9, terms=Terms(lease_seconds=10.0))
    for at, name, says in ((0.0, "Ada", 0), (1.0, "Bo", 1)):
        lease = made.ask(name, at)
        assert lease is not None
        made.tell(lease, says, at)
    late = made.ask("Ada", 2.0)
    assert late is not None
    made.tell(late, 1, 50.0)
    people = {person.name: person for person in progress(made.ledger, made.events, now=50.0).people}
    assert (people["Ada"].answers, people["Ada"].late, people["Ada"].agrees) == (1, 1, 1.0)
    assert people["Bo"].late == 0


def test_answers_since_the_ranking_begin_anew() -> None:
    made = Campaign(Labels(np.zeros(3, int), 2), named("random"), budget=9)
    for _ in range(2):
        lease = made.ask("Ada")
        assert lease is not None
        made.tell(lease, 0)
    assert progress(made.ledger, made.events, now=0.0).since == 2
    made.rank(None)
    assert progress(made.ledger, made.events, now=0.0).since == 0
