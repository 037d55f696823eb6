"""`python -m benchmarks.several_here --work DIR`: several models at once on this machine.

GoogLeNet, SqueezeNet and a BERT of two layers on 32 tokens share two processors of one core each.
In a pattern there are 1, 3 and 2 frames of them; the rates that are asked are `LOAD` times what the
processors can do by loads. That leaves headroom: loads count operators one by one and no hand-over,
and a pattern of 206 segments on both cores of a machine took 28 % longer than its load, one of nine
segments 6 %. Of the front, patterns whose rates could grow by `HEADROOM` or more are run: the one
with the fewest frames on their way (rates times latencies), the one whose rates could grow most,
and the best with processors of its own for each model. Each runs three times: one pattern after the
other at the rates that are asked, which gives rates and latencies; as fast as they can, which gives
the shortest period; and as often as the plan can sustain, with frames that come at random. 500
patterns count in each, after a quarter as many to warm up.

A rate is kept if frames come out at it: to within a two-hundredth, since the run ends some time
after the last frame has come. Latencies are from when a frame comes by the plan to its end. The
results of each frame are compared with those of a session of its model alone. The shortest period
is told in steps, so that one sees what makes it longer: by loads; with the plan's segments and
queues; the same with the times that segments took here; and what was measured, hand-overs
included. Watched because a pattern is of no use if real threads do not follow it.

Other programs spoil the figures: run this on a machine at rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from math import ceil, inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click

import parapipe
from benchmarks.machine import description
from benchmarks.run_cases import detected
from benchmarks.run_equality import error
from benchmarks.tables import markdown_table
from parapipe.api.front import Configuration
from parapipe.api.load import locate_model
from parapipe.documents.build_run import WARM_UP_SHARE
from parapipe.documents.run_schema import ModelRunRow, RunDocument
from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.plan.schema import Plan
from parapipe.profiling.measure import session
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder
from parapipe.runtime.frames import DISTINCT, random_frames
from parapipe.zoo.registry import write
from parapipe.zoo.transformer import bert_base

FRAMES_IN_PATTERN = {"googlenet": 1.0, "squeezenet": 3.0, "bert": 2.0}
LAYERS, TOKENS, VOCABULARY = 2, 32, 2000  # of the BERT
LOAD = 0.7  # of what the processors can do, by loads
PATTERNS = 500  # that count
KEPT = 0.005  # share by which a rate may differ
HEADROOM = 1.2  # times the rates that are asked, by loads
NAMES = ("most-growth", "own-processors")
PAGE = Path(__file__).parent / "results" / "several_here.md"
HEAD = (
    *("pattern", "model", "frames", "asked, fps", "out, fps", "kept"),
    *("latency predicted, ms", "median, ms", "off", "99 of 100, ms", "largest difference"),
)
PERIODS = (
    *("pattern", "who runs what", "segments", "shortest period by loads, ms"),
    *("with segments and queues, ms", "with their measured times, ms", "measured, ms", "off"),
    *("growth predicted", "measured"),
)
RANDOM = (
    *("pattern", "model", "frames", "turns used, predicted", "measured", "median, ms", "p95, ms"),
    *("p99 predicted, ms", "p99, ms"),
)

Sessions = Mapping[str, Any]


class Measured(NamedTuple):
    """Cells of the tables: of each model, of the pattern, of each model with random frames."""

    served: list[list[object]]
    period: list[object]
    random: list[list[object]]


def models_in(work: Path) -> dict[str, Path]:
    """Return the files of the models, made if they are not there."""
    found = {name: work / f"{name}.onnx" for name in FRAMES_IN_PATTERN}
    for name, path in found.items():
        if path.exists():
            continue
        if name == "bert":
            made = bert_base(layers=LAYERS, tokens=TOKENS, vocabulary=VOCABULARY)
            path.write_bytes(made.SerializeToString(deterministic=True))
        else:
            write(name, path)
    return found


def mapped(work: Path) -> parapipe.ParetoFront:
    """Profile the models, and map them at rates that leave some room."""
    platform, models = detected(work).resolve(), models_in(work)
    profiles = []
    for name, path in models.items():
        profiles.append(work / f"{name}.csv")
        if not profiles[-1].exists():
            parapipe.profile(path, platform, out=profiles[-1])
    given: dict[str, Any] = {"profiles": profiles, "note": lambda _note: None}
    sizes = {name: 1e-3 * count for name, count in FRAMES_IN_PATTERN.items()}
    known = parapipe.map(models, platform, rates=sizes, **given).document.several
    assert known is not None
    rates = {name: rate * known.shared * LOAD for name, rate in sizes.items()}
    return parapipe.map(models, platform, rates=rates, **given)


def rates_of(front: parapipe.ParetoFront) -> dict[str, float]:
    """Return frames a second that are asked, by model."""
    assert front.document.several is not None
    return {each.name: each.rate_fps for each in front.document.several.models}


def chosen(front: parapipe.ParetoFront) -> dict[str, Configuration]:
    """Return the configurations that are run, by name."""
    rates = rates_of(front)
    able = [each for each in front if each.several and each.several.rate_factor >= HEADROOM]
    if not able:
        raise click.ClickException(f"no pattern could grow by {HEADROOM}: lower LOAD")

    def on_their_way(each: Configuration) -> float:
        got = each.several.models if each.several else {}
        return sum(rates[name] * model.latency_s for name, model in got.items())

    quick = {"quick": min(able, key=on_their_way)}
    return quick | {name: each for name in NAMES for each in able if name in each.names}


def difference(plan: Plan, sessions: Sessions, patterns: int) -> dict[str, float]:
    """Return how far results are from those of sessions of their own, by model."""
    assert plan.models is not None
    worst: dict[str, float] = dict.fromkeys((each.short_name for each in plan.models), 0.0)
    with locate_model(plan) as file, TemporaryDirectory() as place:
        write_session_folder(plan, file, Path(place))
        folder = open_folder(Path(place))
        frames = list(random_frames(folder, patterns))
        wanted = [alone(plan, sessions, frame) for frame in frames[:DISTINCT]]
        for number, made in enumerate(Executor(folder).run(frames)):
            for model in plan.models:
                for prefix in model.prefixes:
                    own = {
                        name: each
                        for name, each in wanted[number % DISTINCT].items()
                        if name.startswith(prefix)
                    }
                    found = error(made, own)
                    worst[model.short_name] = max(worst[model.short_name], found)
    return worst


def alone(plan: Plan, sessions: Sessions, frame: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a frame of the plan, of each model's session by itself."""
    found: dict[str, Any] = {}
    for model in plan.models or ():
        run = sessions[model.short_name]
        for prefix in model.prefixes:
            fed = {
                name.removeprefix(prefix): each
                for name, each in frame.items()
                if name.startswith(prefix)
            }
            names = [each.name for each in run.get_outputs()]
            made = run.run(names, fed)
            found |= {prefix + name: each for name, each in zip(names, made, strict=True)}
    return found


