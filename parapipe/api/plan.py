"""A plan with what can be done with it."""

from __future__ import annotations

from parapipe.api.export import export_plan
from parapipe.api.run import run_plan
from parapipe.api.simulate import simulate_plan
from parapipe.api.verify import verify_plan
from parapipe.plan import schema
from parapipe.plan.summary import plan_stages_title


class Plan(schema.Plan):
    """A plan: a configuration written down for a runtime.

    Its methods are the functions `parapipe.run_plan` and so on, with the plan as first argument.
    """

    run = run_plan
    simulate = simulate_plan
    export = export_plan
    verify = verify_plan

    def __eq__(self, other: object) -> bool:
        return isinstance(other, schema.Plan) and all(
            getattr(self, name) == getattr(other, name) for name in schema.Plan.model_fields
        )

    def __repr__(self) -> str:
        """Return a line: the whole plan would be long."""
        figures, stages = self.predicted, plan_stages_title(self)
        return (
            f"<Plan of {self.model.name} on {self.platform}, {stages}: "
            f"{figures.latency_s * 1e3:.1f} ms, {figures.throughput_fps:.2f} fps, "
            f"{figures.energy_j * 1e3:.1f} mJ>"
        )

    __hash__ = schema.Plan.__hash__

    @classmethod
    def of(cls, plan: schema.Plan) -> Plan:
        """Return a plan with these methods; the content is shared."""
        copy = cls.__new__(cls)
        copy.__setstate__(plan.__getstate__())
        return copy
