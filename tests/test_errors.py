"""What relook raises: a tree of its own, in which each error is a builtin one too."""

import pytest

from relook.errors import BadInput, BadLog, MissingExtra, NotAllowed, RelookError


@pytest.mark.parametrize(
    ("error", "builtin"),
    [(BadInput, ValueError), (BadLog, ValueError), (NotAllowed, RuntimeError), (MissingExtra, ImportError)],
)
def test_each_error_is_a_builtin_one_too(error: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(error, builtin)
    assert issubclass(error, RelookError)
    with pytest.raises(builtin, match="labels: one sentence"):
        raise error("labels: one sentence")


def test_they_are_all_there_are() -> None:
    assert set(RelookError.__subclasses__()) == {BadInput, BadLog, MissingExtra, NotAllowed}
