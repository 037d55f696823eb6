"""`python -m benchmarks.dvfs`: how much energy per frame DVFS saves, at what throughput.

With F the front at the default operating points and D the front with operating points chosen, and
with T the highest throughput of F, for shares q of T:

    e(X, q) = least energy per frame of the configurations in X with a throughput of q·T or more,
    saved(q) = 1 − e(D, q) / e(F, q).

Energy is that of the processors, equation (8) of Para-Pipe, and with the board's idle power added.
Both fronts are mapped in one run, with nothing left out (resolution 0), and D is checked to hold,
for each configuration of F, one at least as good in latency, period and energy.

Watched because choosing operating points multiplies the work of the search, and must be worth it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import click

import parapipe
from benchmarks.machine import description
from benchmarks.tables import markdown_table, write_csv
from parapipe.documents.front_schema import ConfigurationRow

RESULTS = Path(__file__).parent / "results"
SHARES = (1.0, 0.9, 0.75, 0.5)


@dataclass(frozen=True, slots=True)
class Saving:
    """What is saved at a share of the highest throughput.

    Parameters
    ----------
    fixed_j, chosen_j, fixed_board_j, chosen_board_j
        Least joules per frame at the default operating points and at chosen ones, of the
        processors, and of the board.
    fixed, chosen
        The stages of the configurations of least processor energy.
    """

    model: str
    platform: str
    throughput_share: float
    throughput_fps: float
    fixed_j: float
    chosen_j: float
    fixed_board_j: float
    chosen_board_j: float
    fixed: str
    chosen: str

    @property
    def cells(self) -> tuple[object, ...]:
        """The row of the page's table."""
        return (
            f"{100 * self.throughput_share:.0f}",
            f"{self.throughput_fps:.2f}",
            f"{1e3 * self.fixed_j:.1f}",
            f"{1e3 * self.chosen_j:.1f}",
            f"{100 * (1 - self.chosen_j / self.fixed_j):.1f}",
            f"{100 * (1 - self.chosen_board_j / self.fixed_board_j):.1f}",
            f"`{self.fixed}`",
            f"`{self.chosen}`",
        )


HEAD = (
    "of highest throughput, %", "frames/s", "fixed, mJ", "DVFS, mJ", "saved, %",
    "saved of the board, %", "fixed", "DVFS",
)  # fmt: skip


def savings(
    model: str, platform: str, fixed: Sequence[ConfigurationRow], chosen: Sequence[ConfigurationRow]
) -> list[Saving]:
    """Return what is saved at each share of the highest throughput at fixed points."""
    highest = max(row.throughput_fps for row in fixed)
    found = []
    for share in SHARES:
        least = highest * share * (1 - 1e-9)
        sides = [[row for row in side if row.throughput_fps >= least] for side in (fixed, chosen)]
        best = [min(side, key=lambda row: row.energy_j) for side in sides]
        board = [min(row.board_energy_j for row in side) for side in sides]
        found.append(
            Saving(
                model, platform, share, highest * share, best[0].energy_j, best[1].energy_j,
                board[0], board[1], best[0].drawing, best[1].drawing,
            )
        )  # fmt: skip
    return found


def worse(
    fixed: Sequence[ConfigurationRow], chosen: Sequence[ConfigurationRow]
) -> list[ConfigurationRow]:
    """Return the fixed configurations that no chosen one is at least as good as in everything."""
    return [
        row
        for row in fixed
        if not any(
            other.latency_s <= row.latency_s * (1 + 1e-9)
            and other.period_s <= row.period_s * (1 + 1e-9)
            and other.energy_j <= row.energy_j * (1 + 1e-9)
            for other in chosen
        )
    ]


def compared(model: str, platform: str, points: int, cache: Path) -> tuple[list[Saving], str]:
    """Map a model at fixed and at chosen operating points; return what is saved, and a summary."""
    begun_s = perf_counter()
    same = parapipe.MapOptions(resolution=0.0, cache=cache, interleave="none")
    fixed = parapipe.map(model, platform, options=same)
    between_s = perf_counter()
    chosen = parapipe.map(model, platform, options=same, dvfs=True, dvfs_points=points)
    ended_s = perf_counter()
    rows = fixed.document.configurations, chosen.document.configurations
    return savings(model, platform, *rows), (
        f"{len(rows[0])} configurations at fixed points, mapped in {between_s - begun_s:.0f} s, "
        f"and {len(rows[1])} with DVFS, in {ended_s - between_s:.0f} s more; {len(worse(*rows))} "
        "of the fixed ones are better in something than all with DVFS."
    )


@click.command()
@click.option("--model", "models", multiple=True, default=("zoo:googlenet",), show_default=True)
@click.option("--platform", default="amlogic-a311d-2024", show_default=True)
@click.option("--points", default=3, show_default=True, help="Of each processor, at most.")
@click.option("--cache", type=click.Path(path_type=Path), help="Kept schedules; none if not given.")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS)
def main(
    *, models: Sequence[str], platform: str, points: int, cache: Path | None, out: Path
) -> None:
    """Compare each model at fixed and at chosen operating points; write dvfs.csv and dvfs.md."""
    about = description()
    rows: list[Saving] = []
    lines = ["# What choosing operating points saves", ""]
    lines.append(f"`{platform}`, at most {points} operating points of each processor.")
    for model in models:
        with tempfile.TemporaryDirectory() as new:
            found, told = compared(model, platform, points, cache or Path(new))
        table = markdown_table(HEAD, [row.cells for row in found])
        lines += ["", f"## {model}", "", table, "", told]
        print(f"{table}\n{told}")
        rows += found
    lines += ["", *(f"- {key}: {value}" for key, value in about.items()), ""]
    write_csv([asdict(row) for row in rows], out / "dvfs.csv")
    (out / "dvfs.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
