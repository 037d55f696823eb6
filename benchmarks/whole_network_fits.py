"""`python -m benchmarks.whole_network_fits`: platforms fitted to whole networks, on two boards.

Of each board only the times of whole networks are given to `parapipe platforms fit`, alone on each
processor at the highest clocks, and the prior is that of the other board alone. Told are

    |predicted / measured − 1| of networks, each left out in turn and predicted from the others,

beside the errors of the catalogue's nominal figures, and the same of single operators, which the
fit never sees: by the nominal figures, by the fit, and by the board's full profile with networks
(of the RK3399Pro: a tenth of the operators) left out.

Watched because a platform that was fitted in a minute is what most people will have.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click

import parapipe
from benchmarks.machine import description
from benchmarks.tables import markdown_table
from parapipe.cost.measured_network import measured_networks
from parapipe.cost.pricing import View
from parapipe.cost.profile import shipped_profiles
from parapipe.files.atomic import write_atomically
from parapipe.platform.load import read_platform
from parapipe.platform.platform import Platform
from parapipe.profiling.board_rates import BOARDS
from parapipe.profiling.fitted_platform import (
    FittedPlatform,
    NetworkTime,
    fit_platform,
    nominal_rates,
    work_of_measurement,
)

PAGE = Path(__file__).parent / "results/whole_network_fits.md"
PROFILES = Path(__file__).parents[1] / "profiles"
VIEWS: tuple[View, ...] = ("as-measured", "deployed")


@dataclass(frozen=True, slots=True)
class Board:
    """A board, its catalogue's chip, and what its prior is of."""

    profile: str
    chip: str
    other: str


TRIED = (
    Board("amlogic-a311d", "a311d", "rk3399"),
    Board("rockchip-rk3399pro", "rk3399", "a311d"),
)


def whole_times(board: Board) -> list[NetworkTime]:
    """Return the times of whole networks on each processor alone, at its highest clock."""
    times_s: dict[tuple[str, str], float] = defaultdict(float)
    for network in measured_networks(board.profile):
        for row in network.rows:
            for processor, time_s in row.times_s.items():
                times_s[network.name, processor] += time_s
    if not times_s:
        times_s = _times_of_blocks(board)
    return [
        NetworkTime(_zoo_name(network), processor, time_s, line)
        for line, ((network, processor), time_s) in enumerate(times_s.items(), 2)
    ]


def _zoo_name(network: str) -> str:
    return "resnet-50" if network == "ResNet-50-v1" else network.lower()


def _times_of_blocks(board: Board) -> dict[tuple[str, str], float]:
    clocks_hz = {p.name: p.point.frequency_hz for p in nominal_platform(board).processors}
    hosts_hz = clocks_hz["big"]
    times_s: dict[tuple[str, str], float] = defaultdict(float)
    path = PROFILES / board.profile / "measured/blocks.csv"
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            host = row["host_frequency_hz"]
            at_top = float(row["frequency_hz"]) == clocks_hz[row["processor"]]
            if row["metric"] == "task" and at_top and (not host or float(host) == hosts_hz):
                times_s[row["model"], row["processor"]] += float(row["time_ms"]) * 1e-3
    return times_s


def nominal_platform(board: Board) -> Platform:
    """Return the catalogue's platform of a board."""
    return read_platform(parapipe.new_platform(chip=board.chip).text, board.chip)


def fitted(board: Board, view: View) -> FittedPlatform:
    """Fit a board's nominal platform to its whole networks, with the other board's prior."""
    times = whole_times(board)
    graphs = {each.network: parapipe.load_model(f"zoo:{each.network}") for each in times}
    return fit_platform(
        nominal_platform(board), times, graphs, table=board.profile, boards=[board.other], view=view
    )


