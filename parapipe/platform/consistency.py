"""Contradictions between parts of a platform, its back ends among them.

Whether one is there depends on how ONNX Runtime was built; who runs a plan finds out.
Source: https://onnxruntime.ai/docs/execution-providers/

The functions take the raw values of a file, so that all mistakes are told at once: what is not
of the expected shape is passed over here, because its own mistake is told elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Literal

from parapipe.files.mistakes import KeyPath, Mistake, did_you_mean, key_text, listed, nearest
from parapipe.platform.sections import part_cores, stream_names

PREFIX = "onnxruntime-"
CPU = f"{PREFIX}cpu"

Kind = Literal["cpu", "gpu", "npu"]


@dataclass(frozen=True, slots=True)
class Backend:
    """An execution provider.

    Parameters
    ----------
    provider
        ONNX Runtime's name for it.
    runs_on
        For people: the hardware, and the library that drives it.
    kinds
        Kinds of processors that it runs on; several may stand for the same chip.
    threads_option
        Its option for the number of threads, if it has threads of its own on a CPU.
    options
        Options that are set by kind, where a platform gives them no other value.
    """

    provider: str
    runs_on: str
    kinds: tuple[Kind, ...]
    threads_option: str | None = None
    options: Mapping[Kind, Mapping[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What a platform file calls it: `onnxruntime-openvino`."""
        return PREFIX + self.provider.removesuffix("ExecutionProvider").lower()


# OpenVINO would bind threads to cores by itself, and leave them free of ours afterwards.
_OPENVINO: Mapping[Kind, Mapping[str, str]] = {
    "cpu": {"device_type": "CPU", "load_config": '{"CPU": {"ENABLE_CPU_PINNING": "NO"}}'},
    "gpu": {"device_type": "GPU"},
    "npu": {"device_type": "NPU"},
}

BACKENDS: Mapping[str, Backend] = {
    each.name: each
    for each in (
        Backend("CPUExecutionProvider", "any CPU, ONNX Runtime's own kernels", ("cpu",)),
        Backend(
            "XnnpackExecutionProvider", "Arm and x86 CPUs, XNNPACK", ("cpu",),
            threads_option="intra_op_num_threads",
        ),
        Backend(
            "OpenVINOExecutionProvider", "Intel CPUs, GPUs and NPUs, OpenVINO",
            ("cpu", "gpu", "npu"), threads_option="num_of_threads", options=_OPENVINO,
        ),
        Backend("ACLExecutionProvider", "Arm CPUs, Arm Compute Library", ("cpu",)),
        Backend("DnnlExecutionProvider", "x86 CPUs, oneDNN", ("cpu",)),
        Backend("CUDAExecutionProvider", "NVIDIA GPUs, cuDNN", ("gpu",)),
        Backend("TensorrtExecutionProvider", "NVIDIA GPUs, TensorRT", ("gpu",)),
        Backend("NvTensorRTRTXExecutionProvider", "NVIDIA RTX GPUs, TensorRT", ("gpu",)),
        Backend("MIGraphXExecutionProvider", "AMD GPUs, MIGraphX", ("gpu",)),
        Backend("ROCMExecutionProvider", "AMD GPUs, ROCm", ("gpu",)),
        Backend("DmlExecutionProvider", "GPUs on Windows, DirectML", ("gpu",)),
        Backend("WebGpuExecutionProvider", "GPUs, WebGPU", ("gpu",)),
        Backend("QNNExecutionProvider", "Qualcomm's NPUs and GPUs, QNN", ("npu", "gpu")),
        Backend("CoreMLExecutionProvider", "Apple's NPUs and GPUs, Core ML", ("npu", "gpu")),
        Backend("NnapiExecutionProvider", "NPUs and GPUs on Android, NNAPI", ("npu", "gpu")),
        Backend("RknpuExecutionProvider", "Rockchip's first NPUs, RKNPU DDK", ("npu",)),
        Backend("VSINPUExecutionProvider", "VeriSilicon's NPUs, TIM-VX", ("npu",)),
        Backend("TIDLExecutionProvider", "TI's C7x and MMA, TIDL, in TI's builds", ("npu",)),
        Backend("CANNExecutionProvider", "Huawei's NPUs, CANN", ("npu",)),
        Backend("VitisAIExecutionProvider", "AMD's NPUs, Vitis AI", ("npu",)),
    )
}  # fmt: skip
"""Providers by the name that a platform file gives them, those of CPUs first."""


