"""`python -m benchmarks.doubt_here --work DIR`: runs on this machine against predicted intervals.

The machine is described as a platform of processors of one core each (`platforms detect`, whose
processors are watched for ten minutes) and ten networks are profiled. All predictions are made and
written down before anything is measured against them; whatever is in the folder DIR is not measured
again, so a run that was stopped goes on.

*Intervals.* Of each network three configurations run: the sequential one, the para-only one and the
pipeline of single processors; where one is missing, replicated processors. In each of two rounds
over all of them, sessions are opened anew and three bursts are taken, of which the median counts:
frames let in every 1.25 predicted periods give the latency, and of configurations that work on
several frames at once, saturated ones the period. With [a, b] the interval that holds nine of ten
draws of the costs, the share of measured figures in [a, b] is told, and half the median width, as a
share of the figure. 80 to 95 % is what the intervals promise; above that they are too wide.

*Hand-overs.* Errors of the para-only latencies, as predicted and with hand-overs that take no time;
and what hand-overs are made of: by how much a segment's thread works longer than its operators are
predicted to take, and how long an idle processor takes to begin with what another one has made.

*Ranks.* A program of higher priority takes half of the second core, in turns of 0.2 ms. How much
slower this makes convolutions there is measured, and the profile's times of that core are
multiplied with it; hand-overs are detected anew beside that program. Of five networks' fronts, each
of eight or more, some ten configurations of different latency run, in three rounds; told is
Spearman's correlation of predicted latency with the median of the rounds, within each network.

Other programs spoil all of it; the share of its time for which a run's threads were without a core
is written down. *By processor time* is what the processor times of a run's segments give, with
hand-overs as predicted, as in `benchmarks.run_on_this_machine`; it stands beside a run and is none.
Run this on a machine at rest. The third part needs the right to raise a program's priority.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

import parapipe
from benchmarks.doubt_here_page import page
from benchmarks.hand_over_parts import more_than_operators_s, wake_up_s
from benchmarks.machine import description, load
from benchmarks.rival import rival
from benchmarks.run_cases import Case, executed, wait_for_quiet
from parapipe import Configuration, ParetoFront
from parapipe.api.load import load_platform
from parapipe.cost.profile import read_profile, write_profile
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.profiling.figures import burst_s
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder
from parapipe.uncertainty.causes import uncertain_costs
from parapipe.uncertainty.samples import figures_at_costs
from parapipe.zoo.registry import write as write_model

NETWORKS = (
    *("squeezenet", "mobilenet-v1", "mobilenet-v2", "alexnet", "googlenet", "resnet-50"),
    *("densenet-121", "inception-v3", "gpt:1", "bert-base"),
)
RANKED = ("googlenet", "mobilenet-v2", "resnet-50", "densenet-121", "inception-v3")
KINDS = ("sequential", "para-only", "pipe-only", "replicated-T")
WANTED_KINDS = 3
ROUNDS, RANK_ROUNDS = 2, 3
BURSTS = 3
WATCH_S = 600.0
TAKEN, TURN_S = 0.5, 0.2e-3  # share of the second core that the other program takes, and its turn
SLOWED_BURSTS = 10
RANKED_CONFIGURATIONS = 10
LEAST_RANKED = 8
APART = (
    0.02,
    0.01,
    0.005,
)  # shares by which predicted latencies differ: the first that gives so many
PAGE = Path(__file__).parent / "results" / "doubt_here.md"
INTERVALS, RANKS = "intervals", "ranks"

Beside = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Predicted:
    """A configuration and what is predicted of it.

    Parameters
    ----------
    plan
        Name of its plan's file, beside the one that holds this.
    latency, period
        Ends of the intervals.
    free_latency_s
        Latency with hand-overs that take no time.
    """

    network: str
    name: str
    kind: str
    stages: str
    plan: str
    latency_s: float
    latency: tuple[float, float]
    period_s: float
    period: tuple[float, float]
    free_latency_s: float


def main_part(networks: Sequence[str], platform: Path, work: Path) -> Iterator[Predicted]:
    """Yield what is predicted of three configurations of each network."""
    for network in networks:
        model, profile = profiled(network, platform, work)

        def chosen(front: ParetoFront) -> list[Configuration]:
            named = {name: each for each in front for name in each.names}
            return [named[kind] for kind in KINDS if kind in named][:WANTED_KINDS]

        yield from predicted(
            network,
            model=model,
            platform=platform,
            profile=profile,
            folder=work / INTERVALS,
            choose=chosen,
        )


def rank_part(
    networks: Sequence[str], platform: Path, slowed: Path, factor: float, work: Path
) -> Iterator[Predicted]:
    """Yield what is predicted of some ten configurations of each network beside that program."""
    second = load_platform(slowed).names[1]
    for network in networks:
        model, profile = profiled(network, platform, work)
        times = work / f"{file_name(network)}-slowed.csv"
        write_profile(
            times,
            [
                replace(each, time_s=each.time_s * factor) if each.processor == second else each
                for each in read_profile(profile).measurements
            ],
        )
        yield from predicted(
            network,
            model=model,
            platform=slowed,
            profile=times,
            folder=work / RANKS,
            choose=apart,
            resolution=0.0,
        )


def profiled(network: str, platform: Path, work: Path) -> tuple[Path, Path]:
    """Return a network's file and its profile, which are made if they are not there."""
    model, profile = (work / f"{file_name(network)}.{end}" for end in ("onnx", "csv"))
    if not model.exists():
        write_model(network, model)
    if not (done := profile.with_suffix(".done")).exists():
        say(f"{network}: is profiled")
        parapipe.profile(model, platform, out=profile)
        done.touch()
    return model, profile


