"""A platform whose nominal figures are fitted to the times of whole networks.

Each processor is fitted by itself, see `rate_fit`. The prior is what its classes reach by the
platform's own `rates`, if it has such, or else on the boards that were measured (`board_rates`).
Each network is also left out in turn and predicted from the others: that is the error to expect of
a network that was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from parapipe.cost.clock import counted_macs
from parapipe.cost.measured_source import Subject, subject_of
from parapipe.cost.price import OperatorCost
from parapipe.cost.pricing import Pricing, View, folded_into
from parapipe.cost.profile import Measurement, shipped_profiles
from parapipe.errors import CostError
from parapipe.files.csv_table import Cells, TableKind, read_table
from parapipe.files.mistakes import did_you_mean, listed, listed_sentences
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.platform.describe import as_dict
from parapipe.platform.fields import OPERATOR_CLASSES, Expression
from parapipe.platform.load import read_platform
from parapipe.platform.new import NewPlatform
from parapipe.platform.platform import Platform
from parapipe.platform.processor import Processor
from parapipe.profiling.board_rates import BOARDS, kind_rates, peak_of
from parapipe.profiling.rate_fit import PRODUCTS, STREAMING, NetworkWork, Part, Rates, fit_rates

SOURCE = "whole-networks"
FEWEST = 2
"""Networks that a processor has at least: with one less, nothing could be left out."""


@dataclass(frozen=True, slots=True)
class NetworkTime:
    """What a network takes on a processor.

    Parameters
    ----------
    network
        Name of one of the zoo, or path of an ONNX file.
    line
        Of the table.
    """

    network: str
    processor: str
    time_s: float
    line: int


def read_network_times(path: Path) -> tuple[NetworkTime, ...]:
    """Read a CSV file with the columns network, processor and ms.

    Raises
    ------
    CostError
        If the file cannot be read, or has mistakes: all of them, each with file and line.
    """
    return read_table(path, _TIMES)


def _network_time(cells: Cells) -> NetworkTime:
    return NetworkTime(
        cells.text("network"),
        cells.text("processor"),
        cells.number("ms", positive=True) * 1e-3,
        cells.line,
    )


_TIMES = TableKind(
    "table of network times",
    ("network", "processor", "ms"),
    (),
    _network_time,
    key=lambda time: ((time.network, time.processor), f"{time.network} on {time.processor}"),
    needed="network",
)


@dataclass(frozen=True, slots=True)
class NetworkError:
    """A network's time on a processor, and what is predicted for it.

    Parameters
    ----------
    nominal_s, fitted_s
        By the platform as it was, and as it is fitted.
    left_out_s
        By a fit to the other networks of the processor.
    """

    processor: str
    network: str
    measured_s: float
    nominal_s: float
    fitted_s: float
    left_out_s: float


@dataclass(frozen=True, slots=True)
class FittedFigure:
    """A nominal figure of a processor and what became of it.

    Parameters
    ----------
    figure
        `launch`, or an operator class.
    unit
        `s`, or of a class `MAC/s` or `B/s`.
    prior
        Where the fit began.
    """

    processor: str
    figure: str
    unit: str
    nominal: float
    prior: float
    fitted: float


@dataclass(frozen=True, slots=True)
class FittedPlatform:
    """A platform file with fitted figures, and their errors.

    Parameters
    ----------
    file
        The platform.
    unfitted
        Processors that the table does not have: their figures are the platform's.
    """

    file: NewPlatform
    networks: tuple[NetworkError, ...]
    figures: tuple[FittedFigure, ...]
    unfitted: tuple[str, ...]

    @property
    def median_errors(self) -> dict[str, float]:
        """Median relative errors: `nominal`, `fitted`, and `left_out`."""
        return median_errors(self.networks)


def median_errors(networks: Sequence[NetworkError]) -> dict[str, float]:
    """Return median relative errors: `nominal`, `fitted`, and `left_out`."""
    return {
        what: median(abs(getattr(each, f"{what}_s") / each.measured_s - 1) for each in networks)
        for what in ("nominal", "fitted", "left_out")
    }


def fit_platform(
    platform: Platform,
    times: Sequence[NetworkTime],
    graphs: Mapping[str, OperatorGraph],
    *,
    table: str,
    boards: Sequence[str] = tuple(BOARDS),
    view: View = "deployed",
) -> FittedPlatform:
    """Fit the nominal figures of the processors that a table has times of.

    Parameters
    ----------
    graphs
        Of each network of the table.
    table
        Its name, which the platform's source names.
    boards
        Chips of `board_rates.BOARDS` that the prior is of.
    view
        As for `build_cost_table`: `as-measured` if batch-norm was run by itself.

    Raises
    ------
    CostError
        If the table names a processor that the platform lacks, has a processor with a single
        network, or a network on a processor that cannot run it; or the platform has a profile.
    """
    _check(platform, times, table)
    pricings = {
        name: Pricing(graph, platform, (), view, platform.precision, measured=False)
        for name, graph in graphs.items()
    }
    errors: list[NetworkError] = []
    figures: list[FittedFigure] = []
    fitted: dict[str, Rates] = {}
    for processor in platform.processors:
        own = [each for each in times if each.processor == processor.name]
        if not own:
            continue
        work = [_work(pricings[each.network], processor, each, table) for each in own]
        nominal, prior = nominal_rates(processor), prior_rates(processor, boards)
        times_s = [each.time_s for each in own]
        fit = fitted[processor.name] = fit_rates(work, times_s, prior)
        for i, each in enumerate(own):
            others = fit_rates(work[:i] + work[i + 1 :], times_s[:i] + times_s[i + 1 :], prior)
            errors.append(
                NetworkError(
                    processor.name, each.network, each.time_s, nominal.time_s(work[i]),
                    fit.time_s(work[i]), others.time_s(work[i]),
                )
            )  # fmt: skip
        figures += _figures(processor, nominal, prior, fit)
    unfitted = tuple(name for name in platform.names if name not in fitted)
    text = _text(platform, fitted, errors, table=table, boards=boards, view=view)
    return FittedPlatform(NewPlatform(text, tuple(fitted)), tuple(errors), tuple(figures), unfitted)


def _check(platform: Platform, times: Sequence[NetworkTime], table: str) -> None:
    names = platform.names
    unknown = [
        f"{table}:{each.line}: platform '{platform.name}' has no processor '{each.processor}'; it "
        f"has {listed(names)}{did_you_mean(each.processor, names)}"
        for each in times
        if each.processor not in names
    ]
    few = [
        f"{table}: processor '{name}' has the time of one network; give at least {FEWEST}"
        for name in names
        if 0 < sum(each.processor == name for each in times) < FEWEST
    ]
    if unknown or few:
        raise CostError(listed_sentences([*unknown, *few]))
    if shipped_profiles(platform.profile_name):
        raise CostError(
            f"platform '{platform.name}' has measured operators (profile '{platform.profile_name}')"
            ", which count before its nominal figures; give a platform without a profile, such as "
            "`parapipe platforms new --chip` writes"
        )


def _work(pricing: Pricing, processor: Processor, time: NetworkTime, table: str) -> NetworkWork:
    """Return a network's operators on a processor, by its peak and bandwidth."""
    p = pricing.platform.names.index(processor.name)
    parts: list[Part] = []
    fixed_s = 0.0
    for v, operator in enumerate(pricing.graph.operators):
        entry = pricing.row(v)[p]
        if not isinstance(entry, OperatorCost):
            raise CostError(
                f"{table}:{time.line}: {time.network} cannot run on '{processor.name}' alone: "
                f"operator '{operator.name}': {entry}"
            )
        subjects: dict[str | None, Sequence[Subject]] = {}
        dtype, refusal = pricing.type_of(v, processor, subjects)
        if refusal is not None:  # it runs dequantised
            fixed_s += entry.time_s
            continue
        own = list(subjects[dtype])
        if pricing.view == "as-measured":
            own += [subject_of(part, pricing.graph) for part in folded_into(operator)]
        fixed_s += sum(part.time_s for part in entry.parts[len(own) :])
        parts += [_part(each, processor) for each in own if each.operator_class != "view"]
    return NetworkWork(tuple(parts), fixed_s)


