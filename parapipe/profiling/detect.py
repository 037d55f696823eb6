"""A machine as a platform file: what the kernel tells, and what short tests measure.

What nobody tells and no test can measure is nominal, and its source says so: voltages, and power.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import yaml

from parapipe.errors import ProfilingError
from parapipe.files.atomic import refuse_changed, write_atomically
from parapipe.platform.consistency import BACKENDS, PREFIX, Backend, Kind
from parapipe.platform.from_part import four_digits
from parapipe.platform.load import read_platform
from parapipe.platform.platform import Platform
from parapipe.profiling.detected_co_runs import CoRunFigures, co_run_figures
from parapipe.profiling.detected_sources import ACCELERATOR_SOURCES, SOURCES
from parapipe.profiling.figures import (
    STEADY,
    Figures,
    StateSpread,
    accelerator_figures,
    cpu_figures,
    watch_states,
)
from parapipe.profiling.identical_figures import HandOver, HandOvers, same_figures
from parapipe.profiling.providers import onnx_runtime
from parapipe.profiling.topology import (
    Cluster,
    chosen_clusters,
    clusters_of,
    read_cores,
    split_clusters,
)

NOMINAL_V = 1.0
NOMINAL_HZ = 1e9
CORE_W = 1.0
ACCELERATOR_W = 1.0
STATIC_SHARE = 0.1
LEAST_HZ = 1e6
BUSY = 0.5  # processes that want a core, besides this one

Device = tuple[str, Kind]  # name of a backend, and the kind of processor that it runs on


@dataclass(frozen=True, slots=True)
class MachineFigures:
    """All that is measured of a machine's processors, in their order.

    Parameters
    ----------
    cpus
        Of each CPU processor.
    hand_overs
        By pair of CPU processors.
    accelerators
        Of each backend and kind of processor that ran.
    state
        Spread of the state of CPU processors.
    watched_s
        Seconds for which that was watched.
    co_runs
        What processors do to each other; None of a single one.
    """

    cpus: tuple[Figures, ...]
    hand_overs: HandOvers
    accelerators: Mapping[Device, Figures]
    state: StateSpread = STEADY
    watched_s: float = 0.0
    co_runs: CoRunFigures | None = None


@dataclass(frozen=True, slots=True)
class DetectedPlatform:
    """A platform file, and what is to be known about it.

    Parameters
    ----------
    text
        YAML that `load_platform` reads.
    notes
        Sentences.
    """

    text: str
    notes: tuple[str, ...]

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write the file as `NewPlatform.write` does."""
        place = Path(path)
        if not force:
            refuse_changed(place)
        write_atomically(place, self.text.encode())


def detect(
    *,
    name: str,
    hand_overs: Callable[[Platform, float], HandOvers],
    split: int | None = None,
    processors: Sequence[Sequence[int]] = (),
    watch_s: float,
) -> DetectedPlatform:
    """Describe this machine.

    Parameters
    ----------
    name
        Of the platform.
    hand_overs
        Measures hand-overs between the CPU processors of a platform by running plans; it is given
        the bandwidth of a copy.
    watch_s
        Seconds for which the state of the processors is watched.
    split
        Divide the cores of each cluster among so many processors.
    processors
        The cores of each processor, in place of the clusters.

    Raises
    ------
    RuntimeMissingError
        If ONNX Runtime is not installed.
    ProfilingError
        If this is no Linux.
    ArgumentError
        If `processors` lists what is not there.
    """
    runtime = onnx_runtime()
    clusters = clusters_here(split, processors)
    cpus = tuple(cpu_figures(cluster.cpus) for cluster in clusters)
    fastest = max(figures.bandwidth_bytes_per_s for figures in cpus)
    accelerators: dict[Device, Figures] = {}
    notes = []
    for backend, kind in devices(runtime.get_available_providers()):
        try:
            options = backend.options.get(kind, {})
            figures = accelerator_figures(backend.provider, options, fastest)
            accelerators[backend.name, kind] = figures
        except Exception as error:  # noqa: BLE001 - providers raise many kinds
            reason = " ".join(str(error).split())[:200]
            notes.append(f"{backend.provider} is offered and runs on no {kind} here: {reason}")
    hardware = [(_description(each), tuple(each.cores[0].frequencies_hz)) for each in clusters]
    state = watch_states([cluster.cpus for cluster in clusters], watch_s)
    costless = dict.fromkeys(permutations(range(len(clusters)), 2), HandOver(0.0, fastest, 0.0))
    shared, _ = same_figures(hardware, cpus, costless)
    measured = MachineFigures(shared, costless, accelerators, state, watch_s)
    if costless:
        draft = read_platform(platform_text(name, clusters, measured), f"a draft of '{name}'")
        overheads = same_figures(hardware, cpus, hand_overs(draft, fastest))[1]
        measured = replace(measured, hand_overs=overheads)
    described = read_platform(platform_text(name, clusters, measured), f"a draft of '{name}'")
    co_runs, more_notes = co_run_figures(described, clusters)
    text = platform_text(name, clusters, replace(measured, co_runs=co_runs))
    read_platform(text, f"the description of '{name}'")
    notes += more_notes
    notes.append("power is not known: energy counts core-seconds, see the source nominal-power")
    load = os.getloadavg()[0]
    if load > BUSY:
        notes.append(
            f"other programs were at work (load {load:.1f}): bandwidths and hand-overs may look "
            "slower than they are; detect again when the machine is at rest"
        )
    return DetectedPlatform(text, tuple(notes))


