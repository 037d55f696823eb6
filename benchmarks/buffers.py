"""`python -m benchmarks.buffers FOLDER`: arenas for published buffers with known capacities.

Each file NAME.CAPACITY.csv has one buffer a line: id,lower,upper,size, alive from lower to just
before upper. With o_b the offset of buffer b, wanted is

    min max_b (o_b + size_b), where o_a + size_a ≤ o_b or o_b + size_b ≤ o_a for all a, b that are
    alive at the same time.

The peak of the sizes alive at one time is a bound. The capacity in the name is one that is known to
suffice. The eleven instances A to K of MiniMalloc (google/minimalloc, benchmarks/challenging;
Moffitt, ASPLOS 2023) are of this form; they are not part of this repository.

Watched because arenas of plans rest on the same first fits and ejections, and others have solved
these instances, which are harder than those of plans.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import click

from benchmarks.machine import description, load
from benchmarks.tables import markdown_table
from parapipe.solvers.memory.ejections import Ejections
from parapipe.solvers.memory.offsets import ArenaProblem, Buffer, FirstFits, check

CHANGES = 20_000
PAGE = Path(__file__).parent / "results" / "buffers.md"
COLUMNS = ("id", "lower", "upper", "size")
HEAD = (
    "instance", "buffers", "capacity", "first fit", "found", "bound", "above bound",
    "keeps capacity", "proven", "seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """What was found for one instance, in bytes."""

    name: str
    buffers: int
    capacity: int
    first_fit: int
    found: int
    bound: int
    wall_s: float

    @property
    def cells(self) -> tuple[object, ...]:
        """Return a line of the table."""
        return (
            self.name, self.buffers, self.capacity, self.first_fit, self.found, self.bound,
            f"{100 * (self.found / self.bound - 1):.2f}%",
            "yes" if self.found <= self.capacity else "no",
            "yes" if self.found == self.bound else "no", f"{self.wall_s:.1f}",
        )  # fmt: skip


def read(path: Path) -> tuple[str, int, ArenaProblem]:
    """Return name, capacity and buffers of an instance.

    Raises
    ------
    click.ClickException
        If the file is not named or written as said above.
    """
    name, _, capacity = path.stem.rpartition(".")
    if not name or not capacity.isdecimal():
        raise click.ClickException(f"{path}: name it NAME.CAPACITY.csv")
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        if not set(COLUMNS) <= set(lines.fieldnames or ()):
            raise click.ClickException(f"{path}: its columns have to be {','.join(COLUMNS)}")
        try:
            buffers = tuple(
                Buffer(each["id"], *(int(each[column]) for column in ("size", "lower", "upper")))
                for each in lines
            )
        except (TypeError, ValueError) as error:
            raise click.ClickException(f"{path}, line {lines.line_num}: {error}") from error
    if not buffers:
        raise click.ClickException(f"{path}: it has no buffers; give each a line")
    return name, int(capacity), ArenaProblem(buffers)


def solve(path: Path, changes: int) -> Row:
    """Solve an instance by first fits, then by ejections from the best of them."""
    name, capacity, problem = read(path)
    began_s, bound_bytes = perf_counter(), problem.peak_bytes
    fits = FirstFits(problem)
    first, *_ = fits.smallest_first(bound_bytes)
    found = Ejections(fits, first, seed=0).least(bound_bytes, changes)
    wall_s = perf_counter() - began_s
    check(problem, found.offset_bytes)
    return Row(
        name, len(problem.buffers), capacity,
        first.size_bytes, found.size_bytes, bound_bytes, wall_s,
    )  # fmt: skip


def page(rows: Sequence[Row], machine: dict[str, str]) -> Iterator[str]:
    """Yield the lines of the page."""
    kept = sum(row.found <= row.capacity for row in rows)
    proven = sum(row.found == row.bound for row in rows)
    yield "# Offsets of buffers in the least arena"
    yield ""
    yield (
        "`python -m benchmarks.buffers FOLDER`: published instances, each with a capacity that is "
        "known to suffice, in bytes. *First fit* is the best of several orders, *found* what "
        "ejections make of it, as for the arenas of plans. *Bound* is the peak."
    )
    yield ""
    yield (
        f"{kept} of {len(rows)} arenas keep the capacity, {proven} are proven to be the least. "
        "The instances A to K are those of MiniMalloc (Moffitt, ASPLOS 2023; "
        "github.com/google/minimalloc, `benchmarks/challenging`)."
    )
    yield ""
    yield markdown_table(HEAD, [row.cells for row in rows])
    yield ""
    yield markdown_table(("measured on", ""), [*machine.items()])


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--changes", default=CHANGES, show_default=True, help="Of ejections.")
@click.option("--out", default=PAGE, type=click.Path(path_type=Path), help="The page.")
def main(folder: Path, changes: int, out: Path) -> None:
    """Solve all instances of a FOLDER."""
    paths = sorted(folder.glob("*.csv"))
    if not paths:
        raise click.ClickException(f"{folder} has no file NAME.CAPACITY.csv")
    command = f"python -m benchmarks.buffers FOLDER --changes {changes}"
    machine = description() | {"command": command}
    rows = []
    for path in paths:
        rows.append(solve(path, changes))
        click.echo(" ".join(map(str, rows[-1].cells)), err=True)
        machine["load when ended"] = load()
        out.write_text("\n".join(page(rows, machine)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