def operator_errors(board: Board, fit: FittedPlatform) -> Iterator[tuple[str, float, float]]:
    """Yield processors with the median errors of their operators: nominal, and fitted."""
    before = nominal_platform(board)
    after = read_platform(fit.file.text, "fitted")
    for was, now in zip(before.processors, after.processors, strict=True):
        errors: list[tuple[float, float]] = []
        for each in shipped_profiles(board.profile)[0].measurements:
            at_top = each.frequency_hz == was.point.frequency_hz
            if each.processor == was.name and at_top and each.operator_class != "view":
                work = work_of_measurement(each, was)
                errors.append(
                    (
                        abs(nominal_rates(was).time_s(work) / each.time_s - 1),
                        abs(nominal_rates(now).time_s(work) / each.time_s - 1),
                    )
                )
        if errors:
            yield was.name, median(e for e, _ in errors), median(e for _, e in errors)


def median_cells(board: Board, view: View, fit: FittedPlatform) -> list[object]:
    """Return a row of the medians' table."""
    errors = fit.median_errors
    networks = len({each.network for each in fit.networks})
    return [
        board.profile, view, networks, _percent(errors["nominal"]), _percent(errors["left_out"]),
        f"{errors['nominal'] / errors['left_out']:.1f}", _percent(errors["fitted"]),
    ]  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def network_cells(board: Board, fit: FittedPlatform) -> list[list[object]]:
    """Return rows of the networks' table."""
    return [
        [
            board.profile, each.processor, each.network, f"{1e3 * each.measured_s:.1f}",
            *(
                f"{100 * (time_s / each.measured_s - 1):+.1f} %"
                for time_s in (each.nominal_s, each.fitted_s, each.left_out_s)
            ),
        ]
        for each in fit.networks
    ]  # fmt: skip


def operator_cells(board: Board, fit: FittedPlatform) -> list[list[object]]:
    """Return rows of the operators' table."""
    (profile,) = (PROFILES / board.profile).glob("*-f32.csv")
    full = {each.processor: each.median for each in parapipe.fit_times(profile).errors}
    return [
        [board.profile, name, _percent(nominal), _percent(own), _percent(full[name])]
        for name, nominal, own in operator_errors(board, fit)
    ]


def page(fits: Sequence[tuple[Board, View, FittedPlatform]], machine: str) -> str:
    """Return the benchmark's page."""
    main = [(board, fit) for board, view, fit in fits if view == VIEWS[0]]
    medians = markdown_table(
        ["board", "batch-norm", "networks", "nominal", "left out", "times smaller", "fitted"],
        [median_cells(*each) for each in fits],
    )
    networks = markdown_table(
        ["board", "processor", "network", "ms", "nominal", "fitted", "left out"],
        [row for board, fit in main for row in network_cells(board, fit)],
    )
    operators = markdown_table(
        ["board", "processor", "nominal", "fitted", "full profile, left out"],
        [row for board, fit in main for row in operator_cells(board, fit)],
    )
    return f"""\
# Platforms fitted to whole networks

Written by `python -m benchmarks.whole_network_fits` ({machine}).
Chips of the catalogue ({", ".join(BOARDS)}) are fitted to whole networks of their boards, with what
the other board says as prior. *Left out*: each network predicted from the processor's others.
Medians of absolute relative errors; *as-measured*: batch-norm is an operator, as these networks ran
there; *deployed*: it is folded into the convolution before, which the boards did not do.

{medians}

## Networks, as measured

{networks}

## Operators, which the fit never sees

Medians over all operators that were measured. *Full profile, left out*: the error of the fit to the
whole profile, of blocks of a network left out on the A311D, of a tenth of the operators left out on
the RK3399Pro.

{operators}
"""


@click.command()
def main() -> None:
    """Fit both boards' platforms to their whole networks, and say how far they are off."""
    fits = [(board, view, fitted(board, view)) for board in TRIED for view in VIEWS]
    machine = description()
    write_atomically(PAGE, page(fits, f"{machine['date']}, {machine['versions']}").encode())
    click.echo(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