def file_name(network: str) -> str:
    """Return a network's name as part of a file's."""
    return network.replace(":", "-")


def predicted(
    network: str,
    *,
    model: Path,
    platform: Path,
    profile: Path,
    folder: Path,
    choose: Callable[[ParetoFront], Sequence[Configuration]],
    **options: Any,  # noqa: ANN401 - those of `map`
) -> list[Predicted]:
    """Return what is predicted of a network's configurations, as it was written down first."""
    path = folder / f"{file_name(network)}.json"
    if not path.exists():
        say(f"{network}: is mapped")
        front = parapipe.map(
            model,
            platform,
            interleave="none",
            profiles=[profile],
            note=lambda _note: None,
            **options,
        )
        folder.mkdir(exist_ok=True)
        rows = [row_of(network, each, folder) for each in choose(front)]
        path.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    found = json.loads(path.read_text(encoding="utf-8"))
    return [
        Predicted(**row | {key: tuple(row[key]) for key in ("latency", "period")}) for row in found
    ]


def row_of(network: str, each: Configuration, folder: Path) -> Predicted:
    """Return what is predicted of a configuration, whose plan is written."""
    assert each.intervals
    plan = f"{file_name(network)}-{each.id}.plan.json"
    each.plan().save(folder / plan)
    return Predicted(
        network=network,
        name=each.id,
        kind=each.kind,
        stages=each.drawing,
        plan=plan,
        latency_s=each.latency_s,
        latency=each.intervals.latency_s,
        period_s=each.period_s,
        period=each.intervals.period_s,
        free_latency_s=without_hand_overs_s(each),
    )


def without_hand_overs_s(each: Configuration) -> float:
    """Return the latency of a configuration if hand-overs took no time, in the same order."""
    mapping = each.configuration.mapping
    causes = uncertain_costs(
        mapping, each.costs, [operator.id for operator in each.graph.operators]
    )
    stated = causes.costs(np.zeros((len(causes.causes), 2)))
    costs = replace(stated, moves=np.array([1.0, 0.0]))
    figures = figures_at_costs(mapping, costs, latency_s=each.latency_s, period_s=each.period_s)
    return float(figures.latency_s[1])


def apart(front: ParetoFront) -> list[Configuration]:
    """Return configurations whose predicted latencies differ, evenly spread if there are more."""
    found: list[Configuration] = []
    for share in APART:
        if len(found) < LEAST_RANKED:
            found = []
            for each in sorted(front, key=lambda each: each.latency_s):
                if not found or each.latency_s > found[-1].latency_s * (1 + share):
                    found.append(each)
    count = min(len(found), RANKED_CONFIGURATIONS)
    return [found[round(i * (len(found) - 1) / max(count - 1, 1))] for i in range(count)]


