"""What people asked for and were told, as a diary has it, and whether the rows of a log say the same."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from relook.logbook import Row, Store
from tests.history import check_history


class Told(msgspec.Struct, frozen=True):
    """What somebody asked for by a key, and what they were told: None while they wait, or never heard."""

    key: str
    result: Any = None


def told_in(lines: bytes) -> list[Told]:
    """Read a diary of what was asked and told; its last line may be cut."""
    told: dict[str, Told] = {}
    for line in lines.decode(errors="replace").splitlines():
        try:
            note = json.loads(line)
        except json.JSONDecodeError:
            continue
        told[note["key"]] = Told(note["key"], note.get("result", getattr(told.get(note["key"]), "result", None)))
    return list(told.values())


def check_log(store: Store, told: Iterable[Told] = ()) -> None:
    """Fail where a log is not what people were told, is none that a campaign can have, or differs from its sums."""
    rows, sums = list(store.rows()), store.sums()
    check_chain(rows)
    check_told(rows, {one.key: one.result for one in told})
    stored = {"spent": sums.spent, "reserved": sums.reserved, "budget": sums.budget}
    check_history([row.event for row in rows], stored=stored)


def check_chain(rows: Sequence[Row]) -> None:
    before = "0" * 64
    for place, row in enumerate(rows, 1):
        beside = json.dumps([row.seq, row.written, row.key, row.result], separators=(",", ":"), ensure_ascii=False)
        text = f"{before}\n{beside}\n{row.line}".encode()
        before = hashlib.sha256(text).hexdigest()
        assert (row.seq, row.hash) == (place, before), f"row {place} is not in the chain"


def check_told(rows: Sequence[Row], told: dict[str, Any]) -> None:
    known: dict[str, Any] = {}
    for row in rows:
        if row.key is not None:
            assert row.key not in known, f"{row.key} was written twice"
            known[row.key] = None if row.result is None else json.loads(row.result)
    # What wrote nothing (no item was left, nothing to undo) leaves nothing to lose.
    told_something = {key: result for key, result in told.items() if result not in (None, [])}
    lost = [key for key in told_something if key not in known]
    assert not lost, f"{len(lost)} things that people were told are lost: {lost[:3]}"
    other = [key for key, result in told_something.items() if known[key] != result]
    assert not other, f"people were told otherwise: {other[:3]}"
    if told:
        strange = known.keys() - told.keys()
        assert not strange, f"nobody asked for {sorted(strange)[:3]}"
