"""`relook demo`."""


def demo() -> None:
    """(being written)."""
