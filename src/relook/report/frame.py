"""What every page has: head, style, a list of its sections, the meaning of its words, and how it was made."""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from relook import __version__
from relook.report.markup import paragraph, settings, text

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a browser may load for a page: its own style and its own images, nothing else."""

MEANINGS = {
    "correct": "an item's label is the class that most people would say",
    "AUC": "the share correct, averaged over all answers from the first to the last: early corrections count more",
    "total variation": "half the absolute difference between two distributions",
    "clear, difficult": "an item is difficult where the entropy of its true distribution, in base C, is above 0.3",
    "CE, noisiness": "the cross-entropy from an item's votes to the model's probabilities: high where they do not fit",
    "H, ambiguity": "the entropy of the model's probabilities: high where the model is unsure",
    "random": "any item may be next: what spending without a rule buys",
    "oracle": "knows the true distributions, and asks again where that pays: no rule can expect to beat it",
    "oracle-once": "the same, but each item is visited once",
    "minimal": "knows what is wrong, and its annotator never errs",
    "95 % interval": "of the mean over seeds; seeds draw other answers, not other given labels",
}
"""What the words of a page mean."""


def document(title: str, *, kicker: str, lead: str, sections: Sequence[str], made: str) -> str:
    """Return a whole page; sections without content are left out of it and of its list."""
    shown = [each for each in sections if each]
    listed = "".join(
        f'<li><a href="#{anchor}">{heading}</a></li>' for each in shown for anchor, heading in [_heading(each)]
    )
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{text(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta name="generator" content="relook {text(__version__)}">\n'
        f"<title>{text(title)}</title>\n<style>\n{style()}</style>\n</head>\n"
    )
    top = f'<header>\n<p class="kicker">{text(kicker)}</p>\n<h1>{text(title)}</h1>\n{lead}\n'
    top += f'<nav aria-label="On this page"><ul>{listed}</ul></nav>\n</header>\n'
    closing = paragraph(f"Made by relook {__version__} on {made}. This page is one file and loads nothing.")
    foot = f"<footer>{closing}</footer>\n"
    return f"{head}<body>\n<main>\n{top}" + "\n".join(shown) + f"\n</main>\n{foot}</body>\n</html>\n"


def style() -> str:
    """Return the page's style."""
    return files("relook.report").joinpath("page.css").read_text("utf-8")


def explained(words: Mapping[str, str] = MEANINGS) -> str:
    """Return the meanings as a list."""
    return (
        '<dl class="words">'
        + "".join(f"<dt>{text(word)}</dt><dd>{text(means)}</dd>" for word, means in words.items())
        + "</dl>"
    )


def made_how(resolved: Mapping[str, Any], *, made: str) -> str:
    """Return the resolved configuration, a table for each part of it."""
    plain = {name: value for name, value in resolved.items() if not isinstance(value, Mapping)}
    tables = settings({"made": made} | plain, caption="This report")
    for name, value in resolved.items():
        if isinstance(value, Mapping):
            tables += settings(value, caption=name[:1].upper() + name[1:].replace("_", " "))
    return f'<div class="settings">{tables}</div>'


def _heading(part: str) -> tuple[str, str]:
    found = re.match(r'<section id="([^"]+)">\n<h2>(.*?)</h2>', part)
    return (found[1], found[2]) if found else ("", "")