def backend_mistake(backend: str) -> str:
    """Return what is wrong with a backend that is said to be ONNX Runtime's; empty if nothing."""
    if not backend.startswith(PREFIX) or backend in BACKENDS:
        return ""
    return (
        f"'{backend}' is no execution provider that is known; docs/backends.md lists them"
        f"{did_you_mean(backend, BACKENDS)}"
    )


MANY_PROCESSORS = 32
OCCUPIED = ("nothing", "sender", "receiver")
_CUTOFFS = (0.6, 0.8)  # how similar to these a link's own name may be, given once or more often
SOURCE_KEYS = ("source", "voltage_source")
EACH = -1  # in a path: every item of a list
_NAMED_TWICE = "'{0}' is also the name of {1}; rename one"


def contradictions(raw: object) -> Iterator[Mistake]:
    """Yield every contradiction in the raw values of a platform file."""
    names = [
        name for _, name in values_at(raw, "processors", EACH, "name") if isinstance(name, str)
    ]
    kinds = {
        str(value_at(processor, "name")): value_at(processor, "kind")
        for _, processor in values_at(raw, "processors", EACH)
    }
    yield from _repetitions(values_at(raw, "processors", EACH, "name"), _NAMED_TWICE)
    text = "core {0} is already listed in {1}; list it once"
    yield from _repetitions(values_at(raw, "processors", EACH, "cores", EACH), text)
    for path, processor in values_at(raw, "processors", EACH):
        yield from _wrong_host(processor, kinds, path)
        yield from _wrong_backend(processor, path)
        yield from _wrong_clock(processor, path)
        yield from _wrong_peaks(processor, path)
        yield from _wrong_divisions(processor, names, path)
        yield from _wrong_streams(processor, names, path)
    yield from _wrong_links(raw, names)
    yield from _wrong_occupations(raw, names)
    yield from _wrong_memories(raw, names)
    yield from _wrong_spread(raw)
    yield from _unknown_sources(raw)


def values_at(
    value: object, *steps: str | int, path: KeyPath = ()
) -> Iterator[tuple[KeyPath, Any]]:
    """Yield what is found at the end of some steps, with its path; nothing if they lead nowhere."""
    if not steps:
        yield path, value
    elif steps[0] == EACH:
        for index, item in enumerate(value if isinstance(value, tuple | list) else ()):
            yield from values_at(item, *steps[1:], path=(*path, index))
    elif isinstance(value, Mapping) and steps[0] in value:
        yield from values_at(value[steps[0]], *steps[1:], path=(*path, steps[0]))


def value_at(value: object, *steps: str) -> Any:  # noqa: ANN401 - whatever a file says
    """Return what is found at the end of some steps; None if they lead nowhere."""
    return next((item for _, item in values_at(value, *steps)), None)


def is_number(value: object) -> bool:
    """Whether it is a number, which True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_positive_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _repetitions(values: Iterable[tuple[KeyPath, object]], text: str) -> Iterator[Mistake]:
    """Yield each value that was found before; the text tells it and the first one's processor."""
    first: dict[object, KeyPath] = {}
    for path, value in values:
        if not (is_number(value) or isinstance(value, str)):
            continue
        if first.setdefault(value, path) != path:
            yield Mistake(path, text.format(value, key_text(first[value][:2])))


def _wrong_host(processor: object, kinds: Mapping[str, object], path: KeyPath) -> Iterator[Mistake]:
    host = value_at(processor, "host")
    if not isinstance(host, str):
        return
    # A kind that is itself misspelt says nothing about who is a CPU.
    if value_at(processor, "kind") == "cpu":
        yield Mistake((*path, "host"), "a CPU needs no host; delete the key")
    elif kinds.get(host) in (None, "gpu", "npu", "dsp"):
        cpus = ", ".join(name for name, kind in kinds.items() if kind == "cpu") or "none"
        yield Mistake((*path, "host"), f"'{host}' is no CPU of this platform; known: {cpus}")


