"""HTML in strings: everything that comes from outside is escaped here, nowhere else."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import msgspec

THIN = "\u00a0"
"""A space that does not break: between a number and its unit."""


class Cell(msgspec.Struct, frozen=True):
    """A table cell: `main` is the value, `aside` stands smaller behind it; `number` aligns it to the right."""

    main: str
    aside: str = ""
    number: bool = True


class Column(msgspec.Struct, frozen=True):
    """A table column: its heading, and what the heading means where that is not plain."""

    heading: str
    hint: str = ""
    number: bool = True


def text(value: object) -> str:
    """Return a value as text that no markup can hide in.

    >>> text("<b>&'")
    '&lt;b&gt;&amp;&#x27;'
    """
    return escape(str(value), quote=True)


def attributes(pairs: Mapping[str, object]) -> str:
    """Return attributes with a space before each; those that are None are left out.

    >>> attributes({"class": "a", "title": None})
    ' class="a"'
    """
    return "".join(f' {name}="{text(value)}"' for name, value in pairs.items() if value is not None)


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent.

    >>> percent(0.70321).replace(THIN, " ")
    '70.3 %'
    """
    return f"{100 * share:.{digits}f}{THIN}%"


def rounded(share: float) -> str:
    """Return a share in whole percent, or with a decimal where it would round to nothing.

    >>> [rounded(share).replace(THIN, " ") for share in (0.423, 0.004, 0.0)]
    ['42 %', '0.4 %', '0 %']
    """
    return percent(share, 1 if 0 < share < 0.01 else 0)


def count(number: float) -> str:
    """Return a count; a mean of counts keeps one decimal where it is small.

    >>> count(4455), count(12.25), count(3.0)
    ('4,455', '12.2', '3')
    """
    if abs(number - round(number)) < 1e-9 or abs(number) >= 100:
        return f"{round(number):,}"
    return f"{number:,.1f}"


def signed(value: float, digits: int = 2) -> str:
    """Return a difference with its sign, a real minus among them.

    >>> signed(-1.5), signed(2), signed(0.001)
    ('\u22121.50', '+2.00', '0.00')
    """
    shown = f"{abs(value):.{digits}f}"
    if not float(shown):
        return shown
    return ("+" if value > 0 else "\u2212") + shown


def plural(number: float, one: str, *, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> plural(1, "seed"), plural(5, "seed")
    ('1 seed', '5 seeds')
    """
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def section(anchor: str, title: str, *, parts: Iterable[str]) -> str:
    """Return a section with its heading; without any part there is none."""
    body = "\n".join(part for part in parts if part)
    return f'<section id="{anchor}">\n<h2>{text(title)}</h2>\n{body}\n</section>' if body else ""


def paragraph(sentence: str, kind: str | None = None) -> str:
    """Return a paragraph of plain text."""
    return f"<p{attributes({'class': kind})}>{text(sentence)}</p>"


def figure(drawing: str, *, words: str, caption: str, title: str = "") -> str:
    """Return a drawing with a caption, and a title above it where there is one; `words` say what the drawing shows."""
    shown = f'<div class="drawing" role="img" aria-label="{text(words)}">{drawing}</div>'
    told = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    return f"<figure>{f'<h3>{text(title)}</h3>' if title else ''}{shown}{told}</figure>"


def table(
    columns: Sequence[Column], groups: Mapping[str, Sequence[tuple[str, Sequence[Cell]]]], *, caption: str
) -> str:
    """Return a table that scrolls inside its box: each row has a heading, in markup, and cells; groups have titles."""
    head = "".join(_heading(column) for column in columns)
    bodies = "".join(_group(title, rows, width=len(columns)) for title, rows in groups.items() if rows)
    named = f"<caption><span>{text(caption)}</span></caption><thead><tr>{head}</tr></thead>"
    box = attributes({"class": "scroll", "tabindex": 0, "role": "region", "aria-label": caption})
    return f"<div{box}><table>{named}{bodies}</table></div>"


def settings(values: Mapping[str, Any], *, caption: str) -> str:
    """Return a table of names and values, however deep they lie."""
    rows = [(text(name), [Cell(shown, number=False)]) for name, shown in _flat(values)]
    return (
        table([Column("Setting", number=False), Column("Value", number=False)], {"": rows}, caption=caption)
        if rows
        else ""
    )


def _heading(column: Column) -> str:
    hint = f"<small>{text(column.hint)}</small>" if column.hint else ""
    return f'<th scope="col"{_side(column)}>{text(column.heading)}{hint}</th>'


def _group(title: str, rows: Sequence[tuple[str, Sequence[Cell]]], *, width: int) -> str:
    head = (
        f'<tr class="group"><th scope="rowgroup" colspan="{width}"><span>{text(title)}</span></th></tr>'
        if title
        else ""
    )
    return "<tbody>" + head + "".join(_row(heading, cells) for heading, cells in rows) + "</tbody>"


def _row(heading: str, cells: Sequence[Cell]) -> str:
    return f'<tr><th scope="row">{heading}</th>' + "".join(_cell(cell) for cell in cells) + "</tr>"


def _cell(cell: Cell) -> str:
    aside = f" <small>{text(cell.aside)}</small>" if cell.aside else ""
    return f"<td{_side(cell)}>{text(cell.main)}{aside}</td>"


def _side(part: Cell | Column) -> str:
    return attributes({"class": None if part.number else "left"})


def _flat(values: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, list | tuple) and any(isinstance(each, Mapping) for each in value):
            yield from _flat({str(place): each for place, each in enumerate(value, 1)}, f"{before}{name}.")
        elif isinstance(value, list | tuple) and value:
            yield f"{before}{name}", ", ".join(map(str, value))
        # An option that was not given tells nothing.
        elif value is not None and value != [] and value != ():
            yield f"{before}{name}", str(value)
