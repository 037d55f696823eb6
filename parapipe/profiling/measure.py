"""Measures the time of single operators with ONNX Runtime, as rows of a profile.

This file needs onnxruntime and numpy, nothing of parapipe, so that `parapipe profile --bundle` can
put it on a board as it is, with the command (`measure_command`).

Protocol: the process is pinned to a processor's cores, the session has one thread for each of them.
After warming up, rounds go over all operators and processors in turn, in another order each
time; in a round an operator runs for some milliseconds in batches, and the median batch counts.
The result is the median round, over all identical processors, less what a session takes to run
an operator on one number. Where rounds differ by too much, more are added, up to a limit. On a
processor of one core, one thread does all the work, and its own clock counts, which stands while
other programs have the core; on more cores, batches in which threads waited for a core are dropped
while any others are left.
"""

from __future__ import annotations

import ctypes
import math
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import numpy as np
import onnxruntime as ort

KEY = ("type", "kernel", "strides", "attributes", "inputs", "output", "dtype", "then", "processor")
ROUNDS = 5
MOST_ROUNDS = 15
SPREAD_LIMIT = 0.05  # of the middle half of the rounds, as a share of their median
BATCHES = 3
BATCH_S = 1.5e-3
WARM_UP_S = 3e-3
CHUNK = 12  # operators whose sessions are open at the same time
CHUNK_BYTES = 400_000_000
DISTURBED = 0.02  # share of a batch that its threads waited for a core
SHORTEST_S = 1e-7

Row = dict[str, str]
Tell = Callable[[int, int], None]


def rows_measured(
    tasks: Mapping[str, Any],
    folder: Path,
    done: set[tuple[str, ...]],
    tell: Tell = lambda _done, _total: None,
    failed: Callable[[str], None] = lambda _sentence: None,
) -> Iterator[list[Row]]:
    """Measure what is not done yet; yield rows of a profile, some operators at a time.

    Parameters
    ----------
    tasks
        `processors` (name, cores, frequency_hz, provider, its options, its threads_option for the
        number of threads, same_as: the first that is identical),
        `operators` (file, cells of the profile, names of the processors to run on) and `overhead`,
        the model of a tiny operator.
    folder
        Where the models' files are.
    done
        Keys (cells of `KEY`) of rows that there are already.
    tell
        Called with the numbers of operators measured and of all.
    failed
        Called with a sentence for each operator that ONNX Runtime does not run.
    """
    processors = {each["name"]: each for each in tasks["processors"]}
    pending = [
        (operator, [name for name in operator["processors"] if key_of(operator, name) not in done])
        for operator in tasks["operators"]
    ]
    pending = [(operator, names) for operator, names in pending if names]
    total = sum(len(names) for _, names in pending)
    finished = 0
    shuffle = random.Random(0)
    with preserve_thread_state():
        for chunk in _chunks(pending, folder):
            runs = []
            for operator, names in chunk:
                for name in names:
                    try:
                        runs.append(Run(folder, operator, processors[name]))
                    except Exception as error:  # noqa: BLE001 - ONNX Runtime raises many kinds
                        reason = " ".join(str(error).split())[:200]
                        failed(f"{operator['file']} on {name} ({operator['name']}): {reason}")
            names = list(dict.fromkeys(run.processor["name"] for run in runs))
            overheads = [Run(folder, tasks["overhead"], processors[name]) for name in names]
            start = finished

            def tell_share(share: float, start: int = start, runs: int = len(runs)) -> None:
                tell(start + int(share * runs), total)

            _rounds([*runs, *overheads], shuffle, tell_share)
            finished += sum(len(names) for _, names in chunk)
            tell(finished, total)
            overheads_s = _pool_rounds(overheads)
            times_s = _pool_rounds(runs)
            yield [
                run.row(times_s[run.shared], median(overheads_s[overhead.shared]))
                for run in runs
                for overhead in overheads
                if overhead.processor is run.processor
            ]


def _pool_rounds(runs: Sequence[Run]) -> dict[tuple[str, str], list[float]]:
    """Put the rounds of an operator on identical processors together."""
    pooled: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        pooled.setdefault(run.shared, []).extend(run.times_s)
    return pooled


