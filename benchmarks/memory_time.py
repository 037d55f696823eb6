"""What memory costs in `parapipe map` without a limit: its share of the processor time.

Of each model, a front is made and written, one job, nothing kept, and the processor time of what
memory adds is taken within the same run: peaks of configurations, arenas of plans, the check of
their offsets, and what plans need to be written with their buffers. *Added* is that beside all
else: it says how much longer `map` takes than without. Both are slowed alike by what else the
machine does, so that the ratio counts.

Watched because everyone pays for it who maps, whether there is a limit or not.

    python -m benchmarks.memory_time [MODEL ...]

It writes `benchmarks/results/memory_time.md`, in some minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, Literal
from unittest.mock import patch

import click

import parapipe
from benchmarks.machine import description
from benchmarks.tables import markdown_table
from parapipe.mappings.memory import peak_memory
from parapipe.plan.layout import laid_out
from parapipe.plan.memory_rules import memory_violations
from parapipe.plan.schema import Plan

PLATFORM = "amlogic-a311d"
MODELS = ("vit-b16", "bert-base", "googlenet", "mobilenet-v2", "resnet-50")
MOST = 0.1
"""Of the time without memory, what may be added."""
PAGE = Path(__file__).parent / "results" / "memory_time.md"
PARTS = ("peaks", "arenas", "checks", "writing")


@dataclass(slots=True)
class Clock:
    """Processor time of parts, and of what is done only to measure."""

    spent_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    measuring_s: float = 0.0

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same and adds its time to a part."""

        def run(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - of any function
            began_s = process_time()
            found = function(*given, **named)
            self.spent_s[part] += process_time() - began_s
            return found

        return run

    def written(self, plan: Plan, *shared: Mapping[str, str]) -> bytes:
        """Write a plan; what it takes more than one without buffers is the part `writing`."""
        began_s = process_time()
        found = _TO_BYTES(plan, *shared)
        with_s = process_time() - began_s
        _TO_BYTES(plan.model_copy(update={"memory": None, "buffers": ()}), *shared)
        without_s = process_time() - began_s - with_s
        self.measuring_s += without_s
        self.spent_s["writing"] += with_s - without_s
        return found


_TO_BYTES = Plan.to_bytes


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds of a model's front, without and with memory."""

    model: str
    interleave: str
    plans: int
    without_s: float
    spent_s: dict[str, float]

    @property
    def added(self) -> float:
        """What memory adds, as a share of the time without."""
        return sum(self.spent_s.values()) / self.without_s

    def cells(self) -> list[str]:
        """Return the row of the page."""
        kind = "stages" if self.interleave == "none" else "interleaved, too"
        times = [self.without_s, *self.spent_s.values()]
        return [
            f"`{self.model}`", kind, f"{self.plans}", *(f"{each:.2f}" for each in times),
            f"{self.added:.1%}",
        ]  # fmt: skip


def measured(model: str, interleave: Literal["none", "auto"]) -> Row:
    """Map a model, write its front, and return what took how long."""
    clock = Clock()
    changed = {
        "parapipe.mappings.memory.peak_memory": clock.timed("peaks", peak_memory),
        "parapipe.plan.build.laid_out": clock.timed("arenas", laid_out),
        "parapipe.plan.verify.memory_violations": clock.timed(
            "checks", lambda *given: [*memory_violations(*given)]
        ),
        "parapipe.plan.schema.Plan.to_bytes": lambda *given: clock.written(*given),  # noqa: PLW0108 - a method binds the plan
    }
    with TemporaryDirectory() as folder, ExitStack() as patches:
        for name, function in changed.items():
            patches.enter_context(patch(name, function))
        began_s = process_time()
        front = parapipe.map(f"zoo:{model}", PLATFORM, cache=False, jobs=1, interleave=interleave)
        front.write(folder, jobs=1)
        all_s = process_time() - began_s - clock.measuring_s
    without_s = all_s - sum(clock.spent_s.values())
    return Row(model, interleave, len(front), without_s, clock.spent_s)


def page(rows: Sequence[Row], machine: dict[str, str]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# What memory costs in `map`"
    yield ""
    yield (
        "Written by `python -m benchmarks.memory_time`; `benchmarks/memory_time.py` says how. "
        "Seconds of processor time: *without* is all but what memory adds. At most "
        f"{MOST:.0%} is to be added."
    )
    yield ""
    head = ("model", "kinds", "plans", "without", *PARTS, "added")
    yield markdown_table(head, [each.cells() for each in rows])
    yield ""
    yield markdown_table(("measured on", ""), [[*each] for each in machine.items()])


@click.command()
@click.argument("models", nargs=-1)
def main(models: tuple[str, ...]) -> None:
    """Measure MODELS; five of the zoo if none is named."""
    machine, rows = description(), []
    for model in models or MODELS:
        for interleave in ("none", "auto"):
            rows.append(measured(model, interleave))
            click.echo(" ".join(rows[-1].cells()))
            PAGE.write_text("\n".join(page(rows, machine)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
