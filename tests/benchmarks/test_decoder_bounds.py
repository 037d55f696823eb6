"""What bounds a step of decoding: products with weights in cache, and reads between requests."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from benchmarks.decoder_bounds import (
    COLUMNS,
    REPEATS,
    ROWS,
    CachedProducts,
    StepBounds,
    cached_product,
    line_through,
)


def test_a_line_goes_through_both_points_or_begins_at_nothing():
    assert line_through((10, 3.0), (30, 7.0)) == pytest.approx((1.0, 0.2))
    assert line_through((10, 1.0), (30, 6.0)) == pytest.approx((0.0, 0.2))


@pytest.mark.parametrize("weights", [*COLUMNS])
def test_every_row_is_multiplied_with_the_same_weights_of_the_stated_bytes(weights):
    model, size_bytes = cached_product(weights, 32)
    assert size_bytes == ROWS * 32 * {"float32": 4, "int4": 0.5 + 4 / 32}[weights]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    rows = np.random.default_rng(1).standard_normal((REPEATS, ROWS)).astype(np.float32)
    (found,) = session.run(None, {"x": rows})
    weight = np.random.default_rng(0).standard_normal((ROWS, 32), np.float32)
    exact = rows @ weight
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    assert error < {"float32": 1e-5, "int4": 0.15}[weights]  # steps of an eighth of the largest


@pytest.mark.parametrize("weights", [*COLUMNS])
def test_products_in_cache_take_time_for_each_byte(weights):
    begin_s, slope = CachedProducts(weights).line()
    assert begin_s >= 0
    assert np.isfinite(slope)


def test_bounds_are_medians_of_what_is_measured_between_requests():
    bounds = StepBounds([10.0, 40.0, 20.0], [(1.0, 0.5), (3.0, 0.1), (2.0, 0.25)])
    assert bounds.reading_s(100) == 5.0  # at 20 bytes a second
    assert bounds.cached_bytes_per_s == 4.0
    assert bounds.multiplying_s(3, 100) == 3 * 2.0 + 100 / 4
