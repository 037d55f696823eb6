"""The CPU cores of a machine, from the kernel's files, and the processors that they make up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from parapipe.errors import ArgumentError, ProfilingError

_CPUS = "sys/devices/system/cpu"
# Kernels round capacities, and favoured cores of one kind may boost a little higher than others.
_TOLERANCE = 0.1

# Source: part numbers in MIDR_EL1, Linux kernel, arch/arm64/include/asm/cputype.h
_ARM_PARTS = {
    0xD03: "Cortex-A53", 0xD04: "Cortex-A35", 0xD05: "Cortex-A55", 0xD07: "Cortex-A57",
    0xD08: "Cortex-A72", 0xD09: "Cortex-A73", 0xD0A: "Cortex-A75", 0xD0B: "Cortex-A76",
    0xD0C: "Neoverse-N1", 0xD0D: "Cortex-A77", 0xD41: "Cortex-A78", 0xD44: "Cortex-X1",
    0xD46: "Cortex-A510", 0xD47: "Cortex-A710", 0xD48: "Cortex-X2", 0xD49: "Neoverse-N2",
    0xD4B: "Cortex-A78C", 0xD4D: "Cortex-A715", 0xD4E: "Cortex-X3",
}  # fmt: skip
_ARM_IMPLEMENTER = 0x41


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache: its level, bytes, and the CPUs that share it."""

    level: int
    size_bytes: int
    cpus: frozenset[int]