def measured(
    name: str, found: Configuration, asked: Mapping[str, float], sessions: Sessions, patterns: int
) -> Measured:
    """Run a pattern, and return the cells of the tables."""
    plan, frames = found.plan(), patterns + ceil(patterns / (WARM_UP_SHARE - 1))
    paced = parapipe.run_plan(plan, frames=frames).document
    fast = parapipe.run_plan(plan, frames=frames, saturate=True).document
    drawn = parapipe.run_plan(plan, frames=frames, random_arrivals=True).document
    apart = difference(plan, sessions, frames)
    return Measured(
        [
            _served(name, model, asked[model.name], apart[model.name])
            for model in paced.models or ()
        ],
        _period(name, found, fast),
        [_at_random(name, model) for model in drawn.models or ()],
    )


def _served(name: str, model: ModelRunRow, asked_fps: float, apart: float) -> list[object]:
    out_fps = model.observed_fps or 0.0
    return [
        name,
        model.name,
        model.frames,
        f"{asked_fps:.2f}",
        f"{out_fps:.2f}",
        "yes" if out_fps >= asked_fps * (1 - KEPT) else "no",
        f"{model.predicted_s * 1e3:.2f}",
        f"{model.median_s * 1e3:.2f}",
        f"{model.predicted_s / model.median_s - 1:+.1%}",
        f"{model.p99_s * 1e3:.2f}",
        f"{apart:.0e}",
    ]