class Runs:
    """What was measured so far, a line of JSON for each run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines if line.endswith("}")]

    def take(
        self, part: str, rows: Iterable[Predicted], rounds: int, work: Path, beside: Beside
    ) -> None:
        """Run what was not run yet, round after round."""
        done = {(row["part"], row["network"], row["name"], row["round"]) for row in self.rows}
        left = [
            (turn, each)
            for turn in range(rounds)
            for each in rows
            if (part, each.network, each.name, turn) not in done
        ]
        with beside():
            for number, (turn, each) in enumerate(left, 1):
                figures = measured(each, work / f"{file_name(each.network)}.onnx", work / part)
                row = {"part": part, "network": each.network, "name": each.name, "round": turn}
                self.rows.append({**row, **figures, "at_s": time.time()})
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(self.rows[-1]) + "\n")
                off = figures["latency_s"] / each.latency_s - 1
                say(
                    f"{part}, run {number} of {len(left)}: {each.network} {each.name} {each.kind}, "
                    f"latency {figures['latency_s'] * 1e3:.2f} ms ({off:+.1%}), load {load()}"
                )

    def of(self, part: str, each: Predicted) -> list[dict[str, Any]]:
        """Return the runs of a configuration, in the order of rounds."""
        mine = (part, each.network, each.name)
        found = [row for row in self.rows if (row["part"], row["network"], row["name"]) == mine]
        return sorted(found, key=lambda row: row["round"])


def measured(each: Predicted, model: Path, folder: Path) -> dict[str, Any]:
    """Run a plan in sessions of its own; return the medians of some bursts."""
    plan = parapipe.load_plan(folder / each.plan)
    with TemporaryDirectory(dir=folder) as place:
        write_session_folder(plan, model, Path(place))
        executor = Executor(open_folder(Path(place)))
        segments = {one.id: one.operators for one in executor.folder.segments}
        case = Case(each.network, each.name, "", "", plan, segments, executed(executor, plan))
        case.bursts += [case.run() for _ in range(BURSTS)]
    found = case.record()
    figures = ("latency_s", "period_s", "work_latency_s", "work_period_s", "waited")
    return {
        "segments": len(executor.folder.segments),
        "more_than_operators_s": more_than_operators_s(executor),
        "wake_up_s": wake_up_s(executor),
        **{name: found[name] for name in figures},
    }


def slowed_by(core: int, beside: Beside) -> float:
    """Return how much longer convolutions take on a core beside another program."""

    def taken_s() -> float:
        return median(burst_s([core], own=False) for _ in range(SLOWED_BURSTS))

    free_s = taken_s()
    with beside():
        return taken_s() / free_s


def detected(path: Path, watch_s: float, beside: Beside = nullcontext) -> Path:
    """Return the description of this machine, of one core a processor, made if it is not there."""
    if not path.exists():
        say(f"{path.name}: the machine is described, in {watch_s:.0f} s and some more")
        cores = len(os.sched_getaffinity(0))
        with beside():
            parapipe.detect_platform(name="machine", split=cores, watch_s=watch_s).write(path)
    return path


def say(sentence: str) -> None:
    """Tell how far it is."""
    click.echo(sentence, err=True)


@click.command()
@click.option("--network", "networks", multiple=True, default=NETWORKS, help="Of the zoo.")
@click.option("--ranked", multiple=True, default=RANKED, help="Networks whose ranks are compared.")
@click.option("--watch", "watch_s", default=WATCH_S, show_default=True, help="Seconds.")
@click.option("--wait", "wait_s", default=60.0, show_default=True, help="For quiet, at the begin.")
@click.option("--work", type=click.Path(path_type=Path), required=True, help="Keeps all results.")
@click.option("--out", type=click.Path(path_type=Path), default=PAGE, help="The page.")
def main(
    *,
    networks: Sequence[str],
    ranked: Sequence[str],
    watch_s: float,
    wait_s: float,
    work: Path,
    out: Path,
) -> None:
    """Predict, measure, and write the page."""
    about = description() | {"ONNX Runtime": version("onnxruntime")}
    work = work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    wait_for_quiet(time.monotonic() + wait_s)
    platform = detected(work / "machine.yaml", watch_s)
    runs = Runs(work / "runs.jsonl")
    rows = list(main_part(networks, platform, work))
    runs.take(INTERVALS, rows, ROUNDS, work, nullcontext)
    second = load_platform(platform).processors[1].cores[0]
    beside = partial(rival, second, TAKEN, TURN_S)
    factor = _once(work / "slowed.json", lambda: slowed_by(second, beside))
    say(f"the second core is slowed by a factor of {factor:.3f}")
    slowed = detected(work / "slowed.yaml", 1.0, beside)
    others = list(rank_part(ranked, platform, slowed, factor, work))
    runs.take(RANKS, others, RANK_ROUNDS, work, beside)
    found: Mapping[str, Any] = {
        "intervals": [(each, runs.of(INTERVALS, each)) for each in rows],
        "ranks": [(each, runs.of(RANKS, each)) for each in others],
        "factor": factor,
        "platforms": [load_platform(each) for each in (platform, slowed)],
    }
    text = page(**found, about={**about, "load when ended": load()})
    out.write_text(text, encoding="utf-8")
    click.echo(text)


def _once(path: Path, number: Callable[[], float]) -> float:
    if not path.exists():
        path.write_text(json.dumps(number()), encoding="utf-8")
    return float(json.loads(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
