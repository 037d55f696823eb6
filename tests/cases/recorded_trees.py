"""Kernel trees of machines, written as the kernel lays them out.

RK3399: arch/arm64/boot/dts/rockchip/rk3399.dtsi (capacities, clusters) and its OPP tables; A311D:
arch/arm64/boot/dts/amlogic/meson-g12b.dtsi; the others are the layout of such machines, cut down.
"""

from pathlib import Path

from parapipe.profiling.topology import cpu_list

A53, A72, A73 = "0x00000000410fd034", "0x00000000410fd082", "0x00000000410fd092"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def cpu(number: int, **entries: str) -> dict[str, str]:
    """Return files of a CPU; `__` in a name stands for a slash."""
    base = f"sys/devices/system/cpu/cpu{number}"
    defaults = {
        "topology__thread_siblings_list": str(number),
        "topology__physical_package_id": "0",
    }
    return {f"{base}/{k.replace('__', '/')}": v for k, v in (defaults | entries).items()}


def cache(index: int, level: int, size: str, shared: str, kind: str = "Data") -> dict[str, str]:
    base = f"cache__index{index}__"
    return {
        base + "level": str(level),
        base + "size": size,
        base + "type": kind,
        base + "shared_cpu_list": shared,
    }


def arm(number: int, midr: str, capacity: int, domain: str, *, cluster: int, khz: str, l2: str):
    return cpu(
        number,
        cpu_capacity=str(capacity),
        regs__identification__midr_el1=midr,
        topology__cluster_id=str(cluster),
        cpufreq__related_cpus=domain,
        cpufreq__scaling_available_frequencies=khz,
        **cache(0, 1, "32K", str(number)),
        **cache(1, 1, "32K", str(number), "Instruction"),
        **cache(2, 2, l2, ",".join(map(str, sorted(cpu_list(domain.replace(" ", ",")))))),
    )


def rk3399(root: Path) -> Path:
    files = {"sys/devices/system/cpu/online": "0-5"}
    for i in range(4):
        files |= arm(i, A53, 485, "0 1 2 3", cluster=0, khz="408000 600000 1416000", l2="512K")
    for i in (4, 5):
        files |= arm(i, A72, 1024, "4 5", cluster=1, khz="408000 1200000 1800000", l2="1024K")
    return write(root, files)


def a311d(root: Path) -> Path:
    files = {"sys/devices/system/cpu/online": "0-5"}
    for i in (0, 1):
        files |= arm(i, A53, 592, "0 1", cluster=0, khz="500000 1800000", l2="256K")
    for i in range(2, 6):
        files |= arm(i, A73, 1024, "2 3 4 5", cluster=1, khz="500000 2208000", l2="1024K")
    return write(root, files)


def two_fast_clusters(root: Path) -> Path:
    """Eight cores as on an RK3588: four slow, and two pairs of fast ones clocked apart."""
    files = {"sys/devices/system/cpu/online": "0-7"}
    a55, a76 = "0x00000000412fd050", "0x00000000414fd0b0"
    for i in range(4):
        files |= arm(i, a55, 530, "0 1 2 3", cluster=0, khz="1800000", l2="128K")
    for i in (4, 5):
        files |= arm(i, a76, 1024, "4 5", cluster=1, khz="2400000", l2="512K")
    for i in (6, 7):
        files |= arm(i, a76, 1024, "6 7", cluster=2, khz="2256000", l2="512K")
    return write(root, files)


def x86_with_threads(root: Path) -> Path:
    """Four cores of two threads each, clocked one by one, around one L3."""
    info = "\n".join(f"processor\t: {i}\nmodel name\t: Some x86 CPU\n" for i in range(8))
    files = {"sys/devices/system/cpu/online": "0-7", "proc/cpuinfo": info}
    for i in range(8):
        files |= cpu(
            i,
            topology__thread_siblings_list=f"{i % 4},{i % 4 + 4}",
            topology__cluster_id=str(i % 4),
            cpufreq__related_cpus=str(i),
            cpufreq__cpuinfo_min_freq="400000",
            cpufreq__cpuinfo_max_freq=str(4700000 + 100000 * (i % 2)),
            **cache(0, 1, "48K", f"{i % 4},{i % 4 + 4}"),
            **cache(3, 3, "12288K", "0-7", "Unified"),
        )
    return write(root, files)


def virtual(root: Path, *, clock: str = "2596.128") -> Path:
    """Two cores of a virtual machine without cpufreq."""
    speed = f"cpu MHz\t\t: {clock}\n" if clock else ""
    info = "\n".join(f"processor\t: {i}\nmodel name\t: Virtual CPU\n{speed}" for i in range(2))
    files = {"sys/devices/system/cpu/online": "0-1", "proc/cpuinfo": info}
    for i in range(2):
        files |= cpu(i, cpu_capacity="1024", topology__cluster_id="65535")
    return write(root, files)


def phone(root: Path) -> Path:
    """Eight cores in three clusters, as on a Snapdragon 855: four slow, three fast, one faster."""
    files = {"sys/devices/system/cpu/online": "0-7"}
    a55, a76 = "0x00000000411fd050", "0x00000000413fd0b0"
    for i in range(4):
        files |= arm(i, a55, 250, "0 1 2 3", cluster=0, khz="300000 1785600", l2="128K")
    for i in (4, 5, 6):
        files |= arm(i, a76, 870, "4 5 6", cluster=0, khz="710400 2419200", l2="256K")
    files |= arm(7, a76, 1024, "7", cluster=0, khz="825600 2841600", l2="512K")
    return write(root, files)


def x86_of_two_kinds(root: Path) -> Path:
    """Four fast cores of two threads, and eight slow ones in two modules of four, around one L3."""
    info = "\n".join(f"processor\t: {i}\nmodel name\t: Some x86 CPU\n" for i in range(16))
    files = {"sys/devices/system/cpu/online": "0-15", "proc/cpuinfo": info}
    for i in range(16):
        fast, pair, module = i < 8, f"{i & ~1}-{i | 1}", f"{i & ~3}-{i | 3}"
        files |= cpu(
            i,
            topology__thread_siblings_list=pair if fast else str(i),
            topology__cluster_id=str(8 * (i // 2) if fast else 8 * (i // 4 + 4)),
            cpufreq__related_cpus=str(i),
            cpufreq__cpuinfo_min_freq="800000",
            cpufreq__cpuinfo_max_freq="5000000" if fast else "3800000",
            **cache(0, 1, "48K" if fast else "32K", pair if fast else str(i)),
            **cache(2, 2, "1280K" if fast else "2048K", pair if fast else module, "Unified"),
            **cache(3, 3, "24576K", "0-15", "Unified"),
        )
    return write(root, files)
