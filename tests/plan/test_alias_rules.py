"""Which tensors may share bytes, as the verifier sees it: beside NumPy, and beside planners."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.graph.operator_graph import Tensor
from parapipe.plan.memory_rules import aliases, overwritable
from parapipe.plan.sharing import ranges, writes_over
from tests.cases.plan_cases import operator

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def tensors_of(**shapes):
    return {name: Tensor(name, tuple(shape), "float32") for name, shape in shapes.items()}


def place_in(whole, part):
    """The first element of a view in an array of bytes; None if they are not in a row."""
    if not part.flags.c_contiguous:
        return None
    return part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]


def planned(each, tensors):
    return [(one.tensor, one.whole, one.begin) for one in ranges(each, tensors)]


@settings(max_examples=300, deadline=None)
@given(data=st.data(), shape=SHAPES)
def test_a_slice_is_a_range_where_it_is_one_in_numpy(data, shape):
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    starts = [data.draw(st.integers(-shape[axis] - 1, shape[axis] - 1)) for axis in axes]
    ends = [
        data.draw(st.integers(max(0, start % shape[axis]) + 1, shape[axis] + 1))
        for axis, start in zip(axes, starts, strict=True)
    ]
    whole = np.zeros(shape, np.uint8)
    box = [slice(None)] * len(shape)
    for axis, start, end in zip(axes, starts, ends, strict=True):
        box[axis] = slice(start, end)
    part = whole[tuple(box)]
    if not part.size:
        return
    said = {"starts": tuple(starts), "ends": tuple(ends), "axes": tuple(axes)}
    each, tensors = (
        operator("y", "x", kind="Slice", attributes=said),
        tensors_of(x=shape, y=part.shape),
    )
    place = place_in(whole, part)
    found = [*aliases(each, tensors)]
    assert found == ([] if place is None else [("y", "x", place)])
    assert {*planned(each, tensors)} <= {*found}


@settings(max_examples=300, deadline=None)
@given(data=st.data(), shape=SHAPES)
def test_what_is_joined_are_ranges_where_they_are_in_numpy(data, shape):
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    names = [f"x{i}" for i in range(len(sizes))]
    parts = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
    whole = np.zeros((*shape[:axis], sum(sizes), *shape[axis + 1 :]), np.uint8)
    tensors = tensors_of(**dict(zip(names, parts, strict=True)), y=whole.shape)
    said = {"axis": data.draw(st.sampled_from([axis, axis - len(shape)]))}
    each = operator("y", " ".join(names), kind="Concat", attributes=said)
    views = np.split(whole, np.cumsum(sizes)[:-1], axis)
    places = [place_in(whole, view) for view in views]
    wanted = [(n, "y", at) for n, at in zip(names, places, strict=True) if at is not None]
    found = [*aliases(each, tensors)]
    assert found == wanted
    assert {*planned(each, tensors)} <= {*found}


@pytest.mark.parametrize("kind", ["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"])
def test_what_is_reshaped_is_all_of_it(kind):
    each, tensors = operator("y", "x s", kind=kind), tensors_of(x=(2, 3), y=(6,))
    assert [*aliases(each, tensors)] == planned(each, tensors) == [("y", "x", 0)]


@pytest.mark.parametrize(
    ("each", "change"),
    [
        (operator("y", "x", kind="Transpose"), {}),
        (operator("y", "x", kind="Reshape"), {"y": Tensor("y", (6,), "int32")}),
        (operator("y", "x", kind="Reshape"), {"y": Tensor("y", (5,), "float32")}),
        (operator("y z", "x", kind="Identity"), {"z": Tensor("z", (2, 3), "float32")}),
        (replace(operator("y", "x", kind="Identity"), domain="other"), {}),
        (operator("y", "x", kind="Identity", parts=[operator("y", "x")]), {}),
        (operator("y", "x", kind="Slice"), {}),  # it begins where it is told at run time
        (operator("y", "x", kind="Slice", attributes={"starts": (0,), "steps": (2,)}), {}),
        (operator("y", "x", kind="Slice", attributes={"starts": (0.0,)}), {}),
        (operator("y", "x", kind="Slice", attributes={"starts": (0,), "axes": (2,)}), {}),
        (operator("y", "x", kind="Slice", attributes={"starts": (1,)}), {}),  # beyond the end
        (operator("y", "x", kind="Concat"), {}),
        (operator("y", "x c", kind="Concat", attributes={"axis": 0}), {}),  # one is a constant
        (operator("y", "x", kind="Concat", attributes={"axis": 2}), {}),
    ],
)
def test_what_is_no_range(each, change):
    assert [*aliases(each, tensors_of(x=(2, 3), y=(2, 3)) | change)] == []


@pytest.mark.parametrize(
    ("each", "wanted"),
    [
        (operator("y", "a", kind="Relu"), ["a"]),
        (operator("y", "a b", kind="Add"), ["a", "b"]),
        (operator("y", "a a", kind="Add"), ["a"]),
        (operator("y", "row b", kind="Add"), ["b"]),  # broadcast
        (operator("y", "a b c", kind="Sum"), ["a", "b"]),
        (operator("y", "a b a", kind="Sum"), ["b"]),  # read again
        (operator("y", "a b c", kind="Where"), []),
        (operator("y", "a", kind="Softmax"), []),
        (replace(operator("y", "a", kind="Relu"), domain="other"), []),
        (replace(operator("y", "a", kind="Gelu"), domain="com.microsoft"), ["a"]),
        (operator("y z", "a", kind="Relu"), []),
        (operator("y", "a", parts=[operator("i", "a"), operator("y", "i a", kind="Add")]), []),
        (operator("y", "a b", parts=[operator("i", "a"), operator("y", "i b", kind="Add")]), ["a"]),
        (operator("y", "a", parts=[operator("i", "a"), operator("y", "i", kind="Conv")]), []),
    ],
)
def test_what_may_be_overwritten(each, wanted):
    tensors = tensors_of(**dict.fromkeys("abcyzi", (2, 3)), row=(1, 3))
    assert [*overwritable(each, tensors)] == wanted
    names = dict.fromkeys(name for name in each.inputs if name in tensors)
    assert [name for name in names if writes_over(each, name, tensors)] == wanted
