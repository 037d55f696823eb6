"""`python -m benchmarks.dvfs_runs RUNS.csv`: a clock for each block, predicted and measured.

For each of three networks, what runs take beyond their operators is fitted to the runs of the other
two (`benchmarks.clocked_runs`) and its own runs are predicted by our evaluation. Errors are those
of loading and network together, in time and in joules of the board,

    median of |predicted / measured − 1|, and RMSPE = √ mean (predicted / measured − 1)²,

beside those of the predictions that the runs' authors published. Then each thing that could be
added or left out is tried by itself, and each rule of how times follow the clock, processor by
processor. RUNS.csv is not part of this repository: its columns are those of `read_runs`, its source
is platforms/SOURCES.md's.

Watched because operating points are chosen by what the costs say of clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

from benchmarks.clocked_runs import (
    NETWORKS,
    PLATFORM,
    Correction,
    Costs,
    Run,
    fit_powers,
    fit_times,
    nothing,
    plain_s,
    read_runs,
    start,
    start_and_change,
    switching,
    transfers,
    with_fits,
)
from benchmarks.tables import markdown_table
from parapipe.cost.block_points import BlockPoint, block_runs_of
from parapipe.cost.profile import shipped_profiles
from parapipe.platform.load import load_platform
from parapipe.platform.platform import Platform

RESULTS = Path(__file__).parent / "results"
# Medians and RMSPE in per cent, computed from Predicted_Time and Predicted_Energy beside total_time
# and total_e in Profiling/Evaluations_*_prediction.csv of Ehsan-aghapour/LW-GA at c67700a.
PUBLISHED = {
    ("AlexNet", "time"): (6.85, 7.60),
    ("AlexNet", "energy"): (8.25, 8.65),
    ("GoogLeNet", "time"): (7.84, 8.31),
    ("GoogLeNet", "energy"): (9.06, 9.38),
    ("MobileNet-v1", "time"): (3.38, 4.36),
    ("MobileNet-v1", "energy"): (6.99, 7.45),
}


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors of a network's runs: median of their sizes, RMSPE, and mean."""

    median: float
    rmspe: float
    mean: float

    @classmethod
    def of(cls, predicted: Sequence[float], measured: Sequence[float]) -> Errors:
        """Return the errors of predictions."""
        errors = np.array(predicted) / np.array(measured) - 1
        rmspe = float(np.sqrt(np.mean(errors**2)))
        return cls(float(np.median(np.abs(errors))), rmspe, float(np.mean(errors)))

    @property
    def cell(self) -> str:
        """Median, RMSPE and mean in per cent."""
        return f"{100 * self.median:.1f} / {100 * self.rmspe:.1f} ({100 * self.mean:+.1f})"


def others(runs: Sequence[Run], network: str) -> list[Run]:
    """Return the runs of all networks but one."""
    return [run for run in runs if run.network != network]


def left_out(costs: Costs, runs: Sequence[Run], correction: Correction) -> dict[str, Errors]:
    """Return each network's errors of time with the correction fitted to the other two."""
    found = {}
    for network in NETWORKS:
        fitted = fit_times(costs, others(runs, network), correction)
        own = [run for run in runs if run.network == network]
        predicted = [plain_s(costs, run) + float(fitted @ correction(costs, run)) for run in own]
        found[network] = Errors.of(predicted, [run.total_s for run in own])
    return found


def fitted_platform(costs: Costs, runs: Sequence[Run]) -> Platform:
    """Return the platform with what is fitted to these runs."""
    times = fit_times(costs, runs, start_and_change)
    return with_fits(costs.platform, times, fit_powers(costs, runs, times))


def by_evaluation(platform: Platform, runs: Sequence[Run]) -> tuple[Errors, Errors]:
    """Return the errors of time and of energy of what our evaluation predicts."""
    costs = Costs(platform)
    seconds, joules = zip(*map(costs.predicted, runs), strict=True)
    times = Errors.of(seconds, [run.total_s for run in runs])
    return times, Errors.of(joules, [run.total_j for run in runs])


