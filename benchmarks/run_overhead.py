"""`python -m benchmarks.run_overhead`: what the executor itself takes for a frame.

A chain of k segments, each a Sigmoid of one number, alternates between two processors of one core
(so every segment waits for another thread), or stays on one. The frames of a saturated run take P
seconds of processor time each, of all threads, and leave the pipeline T seconds apart. A session's
run of such a segment takes s seconds of processor time. Then P/k − s is what a segment costs
besides, and a straight line through P(k) says what a frame costs, with no segment, and what each
segment adds. Watched because plans with many short segments are worth nothing if they pay for it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time, thread_time

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.machine import description, load
from benchmarks.tables import markdown_table, write_csv
from parapipe.runtime.document import (
    SCHEMA,
    Channel,
    Model,
    Prediction,
    Processor,
    Result,
    Segment,
    SessionPlan,
    Tensor,
    WholeModel,
)
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import CPU_PROVIDER, open_folder
from parapipe.runtime.frames import random_frames

RESULTS = Path(__file__).parent / "results"
COUNTS = (1, 2, 4, 8, 16, 32, 64)
FRAMES = 500
WARM_UP = 100
ROUNDS = 3
MICRO = 1e6


def chain(
    place: Path, segments: int, processors: int, stage: int = 1, *, interleaved: bool = False
) -> None:
    """Write a folder of segments in a row, so many of them on each of the processors in turn.

    Interleaved, each segment is a frame behind the one before, so that nobody has to wait.
    """
    lent = sorted(os.sched_getaffinity(0))
    names = [f"t{at}" for at in range(segments + 1)]
    processor_of = [f"cpu{at // stage % processors}" for at in range(segments)]
    for at in range(segments):
        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
            for name in names[at : at + 2]
        ]
        node = helper.make_node("Sigmoid", [names[at]], [names[at + 1]])
        graph = helper.make_graph([node], f"s{at}", ends[:1], ends[1:])
        opset = [helper.make_opsetid("", 14)]
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), place / f"{at}.onnx")
    document = SessionPlan(
        schema=SCHEMA,
        model=Model(f"chain of {segments}", "0" * 64),
        platform="this machine",
        processors=tuple(
            Processor(f"cpu{at}", "cpu", (lent[at % len(lent)],), 1, CPU_PROVIDER, 1e9)
            for at in range(min(processors, segments))
        ),
        inputs=(names[0],),
        outputs=(Result(names[-1], f"s{segments - 1}"),),
        tensors={name: Tensor("float32", (1,), 4) for name in names},
        segments=tuple(
            Segment(
                id=f"s{at}", file=f"{at}.onnx", processor=processor_of[at], stage=0,
                lag=at if interleaved else 0, position=at,
                inputs=(names[at],), outputs=(names[at + 1],), operators=(names[at + 1],),
                start_s=0.0, end_s=1e-5, time_s=1e-5,
            )
            for at in range(segments)
        ),
        channels=tuple(
            Channel(
                tensor=names[at], kind="stage" if at else "input",
                producer=f"s{at - 1}" if at else None, processor=processor_of[at],
                consumers=(f"s{at}",), queue_depth=2, time_s=0.0,
            )
            for at in range(segments)
        ),
        predicted=Prediction(1e-3, 1e-3, 1e-3, 0.0, 0.0),
        whole=WholeModel("network.onnx", "this machine", "cpu"),
        files={},
    )  # fmt: skip
    (place / "plan.json").write_text(json.dumps(asdict(document)))


def measured(segments: int, processors: int) -> dict[str, float]:
    """Return microseconds for a frame: processor time of all threads, and period."""
    with TemporaryDirectory() as place:
        chain(Path(place), segments, processors)
        executor = Executor(open_folder(Path(place)))
        frames = list(random_frames(executor.folder, FRAMES))
        for _ in executor.run(frames[:WARM_UP]):
            pass
        processor_s, period_s = [], []
        for _ in range(ROUNDS):
            begin_s = process_time()
            for _ in executor.run(frames):
                pass
            processor_s.append((process_time() - begin_s) / FRAMES)
            done_s = [frame.done_s for frame in executor.record.frames]
            period_s.append((done_s[-1] - done_s[0]) / (FRAMES - 1))
    return {
        "processors": processors,
        "segments": segments,
        "processor_us": MICRO * min(processor_s),
        "period_us": MICRO * min(period_s),
    }


def session_us() -> float:
    """Return microseconds of a bare run of one such segment."""
    from parapipe.profiling.measure import session

    with TemporaryDirectory() as place:
        chain(Path(place), 1, 1)
        opened = session(Path(place) / "0.onnx", 1, "CPUExecutionProvider")
        given = {"t0": np.zeros(1, np.float32)}
        times_s = []
        for _ in range(ROUNDS):
            begin_s = thread_time()
            for _ in range(FRAMES):
                opened.run(["t1"], given)
            times_s.append((thread_time() - begin_s) / FRAMES)
    return MICRO * min(times_s)


def main() -> None:
    """Measure chains on one processor and on two, and write the results."""
    about = description()
    bare_us = session_us()
    rows = [measured(count, processors) for processors in (1, 2) for count in COUNTS]
    write_csv(rows, RESULTS / "run_overhead.csv")
    fits = {
        processors: np.polyfit(
            [row["segments"] for row in rows if row["processors"] == processors],
            [row["processor_us"] for row in rows if row["processors"] == processors],
            1,
        )
        for processors in (1, 2)
    }
    text = (
        "# What the executor takes for a frame\n\n"
        + markdown_table(["machine", ""], [*about.items(), ("load when ended", load())])
        + f"\n\nA bare run of such a segment's session takes {bare_us:.1f} µs. "
        + " ".join(
            f"On {processors} processor{'s' if processors > 1 else ''} a frame takes "
            f"{constant:.0f} µs and {slope:.0f} µs for each segment, of processor time."
            for processors, (slope, constant) in fits.items()
        )
        + "\n\nThe least of three runs, in µs:\n\n"
        + markdown_table(
            ["processors", "segments", "processor time of a frame", "for each segment", "period"],
            [
                [
                    row["processors"], row["segments"], f"{row['processor_us']:.0f}",
                    f"{row['processor_us'] / row['segments']:.0f}", f"{row['period_us']:.0f}",
                ]
                for row in rows
            ],
        )
        + "\n"
    )  # fmt: skip
    (RESULTS / "run_overhead.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