def _period(name: str, found: Configuration, fast: RunDocument) -> list[object]:
    period, measured_s = fast.period, fast.period.observed_s or inf
    steps_s = (period.sustained_s, period.limit_s, period.observed_limit_s, measured_s)
    return [
        name,
        found.drawing,
        len(fast.tasks),
        *(f"{each * 1e3:.2f}" for each in steps_s),
        f"{period.sustained_s / measured_s - 1:+.1%}",
        f"{period.predicted_s / period.sustained_s:.2f}",
        f"{period.predicted_s / measured_s:.2f}",
    ]


def _at_random(name: str, model: ModelRunRow) -> list[object]:
    found = model.random
    assert found is not None
    times_s = (found.median_s, found.p95_s, found.predicted_p99_s, found.p99_s)
    return [
        name,
        model.name,
        found.frames,
        f"{found.predicted_utilisation:.0%}",
        f"{found.utilisation:.0%}",
        *("none" if each is None else f"{each * 1e3:.1f}" for each in times_s),
    ]


@click.command()
@click.option("--work", required=True, type=click.Path(path_type=Path), help="Folder for files.")
@click.option("--patterns", default=PATTERNS, show_default=True, type=click.IntRange(10))
@click.option("--page", "page_file", default=PAGE, type=click.Path(path_type=Path))
def main(*, work: Path, patterns: int, page_file: Path) -> None:
    """Profile, map and run several models on this machine; write the page."""
    about: dict[str, Any] = description() | {"ONNX Runtime": version("onnxruntime")}
    work.mkdir(parents=True, exist_ok=True)
    front = mapped(work)
    sessions = {
        name: session(path, 1, "CPUExecutionProvider") for name, path in models_in(work).items()
    }
    runs: list[Measured] = []
    for name, found in chosen(front).items():
        runs.append(measured(name, found, rates_of(front), sessions, patterns))
        for cells in (*runs[-1].served, runs[-1].period, *runs[-1].random):
            click.echo(" | ".join(map(str, cells)))
        page_file.write_text(page(runs, front, about), encoding="utf-8")


def page(
    runs: Sequence[Measured],
    front: parapipe.ParetoFront,
    about: Mapping[str, str],
) -> str:
    """Return the page."""
    several = front.document.several
    assert several is not None
    ways = {
        "shared": several.shared,
        "own processors": several.own_processors and several.own_processors.rate_factor,
        "one after the other": several.in_turn.rate_factor,
        "a single processor each": several.one_each and several.one_each.rate_factor,
        "bound": several.bound,
    }
    factors = [[f"{each:.2f}" if each else "none" for each in ways.values()]]
    served = [cells for run in runs for cells in run.served]
    periods = [run.period for run in runs]
    random = [cells for run in runs for cells in run.random]
    return (
        "# Several models at once on this machine\n\n"
        "Written by `python -m benchmarks.several_here`; `benchmarks/several_here.py` says how. "
        "GoogLeNet, SqueezeNet and a BERT of two layers on two processors of one core each.\n\n"
        "By how much all rates could grow, by loads:\n\n"
        f"{markdown_table([*ways], factors)}\n\n"
        f"At the rates that are asked, {LOAD:.0%} of what the processors can do by loads:\n\n"
        f"{markdown_table(HEAD, served)}\n\n"
        "As fast as they can:\n\n"
        f"{markdown_table(PERIODS, periods)}\n\n"
        "Frames of each model come at random, at the rates that are asked on average, and the "
        "pattern repeats as often as the plan can sustain:\n\n"
        f"{markdown_table(RANDOM, random)}\n\n"
        f"{markdown_table(['measured on', ''], list(about.items()))}\n"
    )


if __name__ == "__main__":
    main()
