"""Tasks of Label Studio with all answers, each under who gave it, and the final label beside what is shown."""

from __future__ import annotations

from pathlib import Path

import msgspec

from relook import labelling
from relook.cleaned import Cleaned, signed


def write(found: Cleaned, path: Path) -> None:
    """Write the tasks as JSON."""
    import polars as pl

    known = found.evidence
    who = pl.when(pl.col("annotator").is_not_null()).then(signed(known.answers)).alias("annotator")
    told = known.answers.with_columns(who).filter(pl.col("label").is_not_null()).drop("instead", "ranking")
    whole = msgspec.structs.replace(found.found, answers=told)
    final = found.labels(known.final).to_list()
    labelling.write(labelling.annotated(whole, final=final, rule=known.rule), path)
