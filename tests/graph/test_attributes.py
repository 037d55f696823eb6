"""Attributes as plain values."""

import numpy as np

from tests.cases.small_models import floats, graph_of


def attributes(operator, *, opset=17, source="float[1,2,4,4]", **arrays):
    graph = graph_of(f"g ({source} x) => (float[?] y) {{ y = {operator} }}", opset=opset, **arrays)
    return dict(graph.operators[0].attributes)


def test_numbers_texts_and_lists_are_given_sorted_by_name():
    found = attributes(
        'Conv<strides = [1, 1], auto_pad = "VALID", group = 1>(x, w)', w=floats(1, 2, 1, 1)
    )
    assert found == {"auto_pad": "VALID", "group": 1, "strides": (1, 1)}
    assert list(found) == sorted(found)


def test_a_float_is_the_shortest_number_that_is_the_same_in_32_bits():
    assert attributes("LRN<alpha = 0.0001, beta = 0.75, size = 5>(x)") == {
        "alpha": 0.0001,
        "beta": 0.75,
        "size": 5,
    }


def test_the_bounds_of_clip_are_attributes_at_every_opset():
    bounds = {"low": np.float32(0), "high": np.float32(6)}
    assert attributes("Clip<min = 0.0, max = 6.0>(x)", opset=6) == {"max": 6.0, "min": 0.0}
    assert attributes("Clip(x, low, high)", **bounds) == {"max": 6.0, "min": 0.0}
    assert attributes("Clip(x, low)", low=np.float32(0)) == {"min": 0.0}


def test_axes_and_pads_are_attributes_at_every_opset():
    axes = np.array([2, 3])
    assert attributes("ReduceMean<axes = [2, 3]>(x)", opset=17)["axes"] == (2, 3)
    assert attributes("ReduceMean(x, axes)", opset=18, axes=axes)["axes"] == (2, 3)
    pads = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    assert attributes("Pad(x, pads)", pads=pads)["pads"] == tuple(pads.tolist())


def test_the_scales_of_resize_are_attributes_at_every_opset():
    scales = np.array([1, 1, 2, 2], np.float32)
    wanted = (1.0, 1.0, 2.0, 2.0)
    assert attributes("Resize(x, scales)", opset=10, scales=scales)["scales"] == wanted
    assert attributes("Resize(x, , scales)", scales=scales)["scales"] == wanted


def test_tensors_and_what_is_computed_in_a_frame_are_no_attributes():
    graph = graph_of("g (float[4] x, float low) => (float[4] y) { y = Clip(x, low) }")
    assert dict(graph.operators[0].attributes) == {}


def test_an_infinite_bound_of_clip_is_none_at_all():
    bounds = {"low": np.float32(0), "high": np.float32("inf")}
    assert attributes("Clip(x, low, high)", **bounds) == {"min": 0.0}
    assert attributes("Clip(x, high, high)", **bounds) == {"min": "inf"}


def test_numbers_that_are_not_finite_are_texts():
    odd = "LeakyRelu<alpha = -inf>(x)"
    assert attributes(odd) == {"alpha": "-inf"}
