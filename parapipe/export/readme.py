"""The README.md of an exported folder: what it is of, what it needs, and what stands in it."""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.digits import plain
from parapipe.files.titles import model_title
from parapipe.plan.replicas import plan_stages_title
from parapipe.plan.schema import Plan


def readme(plan: Plan, target: str, use: str, files: Mapping[str, str]) -> str:
    """Return the text.

    Parameters
    ----------
    use
        Markdown that says how the folder is used.
    files
        What each file is, by its name.
    """
    stages = plan_stages_title(plan)
    told, frame = plan.predicted, "pattern" if plan.models else "frame"
    processors = "\n".join(f"| {each.name} | {each.backend} |" for each in plan.processors)
    rows = "\n".join(f"| `{name}` | {what} |" for name, what in files.items())
    return f"""# {model_title(plan.model.name)} on {plan.platform}

Written by `parapipe export --to {target}`, from a plan with the stages {stages}. Predicted: latency
{plain(told.latency_s * 1e3)} ms, {plain(1 / told.sustained_period_s)} {frame}s/s sustained,
{plain(told.energy_j * 1e3)} mJ per {frame}.

{use.strip()}

| processor | backend |
|---|---|
{processors}

| file | what |
|---|---|
{rows}
"""
