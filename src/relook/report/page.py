"""The page about a simulation, in the order a reader needs it: what the answers bought, how, and how it was made."""

from relook.curves import band
from relook.figures import answers_to, bounds, leading, lines, mean_of, minimal, rules, start
from relook.report import heat, tables
from relook.report.bars import pairs, visits
from relook.report.charts import NARROW, line_figure, share_axis, zero_axis
from relook.report.frame import document, explained, made_how
from relook.report.markup import count, paragraph, percent, plural, section, text
from relook.report.pictures import shelves_shown
from relook.runs import Runs


def headline(runs: Runs) -> str:
    """Say in one sentence what the answers bought with the leading policy."""
    policy = leading(runs)
    rows = runs.rows_of(policy)
    begin, end = percent(start(runs).share_correct), percent(mean_of(rows, "share_correct"))
    called = "the default policy" if policy == "default" else f"the policy {policy}"
    spent = count(round(mean_of(rows, "answers")))
    told = f"{spent} answers take the labels from {begin} to {end} correct with {called}"
    if policy == "random" or "random" not in runs.policies:
        return f"{told}."
    return f"{told}; random order would reach {percent(mean_of(runs.rows_of('random'), 'share_correct'))}."


def simulation_page(runs: Runs, *, made: str) -> str:
    """Return the whole page."""
    sections = [
        section("policies", "What each policy reached", parts=[tables.ends(runs), tables.differences(runs)]),
        section("curve", "Labels correct, answer by answer", parts=[_cleaning(runs), tables.needed(runs)]),
        section("left", "Wrong labels left", parts=[_left(runs)]),
        section("distance", "Distance from what people would say", parts=[_variation(runs)]),
        section("classes", "Classes that are mixed up", parts=_classes(runs)),
        section("visits", "What became of the visits", parts=_visits(runs)),
        section("gallery", "The ranking in pictures", parts=_gallery(runs)),
        section("words", "What the words mean", parts=[explained()]),
        section("made", "How it was made", parts=[made_how(runs.resolved, made=made)]),
    ]
    lead = _lead(runs) + _facts(runs)
    return document(headline(runs), kicker="Simulated label cleaning", lead=lead, sections=sections, made=made)


def _lead(runs: Runs) -> str:
    extra, first = runs.extra, start(runs)
    size = ""
    if extra.items:
        size = f": {plural(extra.items, 'item')} in {plural(len(extra.classes), 'class', many='classes')}"
    seeds = len({row["seed"] for row in runs.rows})
    means = f"All numbers are means over {plural(seeds, 'seed')}."
    told = (
        f"A cleaning campaign was simulated on {extra.dataset or 'the data set'}{size}. "
        f"At the start {plural(first.wrong, 'label')} were wrong: {count(first.clear)} on clear items and "
        f"{count(first.difficult)} on difficult ones, about which people disagree. "
    )
    return paragraph(told + (means if seeds > 1 else "There was one seed, so nothing is known of the spread."), "lead")


def _facts(runs: Runs) -> str:
    """Return up to four numbers that tell what was bought."""
    policy, first = leading(runs), start(runs)
    rows = runs.rows_of(policy)
    fewer = first.wrong - mean_of(rows, "clear_left") - mean_of(rows, "difficult_left")
    facts = [(percent(mean_of(rows, "share_correct")), f"correct at the end, {percent(first.share_correct)} before")]
    if fewer > 0:
        facts.append((count(round(fewer)), f"fewer wrong labels, of {count(first.wrong)} before"))
        facts.append((f"{mean_of(rows, 'answers') / fewer:.1f}", "answers for each label put right, on balance"))
    saved = _saved(runs, policy)
    if saved is not None:
        facts.append((percent(saved[0], 0), f"of the answers saved: {count(saved[1])} reach what random order does"))
    items = "".join(f"<li><b>{text(number)}</b><span>{text(told)}</span></li>" for number, told in facts)
    return f'<ul class="facts">{items}</ul>'


