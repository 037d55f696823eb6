"""What a profile says of each operator, so that a runner's times can be imported again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from parapipe.cost.signature import signature_of
from parapipe.graph.work import operator_class
from parapipe.plan.armcl_plan import ProfileRow
from parapipe.plan.network import network_of
from parapipe.plan.schema import Plan


def profile_rows(plan: Plan) -> Iterator[tuple[str, ProfileRow]]:
    """Yield operators' ids and their rows; views, which take no time, have none."""
    graph = network_of(plan)
    for operator in graph.operators:
        first, *others = operator.singles
        kind = operator_class(first, graph)
        if kind != "view":
            row = {
                **asdict(signature_of(first, graph)),
                "class": kind,
                "macs": first.work.macs,
                "size_bytes": first.work.read_bytes + first.work.written_bytes,
                "then": " ".join(part.type for part in others),
            }
            yield operator.id, ProfileRow.model_validate(row)