def _wrong_backend(processor: object, path: KeyPath) -> Iterator[Mistake]:
    backend = value_at(processor, "backend")
    if not isinstance(backend, str):
        return
    if mistake := backend_mistake(backend):
        yield Mistake((*path, "backend"), mistake)
    elif value_at(processor, "options") and backend not in BACKENDS:
        text = f"only ONNX Runtime's backends take options, and '{backend}' is none; delete the key"
        yield Mistake((*path, "options"), text)


def _wrong_clock(processor: object, path: KeyPath) -> Iterator[Mistake]:
    points = [*values_at(processor, "clock", "points", EACH, "frequency_hz", path=path)]
    yield from _repetitions(points, "{0} Hz is listed twice; keep one")
    frequencies = [frequency for _, frequency in points]
    default = value_at(processor, "clock", "default_frequency_hz")
    complete = len(points) == len([*values_at(processor, "clock", "points", EACH)])
    numbers = complete and bool(points) and all(map(is_number, (default, *frequencies)))
    if numbers and default not in frequencies:
        where = (*path, "clock", "default_frequency_hz")
        yield Mistake(where, f"{default} Hz is not among the points; add it or choose one of them")


def _wrong_peaks(processor: object, path: KeyPath) -> Iterator[Mistake]:
    data_types = [*values_at(processor, "data_types", EACH, path=path)]
    yield from _repetitions(data_types, "'{0}' is listed twice; keep one")
    types = [dtype for _, dtype in data_types if isinstance(dtype, str)]
    peaks = value_at(processor, "peak", "macs_per_s")
    if not isinstance(peaks, Mapping) or not types:
        return
    where = (*path, "peak", "macs_per_s")
    for dtype in dict.fromkeys(types):
        if dtype not in peaks:
            yield Mistake(where, f"has no peak for data type '{dtype}'; add it")
    for dtype in peaks:
        if dtype not in types:
            text = "is not among the data_types of the processor; add it there or delete it here"
            yield Mistake((*where, dtype), text)


def _wrong_divisions(processor: object, names: Sequence[str], path: KeyPath) -> Iterator[Mistake]:
    if value_at(processor, "divisions") is None:
        return
    cores, name = value_at(processor, "cores"), value_at(processor, "name")
    if not (isinstance(cores, tuple | list) and cores):
        text = "there are no cores to divide; list them under cores, or delete the key"
        yield Mistake((*path, "divisions"), text)
        return
    earlier: set[tuple[object, ...]] = set()
    for where, sizes in values_at(processor, "divisions", "into", EACH, path=path):
        if not isinstance(sizes, tuple | list) or not all(map(_is_positive_count, sizes)):
            continue
        division = "+".join(map(str, sizes))
        if sum(sizes) != len(cores):
            yield Mistake(where, f"{division} are {sum(sizes)} cores, and there are {len(cores)}")
        elif tuple(sizes) in earlier:
            yield Mistake(where, f"{division} is listed twice; keep one")
        elif clashes := [each for each in part_cores(str(name), cores, sizes) if each in names]:
            text = (
                f"a part would be called {listed(clashes)}, as another processor; rename that one"
            )
            yield Mistake(where, text)
        earlier.add(tuple(sizes))


def _wrong_streams(processor: object, names: Sequence[str], path: KeyPath) -> Iterator[Mistake]:
    if value_at(processor, "streams") is None:
        return
    if value_at(processor, "divisions") is not None:
        text = "its cores are divided already; delete this key or divisions"
        yield Mistake((*path, "streams"), text)
    factors = value_at(processor, "streams", "slowdown")
    most = len(factors) if isinstance(factors, tuple | list) else 0
    own = value_at(processor, "name")
    called = {name for k in range(2, most + 1) for name in stream_names(own, k)}
    if clashes := [name for name in names if name in called]:
        text = f"a stream would be called {listed(clashes)}, as another processor; rename that one"
        yield Mistake((*path, "streams"), text)


