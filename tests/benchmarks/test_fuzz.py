"""A slice of the fuzzing that `make fuzz` does: damaged files end well."""

import pytest

from benchmarks.fuzz import KINDS, fuzz


@pytest.mark.parametrize(("kind", "count"), [("onnx", 300), ("platform", 60), ("rules", 200)])
def test_damaged_files_are_read_or_refused_with_one_error(kind, count):
    found = fuzz(kind, range(count))
    assert {number: how for number, how in found.items() if how not in ("read", "refused")} == {}
    assert len(found) == count
    assert set(KINDS) == {"onnx", "platform", "rules"}
