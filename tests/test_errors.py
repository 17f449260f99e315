"""What relook raises: a tree of its own, in which each error is a builtin one too."""

import pytest

from relook.errors import BadInput, BadLog, BadTraining, Busy, MissingExtra, NotAllowed, NotStored, RelookError


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (BadInput, ValueError),
        (BadLog, ValueError),
        (BadTraining, RuntimeError),
        (Busy, RuntimeError),
        (NotAllowed, RuntimeError),
        (NotStored, OSError),
        (MissingExtra, ImportError),
    ],
)
def test_each_error_is_a_builtin_one_too(error: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(error, builtin)
    assert issubclass(error, RelookError)
    with pytest.raises(builtin, match="labels: one sentence"):
        raise error("labels: one sentence")


def test_a_message_is_one_line_that_keeps_its_place_and_its_cure() -> None:
    message = str(BadInput("pets.csv: a class was needed, but " + "cat\n" * 1000 + "\ud800 came; mend it"))
    assert message.isprintable()
    assert len(message) < 1500
    assert message.startswith("pets.csv: a class was needed, but cat\\ncat")
    assert message.endswith("\\ud800 came; mend it")
    assert str(BadInput("pets.csv: naïve labels")) == "pets.csv: naïve labels"


def test_they_are_all_there_are() -> None:
    assert set(RelookError.__subclasses__()) == {
        BadInput,
        BadLog,
        BadTraining,
        Busy,
        MissingExtra,
        NotAllowed,
        NotStored,
    }
