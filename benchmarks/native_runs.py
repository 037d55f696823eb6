"""What `benchmarks.native_here` runs in turn: sessions, OpenVINO, plans on the native runner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from time import perf_counter

import parapipe
from benchmarks.run_cases import pinned
from parapipe.api.load import load_model, load_platform
from parapipe.api.plan import Plan
from parapipe.cost.cost_table import build_cost_table
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.plan.build import build_plan
from parapipe.profiling.measure import bind_tensors, session
from parapipe.zoo.registry import write

CORES = sorted(os.sched_getaffinity(0))[:2]
LEAST_FRAMES, MOST_FRAMES = 3, 60
BURST_S = 1.0  # of frames in a row, if that is no fewer and no more of them
SPARE = 1.1  # of the predicted latency, between frames of which each is alone
WARM_UP = 1
TOLD_TIMES = "times_s "  # before what a process of OpenVINO measured


@dataclass
class Times:
    """Seconds of a case, frame by frame."""

    frames_s: list[float] = field(default_factory=list)

    @property
    def typical_s(self) -> float:
        """The median."""
        return median(self.frames_s)

    @property
    def undisturbed_s(self) -> float:
        """Mean of the fastest tenth."""
        return fmean(sorted(self.frames_s)[: max(1, len(self.frames_s) // 10)])


def ratio(over: Times | None, under: Times | None) -> str:
    """Return one time over another, that of undisturbed frames in brackets; empty without one."""
    if over is None or under is None:
        return ""
    least = over.undisturbed_s / under.undisturbed_s
    return f"{over.typical_s / under.typical_s:.2f} ({least:.2f})"


def error(predicted_s: float, times: Times) -> str:
    """Return by how much a prediction is longer than what was measured."""
    return f"{predicted_s / times.typical_s - 1:+.1%}"


def milliseconds(seconds: float) -> str:
    """Return seconds as text in milliseconds."""
    return f"{seconds * 1e3:.2f}"


def frames_for(frame_s: float) -> int:
    """Return how many frames make a burst."""
    return min(MOST_FRAMES, max(LEAST_FRAMES, round(BURST_S / frame_s)))


def model_file(network: str, folder: Path) -> Path:
    """Return the file of a network of the zoo in a folder, written if it is not there."""
    file = folder / f"{network}.onnx"
    if not file.exists():
        write(network, file)
    return file


def profile_of(file: Path, platform: Path, *, parts: bool = False) -> Path:
    """Return a profile by the runner's kernels beside a model, measured if it is not there."""
    profile = file.with_name(f"{file.stem}-{'parts' if parts else 'whole'}.csv")
    if not profile.exists():
        parapipe.profile_on_runtime(file, platform, "native", out=profile, parts=parts)
    return profile


def one_core_plan(file: Path, platform: Path) -> Plan:
    """Return a plan with all operators on the first processor, with nominal times."""
    graph, target = load_model(file, note=lambda _: None), load_platform(platform)
    costs = build_cost_table(graph, target, profiles=[], precision="model")
    count = len(graph.operators)
    alone = Assignment((0,) * count, (tuple(range(count)),), ordered=True)
    return Plan.of(build_plan(graph, target, costs, mapping_of(graph, target, costs, alone)))


def session_times(file: Path, cores: Sequence[int], frames: int | None = None) -> list[float]:
    """Run the whole network in a session, a thread for each core; return seconds of each frame."""
    times_s: list[float] = []
    with pinned(cores):
        opened = session(file, len(cores), "CPUExecutionProvider")
        binding = bind_tensors(opened)
        while len(times_s) < WARM_UP + (frames or (frames_for(times_s[-1]) if times_s else 1)):
            begin_s = perf_counter()
            opened.run_with_iobinding(binding)
            times_s.append(perf_counter() - begin_s)
    return times_s[WARM_UP:]


def native_times(
    plan: Plan, file: Path, frames: int, strategy: str = "plan", *, alone: bool = False
) -> tuple[list[float], list[float]]:
    """Run a plan; return seconds of each frame, and between frames' ends.

    Processors that take turns on frames may end theirs at about the same time, so what counts
    between ends is what as many frames as there are processors take together.

    Parameters
    ----------
    alone
        Admit a frame when the one before should be through, not as soon as a processor is free.
    """
    run = parapipe.run_plan(
        plan, model=file, frames=frames, warmup=WARM_UP, saturate=not alone, runtime="native",
        strategy=strategy,
        period_s=SPARE * plan.predicted.latency_s if alone else None,
    )  # fmt: skip
    found = run.record.frames
    return [each.done_s - each.admitted_s for each in found], between_ends(
        sorted(each.done_s for each in found), len(plan.processors)
    )


def between_ends(ends_s: Sequence[float], together: int) -> list[float]:
    """Return seconds between ends, sorted: what so many frames take, by their number."""
    pairs = zip(ends_s, ends_s[together:], strict=False)
    return [(later - one) / together for one, later in pairs]


def openvino_times(file: Path, cores: Sequence[int], frames: int) -> list[float] | None:
    """Run the whole network in OpenVINO, for least latency; None if it is not installed.

    In a process of its own: its threads keep the cores that there were at their first use.
    """
    words = [sys.executable, "-m", __name__, str(file), ",".join(map(str, cores)), str(frames)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    told = [line for line in done.stdout.splitlines() if line.startswith(TOLD_TIMES)]
    if not told:
        if "No module named 'openvino'" in done.stderr:
            return None
        raise RuntimeError(f"OpenVINO on {file.name}: {done.stderr.strip().splitlines()[-1:]}")
    times_s: list[float] = json.loads(told[0].removeprefix(TOLD_TIMES))
    return times_s


def _run_openvino(file: str, cores: Sequence[int], frames: int) -> list[float]:
    import numpy as np
    import openvino

    os.sched_setaffinity(0, cores)
    options: Mapping[str, object] = {
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": len(cores),
        "INFERENCE_PRECISION_HINT": "f32",  # or it computes in bfloat16 where that is fast
    }
    compiled = openvino.Core().compile_model(file, "CPU", dict(options))
    request = compiled.create_infer_request()
    draw = np.random.default_rng(0)
    for number, each in enumerate(compiled.inputs):
        values = draw.random(tuple(each.shape)).astype(each.element_type.to_dtype())
        request.set_input_tensor(number, openvino.Tensor(values))
    times_s = []
    for _ in range(frames + WARM_UP):
        begin_s = perf_counter()
        request.infer()
        times_s.append(perf_counter() - begin_s)
    return times_s[WARM_UP:]


if __name__ == "__main__":
    lent = [int(core) for core in sys.argv[2].split(",")]
    print(TOLD_TIMES + json.dumps(_run_openvino(sys.argv[1], lent, int(sys.argv[3]))))