def _wrong_links(platform: object, names: Sequence[str]) -> Iterator[Mistake]:
    covered: dict[tuple[str, str], KeyPath] = {}
    readable = True
    for path, link in values_at(platform, "links", EACH):
        one, other = ends = value_at(link, "from"), value_at(link, "to")
        for key, end in zip(("from", "to"), ends, strict=True):
            if isinstance(end, str) and end not in names:
                text = f"no processor is named '{end}'; known: {', '.join(names) or 'none'}"
                yield Mistake((*path, key), text + did_you_mean(end, names))
        if one not in names or other not in names:
            readable = False
        elif one == other:
            text = f"joins '{one}' with itself, which costs nothing; delete it"
            yield Mistake(path, text)
        else:
            both_ways = value_at(link, "both_ways") is True
            for pair in (ends, ends[::-1]) if both_ways else (ends,):
                if (first := covered.setdefault(pair, path)) != path:
                    text = f"{pair[0]} to {pair[1]} is already covered by {key_text(first)}"
                    yield Mistake(path, f"{text}; delete one")
    # Where an end is misspelt, the pair it leaves open is not a second mistake.
    if readable and len(names) <= MANY_PROCESSORS:
        pairs = permutations(dict.fromkeys(names), 2)
        if missing := [f"{p} to {q}" for p, q in pairs if (p, q) not in covered]:
            yield Mistake(("links",), f"nothing is said of {listed(missing)}; add a link for each")


def _wrong_spread(platform: object) -> Iterator[Mistake]:
    state, common = (value_at(platform, "spread", key) for key in ("state", "common"))
    if is_number(state) and is_number(common) and common > state:
        text = f"{common} is more than the whole state moves, {state}; it is contained in that"
        yield Mistake(("spread", "common"), text)


def _wrong_occupations(platform: object, names: Sequence[str]) -> Iterator[Mistake]:
    occupations = [*values_at(platform, "links", EACH, "occupies")]
    names_used = [occupied for _, occupied in occupations]
    for path, occupied in occupations:
        if not isinstance(occupied, str) or occupied in OCCUPIED:
            continue
        if occupied in names:
            text = f"'{occupied}' is a processor; write sender or receiver, whichever it is"
            yield Mistake(path, text)
        elif near := nearest(occupied, OCCUPIED, cutoff=_CUTOFFS[names_used.count(occupied) > 1]):
            text = f"'{occupied}' would be the name of a shared link; did you mean '{near}'?"
            yield Mistake(path, f"{text} If not, choose a name that is less like it")


def _wrong_memories(platform: object, names: Sequence[str]) -> Iterator[Mistake]:
    memories = [*values_at(platform, "memories", EACH)]
    yield from _repetitions(values_at(platform, "memories", EACH, "name"), _NAMED_TWICE)
    placed = [*values_at(platform, "memories", EACH, "processors", EACH)]
    text = "processor '{0}' already stands in {1}; list it once"
    yield from _repetitions(placed, text)
    for path, name in placed:
        if isinstance(name, str) and name not in names:
            message = f"no processor is named '{name}'; known: {', '.join(names) or 'none'}"
            yield Mistake(path, message + did_you_mean(name, names))
    for path, memory in memories:
        free, capacity = value_at(memory, "free_bytes"), value_at(memory, "capacity_bytes")
        if is_number(free) and is_number(capacity) and free > capacity:
            message = "is more than capacity_bytes; correct one of them"
            yield Mistake((*path, "free_bytes"), message)
    placed_names = {name for _, name in placed if isinstance(name, str)}
    if (
        memories
        and len(placed_names) == len(placed)
        and placed_names <= {*names}
        and (missing := [n for n in names if n not in placed_names])
    ):
        yield Mistake(("memories",), f"nothing is said of {listed(missing)}; add them to a memory")


def _unknown_sources(platform: object) -> Iterator[Mistake]:
    sources = value_at(platform, "sources")
    if not isinstance(sources, Mapping):
        return
    places: dict[str, list[KeyPath]] = {}
    for path, source in named_sources(platform):
        places.setdefault(source, []).append(path)
    for source, paths in places.items():
        if source not in sources:
            more = f" (nor for {len(paths) - 1} more sections)" if len(paths) > 1 else ""
            near = did_you_mean(source, map(str, sources))
            yield Mistake(
                paths[0], f"'{source}' is not among the sources{more}; add it there{near}"
            )


def named_sources(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield the sources that each section names, with the path of the key that names one."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in SOURCE_KEYS and isinstance(item, str):
                yield (*path, key), item
            elif path or key != "sources":
                yield from named_sources(item, (*path, str(key)))
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from named_sources(item, (*path, index))
