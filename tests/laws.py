"""How a law is tried: on 500 examples where it must hold (`make check` is content with 100), and on a planted fault."""

from collections.abc import Callable

import pytest
from hypothesis import Phase, settings

LAW = settings()
FAULT = settings(
    settings.get_profile("laws"), phases=[Phase.generate], report_multiple_bugs=False, derandomize=True, database=None
)

Law = Callable[[settings], None]


def catches(law: Law, error: type[Exception] | tuple[type[Exception], ...] = AssertionError) -> None:
    """Say that a law, told of something faulty, fails: else it could not fail, and would be no test."""
    with pytest.raises(error):
        law(FAULT)


def nothing(*_: object) -> None:
    """A planted fault: what should be done is not done."""


def never(*_: object) -> bool:
    """A planted fault: what should sometimes be so never is."""
    return False
