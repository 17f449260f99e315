"""Arrays of images leave as PNG files that hold every bit, and are unpacked one at a time."""

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from relook.errors import BadInput
from relook.npfiles import parts
from relook.rasters import Rasters, png
from tests.laws import LAW

SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda sides: st.sampled_from([sides, (*sides, 1), (*sides, 3)])
)


def pixels_of(content: bytes) -> Any:
    """Read a PNG the slow way: chunks, their sums, and rows without a filter."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        kind, held = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        assert struct.unpack(">I", content[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + held),)
        chunks[kind] = held
        at += 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    values = np.ascontiguousarray(lines[:, 1:]).view(np.dtype(f">u{depth // 8}"))
    return values.reshape((height, width, 3) if colour == 2 else (height, width))


@LAW
@given(st.sampled_from(["u1", "<u2", ">u2"]).flatmap(lambda kind: arrays.arrays(np.dtype(kind), SHAPES)))
def test_every_bit_is_written(pixels: Any) -> None:
    expected = pixels[:, :, 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
    assert np.array_equal(pixels_of(png(pixels)), expected)


def test_images_are_unpacked_one_at_a_time(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", images=np.arange(5 * 2 * 2, dtype=np.uint8).reshape(5, 2, 2))
    pictures = Rasters([parts(tmp_path / "x.npz")["images"]])
    for item in (0, 1, 4, 2, 3):
        pictures.write(item, tmp_path)
        assert pixels_of((tmp_path / f"{item}.png").read_bytes())[0, 0] == 4 * item


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 3, 4), (1, 70_000, 1), (0, 3, 3)])
def test_what_is_no_image(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "x.npy", np.zeros(shape, np.uint8))
    with pytest.raises(BadInput, match=r"images of uint8 or uint16, .* but arr_0 \(uint8, .*\) came; convert them"):
        Rasters([parts(tmp_path / "x.npy")["arr_0"]])