def _saved(runs: Runs, policy: str) -> tuple[float, int] | None:
    """Return what share of the answers a policy saves on the way to random order's end, and how many it needs."""
    if policy == "random" or "random" not in runs.policies:
        return None
    until = mean_of(runs.rows_of("random"), "answers")
    sooner = answers_to(runs, policy, share=float(band(runs.curves_of("random")).mean[-1]))
    return (1 - sooner / until, sooner) if sooner is not None and sooner < until else None


def _cleaning(runs: Runs) -> str:
    straight = minimal(runs)
    drawn = [*([] if straight is None else [straight]), *lines(runs)]
    axis = share_axis(drawn)
    told = ["Share of labels that are correct after each answer."]
    if axis.low:
        told.append(f"The upright axis starts at {axis.written(axis.low)}.")
    if any(line.interval for line in drawn):
        told.append("Bands are 95 % intervals of the mean over seeds.")
    if straight is not None:
        told.append("Minimal: who knows what is wrong asks about nothing else, and two answers settle each.")
    return line_figure(drawn, axis, name="share of labels correct by answers spent", caption=" ".join(told))


_LEFT = (
    ("clear_left", "clear items", "Mistakes that people would agree on: a good policy finds these first."),
    ("difficult_left", "difficult items", "Where people disagree, answers settle less: these cost more to put right."),
)


def _left(runs: Runs) -> str:
    panels = ""
    for quantity, name, told in _LEFT:
        drawn = lines(runs, quantity, most=NARROW.points)
        axis = zero_axis(f"wrong labels on {name}", drawn)
        panels += line_figure(drawn, axis, name=f"wrong labels on {name} by answers spent", caption=told, size=NARROW)
    return f'<div class="pair">{panels}</div>'


def _variation(runs: Runs) -> str:
    drawn = lines(runs, "total_variation")
    axis = zero_axis("total variation", drawn, exact=lambda value: f"{value:.3f}")
    told = (
        "Total variation between an item's votes, given label and answers together, and its true distribution: "
        "0 where they agree, 1 where they have nothing in common. Mean over items."
    )
    return line_figure(drawn, axis, name="total variation by answers spent", caption=told)


def _classes(runs: Runs) -> list[str]:
    extra, policy = runs.extra, leading(runs)
    if not extra.given or not extra.classes:
        return []
    final = extra.outcomes[policy].confusion if policy in extra.outcomes else {}
    pairs_of = heat.commonest(extra.given["all"], final.get("all"), classes=extra.classes, policy=policy)
    if len(extra.classes) > heat.DRAWN:
        return [pairs_of, paragraph(f"With {len(extra.classes)} classes a map of all pairs cannot be read.", "note")]
    maps = ""
    for part in ("all", "difficult"):
        before, after = extra.given[part], final.get(part)
        most = heat.strongest(before, *([] if after is None else [after]))
        maps += heat.heat_map(before, extra.classes, name=f"{part} items, given labels", most=most)
        if after is not None:
            maps += heat.heat_map(after, extra.classes, name=f"{part} items, after {policy}", most=most)
    note = (
        "Cells are percentages of their row, the true class. Maps side by side share one scale of colour; the "
        "diagonal, what is right, stays pale."
    )
    return [f'<div class="pair">{maps}</div>', paragraph(note, "note"), pairs_of]


def _visits(runs: Runs) -> list[str]:
    outcomes = runs.extra.outcomes
    shown = [policy for policy in [*rules(runs), *bounds(runs)] if policy in outcomes]
    if not shown:
        return []
    return [
        visits({policy: outcomes[policy].kinds for policy in shown}),
        "<h3>Answers an item takes</h3>",
        pairs({policy: outcomes[policy].answers_per_item for policy in shown}),
    ]


def _gallery(runs: Runs) -> list[str]:
    extra = runs.extra
    if not extra.gallery:
        return []
    ranked = f" by the policy {extra.ranked_by}" if extra.ranked_by else ""
    note = (
        f"Items as they were ranked{ranked} before the first answer, evenly spread over each part of the list. Under "
        "each picture: the given label, and the right one where it differs; what people say of it, a bar a class, the "
        "given one in orange; CE, how badly the label fits the model's probabilities; H, how unsure those are."
    )
    return [paragraph(note, "note"), shelves_shown(extra.gallery, extra.classes)]
