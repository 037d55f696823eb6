"""Stages in one line: which subgraphs each runs, and where a cut is inside one."""

from types import SimpleNamespace

import pytest

from parapipe.documents.drawing import render_stages


@pytest.mark.parametrize(
    ("subgraphs", "line"),
    [
        ([(1, 2, 3), (4,)], "p0[1-3] │ p1[4]"),
        ([(1, 2, 3), (3, 4)], "p0[1-3…] │ p1[…3-4]"),
        ([(1,), (1,), (1, 2)], "p0[1…] │ p1[…1…] │ p2[…1-2]"),
        ([(1, 3), (2, 4)], "p0[1,3] │ p1[2,4]"),
        ([(1, 2), (1, 3)], "p0[1…,2] │ p1[…1,3]"),
        ([(1, 2, 3), (2, 4)], "p0[1-2…,3] │ p1[…2,4]"),
        ([(1,), (2,), (1, 3)], "p0[1…] │ p1[2] │ p2[…1,3]"),
    ],
)
def test_runs_of_subgraphs_are_drawn_and_cuts_inside_are_marked(subgraphs, line):
    def stage(number, numbers):
        point = SimpleNamespace(frequency_hz=1e9)
        processor = SimpleNamespace(name=f"p{number}", operating_point=point)
        return SimpleNamespace(processors=[processor], subgraphs=numbers, in_turn=False)

    stages = [stage(number, numbers) for number, numbers in enumerate(subgraphs)]
    assert render_stages(stages, {f"p{number}": 1e9 for number in range(3)}) == line
