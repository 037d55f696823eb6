"""What was measured of the exact mapper, as a table for machines and a page for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path

from benchmarks.tables import markdown_table, write_csv

CLOSED_S = (5.0, 60.0)  # the MILP's time on instances that the geometric mean is taken over
HEAD = ("instance", "operators", "processors")


@dataclass(frozen=True, slots=True)
class Row:
    """One instance: seconds, makespans and gaps of each way to solve it.

    Parameters
    ----------
    fine_cpu_s, milp_cpu_s
        Processor time, of CBC as well.
    cuts_s, cuts_claims, cuts_excess
        CBC as it comes: its time, whether it claims an optimum, and by which share that is longer
        than a schedule at hand; None if it was not run, or claims nothing.
    """

    instance: str
    operators: int
    processors: int
    fine_s: float
    fine_cpu_s: float
    fine_makespan_s: float
    fine_gap: float
    fine_proven: bool
    milp_s: float
    milp_cpu_s: float
    milp_makespan_s: float
    milp_gap: float
    milp_proven: bool
    cuts_s: float | None
    cuts_claims: bool | None
    cuts_excess: float | None

    @property
    def ratio(self) -> float:
        """How many times longer the MILP took, in wall time."""
        return self.milp_s / self.fine_s

    @property
    def cpu_ratio(self) -> float:
        """The same in processor time."""
        return self.milp_cpu_s / self.fine_cpu_s

    @property
    def false_optimum(self) -> bool:
        """Whether CBC with cuts claims an optimum that a schedule at hand beats."""
        return self.cuts_excess is not None and self.cuts_excess > 1e-6

    @property
    def told(self) -> str:
        """The row in a line."""
        ways = (
            ("fine", self.fine_s, self.fine_gap, self.fine_proven),
            ("MILP", self.milp_s, self.milp_gap, self.milp_proven),
        )
        told = [f"{name} {s:.3f} s {_state(gap, proven)}" for name, s, gap, proven in ways]
        return f"{self.instance}: {', '.join(told)}"


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return exp(sum(map(log, values)) / len(values))


def write_report(
    rows: Sequence[Row], machine: Mapping[str, str], time_limit_s: float, out: Path
) -> None:
    """Write mapping_time.csv and mapping_time.md."""
    records = [
        asdict(row)
        | {
            "ratio": row.ratio if row.milp_proven else None,
            "cpu_ratio": row.cpu_ratio if row.milp_proven else None,
        }
        for row in rows
    ]
    write_csv(records, out / "mapping_time.csv")
    (out / "mapping_time.md").write_text(page(rows, machine, time_limit_s), encoding="utf-8")


def page(rows: Sequence[Row], machine: Mapping[str, str], time_limit_s: float) -> str:
    """Return the page."""
    least_s, most_s = CLOSED_S
    timely = [r for r in rows if r.milp_proven and least_s <= r.milp_s <= most_s]
    quick = [r for r in rows if r.milp_proven and r.milp_s < least_s]
    never = [r for r in rows if r not in timely and r not in quick]
    parts = [
        "# Time to the proof: `fine` against the literal MILP",
        (
            "What is measured and how: `benchmarks/mapping_time.py`. Which instances: "
            "`benchmarks/mapping_registry.py`. The numbers behind: `mapping_time.csv`."
        ),
        markdown_table(("", ""), list(machine.items())),
        _summary(rows, timely, quick, never, time_limit_s),
        f"## Closed by the MILP in {least_s:g} to {most_s:g} s",
        _closed_table(timely),
        f"## Closed by the MILP in less than {least_s:g} s",
        _closed_table(quick),
        f"## Not closed by the MILP within {time_limit_s:g} s: the gaps side by side",
        _gap_table(never),
        "## CBC with its cuts on",
        _cuts(rows),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(
    rows: Sequence[Row],
    timely: Sequence[Row],
    quick: Sequence[Row],
    never: Sequence[Row],
    time_limit_s: float,
) -> str:
    lost = [r for r in (*timely, *quick) if r.ratio < 1]
    told = [
        (
            f"{len(rows)} instances, {time_limit_s:g} s for each solve. "
            f"`fine` closes {sum(r.fine_proven for r in rows)} of them, "
            f"the MILP {len(timely) + len(quick)}."
        )
    ]
    for group, when in ((timely, "5 to 60 s"), (quick, "less than 5 s")):
        if group:
            ratios = [r.ratio for r in group]
            told.append(
                f"The MILP closes {len(group)} in {when}: geometric mean of (MILP time ÷ fine "
                f"time) **{geometric_mean(ratios):.0f}**, least {min(ratios):.1f}, "
                f"most {max(ratios):.0f}; in processor time "
                f"{geometric_mean([r.cpu_ratio for r in group]):.0f}."
            )
    told.append(f"`fine` takes longer than the MILP on {len(lost)} instances that the MILP closes.")
    if never:
        closed = sum(r.fine_proven for r in never)
        told.append(f"Of the {len(never)} that the MILP does not close, `fine` closes {closed}.")
    return "\n".join(f"- {line}" for line in told)


def _closed_table(rows: Sequence[Row]) -> str:
    cells = [
        (
            r.instance,
            r.operators,
            r.processors,
            f"{r.fine_s:.4f}",
            _state(r.fine_gap, r.fine_proven),
            f"{r.milp_s:.2f}",
            _cuts_cell(r),
            f"{r.ratio:.1f}",
            f"{r.cpu_ratio:.1f}",
        )
        for r in sorted(rows, key=lambda r: -r.ratio)
    ]
    head = (*HEAD, "fine s", "fine", "MILP s", "CBC with cuts s", "MILP ÷ fine", "in CPU time")
    return markdown_table(head, cells) if cells else "None."


def _gap_table(rows: Sequence[Row]) -> str:
    cells = [
        (
            r.instance,
            r.operators,
            r.processors,
            f"{r.fine_s:.4f}",
            _state(r.fine_gap, r.fine_proven),
            f"{r.milp_s:.1f}",
            _state(r.milp_gap, r.milp_proven),
            f"{round(100 * (r.milp_makespan_s / r.fine_makespan_s - 1), 1) + 0.0:.1f}",
        )
        for r in rows
    ]
    head = (
        *HEAD,
        "fine s",
        "fine",
        "MILP s",
        "MILP",
        "its schedule is longer by %",
    )
    return markdown_table(head, cells) if cells else "None."


def _cuts(rows: Sequence[Row]) -> str:
    run = [r for r in rows if r.cuts_s is not None]
    if not run:
        return "Not run."
    claimed = [r for r in run if r.cuts_claims]
    wrong = [r for r in claimed if r.false_optimum]
    both = [r for r in claimed if r.milp_proven and r.cuts_s]
    told = [
        (
            "CBC 2.10.3 with its cuts has taken schedules for optimal that are not, in this model: "
            "in 4 of 300 random instances of 8 operators, by up to 8 % (see "
            "`parapipe/reference_mappers/fine_milp.py`). That is why the baseline runs without."
        ),
        f"Here it claims {len(claimed)} optima of {len(run)}, {len(wrong)} of them false"
        + (f": {', '.join(r.instance for r in wrong)}." if wrong else "."),
    ]
    if both:
        shares = [r.milp_s / r.cuts_s for r in both if r.cuts_s]
        told.append(
            f"Where both finish ({len(both)}), the geometric mean of (time without ÷ time with "
            f"cuts) is {geometric_mean(shares):.2f}."
        )
    return "\n\n".join(told)


def _state(gap: float, proven: bool) -> str:
    return "proven" if proven else f"gap {100 * gap:.2f} %"


def _cuts_cell(row: Row) -> str:
    if row.cuts_s is None:
        return "–"
    verdict = "" if row.cuts_claims else ", open"
    if row.false_optimum and row.cuts_excess is not None:
        verdict = f", false by {100 * row.cuts_excess:.2f} %"
    return f"{row.cuts_s:.2f}{verdict}"
