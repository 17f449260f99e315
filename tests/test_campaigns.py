"""A campaign's folder: opened by one process at a time, standing where it stood, whatever is done to it meanwhile."""

import os
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest

from relook import campaigns, charter, rankfiles
from relook.campaign import Campaign
from relook.errors import BadInput, Busy, NotAllowed
from relook.events import Lease, Renewed
from relook.types import Labels
from tests import desks


@pytest.fixture
def fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder of a campaign."""
    desks.made(desks.at(tmp_path, monkeypatch, capsys), "--hold", "1")
    return tmp_path / "fix"


def ask(found: campaigns.Opened, name: str = "Ada") -> Lease:
    lease = found.do(lambda campaign, now: campaign.ask(name, now))
    assert isinstance(lease, Lease)
    return lease


def tell(lease: Lease, campaign: Campaign, now: float) -> None:
    campaign.tell(lease, 1, now)


def test_it_stands_where_it_stood(fix: Path) -> None:
    with campaigns.opened(fix, clock=lambda: 2e9) as found:
        leases = [ask(found) for _ in range(5)]
        for lease in leases[:3]:
            found.do(partial(tell, lease))
        expected = found.campaign.ledger.labels().counts
        wanted = ask(found, "Bo").item
    with campaigns.opened(fix, clock=lambda: 2e9 + 10) as found:
        ledger = found.campaign.ledger
        assert (ledger.spent, ledger.reserved, ledger.now) == (3, 3, 2e9)
        np.testing.assert_array_equal(ledger.labels().counts, expected)
        assert ask(found, "Cy").item != wanted
    ledger, events = campaigns.looked(fix)
    assert (ledger.reserved, type(events[-1])) == (4, Lease)


def test_leases_run_on_between_commands_and_are_renewed_by_a_server(fix: Path) -> None:
    with campaigns.opened(fix, clock=lambda: 2e9) as found:
        lease = ask(found)
    with campaigns.opened(fix, clock=lambda: 2e9 + 3601) as found:
        assert not found.do(lambda campaign, now: campaign.tell(lease, 1, now)).counted
        ask(found)
    with campaigns.opened(fix, clock=lambda: 5.0, leases="renewed") as found:
        assert found.campaign.ledger.reserved == 1
    assert isinstance(campaigns.looked(fix)[1][-1], Renewed)


def test_a_clock_that_went_back_stops_nobody(fix: Path) -> None:
    with campaigns.opened(fix, clock=lambda: 2e9) as found:
        ask(found)
    with campaigns.opened(fix, clock=lambda: 3.0) as found:
        assert ask(found).at == 2e9


def test_the_time_goes_on_in_the_log_whatever_the_clock(fix: Path) -> None:
    day = campaigns.looked(fix)[0].now
    assert campaigns.time_of(fix, day + 60) == pytest.approx(day + 60, abs=2)
    with campaigns.opened(fix, clock=lambda: 7.0, leases="renewed") as found:
        ask(found)
        assert found.now == pytest.approx(day, abs=2)
    written = time.time()
    assert campaigns.time_of(fix, written + 600) == pytest.approx(day + 600, abs=5)


@pytest.mark.slow
def test_what_a_killed_command_recorded_is_there_and_the_next_begins_at_once(fix: Path) -> None:
    code = (
        "import os, signal\nfrom pathlib import Path\nfrom relook import campaigns\n"
        "with campaigns.opened(Path('fix'), clock=lambda: 2e9) as found:\n"
        "    lease = found.do(lambda campaign, now: campaign.ask('Ada', now))\n"
        "    found.do(lambda campaign, now: campaign.tell(lease, 1, now))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([desks.PROGRAM[0], "-c", code], check=False, env=dict(os.environ), timeout=60)
    assert ended.returncode == -signal.SIGKILL
    with campaigns.opened(fix, clock=lambda: 2e9) as found:
        assert found.campaign.spent == 1
        with pytest.raises(Busy, match="one program may write at a time"), campaigns.opened(fix, clock=lambda: 2e9):
            pass


def test_a_ranking_whose_file_was_cut_is_refused_and_looked_at_all_the_same(fix: Path) -> None:
    path = rankfiles.place(fix, 1)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BadInput), campaigns.opened(fix, clock=lambda: 2e9):
        pass
    assert campaigns.looked(fix)[0].ranking == 1


def test_a_model_that_there_is_none_of_cannot_be_trained(fix: Path) -> None:
    decided = charter.read(fix)
    found = campaigns.dataset(fix, decided)
    fixed = msgspec.structs.replace(decided, retraining=charter.Retraining())
    with pytest.raises(BadInput, match="its class probabilities came along, so there is no model to train"):
        campaigns.trained(fixed, found, labels=found.given)
    assert campaigns.trained(decided, found, labels=Labels(desks.GIVEN, 3)).items == desks.ITEMS


def test_what_the_rules_forbid_is_not_recorded(fix: Path) -> None:
    head = campaigns.head(fix)
    with campaigns.opened(fix, clock=lambda: 2e9) as found, pytest.raises(NotAllowed):
        found.do(lambda campaign, now: campaign.undo("Ada", 1, now))
    assert campaigns.head(fix) == head