def _chunks(pending: Sequence[Any], folder: Path) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    size_bytes = 0
    for operator, names in pending:
        own_bytes = (folder / operator["file"]).stat().st_size * len(names)
        if chunk and (len(chunk) == CHUNK or size_bytes + own_bytes > CHUNK_BYTES):
            yield chunk
            chunk, size_bytes = [], 0
        chunk.append((operator, names))
        size_bytes += own_bytes
    if chunk:
        yield chunk


def _rounds(runs: Sequence[Run], shuffle: random.Random, tell: Callable[[float], None]) -> None:
    """Take rounds over all runs in turn, then more over those that vary."""
    for number in range(MOST_ROUNDS):
        chosen = [run for run in runs if number < ROUNDS or run.noisy]
        shuffle.shuffle(chosen)
        for run in chosen:
            run.sample()
        tell(min((number + 1) / ROUNDS, 1))


def key_of(operator: Mapping[str, Any], processor: str) -> tuple[str, ...]:
    """Return what tells the row of an operator on a processor from others: cells of `KEY`."""
    cells = {**operator["cells"], "processor": processor}
    return tuple(str(cells[column]) for column in KEY)


@contextmanager
def preserve_thread_state() -> Iterator[None]:
    """Give the thread back the cores that it had, and what it did with denormal numbers."""
    before = os.sched_getaffinity(0)
    library = ctypes.CDLL(None)
    floating = (ctypes.c_uint32 * 16)()  # no less than the C library's environment takes
    is_saved = hasattr(library, "fegetenv") and library.fegetenv(floating) == 0
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
        if is_saved:
            library.fesetenv(floating)


class Run:
    """An operator on a processor: its session, and the times of its rounds."""

    def __init__(
        self, folder: Path, operator: Mapping[str, Any], processor: Mapping[str, Any]
    ) -> None:
        self.operator, self.processor = operator, processor
        self.cores = set(processor["cores"])
        self.times_s: list[float] = []
        self.clocks_hz: list[float] = []
        self.loads: list[float] = []
        self.disturbed = False
        self.pin()
        self.session = session(
            folder / operator["file"],
            len(self.cores),
            processor["provider"],
            processor["options"],
            processor["threads_option"],
        )
        self.binding = bind_tensors(self.session)
        self.run()
        times_s: list[float] = []
        while sum(times_s) < WARM_UP_S:
            times_s.append(self.time_batch(1)[0])
        self.batch = max(1, math.ceil(BATCH_S / max(median(times_s), SHORTEST_S)))

    def run(self) -> None:
        """Run the operator once."""
        self.session.run_with_iobinding(self.binding)

    def sample(self) -> None:
        """Take one round."""
        self.pin()
        batches = [self.time_batch(self.batch) for _ in range(BATCHES)]
        good = [time_s for time_s, disturbed in batches if not disturbed]
        self.disturbed = self.disturbed or not good
        # Where all were disturbed, the one that was the least stands for them.
        self.times_s.append(median(good) if good else min(time_s for time_s, _ in batches))
        self.clocks_hz.append(clock_hz(min(self.cores)) if self.cores else 0)
        self.loads.append(os.getloadavg()[0])

    def time_batch(self, count: int) -> tuple[float, bool]:
        """Return seconds for one of `count` runs, and whether other programs were in the way."""
        clock = thread_time if len(self.cores) == 1 else perf_counter
        before_s, begin_s = waited_s(), clock()
        for _ in range(count):
            self.run()
        time_s = clock() - begin_s
        away_s = waited_s() - before_s if len(self.cores) > 1 else 0.0
        return time_s / count, away_s > DISTURBED * time_s

    def pin(self) -> None:
        """Bind the calling thread to the processor's cores."""
        if self.cores:
            os.sched_setaffinity(0, self.cores)

    @property
    def shared(self) -> tuple[str, str]:
        """The operator and what its processor is like: runs with the same share their rounds."""
        return self.operator["file"], self.processor.get("same_as", self.processor["name"])

    @property
    def noisy(self) -> bool:
        """Whether the middle half of the rounds spreads too far, or all of one was disturbed."""
        return self.disturbed or _is_spread(self.times_s)

    def row(self, times_s: Sequence[float], overhead_s: float) -> Row:
        """Return the row of a profile; `times_s` holds the rounds on identical processors too."""
        time_s = max(median(times_s) - overhead_s, SHORTEST_S)
        clock = median(self.clocks_hz)
        spread = (max(times_s) - min(times_s)) / time_s
        return {
            **{name: str(cell) for name, cell in self.operator["cells"].items()},
            "processor": self.processor["name"],
            "frequency_hz": f"{self.processor['frequency_hz']:.0f}",
            "time_s": f"{time_s:.9f}",
            "rows": str(len(times_s)),
            "spread": f"{spread:.4f}",
            "method": "timed",
            "observed_hz": f"{clock:.0f}" if clock else "",
            "load": f"{median(self.loads):.2f}",
            "noisy": "1" if self.disturbed or _is_spread(times_s) else "",
        }


