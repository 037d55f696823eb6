"""Work of control flow: what the nodes inside of an If, a Loop or a Scan multiply and move.

A Loop whose number of trips is constant, and a Scan, run their body as often; of an If, the branch
with more work counts. What a body reads from outside it reads in every trip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import onnx

from parapipe.graph.data_types import attributes_of
from parapipe.graph.infer import integer
from parapipe.graph.operator_graph import Constant, Tensor, Work
from parapipe.graph.sequences import loop_trips
from parapipe.graph.work import work_of

if TYPE_CHECKING:
    from parapipe.graph.infer import Facts
    from parapipe.graph.walk import Walk

NOT_STOPPED = "all trips of a Loop that may stop before are counted"
LARGER = "of the branches of an If, the one with more work is counted"
SHAPE_ONLY = frozenset({"Shape", "Size"})


def work_of_bodies(
    node: onnx.NodeProto, facts: Facts, bodies: Mapping[str, tuple[Walk, bool]]
) -> Work | None:
    """Return what control flow multiplies and moves in a frame; None if that is not known.

    Parameters
    ----------
    facts
        What is known outside of it.
    bodies
        By name of the attribute: what was found inside, and whether it always goes on.
    """
    works = {name: _work_inside(walk) for name, (walk, _) in bodies.items()}
    known = {name: work for name, work in works.items() if work is not None}
    if node.op_type == "If" and known.keys() == {"then_branch", "else_branch"}:
        then, other = (known[name] for name in ("then_branch", "else_branch"))
        larger = max(then, other, key=lambda work: (work.macs, work.read_bytes, work.written_bytes))
        equal = (then.macs, then.read_bytes) == (other.macs, other.read_bytes)
        return larger if equal else replace(larger, assumption=_joined(larger.assumption, LARGER))
    if "body" not in known:
        return None
    trips, assumption = _trips(node, facts, goes_on=bodies["body"][1])
    if trips is None:
        return None
    work = known["body"]
    return replace(
        work,
        macs=work.macs * trips,
        read_bytes=work.read_bytes * trips,
        written_bytes=work.written_bytes * trips,
        assumption=_joined(work.assumption, assumption),
    )


def _joined(*assumptions: str) -> str:
    return "; ".join(filter(None, assumptions))


def _trips(node: onnx.NodeProto, facts: Facts, *, goes_on: bool) -> tuple[int | None, str]:
    """Return how often a body runs, at most, and what that rests on."""
    if node.op_type == "Loop":
        return loop_trips(node, facts), "" if goes_on else NOT_STOPPED
    if node.op_type != "Scan":
        return None, ""
    states = len(node.input) - integer(node, "num_scan_inputs", 0)
    axes: Sequence[int] = next(
        (each.ints for each in node.attribute if each.name == "scan_input_axes"), [0]
    )
    shape = facts.shape(node.input[states]) if 0 <= states < len(node.input) else None
    if not shape or not axes or not -len(shape) <= axes[0] < len(shape):
        return None, ""
    return shape[axes[0]], ""


def _work_inside(walk: Walk) -> Work | None:
    """Return the work of the nodes of a body; None if a shape is not known."""
    known: dict[str, Tensor | Constant] = {**walk.outer, **walk.tensors, **walk.constants}
    works: list[Work] = []
    for node in walk.frame_nodes:
        names = [name for name in (*node.input, *node.output) if name]
        if node.output[0] in walk.body_works:
            works.append(walk.body_works[node.output[0]])
        elif any(name not in known for name in names) or walk.facts.nodes.has_body(node):
            return None
        else:
            attributes = attributes_of(node, walk.facts.values)
            reads, writes = tuple(node.input), tuple(node.output)
            works.append(work_of(node.domain, node.op_type, attributes, reads, writes, known=known))
    return Work.total(works)