def devices(offered: Sequence[str]) -> Iterator[tuple[Backend, Kind]]:
    """Yield the backends of providers that may run on something else than the CPU, and on what."""
    for backend in BACKENDS.values():
        if backend.provider in offered:
            for kind in backend.options or backend.kinds[:1]:
                if kind != "cpu":
                    yield backend, kind


def clusters_here(
    split: int | None = None, chosen: Sequence[Sequence[int]] = ()
) -> tuple[Cluster, ...]:
    """Return the CPU processors of this machine, of cores that this process may use."""
    if not hasattr(os, "sched_getaffinity"):
        raise ProfilingError("this system does not let a program choose its cores; use Linux")
    allowed = os.sched_getaffinity(0)
    cores = [core for core in read_cores() if core.cpu in allowed]
    return processors_of(clusters_of(cores), split, chosen)


def processors_of(
    clusters: Sequence[Cluster], split: int | None, chosen: Sequence[Sequence[int]]
) -> tuple[Cluster, ...]:
    """Return the CPU processors: the clusters, divided as asked for."""
    if chosen:
        return chosen_clusters(clusters, chosen)
    return tuple(clusters) if split is None else split_clusters(clusters, split)


def platform_text(name: str, clusters: Sequence[Cluster], measured: MachineFigures) -> str:
    """Return the platform file of a machine with these processors and figures."""
    cpus = [_cpu_section(*each) for each in zip(clusters, measured.cpus, strict=True)]
    host = max(zip(measured.cpus, cpus, strict=True), key=lambda pair: _peak(pair[0]))[1]["name"]
    others = [_accelerator_section(each, f, host) for each, f in measured.accelerators.items()]
    bandwidth = max(figures.bandwidth_bytes_per_s for figures in measured.cpus)
    sources = dict(SOURCES) | (dict(ACCELERATOR_SOURCES) if others else {})
    if len(clusters) < 2:
        del sources["hand-over"]
    reasoning = (
        f"State: between two moments of {measured.watched_s:.0f} s, in which each CPU opened and "
        "ran a session of convolutions again and again; common is what all of them did at the "
        "same time. Hand-overs: runs of these networks, and what overhead and bandwidth say of "
        "them."
    )
    if measured.co_runs:
        measured.co_runs.add_draws([*cpus, *others])
    else:
        del sources["co-runs"]
    sources["spread"] = {**sources["spread"], "reasoning": reasoning}
    states = {name: four_digits(value) for name, value in asdict(measured.state).items()}
    spreads = [each.spread for each in measured.hand_overs.values()]
    hand_overs = {"hand_overs": four_digits(max(spreads))} if spreads else {}
    document: dict[str, Any] = {
        "schema": "parapipe/platform/1",
        "name": name,
        "description": "; ".join(p["description"] for p in (*cpus, *others)),
        "board": {"idle_power_w": 0.0, "source": "nominal-power"},
        "memory": {
            "bandwidth_bytes_per_s": four_digits(bandwidth),
            "lower_bound": True,  # one core copied
            "source": "copy",
        },
        "processors": [*cpus, *others],
        **(measured.co_runs.sections() if measured.co_runs else {}),
        "spread": {**states, **hand_overs, "source": "spread"},
        "links": _link_sections([p["name"] for p in (*cpus, *others)], measured),
        "sources": {key: dict(source) for key, source in sources.items()},
    }
    head = (
        "# Detected by `parapipe platforms detect`; what each number is worth stands in sources.\n"
    )
    return head + yaml.safe_dump(document, sort_keys=False, width=100, allow_unicode=True)


def _cpu_section(cluster: Cluster, figures: Figures) -> dict[str, Any]:
    core = cluster.cores[0]
    if core.top_hz < LEAST_HZ:
        raise ProfilingError(
            f"the kernel reports no frequency for core {core.cpu}, neither in cpufreq nor in "
            "/proc/cpuinfo: describe this machine by hand, see docs/platforms.md"
        )
    peaks = dict(figures.peak_macs_per_s)
    peaks |= {"bool": peaks["int32"]} if "int32" in peaks else {}
    return {
        "name": cluster.name,
        "kind": "cpu",
        "backend": "onnxruntime-cpu",
        "description": _description(cluster),
        "cores": list(cluster.cpus),
        **_processor_sections(
            figures,
            peaks,
            frequencies_hz=core.frequencies_hz,
            sources=("kernel", "kernel"),
            full_w=CORE_W * len(cluster.cores),
            frame={"latency_s": 0.0, "source": "frame"},
        ),
    }


