"""Whether a configuration's numbers are still those of the files that they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isclose

from parapipe.documents.explanation_schema import OperatorRow, TransferRow
from parapipe.documents.front_schema import ConfigurationRow
from parapipe.errors import FrontError
from parapipe.files.mistakes import listed
from parapipe.plan.schema import Plan
from parapipe.platform.fields import Expression

ROUNDING = 1e-9
_FIGURES = {"input_s": "loading a frame", "output_s": "reading the result"}


def check_unchanged(
    row: ConfigurationRow,
    plan: Plan,
    operators: Sequence[OperatorRow],
    transfers: Sequence[TransferRow],
    figures: Mapping[str, tuple[Expression, str]],
) -> None:
    """Compare numbers with those of the front and the plan.

    Parameters
    ----------
    figures
        By field of the row: its value by the files as they are, and its unit.

    Raises
    ------
    FrontError
        If one is another now; names all of them.
    """
    figures_now = [
        *((f"'{o.id}' on {o.processor}", o.end_s - o.start_s, o.time_s) for o in operators),
        *((f"'{t.tensor}' to {t.target}", planned.time_s, t.time.value)
          for t, planned in zip(transfers, plan.transfers, strict=True)),
        *((_FIGURES.get(name, name), getattr(row, name), expression.value)
          for name, (expression, _) in figures.items()),
    ]  # fmt: skip
    changed = [
        f"{name} was {_format_value(name, before)} and is {_format_value(name, after)}"
        for name, before, after in figures_now
        if not isclose(before, after, rel_tol=1e-6, abs_tol=ROUNDING)
    ]
    if changed:
        raise FrontError(
            f"the platform or a profile has changed since {row.id} was written: "
            f"{listed(changed)}; map again"
        )


def _format_value(name: str, value: float) -> str:
    if name == "throughput_fps":
        return f"{value:.6g} frames/s"
    return f"{value * 1e3:.6g} {'mJ' if name.endswith('energy_j') else 'ms'}"