def comparison(costs: Costs, runs: Sequence[Run]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the first table, and print them as they come."""
    for network in NETWORKS:
        own = [run for run in runs if run.network == network]
        fitted = by_evaluation(fitted_platform(costs, others(runs, network)), own)
        shipped = by_evaluation(costs.platform, own)
        for quantity, ours, file in zip(("time", "energy"), fitted, shipped, strict=True):
            median, rmspe = PUBLISHED[network, quantity]
            published = f"{median:.1f} / {rmspe:.1f}"
            yield network, quantity, str(len(own)), published, ours.cell, file.cell
            print(network, quantity, published, ours.cell, file.cell)


def without(platform: Platform, **rules: object) -> Platform:
    """Return the platform with other rules of runs by blocks."""
    changed = block_runs_of(platform).model_copy(update=rules)
    return platform.model_copy(update={"block_runs": changed})


def trials(platform: Platform) -> Iterator[tuple[str, Costs, Correction]]:
    """Yield what is tried: its name, the costs, and what is fitted."""
    measured, plain = Costs(platform, view="as-measured"), Costs(platform)
    folded = Costs(without(platform, fused_activations=()))
    yield "all operators as they were measured one by one", measured, nothing
    yield "batch normalisation folded away", folded, nothing
    yield "activations computed with the convolution, too", plain, nothing
    yield "and a start of each block on a CPU", plain, start
    yield (
        "and a share of a block after another processor: **what the file has**",
        plain,
        (start_and_change),
    )
    yield "in place of that share: the measured delays of switching", plain, switching
    yield "in place of that share: the links' transfers", plain, transfers
    for name, rules in (
        ("start and share, batch normalisation folded only", {"fused_activations": ()}),
        ("start and share, the host's clock only for loading", {"host_cycles": 0.0}),
        ("start and share, loading at the default clock", {"loading_compute_share": 0.0}),
    ):
        yield name, Costs(without(platform, **rules)), start_and_change


@dataclass(frozen=True)
class ScaledCosts(Costs):
    """Costs in which the blocks of one processor follow its clock by a rule.

    Parameters
    ----------
    processor
        Platform index.
    rule
        Time of a block of a network at a point.
    """

    processor: int = 0
    rule: Callable[[str, int, BlockPoint], float] | None = None

    def block_s(self, network: str, block: int, point: BlockPoint) -> float:
        """Return the seconds of a block's operators by the rule, if it is of the processor."""
        if point.processor == self.processor and self.rule:
            return self.rule(network, block, point)
        return super().block_s(network, block, point)


def rules(costs: Costs) -> Mapping[str, Callable[[str, int, BlockPoint], float]]:
    """Return the rules of time by clock, by name; all start from the default clock."""
    platform = costs.platform
    clocks = {p.name: p.clock.default_frequency_hz for p in platform.processors}
    (profile,) = shipped_profiles(platform.profile_name)
    kept = tuple(m for m in profile.measurements if m.frequency_hz == clocks[m.processor])
    scaled = Costs(platform, profiles=[replace(profile, measurements=kept)])

    def default(network: str, block: int, point: BlockPoint) -> float:
        hz = platform.processors[point.processor].clock.default_frequency_hz
        return costs.block_s(network, block, BlockPoint(point.processor, hz))

    def cycles(network: str, block: int, point: BlockPoint) -> float:
        hz = platform.processors[point.processor].clock.default_frequency_hz
        return default(network, block, point) * hz / point.frequency_hz

    return {
        "measured at each clock": costs.block_s,
        "`clock.scaling`, by class": scaled.block_s,
        "t ∝ 1/f": cycles,
        "t does not depend on f": default,
    }


def scaling(costs: Costs, runs: Sequence[Run]) -> Iterator[tuple[str, ...]]:
    """Yield rows: processor, rule, median error of its blocks at other clocks, and of runs."""
    for p, processor in enumerate(costs.platform.processors):
        slower = [
            BlockPoint(p, point.frequency_hz)
            for point in processor.operating_points
            if point.frequency_hz != processor.clock.default_frequency_hz
        ]
        blocks = [(run.network, block) for run in _one_of_each(runs) for block in _blocks(run)]
        for name, rule in rules(costs).items():
            errors = [
                abs(rule(network, block, point) / costs.block_s(network, block, point) - 1)
                for network, block in blocks
                for point in slower
            ]
            using = ScaledCosts(costs.platform, costs.view, costs.profiles, processor=p, rule=rule)
            whole = left_out(using, runs, start_and_change)
            yield (
                processor.name, name, f"{100 * float(np.median(errors)):.1f}",
                *(whole[network].cell for network in NETWORKS),
            )  # fmt: skip


def _one_of_each(runs: Sequence[Run]) -> list[Run]:
    return [next(run for run in runs if run.network == name) for name in NETWORKS]


def _blocks(run: Run) -> range:
    return range(len(run.points))


def fits(costs: Costs, runs: Sequence[Run]) -> Iterator[tuple[str, ...]]:
    """Yield rows of what is fitted: which network is left out, start, share, α and β."""
    for name in (*NETWORKS, "none"):
        fitted = fitted_platform(costs, others(runs, name))
        known = block_runs_of(fitted)
        yield (
            name, f"{1e3 * known.cpu_start_s:.2f}", f"{100 * known.change_share:.1f}",
            *(
                f"{1e9 * each.power.alpha_w_per_v2_hz:.3f}, {each.power.beta_w_per_v:.3f}"
                for each in fitted.processors
            ),
        )  # fmt: skip


def page(path: Path) -> str:
    """Return the results for a table of runs, in Markdown."""
    platform = load_platform(PLATFORM)
    runs, empty = read_runs(path, platform)
    costs = Costs(platform)
    errors = [f"{network}, %" for network in NETWORKS]
    trial_rows = []
    for name, using, correction in trials(platform):
        found = left_out(using, runs, correction)
        trial_rows.append((name, *(found[network].cell for network in NETWORKS)))
        print(*trial_rows[-1])
    tables: list[tuple[str, Sequence[str], Sequence[Sequence[object]]]] = [
        (
            "Networks left out in turn, beside the authors' predictions",
            ("network", "", "runs", "authors, %", "left out, %", f"`{PLATFORM}`, %"),
            list(comparison(costs, runs)),
        ),
        ("What is missing: errors of time, networks left out", ("", *errors), trial_rows),
        (
            "How time follows the clock, processor by processor",
            ("processor", "rule", "its blocks, %", *errors),
            list(scaling(costs, runs)),
        ),
        (
            "What is fitted",
            ("left out", "start, ms", "share, %", *(f"{name}: α, β" for name in platform.names)),
            list(fits(costs, runs)),
        ),
    ]
    about = (
        f"{len(runs)} runs; {empty} more in the table have no figures. Errors of loading and "
        "network together: median / RMSPE (mean). α in nW/(V²·Hz), β in W/V."
    )
    lines = ["# Runs with a clock for each block", "", about]
    for title, head, rows in tables:
        lines += ["", f"## {title}", "", markdown_table(head, rows)]
    return "\n".join([*lines, ""])


@click.command()
@click.argument("runs", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS)
def main(*, runs: Path, out: Path) -> None:
    """Predict the runs of a table; write dvfs_runs.md."""
    (out / "dvfs_runs.md").write_text(page(runs), encoding="utf-8")


if __name__ == "__main__":
    main()