def _part(subject: Subject, processor: Processor) -> Part:
    work = subject.operator.work
    own = processor.computing_type(subject.signature.dtype)
    peak = next((rate for dtype, rate in processor.peak.macs_per_s.items() if dtype == own), None)
    macs = counted_macs(Expression(work.macs), processor, subject.input_channels).value
    return Part(
        subject.operator_class,
        macs / peak if peak else 0.0,  # what has no peak has no multiply-accumulates either
        (work.read_bytes + work.written_bytes) / processor.memory.bandwidth_bytes_per_s,
    )


def work_of_measurement(measured: Measurement, processor: Processor) -> NetworkWork:
    """Return a measured operator as a network of its own, by the processor's float32 peak."""
    compute_s = measured.macs / peak_of(processor)
    move_s = measured.size_bytes / processor.memory.bandwidth_bytes_per_s
    return NetworkWork((Part(measured.operator_class, compute_s, move_s),))


def nominal_rates(processor: Processor) -> Rates:
    """Return a processor's figures as its platform has them."""
    launch_s = processor.launch.overhead_s
    if processor.rates is None:
        one = dict.fromkeys(OPERATOR_CLASSES, 1.0)
        return Rates(launch_s, one, one)
    given = [
        {str(name): ratio for name, ratio in ratios.items()}
        for ratios in (processor.rates.compute, processor.rates.bandwidth)
    ]
    return Rates(
        launch_s,
        *(
            {name: ratios.get(name, ratios.get("default", 1.0)) for name in OPERATOR_CLASSES}
            for ratios in given
        ),
    )


