"""A disk that fills up, is emptied, and cannot be written at last: `python -m tests.full_disk FOLDER`, a small one."""

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from relook import store
from relook.errors import NotStored
from tests.crashes import new_campaign, opened
from tests.diaries import Told, check_log


def main(disk: Path) -> None:
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(200_000))
    folder = disk / "campaign"
    folder.mkdir()
    store.create(folder, new_campaign(), written="now")
    writer = opened(folder)
    told = []

    def answer(number: int) -> None:
        lease = writer.do(lambda campaign, now: campaign.ask(f"p{number}", now), key=f"ask-{number}")
        writer.do(lambda campaign, now: campaign.tell(lease, 0, now), key=f"tell-{number}")
        told.append(Told(f"tell-{number}", None))

    def answer_all() -> None:
        for number in range(20_000):
            answer(number)

    with pytest.raises(NotStored, match=r"disk is full|SQLITE_FULL|I/O"):
        answer_all()
    number = len(told)
    assert number > 10
    with pytest.raises(NotStored):
        answer(number)
    with closing(store.reading(folder)) as kept:
        assert kept.sums().spent == number
    ballast.unlink()
    began = time.monotonic()
    answer(number)
    assert time.monotonic() - began < 5
    assert writer.status.health == "green"
    writer.close()
    with closing(store.reading(folder)) as kept:
        check_log(kept)
        assert kept.sums().spent == number + 1
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with closing(store.reading(folder)) as kept:
        check_log(kept)
    with pytest.raises(NotStored, match="a folder that can be written to was needed"):
        store.opened(folder)
    sys.stdout.write(f"{number} answers\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
