"""Which bucket serves a request, and how much of it is padding."""

import pytest

from parapipe.errors import ArgumentError
from parapipe.several_shapes.buckets import buckets_of

SIZES = {"small": 128, "large": 2048, "middle": 512}


def test_a_request_goes_to_the_smallest_bucket_that_holds_it():
    found = buckets_of(SIZES, {1: 2, 128: 1, 129: 4, 512: 1, 513: 1, 2048: 1})
    assert [*found] == [*SIZES]
    assert {name: each.requests for name, each in found.items()} == {
        "small": 3, "middle": 5, "large": 2,
    }  # fmt: skip
    assert [(each.from_size, each.to_size) for each in found.values()] == [
        (1, 128), (513, 2048), (129, 512),
    ]  # fmt: skip


def test_padding_is_counted_over_all_requests_of_a_bucket():
    found = buckets_of(SIZES, {32: 1, 64: 2, 512: 1})
    assert found["small"].padding == pytest.approx(1 - (32 + 2 * 64) / (3 * 128))
    assert found["middle"].padding == 0
    assert found["large"].padding is None


def test_an_empty_cache_is_a_bucket_without_padding():
    found = buckets_of({"empty": 0, "full": 64}, {0: 3, 16: 1})
    assert [(each.from_size, each.to_size) for each in found.values()] == [(0, 0), (1, 64)]
    assert [each.padding for each in found.values()] == [0, 0.75]


def test_a_request_that_no_bucket_holds_is_refused():
    with pytest.raises(ArgumentError, match=r"request of 2049: the largest is of 2048"):
        buckets_of(SIZES, {2049: 1})
