"""A strict reader of the pages that reports write: every element closed in order, and what it is like kept."""

from html.parser import HTMLParser

VOID = {"br", "col", "hr", "img", "input", "link", "meta", "wbr"}


class Element:
    """An element: its name, its attributes, what is inside, and its text."""

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.inside: list[Element] = []
        self.own_text = ""

    @property
    def text(self) -> str:
        """The text of the element and all inside it."""
        return self.own_text + "".join(each.text for each in self.inside)

    def all(self, *names: str) -> "list[Element]":
        """Return the elements inside with one of these names, in the order of the page; all of them without a name."""
        found = []
        for each in self.inside:
            if not names or each.name in names:
                found.append(each)
            found += each.all(*names)
        return found

    def kinds(self) -> set[str]:
        """Return its classes."""
        return set(self.attributes.get("class", "").split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].inside.append(element)
        if (
            tag not in VOID
            and self.get_starttag_text() is not None
            and not str(self.get_starttag_text()).endswith("/>")
        ):
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> at {self.getpos()} closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].own_text += data


def read(page: str) -> Element:
    """Return the root of a page; one whose elements do not nest fails."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == [reader.root], f"never closed: {[each.name for each in reader.open[1:]]}"
    return reader.root
