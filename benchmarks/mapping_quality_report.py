"""What the optimum gains over heuristics, as a table for machines and a page for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean

from benchmarks.tables import markdown_table, write_csv

PAPER_PER_CENT = (10.9, 15.5)
REASONS = """
Three columns hold the reasons.

- *Busiest*: the share of the makespan of `fine` in which its busiest processor works. Near 100 %,
  one processor runs nearly all; the optimum is about that processor alone, and heuristics find it.
- *Over layer_switched*: what running operators side by side brings at all, over the best sequence.
  Where that is little, operators wait for each other in a chain, and no mapper can gain much.
- The row *no overhead* beside a row with it: list scheduling starts an operator where that one ends
  first, and finds out about the hand-overs behind it afterwards. The dearer these are beside the
  operators, the more that tends to cost; the more operators weigh, the less.

A negative figure is that of an unproven makespan, which another mapper has beaten within its gap.
`parapipe map` says how many of the times are measured, stated, fitted or nominal.
""".strip()
OTHERS = ("peft", "layer_switched", "coarse", "auto")


@dataclass(frozen=True, slots=True)
class QualityRow:
    """A network on all processors of a platform, as one stage.

    Parameters
    ----------
    makespan_s
        By mapper.
    fine_s
        Wall time of `fine`.
    busiest_share
        Of the makespan of `fine`: how long the busiest processor works.
    subgraphs
        How many have parallel branches.
    mean_share, most_share
        Improvement of `fine` over the better of HEFT and CPOP in these.
    """

    model: str
    platform: str
    operators: int
    makespan_s: Mapping[str, float]
    fine_s: float
    fine_gap: float
    fine_proven: bool
    busiest_share: float
    subgraphs: int
    mean_share: float
    most_share: float

    def over(self, *names: str) -> float:
        """Return by which share the makespan of `fine` is below the best of these mappers."""
        return 1 - self.makespan_s["fine"] / min(self.makespan_s[name] for name in names)

    @property
    def told(self) -> str:
        """The row in a line."""
        return (
            f"{self.model} on {self.platform}: fine {1e3 * self.makespan_s['fine']:.2f} ms "
            f"({self._state}), {_per_cent(self.over('heft', 'cpop'))} % below the better of HEFT "
            "and CPOP"
        )

    @property
    def _state(self) -> str:
        return "proven" if self.fine_proven else f"gap {_per_cent(self.fine_gap)} %"

    @property
    def cells(self) -> tuple[object, ...]:
        """The row of the page's table."""
        return (
            self.model,
            self.platform,
            self.operators,
            f"{1e3 * self.makespan_s['fine']:.2f}",
            self._state,
            f"{self.fine_s:.2f}",
            _per_cent(self.busiest_share),
            _per_cent(self.over("heft", "cpop")),
            *(_per_cent(self.over(name)) for name in OTHERS),
            self.subgraphs,
            _per_cent(self.mean_share),
            _per_cent(self.most_share),
        )


@dataclass(frozen=True, slots=True)
class FrontRow:
    """A whole front found with `fine`: distinct mapping problems, and how many are proven."""

    model: str
    platform: str
    problems: int
    proven: int
    largest_gap: float
    wall_s: float


def write_report(
    rows: Sequence[QualityRow], fronts: Sequence[FrontRow], machine: Mapping[str, str], out: Path
) -> None:
    """Write mapping_quality.csv and mapping_quality.md."""
    records = []
    for row in rows:
        record = asdict(row)
        makespans_s = record.pop("makespan_s")
        records.append(record | {f"{name}_makespan_s": s for name, s in makespans_s.items()})
    write_csv(records, out / "mapping_quality.csv")
    (out / "mapping_quality.md").write_text(page(rows, fronts, machine), encoding="utf-8")


def page(rows: Sequence[QualityRow], fronts: Sequence[FrontRow], machine: Mapping[str, str]) -> str:
    """Return the page."""
    head = (
        *("model", "platform", "operators", "fine ms", "fine", "wall s", "busiest %"),
        *("over HEFT, CPOP %", *(f"over {name} %" for name in OTHERS)),
        *("parallel subgraphs", "there, mean %", "there, most %"),
    )
    first, second = PAPER_PER_CENT
    parts = [
        "# How much shorter the optimum is",
        (
            "What is measured and how: `benchmarks/mapping_quality.py`. The numbers behind: "
            "`mapping_quality.csv`. Improvements are of `fine`: 1 − its makespan ÷ the other's."
        ),
        markdown_table(("", ""), list(machine.items())),
        "## One stage on all processors",
        markdown_table(head, [row.cells for row in rows]),
        f"The paper reports {first} % and {second} % over the better of HEFT and CPOP. Means here:",
        markdown_table(
            ("platform", "networks", "over HEFT, CPOP %", "parallel subgraphs %"),
            [_means(rows, name) for name in dict.fromkeys(row.platform for row in rows)],
        ),
        REASONS,
        "## Whole fronts with `fine`",
        markdown_table(
            ("model", "platform", "problems", "proven", "largest gap %", "wall s"),
            [
                (
                    f.model,
                    f.platform,
                    f.problems,
                    f.proven,
                    _per_cent(f.largest_gap),
                    f"{f.wall_s:.1f}",
                )
                for f in fronts
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _means(rows: Sequence[QualityRow], platform: str) -> tuple[object, ...]:
    group = [row for row in rows if row.platform == platform]
    branched = [row.mean_share for row in group if row.subgraphs]
    return (
        platform,
        len(group),
        _per_cent(mean(row.over("heft", "cpop") for row in group)),
        _per_cent(mean(branched)) if branched else "–",
    )


def _per_cent(share: float) -> str:
    return f"{100 * share:.2f}"
