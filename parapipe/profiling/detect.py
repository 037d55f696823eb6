"""A machine as a platform file: what the kernel tells, and what short tests measure.

What nobody tells and no test can measure is nominal, and its source says so: voltages, and power.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import yaml

from parapipe.errors import ProfilingError
from parapipe.files.atomic import write_atomically
from parapipe.platform.load import read_platform
from parapipe.profiling.divide import chosen_clusters, split_clusters
from parapipe.profiling.figures import Figures, accelerator_figures, cpu_figures, hand_over_s
from parapipe.profiling.providers import ACCELERATORS, backend_of, onnx_runtime
from parapipe.profiling.topology import Cluster, clusters_of, read_cores

NOMINAL_V = 1.0
NOMINAL_HZ = 1e9
CORE_W = 1.0
ACCELERATOR_W = 1.0
STATIC_SHARE = 0.1
LEAST_HZ = 1e6
BUSY = 0.5  # processes that want a core, besides this one

SOURCES: Mapping[str, Mapping[str, str]] = {
    "kernel": {
        "provenance": "measured",
        "title": "Cores, caches and frequencies as this machine's kernel tells them",
        "reasoning": "Read from /sys/devices/system/cpu and /proc/cpuinfo; one hardware thread of "
        "each core is listed.",
    },
    "matrix-product": {
        "provenance": "measured",
        "title": "The quickest of some matrix products in ONNX Runtime, pinned, a thread per core",
        "reasoning": "768 x 768 in float32, 256 x 256 in other types. Nothing multiplies booleans; "
        "their figure is that of int32, since the format wants one.",
    },
    "session": {
        "provenance": "measured",
        "title": "What one more operator on one number adds to a run of an ONNX Runtime session",
    },
    "copy": {
        "provenance": "measured",
        "title": "Copying 64 MiB by one core, bytes read plus bytes written: a lower bound",
    },
    "hand-over": {
        "provenance": "measured",
        "title": "Half a round trip between two pinned threads of one Python process that sleep",
        "reasoning": "CPUs share memory and hand over a reference, so the size does not matter.",
    },
    "frame": {
        "provenance": "nominal",
        "title": "A frame is in memory already and is copied once; the result is read where it is",
    },
    "nominal-power": {
        "provenance": "nominal",
        "title": "Power is not known here: one watt for each core or accelerator at work",
        "reasoning": "Nothing on this machine tells power by processor. With these figures energy "
        "counts core-seconds (a tenth of it static, for a processor that is in use but waits): it "
        "ranks configurations of equal cores and is no number of joules. Of the board at rest "
        "nothing is known, so nothing is counted. Voltages are not told either, 1 V stands for "
        "them. Measure power and run parapipe fit power to replace all of it.",
    },
}
ACCELERATOR_SOURCES: Mapping[str, Mapping[str, str]] = {
    "provider": {
        "provenance": "measured",
        "title": "Execution providers that this ONNX Runtime offers",
        "reasoning": "Their clocks and cores are not told; 1 GHz stands for the clock as it is.",
    },
    "provider-run": {
        "provenance": "measured",
        "title": "A run of a session with one operator on one number, both ways of the copy in it",
        "reasoning": "Half of it for each way; the bandwidth is that of one CPU core's copy.",
    },
}


@dataclass(frozen=True, slots=True)
class Measured:
    """All that is measured of a machine's processors, in their order.

    Parameters
    ----------
    cpus
        Of each CPU processor.
    hand_over_s
        Seconds by pair of CPU processors.
    accelerators
        Of each provider that ran.
    """

    cpus: tuple[Figures, ...]
    hand_over_s: Mapping[tuple[int, int], float]
    accelerators: Mapping[str, Figures]


@dataclass(frozen=True, slots=True)
class Detected:
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

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all; OutputError if that cannot be."""
        write_atomically(path, self.text.encode())