def _accelerator_section(device: Device, figures: Figures, host: str) -> dict[str, Any]:
    backend, kind = BACKENDS[device[0]], device[1]
    name = backend.name.removeprefix(PREFIX)
    return {
        "name": f"{name}-{kind}" if backend.options else name,
        "kind": kind,
        "backend": backend.name,
        "description": backend.provider,
        "host": host,
        **_processor_sections(
            figures,
            {"float32": _peak(figures)},
            frequencies_hz=[NOMINAL_HZ],
            sources=("provider", "provider-clock"),
            full_w=ACCELERATOR_W,
            frame={"latency_s": four_digits(figures.run_s / 2), "source": "provider-run"},
        ),
    }


def _processor_sections(
    figures: Figures,
    peaks: Mapping[str, float],
    *,
    frequencies_hz: Sequence[float],
    sources: tuple[str, str],
    full_w: float,
    frame: Mapping[str, float | str],
) -> dict[str, Any]:
    """Return what the file says of any processor, from its data types on.

    `sources` are those of the processor and of its frequencies.
    """
    points = [{"frequency_hz": hz, "voltage_v": NOMINAL_V} for hz in frequencies_hz]
    clock = {"default_frequency_hz": frequencies_hz[-1], "points": points}
    dynamic_w = (1 - STATIC_SHARE) * full_w
    bandwidth = {"bandwidth_bytes_per_s": four_digits(figures.bandwidth_bytes_per_s)}
    return {
        "data_types": list(peaks),
        "source": sources[0],
        "clock": {**clock, "source": sources[1], "voltage_source": "nominal-power"},
        "launch": {"overhead_s": four_digits(figures.launch_s), "source": "session"},
        "peak": {
            "macs_per_s": {dtype: four_digits(peak) for dtype, peak in peaks.items()},
            "source": "matrix-product",
        },
        "memory": {**bandwidth, "source": "copy"},
        # Coefficients of equation (8) that make up `full_w` at the nominal voltage.
        "power": {
            "alpha_w_per_v2_hz": float(f"{dynamic_w / (NOMINAL_V**2 * frequencies_hz[-1]):.8g}"),
            "beta_w_per_v": STATIC_SHARE * full_w / NOMINAL_V,
            "utilisation": {"default": 1.0},
            "source": "nominal-power",
        },
        "input": {"latency_s": frame["latency_s"], **bandwidth, "source": frame["source"]},
        "output": {**frame},
    }


def _link_sections(names: Sequence[str], measured: MachineFigures) -> list[dict[str, Any]]:
    """Return links between CPUs, then those from or to an accelerator, through a CPU's memory."""
    cpus, accelerators = len(measured.cpus), tuple(measured.accelerators.values())
    between_cpus, others = [], []
    for p, q in permutations(range(len(names)), 2):
        link: dict[str, Any] = {"from": names[p], "to": names[q]}
        if ends := [accelerators[end - cpus] for end in (p, q) if end >= cpus]:
            link["latency_s"] = four_digits(sum(figures.run_s for figures in ends) / 2)
            bandwidth = min(figures.bandwidth_bytes_per_s for figures in ends)
            link["bandwidth_bytes_per_s"] = four_digits(bandwidth)
            others.append({**link, "source": "provider-run"})
        else:
            hand_over = measured.hand_overs[p, q]
            link["latency_s"] = 0.0
            link["bandwidth_bytes_per_s"] = four_digits(hand_over.bandwidth_bytes_per_s)
            overhead = {"overhead_s": four_digits(hand_over.overhead_s), "source": "hand-over"}
            link |= {"synchronisation": overhead}
            link |= {"occupies": "receiver"} if hand_over.busy else {}
            between_cpus.append({**link, "source": "hand-over"})
    return between_cpus + others


def _peak(figures: Figures) -> float:
    return figures.peak_macs_per_s["float32"]


def _description(cluster: Cluster) -> str:
    core = cluster.cores[0]
    caches = [f"{_size_text(cache.size_bytes)} L{cache.level}" for cache in core.caches]
    model = core.model or "core"
    threads = f", one of {len(core.threads)} threads each" if len(core.threads) > 1 else ""
    return f"{len(cluster.cores)} × {model}{threads}{', ' if caches else ''}{', '.join(caches)}"


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes >> 20} MiB" if size_bytes >= 1 << 20 else f"{size_bytes >> 10} KiB"