def _is_spread(times_s: Sequence[float]) -> bool:
    ordered = sorted(times_s)
    quarter = len(ordered) // 4
    return ordered[-1 - quarter] - ordered[quarter] > SPREAD_LIMIT * median(ordered)


def session(
    model: Path | bytes,
    threads: int,
    provider: str,
    provider_options: Mapping[str, str] | None = None,
    threads_option: str | None = None,
) -> Any:  # noqa: ANN401 - untyped
    """Open a session that runs one operator after the other on that many threads.

    `threads_option` is that of the provider's options which takes their number, if it has threads
    of its own.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1 if threads_option else max(threads, 1)
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    # Idle threads of one session would take the cores from the next.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    options.add_session_config_entry("session.use_env_allocators", "1")  # if the caller has any
    source = model if isinstance(model, bytes) else str(model)
    own = {threads_option: str(max(threads, 1))} if threads_option else {}
    providers = {provider: {**own, **(provider_options or {})}, "CPUExecutionProvider": {}}
    if provider not in ort.get_available_providers():
        raise RuntimeError(f"this ONNX Runtime does not offer {provider}")
    opened = ort.InferenceSession(
        source, options, providers=list(providers.items()), enable_fallback=False
    )
    if opened.get_providers()[0] != provider:
        raise RuntimeError(f"{provider} is not there with its options")
    return opened


def bind_tensors(opened: Any) -> Any:  # noqa: ANN401 - onnxruntime is untyped
    """Bind seeded inputs, and room for the outputs, so that a run neither copies nor allocates."""
    binding = opened.io_binding()
    generator = np.random.default_rng(0)
    for value in opened.get_inputs():
        name = value.type[len("tensor(") : -1]
        kind = np.dtype("float32" if name == "float" else name)
        array = np.zeros(value.shape, kind)
        if kind.kind == "f":
            array = generator.uniform(0.1, 1, value.shape).astype(kind)
        binding.bind_ortvalue_input(value.name, ort.OrtValue.ortvalue_from_numpy(array))
    outputs = [value.name for value in opened.get_outputs()]
    for name in outputs:
        binding.bind_output(name, "cpu")
    opened.run_with_iobinding(binding)
    results = binding.get_outputs()
    for position, name in enumerate(outputs):
        binding.bind_ortvalue_output(name, results[position])
    return binding


def waited_s() -> float:
    """Return the seconds that this process's threads wanted a core and had none."""
    waited = 0
    try:
        for task in Path("/proc/self/task").iterdir():
            waited += int((task / "schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return waited * 1e-9


def clock_hz(core: int) -> float:
    """Return the frequency that a core runs at now; 0 if the kernel does not say."""
    try:
        current = Path(f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq")
        if current.exists():
            return float(current.read_text()) * 1e3
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except (OSError, ValueError):
        return 0.0
    speeds = [line.partition(":")[2] for line in lines if line.startswith("cpu MHz")]
    return float(speeds[core]) * 1e6 if core < len(speeds) else 0.0
