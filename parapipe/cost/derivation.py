"""How a number was come by: a rule, the values put into it, and where each of them stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parapipe.cost.amounts import Amounts, amounts_of
from parapipe.cost.fit_record import record_path
from parapipe.cost.fitted import KindFit
from parapipe.cost.measured_rows import rows_path
from parapipe.cost.price import Basis, PartCost, Subject
from parapipe.cost.profile import Measurement
from parapipe.files.mistake import KeyPath
from parapipe.platform.platform import Platform
from parapipe.platform.processor import Port, Processor, Travel, entry_of

_NAMED = re.compile(r"\{([^{}]*)\}")
_AMOUNTS = ("operators", "steps", "bytes", "columns", "outputs", "depth", "spilled")


@dataclass(frozen=True, slots=True)
class Given:
    """A value that a rule takes.

    Parameters
    ----------
    name
        What the rule calls it.
    key
        Where it stands in the platform's file; empty if it does not stand there.
    file, line
        Where else it stands; 0 for a file as a whole, no file for what follows from the model.
    note
        What else there is to know of it.
    """

    name: str
    value: float
    unit: str
    key: KeyPath = ()
    file: str = ""
    line: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Derivation:
    """A number and how it follows from others.

    Parameters
    ----------
    template
        The rule as a Python expression, each given's name in braces.
    """

    value: float
    unit: str
    template: str
    givens: tuple[Given, ...]

    @property
    def rule(self) -> str:
        """The rule in words."""
        return _NAMED.sub(r"\1", self.template)

    @property
    def numbers(self) -> str:
        """The rule with the values put in, to seven digits."""
        values = {given.name: f"{given.value:.7g}" for given in self.givens}
        return _NAMED.sub(lambda found: values[found[1]], self.template)


def time_of(part: PartCost, processor: Processor, p: int) -> Derivation:
    """Return how the seconds of a single operator on a processor follow.

    Parameters
    ----------
    p
        Index of the processor in the platform.
    """
    subject, basis = part.subject, part.basis
    assert subject is not None, "prices know their operators"
    if basis is None:
        template, givens = ("0", []) if part.free_view else _nominal(subject, processor, p)
        base_hz = processor.clock.default_frequency_hz
    elif basis.fit is None and len(basis.measured) > 1:
        return Derivation(part.time_s, "s", *_between(basis, processor, p))
    elif basis.fit is None:
        template, givens = "{measured}", [_measured("measured", basis.measured[0], basis)]
        base_hz = basis.measured[0].frequency_hz
    else:
        template, givens = _fitted(subject, basis.fit, basis)
        base_hz = basis.source.base_hz[processor.name]
    if base_hz != processor.point.frequency_hz and not part.free_view:
        factor, more = _slowdown(subject.operator_class, base_hz, processor, p)
        template, givens = f"({template}) * {factor}", [*givens, *more]
    return Derivation(part.time_s, "s", template, tuple(givens))


def energy_of(part: PartCost, processor: Processor, p: int) -> Derivation:
    """Return how the dynamic joules of a single operator follow, equation (8)."""
    assert part.subject is not None, "prices know their operators"
    used, share = entry_of(processor.power.utilisation, part.subject.operator_class)
    return Derivation(
        part.energy_j,
        "J",
        "{time} * {alpha} * {voltage}**2 * {frequency} * {utilisation}",
        (
            Given("time", part.time_s, "s"),
            dynamic_coefficient(processor, p),
            *operating_point(processor, p),
            Given("utilisation", share, "", ("processors", p, "power", "utilisation", used)),
        ),
    )


def dynamic_coefficient(processor: Processor, p: int) -> Given:
    """Return α of equation (8)."""
    key = ("processors", p, "power", "alpha_w_per_v2_hz")
    return Given("alpha", processor.power.alpha_w_per_v2_hz, "W/(V²·Hz)", key)


def static_power_of(processor: Processor, p: int) -> Derivation:
    """Return how the watts of a processor in use follow, busy or not."""
    key = ("processors", p, "power", "beta_w_per_v")
    return Derivation(
        processor.static_power_w,
        "W",
        "{beta} * {voltage}",
        (
            Given("beta", processor.power.beta_w_per_v, "W/V", key),
            operating_point(processor, p)[0],
        ),
    )


def operating_point(processor: Processor, p: int) -> tuple[Given, Given]:
    """Return the voltage and the frequency that a processor runs at."""
    point = processor.point
    own = ("processors", p, "clock", "points", processor.clock.points.index(point))
    return (
        Given("voltage", point.voltage_v, "V", (*own, "voltage_v")),
        Given("frequency", point.frequency_hz, "Hz", (*own, "frequency_hz")),
    )


def transfer_of(platform: Platform, size_bytes: int, p: int, q: int) -> Derivation:
    """Return how the seconds to move a tensor between two processors follow."""
    link = platform.link_of[p, q]
    own = ("links", platform.links.index(link))
    template, givens = _travel(link, size_bytes, own)
    if link.conversion is not None:
        more, conversion = _travel(link.conversion, size_bytes, (*own, "conversion"), "conversion ")
        template += f" + {more}"
        givens += conversion
    if link.synchronisation is not None:
        template += " + {synchronisation}"
        key = (*own, "synchronisation", "overhead_s")
        givens.append(Given("synchronisation", link.overhead_s, "s", key))
    unique = {given.name: given for given in givens}
    return Derivation(platform.transfer_s(size_bytes, p, q), "s", template, tuple(unique.values()))


def port_of(port: Port, size_bytes: int, key: KeyPath) -> Derivation:
    """Return how the seconds to load a frame, or to read the result, follow."""
    template, givens = _travel(port, size_bytes, key)
    return Derivation(port.time_s(size_bytes), "s", template, tuple(givens))


def _travel(
    travel: Travel, size_bytes: int, own: KeyPath, prefix: str = ""
) -> tuple[str, list[Given]]:
    template = f"{{{prefix}latency}}"
    givens = [Given(f"{prefix}latency", travel.latency_s, "s", (*own, "latency_s"))]
    if travel.bandwidth_bytes_per_s is not None:
        template += f" + {{bytes}} / {{{prefix}bandwidth}}"
        key = (*own, "bandwidth_bytes_per_s")
        givens += [
            Given("bytes", size_bytes, "B"),
            Given(f"{prefix}bandwidth", travel.bandwidth_bytes_per_s, "B/s", key),
        ]
    return template, givens


def _nominal(subject: Subject, processor: Processor, p: int) -> tuple[str, list[Given]]:
    own, work = ("processors", p), subject.operator.work
    size_bytes = work.read_bytes + work.written_bytes
    givens = [
        Given("launch", processor.launch_overhead_s, "s", (*own, "launch", "overhead_s")),
        Given("bytes", size_bytes, "B"),
        Given("bandwidth", processor.bandwidth_bytes_per_s, "B/s",
              (*own, "memory", "bandwidth_bytes_per_s")),
    ]  # fmt: skip
    if not work.macs:
        return "{launch} + {bytes} / {bandwidth}", givens
    dtype = subject.signature.dtype
    note = f"work by rules {work.rule}" if work.rule else ""
    givens += [
        Given("MACs", work.macs, "", note=note),
        Given("peak", processor.peak_macs_per_s[dtype], "/s", (*own, "peak", "macs_per_s", dtype)),
    ]
    return "{launch} + max({MACs} / {peak}, {bytes} / {bandwidth})", givens


def _measured(name: str, m: Measurement, basis: Basis) -> Given:
    path = basis.source.profile.path
    how = f"median of {m.rows} rows, spread {m.spread:.0%}" if m.rows > 1 else "one row"
    lines = ", ".join(map(str, basis.source.lines.get((m.signature, m.processor), ())))
    behind = f", lines {lines} of {rows_path(Path(path)).name}" if lines else ""
    joint = f", with {m.then} behind it" if m.then else ""
    note = f"{m.method} at {m.frequency_hz / 1e6:g} MHz, {how}{behind}{joint}"
    return Given(name, m.time_s, "s", file=path, line=m.line, note=note)


def _between(basis: Basis, processor: Processor, p: int) -> tuple[str, tuple[Given, ...]]:
    low, high = basis.measured
    template = (
        "{faster} + ({slower} - {faster}) * (1 / {frequency} - 1 / {high}) "
        "/ (1 / {low} - 1 / {high})"
    )
    return template, (
        _measured("slower", low, basis),
        _measured("faster", high, basis),
        operating_point(processor, p)[1],
        Given("low", low.frequency_hz, "Hz", file=basis.source.profile.path, line=low.line),
        Given("high", high.frequency_hz, "Hz", file=basis.source.profile.path, line=high.line),
    )


def _slowdown(
    operator_class: str, base_hz: float, processor: Processor, p: int
) -> tuple[str, list[Given]]:
    clock, own = processor.clock, ("processors", p, "clock")
    assert clock.scaling is not None, "or there would be no time"
    used, share = entry_of(clock.scaling.compute_share, operator_class)
    givens = [
        Given("compute share", share, "", (*own, "scaling", "compute_share", used)),
        Given("default", clock.default_frequency_hz, "Hz", (*own, "default_frequency_hz")),
        operating_point(processor, p)[1],
    ]
    factor = "({compute share} * {default} / {frequency} + 1 - {compute share})"
    if base_hz != clock.default_frequency_hz:
        factor += " / ({compute share} * {default} / {base} + 1 - {compute share})"
        givens.append(Given("base", base_hz, "Hz", note="at which it is known"))
    return factor, givens


def _fitted(subject: Subject, fit: KindFit, basis: Basis) -> tuple[str, list[Given]]:
    work = subject.operator.work
    size_bytes = work.read_bytes + work.written_bytes
    amounts = amounts_of(subject.signature, work.macs, size_bytes)
    ratio, neighbour = 1.0, None
    if fit.neighbours is not None:
        decision = fit.neighbours.decide(np.array(amounts), np.array(fit.coefficients))
        amounts = Amounts(*map(float, decision.amounts))
        ratio, neighbour = decision.ratio, decision.neighbour
    source = basis.source
    path = measured = source.profile.path
    note = f"fit {fit.kind} on {fit.processor} to {fit.signatures} signatures of {path}"
    record = source.record
    errors = record.error_of(fit.processor) if record else None
    if record and errors:
        path = str(record_path(Path(path)))
        note += f", median error {errors.median:.1%} with each {record.left_out} left out in turn"
    terms, givens = [], []
    for name, amount, coefficient in zip(_AMOUNTS, amounts, fit.coefficients, strict=True):
        if coefficient:
            terms.append(f"{{{name}}} * {{s per {name}}}")
            givens += [
                Given(name, amount, "", note="within reach of the neighbour" * (ratio != 1.0)),
                Given(f"s per {name}", coefficient, "s", file=path, note=note),
            ]
    template = " + ".join(terms) or "0"
    if neighbour is not None:
        template = f"({template}) * {{neighbour}}"
        near = "what the fit is off at this measured operator, two thirds of its logarithm"
        givens.append(
            Given("neighbour", ratio, "", file=measured, line=fit.lines[neighbour], note=near)
        )
    givens.append(Given("launch", fit.launch_s, "s", file=path, note="no operator takes less"))
    return f"max({{launch}}, {template})", givens