@dataclass(frozen=True, slots=True)
class Core:
    """A core, by the number of its first hardware thread.

    Parameters
    ----------
    threads
        Numbers of all its hardware threads.
    model
        What the kernel calls it; empty if it does not say.
    capacity
        Speed relative to the fastest core, which has 1024; None if the kernel does not say.
    frequencies_hz
        What it can be clocked at, ascending; the one it is at if the kernel lists none.
    domain
        CPUs that are clocked together; empty if the kernel does not say.
    cluster, package
        Numbers that the kernel gives; -1 if none.
    caches
        Of data, from the nearest.
    """

    cpu: int
    threads: tuple[int, ...]
    model: str
    capacity: int | None
    frequencies_hz: tuple[float, ...]
    domain: frozenset[int]
    cluster: int
    package: int
    caches: tuple[Cache, ...]

    @property
    def top_hz(self) -> float:
        """Highest frequency; 0 if none is known."""
        return self.frequencies_hz[-1] if self.frequencies_hz else 0.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Cores that work as one processor.

    Parameters
    ----------
    name
        `big`, `mid`, `little` by speed, or `cpu` where all are identical.
    cores
        Identical, ascending.
    """

    name: str
    cores: tuple[Core, ...]

    @property
    def cpus(self) -> tuple[int, ...]:
        """Numbers of the cores."""
        return tuple(core.cpu for core in self.cores)


def read_cores(root: Path = Path("/")) -> tuple[Core, ...]:
    """Return the cores that are online, ascending.

    Parameters
    ----------
    root
        Where `sys` and `proc` are found: another folder for a recorded tree.

    Raises
    ------
    ProfilingError
        If the kernel's files are not there.
    """
    base = root / _CPUS
    online = cpu_list(_read_text(base / "online"))
    if not online:
        raise ProfilingError(
            f"'{base}' does not list CPUs: a platform can be detected on Linux only; describe it "
            "by hand, see docs/platforms.md"
        )
    info = _cpu_info(_read_text(root / "proc/cpuinfo"))
    cores = []
    for cpu in sorted(online):
        threads = cpu_list(_read_text(base / f"cpu{cpu}/topology/thread_siblings_list")) & online
        if min(threads, default=cpu) == cpu:
            cores.append(_read_core(base / f"cpu{cpu}", cpu, tuple(sorted(threads or {cpu})), info))
    return tuple(cores)


def clusters_of(cores: Sequence[Core]) -> tuple[Cluster, ...]:
    """Return the cores in clusters, the fastest first.

    Cores of one cluster are of the same model, package and (to 10 %) capacity and top frequency.
    Among those, CPUs that are clocked together, that the kernel counts as a cluster or that share
    the last cache are kept apart from others, where that leaves two cores or more together.
    """
    kinds: list[list[Core]] = []
    for core in sorted(cores, key=lambda c: (-(c.capacity or 0), -c.top_hz, c.cpu)):
        same = next((kind for kind in kinds if _are_identical(kind[0], core)), None)
        if same is None:
            kinds.append([core])
        else:
            same.append(core)
    groups = [group for kind in kinds for group in _split_by_ties(kind)]
    words = ["cpu"] if len(kinds) == 1 else ["big", *["mid"] * (len(kinds) - 2), "little"]
    of_kind = [word for word, kind in zip(words, kinds, strict=True) for _ in _split_by_ties(kind)]
    return number_clusters(of_kind, groups)


def number_clusters(names: Sequence[str], groups: Sequence[Sequence[Core]]) -> tuple[Cluster, ...]:
    """Return groups of cores as clusters; equal names are numbered."""
    count, seen = Counter(names), Counter[str]()
    clusters = []
    for name, group in zip(names, groups, strict=True):
        number = f"{'-' if name[-1].isdigit() else ''}{seen[name]}" if count[name] > 1 else ""
        clusters.append(Cluster(name + number, tuple(group)))
        seen[name] += 1
    return tuple(clusters)


def split_clusters(clusters: Sequence[Cluster], parts: int) -> tuple[Cluster, ...]:
    """Divide the cores of each cluster evenly among so many processors, or one for each core."""
    names, groups = [], []
    for cluster in clusters:
        count = min(parts, len(cluster.cores))
        bounds = [len(cluster.cores) * i // count for i in range(count + 1)]
        names += [cluster.name] * count
        groups += [cluster.cores[first:last] for first, last in pairwise(bounds)]
    return number_clusters(names, groups)


def chosen_clusters(
    clusters: Sequence[Cluster], chosen: Sequence[Sequence[int]]
) -> tuple[Cluster, ...]:
    """Return processors of the cores that the user lists.

    Raises
    ------
    ArgumentError
        If a core is not there, is listed twice or is not of the cluster of those beside it.
    """
    core_of = {core.cpu: core for cluster in clusters for core in cluster.cores}
    cluster_of = {cpu: cluster for cluster in clusters for cpu in cluster.cpus}
    flat = [cpu for group in chosen for cpu in group]
    mistakes = [
        f"core {cpu} is not among {', '.join(map(str, sorted(core_of)))}"
        for cpu in dict.fromkeys(flat)
        if cpu not in core_of
    ]
    mistakes += [f"core {cpu} is listed twice" for cpu in sorted(set(flat)) if flat.count(cpu) > 1]
    mistakes += [
        f"cores {', '.join(map(str, group))} are of different clusters ({', '.join(names)})"
        for group in chosen
        if len(names := sorted({cluster_of[cpu].name for cpu in group if cpu in core_of})) > 1
    ]
    if mistakes or not flat:
        text = "; ".join(mistakes) or "no core is listed"
        raise ArgumentError(f"the processors asked for cannot be: {text}")
    names = [cluster_of[group[0]].name for group in chosen]
    return number_clusters(names, [[core_of[cpu] for cpu in group] for group in chosen])


def cpu_list(text: str) -> set[int]:
    """Read the kernel's form of a set of CPUs: `0-3,6`."""
    cpus: set[int] = set()
    for part in filter(None, text.replace(" ", ",").split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def _read_core(folder: Path, cpu: int, threads: tuple[int, ...], info: _CpuInfo) -> Core:
    capacity = _read_text(folder / "cpu_capacity")
    return Core(
        cpu=cpu,
        threads=threads,
        model=_core_model(folder, info.get(cpu, {})),
        capacity=int(capacity) if capacity.isdigit() else None,
        frequencies_hz=_frequencies(folder / "cpufreq", info.get(cpu, {})),
        domain=frozenset(cpu_list(_read_text(folder / "cpufreq/related_cpus"))),
        cluster=_read_number(folder / "topology/cluster_id"),
        package=_read_number(folder / "topology/physical_package_id"),
        caches=tuple(sorted(_caches(folder / "cache"), key=lambda cache: cache.level)),
    )


_CpuInfo = Mapping[int, Mapping[str, str]]


def _cpu_info(text: str) -> _CpuInfo:
    cpu_fields: dict[int, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "processor" and value.isdigit():
            current = cpu_fields.setdefault(int(value), {})
        elif key:
            current[key] = value
    return cpu_fields


def _core_model(folder: Path, info: Mapping[str, str]) -> str:
    register = _read_text(folder / "regs/identification/midr_el1")
    try:
        if register:
            midr = int(register, 16)
            implementer, part = midr >> 24 & 0xFF, midr >> 4 & 0xFFF
        else:
            implementer, part = (int(info[key], 16) for key in ("CPU implementer", "CPU part"))
    except (KeyError, ValueError):
        return info.get("model name", "")
    name = _ARM_PARTS.get(part) if implementer == _ARM_IMPLEMENTER else None
    return name or f"implementer {implementer:#x}, part {part:#x}"


def _frequencies(folder: Path, info: Mapping[str, str]) -> tuple[float, ...]:
    listed = _read_text(folder / "scaling_available_frequencies").split()
    if not listed:
        listed = [_read_text(folder / f"cpuinfo_{end}_freq") for end in ("min", "max")]
    frequencies_hz = sorted({float(each) * 1e3 for each in listed if each.isdigit() and int(each)})
    if frequencies_hz:
        return tuple(frequencies_hz)
    try:
        return (float(info["cpu MHz"]) * 1e6,)
    except (KeyError, ValueError):
        return ()


def _caches(folder: Path) -> Iterable[Cache]:
    for index in sorted(folder.glob("index*")):
        size, level = _read_text(index / "size"), _read_text(index / "level")
        if _read_text(index / "type") == "Instruction" or not level.isdigit():
            continue
        unit = {"K": 1 << 10, "M": 1 << 20}.get(size[-1:], 1)
        digits = size.rstrip("KM")
        if digits.isdigit():
            cpus = frozenset(cpu_list(_read_text(index / "shared_cpu_list")))
            yield Cache(int(level), int(digits) * unit, cpus)


def _are_identical(one: Core, other: Core) -> bool:
    return (
        one.model == other.model
        and one.package == other.package
        and _are_close(one.capacity or 0, other.capacity or 0)
        and _are_close(one.top_hz, other.top_hz)
    )


def _are_close(one: float, other: float) -> bool:
    return abs(one - other) <= _TOLERANCE * max(one, other)


def _split_by_ties(kind: Sequence[Core]) -> list[list[Core]]:
    """Split identical cores by what ties some of them together, if it ties any two."""
    ties = (
        lambda core: tuple(sorted(core.domain)),
        lambda core: core.cluster,
        lambda core: tuple(sorted(core.caches[-1].cpus)) if core.caches else (),
    )
    groups = [sorted(kind, key=lambda core: core.cpu)]
    for tie in ties:
        parts = []
        for group in groups:
            split: dict[object, list[Core]] = {}
            for core in group:
                split.setdefault(tie(core), []).append(core)
            all_tied = all(len(part) > 1 for part in split.values())
            parts += list(split.values()) if all_tied else [group]
        groups = parts
    return groups


def _read_number(path: Path) -> int:
    text = _read_text(path)
    return int(text) if text.isdigit() else -1


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
