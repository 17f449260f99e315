"""Images are read upright, as bytes, and what is no image is refused."""

from pathlib import Path

import pytest

from relook.errors import BadInput
from relook.pictures import eight_bit


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no image")
    with pytest.raises(BadInput, match=r"a\.png: .* image was needed, but something else came; save it"):
        eight_bit(tmp_path / "a.png")