def detect(
    *, name: str, split: int | None = None, processors: Sequence[Sequence[int]] = ()
) -> Detected:
    """Describe this machine.

    Parameters
    ----------
    name
        Of the platform.
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
    found: dict[str, Figures] = {}
    notes = []
    for provider in runtime.get_available_providers():
        if provider in ACCELERATORS:
            try:
                found[provider] = accelerator_figures(provider, fastest)
            except Exception as error:  # noqa: BLE001 - providers raise many kinds
                reason = " ".join(str(error).split())[:200]
                notes.append(f"{provider} is offered and does not run: {reason}")
    measured = Measured(cpus, hand_over_s([cluster.cpus for cluster in clusters]), found)
    text = platform_text(name, clusters, measured)
    read_platform(text, f"the description of '{name}'")
    notes.append("power is not known: energy counts core-seconds, see the source nominal-power")
    load = os.getloadavg()[0]
    if load > BUSY:
        notes.append(
            f"other programs were at work (load {load:.1f}): bandwidths and hand-overs may look "
            "slower than they are; detect again when the machine is at rest"
        )
    return Detected(text, tuple(notes))


def clusters_here(
    split: int | None = None, chosen: Sequence[Sequence[int]] = ()
) -> tuple[Cluster, ...]:
    """Return the CPU processors of this machine, of cores that this process may use."""
    if not hasattr(os, "sched_getaffinity"):
        raise ProfilingError("this system does not let a program choose its cores; use Linux")
    lent = os.sched_getaffinity(0)
    cores = [core for core in read_cores() if core.cpu in lent]
    return processors_of(clusters_of(cores), split, chosen)


def processors_of(
    clusters: Sequence[Cluster], split: int | None, chosen: Sequence[Sequence[int]]
) -> tuple[Cluster, ...]:
    """Return the CPU processors: the clusters, divided as asked for."""
    if chosen:
        return chosen_clusters(clusters, chosen)
    return tuple(clusters) if split is None else split_clusters(clusters, split)


def platform_text(name: str, clusters: Sequence[Cluster], measured: Measured) -> str:
    """Return the platform file of a machine with these processors and figures."""
    cpus = [
        _cpu(cluster, figures) for cluster, figures in zip(clusters, measured.cpus, strict=True)
    ]
    host = max(zip(measured.cpus, cpus, strict=True), key=lambda pair: _peak(pair[0]))[1]["name"]
    others = [_accelerator(each, f, str(host)) for each, f in measured.accelerators.items()]
    bandwidth = max(figures.bandwidth_bytes_per_s for figures in measured.cpus)
    sources = dict(SOURCES) | (dict(ACCELERATOR_SOURCES) if others else {})
    if len(clusters) < 2:
        del sources["hand-over"]
    document: dict[str, Any] = {
        "schema": "parapipe/platform/1",
        "name": name,
        "description": "; ".join(p["description"] for p in (*cpus, *others)),
        "board": {"idle_power_w": 0.0, "source": "nominal-power"},
        "memory": {"bandwidth_bytes_per_s": _rounded(bandwidth), "source": "copy"},
        "processors": [*cpus, *others],
        "links": [*_cpu_links(clusters, measured), *_other_links(cpus, others, measured)],
        "sources": {key: dict(source) for key, source in sources.items()},
    }
    head = (
        "# Detected by `parapipe platforms detect`; what each number is worth stands in sources.\n"
    )
    return head + yaml.safe_dump(document, sort_keys=False, width=100, allow_unicode=True)


def _cpu(cluster: Cluster, figures: Figures) -> dict[str, Any]:
    core = cluster.cores[0]
    if core.top_hz < LEAST_HZ:
        raise ProfilingError(
            f"the kernel tells no frequency of core {core.cpu}, neither in cpufreq nor in "
            "/proc/cpuinfo: describe this machine by hand, see docs/platforms.md"
        )
    points = [{"frequency_hz": hz, "voltage_v": NOMINAL_V} for hz in core.frequencies_hz]
    peaks = {dtype: _rounded(peak) for dtype, peak in figures.peak_macs_per_s.items()}
    peaks |= {"bool": peaks["int32"]} if "int32" in peaks else {}
    return {
        "name": cluster.name,
        "kind": "cpu",
        "backend": "onnxruntime-cpu",
        "description": _words(cluster),
        "cores": list(cluster.cpus),
        "data_types": list(peaks),
        "source": "kernel",
        "clock": {"default_frequency_hz": core.top_hz, "points": points, "source": "kernel"},
        "launch": {"overhead_s": _rounded(figures.launch_s), "source": "session"},
        "peak": {"macs_per_s": peaks, "source": "matrix-product"},
        "memory": _memory(figures, "copy"),
        "power": _power(CORE_W * len(cluster.cores), core.top_hz),
        "input": {
            "latency_s": 0.0,
            "bandwidth_bytes_per_s": _bandwidth(figures),
            "source": "frame",
        },
        "output": {"latency_s": 0.0, "source": "frame"},
    }


def _accelerator(provider: str, figures: Figures, host: str) -> dict[str, Any]:
    return {
        "name": provider.removesuffix("ExecutionProvider").lower(),
        "kind": ACCELERATORS[provider],
        "backend": backend_of(provider),
        "description": provider,
        "host": host,
        "data_types": ["float32"],
        "source": "provider",
        "clock": {
            "default_frequency_hz": NOMINAL_HZ,
            "points": [{"frequency_hz": NOMINAL_HZ, "voltage_v": NOMINAL_V}],
            "source": "provider",
        },
        "launch": {"overhead_s": _rounded(figures.launch_s), "source": "session"},
        "peak": {"macs_per_s": {"float32": _rounded(_peak(figures))}, "source": "matrix-product"},
        "memory": _memory(figures, "copy"),
        "power": _power(ACCELERATOR_W, NOMINAL_HZ),
        "input": {
            "latency_s": _rounded(figures.run_s / 2),
            "bandwidth_bytes_per_s": _bandwidth(figures),
            "source": "provider-run",
        },
        "output": {"latency_s": _rounded(figures.run_s / 2), "source": "provider-run"},
    }


def _power(full_w: float, frequency_hz: float) -> dict[str, Any]:
    """Return coefficients of equation (8) that make up `full_w` at the nominal voltage."""
    dynamic_w = (1 - STATIC_SHARE) * full_w
    return {
        "alpha_w_per_v2_hz": float(f"{dynamic_w / (NOMINAL_V**2 * frequency_hz):.8g}"),
        "beta_w_per_v": STATIC_SHARE * full_w / NOMINAL_V,
        "utilisation": {"default": 1.0},
        "source": "nominal-power",
    }


def _cpu_links(clusters: Sequence[Cluster], measured: Measured) -> list[dict[str, Any]]:
    return [
        {
            "from": clusters[p].name,
            "to": clusters[q].name,
            "latency_s": _rounded(measured.hand_over_s[p, q]),
            "source": "hand-over",
        }
        for p, q in permutations(range(len(clusters)), 2)
    ]


def _other_links(
    cpus: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]], measured: Measured
) -> list[dict[str, Any]]:
    """Return links with an accelerator at one end or, through the CPU's memory, at both."""
    run_s = {
        str(other["name"]): figures
        for other, figures in zip(others, measured.accelerators.values(), strict=True)
    }
    names = [str(each["name"]) for each in (*cpus, *others)]
    links = []
    for one, other in permutations(names, 2):
        ends = [run_s[name] for name in (one, other) if name in run_s]
        if ends:
            bandwidth = min(_bandwidth(figures) for figures in ends)
            latency = _rounded(sum(figures.run_s for figures in ends) / 2)
            links.append(
                {
                    "from": one,
                    "to": other,
                    "latency_s": latency,
                    "bandwidth_bytes_per_s": bandwidth,
                    "source": "provider-run",
                }
            )
    return links


def _memory(figures: Figures, source: str) -> dict[str, Any]:
    return {"bandwidth_bytes_per_s": _bandwidth(figures), "source": source}


def _bandwidth(figures: Figures) -> float:
    return _rounded(figures.bandwidth_bytes_per_s)


def _peak(figures: Figures) -> float:
    return figures.peak_macs_per_s["float32"]


def _words(cluster: Cluster) -> str:
    core = cluster.cores[0]
    caches = [f"{_size(cache.size_bytes)} L{cache.level}" for cache in core.caches]
    model = core.model or "core"
    threads = f", one of {len(core.threads)} threads each" if len(core.threads) > 1 else ""
    return f"{len(cluster.cores)} × {model}{threads}{', ' if caches else ''}{', '.join(caches)}"


def _size(size_bytes: int) -> str:
    mebi, kibi = 1 << 20, 1 << 10
    return f"{size_bytes // mebi} MiB" if size_bytes >= mebi else f"{size_bytes // kibi} KiB"


def _rounded(value: float) -> float:
    """Return four digits: no short test is better than that."""
    return float(f"{value:.4g}")
