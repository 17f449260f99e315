"""Triton's kernels for norms over rows of channels: what stands between two convolutions, read and written once.

Loaded by `norms` alone, where there is a graphics card; Triton comes with torch for them. `kept` holds four numbers a
channel: mean, 1 / deviation, and by which factor and summand values are normalised.
"""

import triton
import triton.language as tl


@triton.jit
def sums(x, parts, rows, channels, run, BM: tl.constexpr, BC: tl.constexpr):
    """Sum a run of rows and their squares, about each channel's first value, so that nothing cancels."""
    columns = tl.program_id(0) * BC + tl.arange(0, BC)
    inside = columns < channels
    begin = tl.program_id(1) * run
    first = tl.load(x + columns, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros([BM, BC], tl.float32)
    squares = tl.zeros([BM, BC], tl.float32)
    for start in range(begin, begin + run, BM):
        lines = (start + tl.arange(0, BM)).to(tl.int64)
        seen = (lines < rows)[:, None] & inside[None, :]
        value = tl.load(x + lines[:, None] * channels + columns[None, :], mask=seen, other=0.0).to(tl.float32)
        value = tl.where(seen, value - first[None, :], 0.0)
        total += value
        squares += value * value
    place = parts + tl.program_id(1) * 2 * channels + columns
    tl.store(place, tl.sum(total, 0), mask=inside)
    tl.store(place + channels, tl.sum(squares, 0), mask=inside)


@triton.jit
def settled(
    x, parts, weight, bias, mean, variance, count, kept, rows, channels, runs, momentum, eps,
    BR: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Make means and deviations of the sums, and let the running ones follow."""
    columns = tl.program_id(0) * BC + tl.arange(0, BC)
    inside = columns < channels
    lines = tl.arange(0, BR)
    seen = (lines < runs)[:, None] & inside[None, :]
    place = parts + lines[:, None] * 2 * channels + columns[None, :]
    rest = tl.sum(tl.load(place, mask=seen, other=0.0), 0) / rows
    spread = tl.maximum(tl.sum(tl.load(place + channels, mask=seen, other=0.0), 0) / rows - rest * rest, 0.0)
    middle = tl.load(x + columns, mask=inside, other=0.0).to(tl.float32) + rest
    inverse = 1.0 / tl.sqrt(spread + eps)
    factor = tl.load(weight + columns, mask=inside, other=0.0) * inverse
    tl.store(kept + columns, middle, mask=inside)
    tl.store(kept + channels + columns, inverse, mask=inside)
    tl.store(kept + 2 * channels + columns, factor, mask=inside)
    tl.store(
        kept + 3 * channels + columns, tl.load(bias + columns, mask=inside, other=0.0) - middle * factor, mask=inside
    )
    old = tl.load(mean + columns, mask=inside, other=0.0)
    tl.store(mean + columns, old + momentum * (middle - old), mask=inside)
    old = tl.load(variance + columns, mask=inside, other=0.0)
    tl.store(variance + columns, old + momentum * (spread * (rows / (rows - 1.0)) - old), mask=inside)
    if tl.program_id(0) == 0:
        tl.store(count, tl.load(count) + 1)


@triton.jit
def normed(
    x, added, kept, out, rows, channels,
    RECTIFIED: tl.constexpr, ADDED: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Normalise, add, and cut off below zero."""
    columns = tl.program_id(1) * BC + tl.arange(0, BC)
    lines = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    inside = columns < channels
    seen = (lines < rows)[:, None] & inside[None, :]
    place = lines[:, None] * channels + columns[None, :]
    factor = tl.load(kept + 2 * channels + columns, mask=inside, other=0.0)
    summand = tl.load(kept + 3 * channels + columns, mask=inside, other=0.0)
    value = tl.load(x + place, mask=seen, other=0.0).to(tl.float32) * factor[None, :] + summand[None, :]
    if ADDED:
        value += tl.load(added + place, mask=seen, other=0.0).to(tl.float32)
    if RECTIFIED:
        value = tl.maximum(value, 0.0)
    tl.store(out + place, value.to(out.dtype.element_ty), mask=seen)


@triton.jit
def slope_sums(
    slope, x, out, kept, parts, rows, channels, run,
    RECTIFIED: tl.constexpr, ADDED: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Sum a run of rows of what comes back, and of it times the normalised values."""
    columns = tl.program_id(0) * BC + tl.arange(0, BC)
    inside = columns < channels
    begin = tl.program_id(1) * run
    middle = tl.load(kept + columns, mask=inside, other=0.0)
    inverse = tl.load(kept + channels + columns, mask=inside, other=0.0)
    factor = tl.load(kept + 2 * channels + columns, mask=inside, other=0.0)
    summand = tl.load(kept + 3 * channels + columns, mask=inside, other=0.0)
    total = tl.zeros([BM, BC], tl.float32)
    product = tl.zeros([BM, BC], tl.float32)
    for start in range(begin, begin + run, BM):
        lines = (start + tl.arange(0, BM)).to(tl.int64)
        seen = (lines < rows)[:, None] & inside[None, :]
        place = lines[:, None] * channels + columns[None, :]
        back = tl.load(slope + place, mask=seen, other=0.0).to(tl.float32)
        value = tl.load(x + place, mask=seen, other=0.0).to(tl.float32)
        if RECTIFIED:
            if ADDED:
                passed = tl.load(out + place, mask=seen, other=0.0).to(tl.float32)
            else:
                passed = value * factor[None, :] + summand[None, :]
            back = tl.where(passed > 0, back, 0.0)
        total += back
        product += back * (value - middle[None, :]) * inverse[None, :]
    place = parts + tl.program_id(1) * 2 * channels + columns
    tl.store(place, tl.sum(total, 0), mask=inside)
    tl.store(place + channels, tl.sum(product, 0), mask=inside)


@triton.jit
def slopes_settled(
    parts, weight_slope, bias_slope, channels, runs, BR: tl.constexpr, BC: tl.constexpr
):  # fmt: skip
    """Make the gradients of weight and bias of the sums."""
    columns = tl.program_id(0) * BC + tl.arange(0, BC)
    inside = columns < channels
    lines = tl.arange(0, BR)
    seen = (lines < runs)[:, None] & inside[None, :]
    place = parts + lines[:, None] * 2 * channels + columns[None, :]
    tl.store(bias_slope + columns, tl.sum(tl.load(place, mask=seen, other=0.0), 0), mask=inside)
    tl.store(weight_slope + columns, tl.sum(tl.load(place + channels, mask=seen, other=0.0), 0), mask=inside)


@triton.jit
def slopes(
    slope, x, out, kept, weight_slope, bias_slope, x_slope, added_slope, rows, channels,
    RECTIFIED: tl.constexpr, ADDED: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Bring gradients back to what was normalised, and to what was added."""
    columns = tl.program_id(1) * BC + tl.arange(0, BC)
    lines = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    inside = columns < channels
    seen = (lines < rows)[:, None] & inside[None, :]
    place = lines[:, None] * channels + columns[None, :]
    middle = tl.load(kept + columns, mask=inside, other=0.0)
    inverse = tl.load(kept + channels + columns, mask=inside, other=0.0)
    factor = tl.load(kept + 2 * channels + columns, mask=inside, other=0.0)
    summand = tl.load(kept + 3 * channels + columns, mask=inside, other=0.0)
    from_bias = tl.load(bias_slope + columns, mask=inside, other=0.0) / rows
    from_weight = tl.load(weight_slope + columns, mask=inside, other=0.0) / rows
    back = tl.load(slope + place, mask=seen, other=0.0).to(tl.float32)
    value = tl.load(x + place, mask=seen, other=0.0).to(tl.float32)
    if RECTIFIED:
        if ADDED:
            passed = tl.load(out + place, mask=seen, other=0.0).to(tl.float32)
        else:
            passed = value * factor[None, :] + summand[None, :]
        back = tl.where(passed > 0, back, 0.0)
    if ADDED:
        tl.store(added_slope + place, back.to(added_slope.dtype.element_ty), mask=seen)
    normal = (value - middle[None, :]) * inverse[None, :]
    found = factor[None, :] * (back - from_bias[None, :] - normal * from_weight[None, :])
    tl.store(x_slope + place, found.to(x_slope.dtype.element_ty), mask=seen)