def prior_rates(processor: Processor, boards: Sequence[str] = tuple(BOARDS)) -> Rates:
    """Return where the fit of a processor begins: its own rates, its kind's, or its figures."""
    if processor.rates is None and (by_kind := kind_rates(processor.kind, boards)):
        return by_kind.of(processor)
    return nominal_rates(processor)


def _figures(
    processor: Processor, nominal: Rates, prior: Rates, fit: Rates
) -> Iterator[FittedFigure]:
    launches = (nominal.launch_s, prior.launch_s, fit.launch_s)
    yield FittedFigure(processor.name, "launch", "s", *launches)
    peak, bandwidth = peak_of(processor), processor.memory.bandwidth_bytes_per_s
    for name in OPERATOR_CLASSES:
        if name in PRODUCTS - STREAMING:
            shares = [rates.compute[name] * peak for rates in (nominal, prior, fit)]
            yield FittedFigure(processor.name, name, "MAC/s", *shares)
        elif name != "view":
            shares = [rates.bandwidth[name] * bandwidth for rates in (nominal, prior, fit)]
            yield FittedFigure(processor.name, name, "B/s", *shares)


def _text(
    platform: Platform,
    fitted: Mapping[str, Rates],
    errors: Sequence[NetworkError],
    *,
    table: str,
    boards: Sequence[str],
    view: View,
) -> str:
    """Return the platform's file in full, with the fitted figures and their source."""
    raw: dict[str, Any] = as_dict(platform)
    for entry in raw["processors"]:
        if rates := fitted.get(entry["name"]):
            entry["launch"] = {"overhead_s": _short(rates.launch_s), "source": SOURCE}
            entry["rates"] = {
                **entry.get("rates", {}),
                "compute": {name: _short(ratio) for name, ratio in rates.compute.items()},
                "bandwidth": {name: _short(ratio) for name, ratio in rates.bandwidth.items()},
                "source": SOURCE,
            }
    count = len({each.network for each in errors})
    shares = median_errors(errors)
    raw["sources"][SOURCE] = {
        "provenance": "fitted",
        "title": f"parapipe platforms fit {table}",
        "reasoning": (
            f"Launches and rates of classes are fitted to whole times of {count} networks on "
            f"{listed(list(fitted))}, from a prior: the rates that a processor's platform states, "
            f"or that its kind reaches on {listed(list(boards))}. With each network left out in "
            f"turn, the median error is {shares['left_out']:.1%}; the figures that were there "
            f"before have {shares['nominal']:.1%}."
            + (" The board ran batch-norm as an operator." if view == "as-measured" else "")
        ),
    }
    head = f"# Fitted to {table} by `parapipe platforms fit`; sources say which figures.\n"
    text = head + yaml.safe_dump(raw, sort_keys=False, width=100, allow_unicode=True)
    read_platform(text, "the fitted platform")
    return text


def _short(figure: float) -> float:
    return float(f"{figure:.4g}")
