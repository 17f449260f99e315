"""A disk that fills up, is emptied, and cannot be written at last: `python -m tests.full_disk FOLDER`, on a small disk."""

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

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

    number = 0
    try:
        while number < 20_000:
            answer(number)
            number += 1
    except NotStored as error:
        assert "disk is full" in str(error) or "SQLITE_FULL" in str(error) or "I/O" in str(error), error
    assert 10 < number < 20_000
    try:
        answer(number)
        raise AssertionError("a full disk took an answer")
    except NotStored:
        pass
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
    try:
        store.opened(folder)
        raise AssertionError("a disk that cannot be written was written")
    except NotStored as error:
        assert "a folder that can be written to was needed" in str(error), error
    sys.stdout.write(f"{number} answers\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
