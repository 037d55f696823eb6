"""Fits seconds for the cycles of Rockchip's compiler to the rates that Rockchip publishes.

    python -m tools.calibrate_rknn            # fits, and writes tables of docs/compiler-costs.md
    python -m tools.calibrate_rknn --compile  # first builds and compiles all networks again

Rates: https://github.com/airockchip/rknn_model_zoo, README.md, "Benchmark", one NPU core. What the
compiler tells of each network stands in `rknn_rates.csv`, so the fit needs no compiler. The time of
a network is factor · cycles / clock + start · rows not priced + share · own price of what is not
priced, see `parapipe/profiling/compiled_times.py`; least squares of relative errors, no coefficient
negative. The coefficients go into `platforms/catalogue/npus.yaml` by hand.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import onnx

from parapipe.api.load import load_model
from parapipe.compilers.compile import compile_segment
from parapipe.compilers.contract import CompileJob
from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.cost.least_squares import nonnegative
from parapipe.files.atomic import write_atomically
from parapipe.platform.load import read_platform
from parapipe.platform.platform import Platform
from parapipe.profiling.compiled_times import node_prices, total_work

TABLE = Path(__file__).with_name("rknn_rates.csv")
PAGE = Path(__file__).parents[1] / "docs" / "compiler-costs.md"
BEGIN, END = "<!-- begin: tools.calibrate_rknn -->\n", "<!-- end: tools.calibrate_rknn -->\n"
RATES_FPS: Mapping[str, tuple[float, float, float, float]] = {
    "mobilenetv2-12": (450.7, 180.7, 467.0, 281.3),
    "resnet50-v2-7": (110.1, 37.9, 99.0, 54.9),
    "yolov5s_relu": (66.1, 25.5, 65.0, 33.2),
    "yolov5n": (82.5, 39.7, 112.7, 47.4),
    "yolov5s": (48.4, 19.3, 57.5, 23.6),
    "yolov5m": (20.9, 8.6, 23.7, 10.8),
    "yolov7-tiny": (72.7, 27.9, 74.8, 36.5),
    "yolov7": (11.4, 4.6, 13.0, 5.9),
    "yolox_s": (37.1, 15.2, 41.5, 18.3),
    "yolox_m": (16.0, 6.6, 17.6, 8.2),
    "RetinaFace_mobile320": (227.2, 156.4, 470.5, 300.8),
    "RetinaFace_resnet50_320": (49.2, 18.7, 56.6, 26.9),
}
"""Frames per second in int8, on one core of the NPU of each of TARGETS; RK3568's for the RK3566."""
TARGETS = ("rk3588", "rk3566", "rk3576", "rk3562")
COMPILE_LIMIT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Network:
    """A network on a chip: its published rate, and what is known of it without a board.

    Parameters
    ----------
    cycles, starts, own_s
        As of `RowWork`, of all its rows.
    nominal_s
        Seconds by the catalogue's figures alone.
    one_rate_s
        Likewise, if all operator classes had the same rates.
    """

    network: str
    target: str
    rate_fps: float
    cycles: int
    starts: int
    own_s: float
    nominal_s: float
    one_rate_s: float

    @property
    def time_s(self) -> float:
        """Published seconds of a frame."""
        return 1 / self.rate_fps


@dataclass(frozen=True, slots=True)
class Fit:
    """What was fitted for a chip.

    Parameters
    ----------
    coefficients
        Factor of the cycles, seconds to start a row, share of the own price.
    left_out
        Relative error of each network with the fit to the others.
    """

    networks: tuple[Network, ...]
    coefficients: tuple[float, float, float]
    left_out: tuple[float, ...]

    @property
    def nominal(self) -> tuple[float, ...]:
        """Relative error of each network by the catalogue's figures alone."""
        return tuple(each.nominal_s / each.time_s - 1 for each in self.networks)

    @property
    def one_rate(self) -> tuple[float, ...]:
        """Likewise, with the same rates for all operator classes."""
        return tuple(each.one_rate_s / each.time_s - 1 for each in self.networks)


def fit(networks: Sequence[Network], clock_hz: float) -> Fit:
    """Fit the coefficients of a chip, and measure them by leaving out each network in turn."""
    design = np.array([[n.cycles / clock_hz, n.starts, n.own_s] for n in networks])
    relative = design / np.array([[each.time_s] for each in networks])
    ones = np.ones(len(networks))
    errors = []
    for i in range(len(networks)):
        others = np.arange(len(networks)) != i
        errors.append(float(relative[i] @ nonnegative(relative[others], ones[others]) - 1))
    factor, start_s, share = map(float, nonnegative(relative, ones))
    return Fit(tuple(networks), (factor, start_s, share), tuple(errors))


