"""Shares and pairs of numbers as plain HTML boxes, which fit any width of the page."""

from collections.abc import Mapping, Sequence

from relook.figures import short
from relook.metrics import KINDS
from relook.report.markup import Cell, Column, attributes, count, figure, table, text

KIND_NAMES = {
    "clear_corrected": "clear mistake corrected",
    "clear_not_corrected": "clear mistake, not corrected",
    "difficult_corrected": "difficult item corrected",
    "difficult_not_corrected": "difficult item, not corrected",
    "was_right": "label was right before",
}
"""What `relook.metrics.KINDS` are called on a page."""


def visits(kinds: Mapping[str, Mapping[str, float]]) -> str:
    """Return a bar a policy, cut into what became of its visits, and the same as a table."""
    total = max(sum(each.values()) for each in kinds.values()) or 1.0
    rows = "".join(_bar(policy, each, total=total) for policy, each in kinds.items())
    words = " ".join(f"{policy}: {_counted(each)}." for policy, each in kinds.items())
    drawn = figure(
        f'<div class="bars">{rows}</div>{_key()}',
        words=f"Bars, what became of the visits. {words}",
        caption="A visit is one turn of an item, however many answers it took. Bars are as long as there were visits: "
        "a policy that spends few answers an item makes many. Means over seeds.",
    )
    columns = [Column("Policy", number=False), *(Column(KIND_NAMES[kind]) for kind in KINDS), Column("visits")]
    counted = [
        (text(policy), [*(Cell(count(round(each[kind]))) for kind in KINDS), Cell(count(round(sum(each.values()))))])
        for policy, each in kinds.items()
    ]
    numbers = table(columns, {"": counted}, caption="What became of the visits, in numbers")
    return f"{drawn}<details><summary>The same in numbers</summary>{numbers}</details>"


def pairs(answers: Mapping[str, Mapping[str, float]]) -> str:
    """Return, for each policy, the mean answers of a clear and of a difficult item as two marks on one scale."""
    most = max(max(each.values()) for each in answers.values()) * 1.2 or 1.0
    rows = "".join(_pair(policy, each, most=most) for policy, each in answers.items())
    words = " ".join(
        f"{policy}: {each['clear']:.2f} clear, {each['difficult']:.2f} difficult." for policy, each in answers.items()
    )
    key = '<p class="key"><span><i class="mark clear"></i>clear item</span>'
    key += '<span><i class="mark difficult"></i>difficult item</span></p>'
    return figure(
        f'<div class="bars">{rows}</div>{key}',
        words=f"Marks, mean answers of an item that was asked about. {words}",
        caption="Mean answers of the items that were asked about at all. People disagree about difficult items, so "
        "settling one costs more.",
    )


def histogram(counts: Sequence[int], *, name: str, caption: str) -> str:
    """Return bars of how many items have a value in each of equally wide parts of 0 to 1."""
    most = max(*counts, 1)
    bars = "".join(f'<i style="height:{100 * each / most:.2f}%" title="{count(each)}"></i>' for each in counts)
    width = 1 / len(counts)
    told = "; ".join(
        f"{place * width:.2f} to {(place + 1) * width:.2f}: {count(each)}" for place, each in enumerate(counts)
    )
    ends = f'<p class="ends"><span>0</span><span>{text(name)}</span><span>1</span></p>'
    tallest = f'<p class="most">{count(most)} items</p>'
    drawing = f'{tallest}<div class="histogram">{bars}</div>{ends}'
    return figure(drawing, words=f"Histogram of {name}. Items: {told}.", caption=caption)


def _bar(policy: str, kinds: Mapping[str, float], *, total: float) -> str:
    parts = ""
    for kind in KINDS:
        look = attributes({"class": f"part {kind}", "style": f"width:{100 * kinds[kind] / total:.2f}%"})
        parts += f"<i{look}><b>{count(round(kinds[kind]))}</b></i>"
    return f'<div class="row">{_who(policy)}<span class="track">{parts}</span></div>'


def _who(policy: str) -> str:
    return f'<span class="who" title="{text(policy)}">{text(short(policy))}</span>'


def _key() -> str:
    return (
        '<p class="key">'
        + "".join(f'<span><i class="part {kind}"></i>{name}</span>' for kind, name in KIND_NAMES.items())
        + "</p>"
    )


def _counted(kinds: Mapping[str, float]) -> str:
    return ", ".join(f"{KIND_NAMES[kind]} {count(round(kinds[kind]))}" for kind in KINDS)


def _pair(policy: str, answers: Mapping[str, float], *, most: float) -> str:
    low, high = sorted((answers["clear"], answers["difficult"]))
    between = f'<i class="between" style="left:{100 * low / most:.2f}%;width:{100 * (high - low) / most:.2f}%"></i>'
    marks = "".join(_mark(kind, answers[kind], left=answers[kind] == low, most=most) for kind in ("clear", "difficult"))
    return f'<div class="row">{_who(policy)}<span class="scale">{between}{marks}</span></div>'


def _mark(kind: str, value: float, *, left: bool, most: float) -> str:
    side = "before" if left else "after"
    return f'<i class="mark {kind} {side}" style="left:{100 * value / most:.2f}%"><b>{value:.1f}</b></i>'