def read_networks(path: Path = TABLE) -> tuple[Network, ...]:
    """Return the table."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(
            Network(
                row["network"], row["target"], float(row["rate_fps"]),
                int(row["cycles"]), int(row["starts"]),
                float(row["own_s"]), float(row["nominal_s"]), float(row["one_rate_s"]),
            )
            for row in csv.DictReader(file)
        )  # fmt: skip


def platform_of(target: str) -> Platform:
    """Return the catalogue's platform of a chip."""
    text = f"schema: parapipe/platform/1\nname: {target}\nchip: {target}\n"
    return read_platform(text, target)


def compiled_networks() -> Iterator[Network]:
    """Build and compile all networks, for all targets."""
    from tools.rknn_networks import NETWORKS

    for name, rates_fps in RATES_FPS.items():
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.onnx"
            onnx.save(NETWORKS[name](), path)
            for target, rate_fps in zip(TARGETS, rates_fps, strict=True):
                yield _compiled_network(name, path, target, rate_fps)


def _compiled_network(name: str, path: Path, target: str, rate_fps: float) -> Network:
    job = CompileJob(path, target, "int8", time_limit_s=COMPILE_LIMIT_S)
    segment = compile_segment("rknn", job)
    platform = platform_of(target)
    processor = next(each for each in platform.processors if each.compiler)
    graph = load_model(path)
    costs = build_cost_table(graph, platform, precision="int8")
    work = total_work(segment.rows, node_prices(costs, platform, processor))
    npu = platform.names.index(processor.name)
    uniform = build_cost_table(graph, _with_one_rate(platform), precision="int8")
    nominal_s, one_rate_s = (_nominal_s(each, npu) for each in (costs, uniform))
    return Network(
        name, target, rate_fps, work.cycles, work.starts, work.own_s, nominal_s, one_rate_s
    )


def _with_one_rate(platform: Platform) -> Platform:
    """Return the platform without rates of operator classes."""
    processors = tuple(p.model_copy(update={"rates": None}) for p in platform.processors)
    return platform.model_copy(update={"processors": processors})


def _nominal_s(costs: CostTable, npu: int) -> float:
    """Return the seconds of all operators on the NPU; of what it does not run, the least ones."""
    every = range(len(costs.processors))
    return sum(
        cost.time_s if (cost := costs.cost(v, npu)) else min(costs.time_s(v, p) for p in every)
        for v in range(len(costs.entries))
    )


def write_networks(networks: Sequence[Network], path: Path = TABLE) -> None:
    """Write the table."""
    lines = [",".join(each.name for each in fields(Network))]
    for each in networks:
        row = asdict(each)
        row |= {name: f"{row[name]:.9f}" for name in ("own_s", "nominal_s", "one_rate_s")}
        lines.append(",".join(map(str, row.values())))
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def tables(fits: Mapping[str, Fit]) -> str:
    """Return the tables of the page."""
    head = "| chip | factor | start of a row | share of the own price | left out: median | most | "
    lines = [f"{head}nominal: median | most | one rate: median | most |", "|---" * 10 + "|"]
    for target, each in fits.items():
        factor, start_s, share = each.coefficients
        errors = ([*map(abs, some)] for some in (each.left_out, each.nominal, each.one_rate))
        shown = " | ".join(f"{median(some):.1%} | {max(some):.1%}" for some in errors)
        lines.append(
            f"| {target} | {factor:.3f} | {start_s * 1e6:.1f} µs | {share:.3f} | {shown} |"
        )
    lines += ["", "| network | chip | published | left out | nominal | one rate |"]
    lines += ["|---" * 6 + "|"]
    for target, each in fits.items():
        for network, left_out, nominal, one_rate in zip(
            each.networks, each.left_out, each.nominal, each.one_rate, strict=True
        ):
            lines.append(
                f"| {network.network} | {target} | {network.time_s * 1e3:.2f} ms | "
                f"{left_out:+.1%} | {nominal:+.1%} | {one_rate:+.1%} |"
            )
    return "\n".join(lines) + "\n"


def fits_of(networks: Sequence[Network]) -> dict[str, Fit]:
    """Return the fit of each chip."""
    clocks_hz = {
        target: next(
            each.clock.default_frequency_hz
            for each in platform_of(target).processors
            if each.compiler
        )
        for target in TARGETS
    }
    return {
        target: fit([each for each in networks if each.target == target], clock_hz)
        for target, clock_hz in clocks_hz.items()
    }


def main(arguments: Sequence[str]) -> int:
    """Fit, and write the page's tables; compile first if that is wanted."""
    if "--compile" in arguments:
        write_networks(list(compiled_networks()))
    text = tables(fits_of(read_networks()))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    write_atomically(PAGE, f"{before}{BEGIN}\n{text}\n{END}{after}".encode())
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
