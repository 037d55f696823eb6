"""A processor: a CPU cluster, a GPU, an NPU or a DSP, as the solvers see it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from math import inf
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr

from parapipe.files.yaml_file import Strict
from parapipe.platform.fields import (
    OPERATOR_CLASSES,
    AttributeLike,
    ClassOrDefault,
    CoreId,
    DataType,
    Expression,
    Many,
    Name,
    OptionName,
    OptionValue,
    Prose,
    file_value,
    named_value,
    travel_time,
)
from parapipe.platform.memories import WeightStorage
from parapipe.platform.sections import (
    ClassRates,
    Clock,
    Compiled,
    CompilerTarget,
    Divisions,
    Launch,
    OperatingPoint,
    Peak,
    Port,
    Power,
    ProcessorMemory,
    Streams,
    part_cores,
    stream_names,
)
from parapipe.platform.segments import Segments
from parapipe.platform.support import Refusal, Support


def class_key(table: Mapping[ClassOrDefault, float], operator_class: str) -> str:
    """Return the key under which a class stands in a table, itself or `default`."""
    return operator_class if operator_class in table else "default"


class Processor(Strict):
    """A processor of the platform.

    Parameters
    ----------
    kind, backend
        What it is, and the library that runs operators on it (armcl-neon, onnxruntime-openvino,
        nominal).
    compiler
        The compiler of its vendor, see docs/compilers.md; None if it has none that parapipe runs.
    compiled
        How its compiler's cycles become seconds; None if that is not known.
    options
        What an execution provider of ONNX Runtime is given: names and values, both texts.
    cores
        Numbers of its CPU cores, for affinity; empty for anything but a CPU.
    divisions
        How its cores may work as several processors; not at all if left out.
    streams
        How it runs several operators at once; one after the other if left out.
    host
        Name of the CPU processor whose core enqueues its work, for a GPU, NPU or DSP.
    source
        Where cores, host and data types come from.
    operators
        What it runs; everything in its data types if left out.
    rates
        Nominal rates of operator classes; those of `peak` and `memory` for all if left out.
    weights
        How it keeps weights; as they are in the model, one copy in its memory, if left out.
    segments
        How many segments it may have, and what each takes; not known if left out.
    input, output
        Time to load a frame into its memory, and to read the result from there.
    """

    short_keys = ("part", "units", "frequency_hz", "count")

    name: Name
    kind: Literal["cpu", "gpu", "npu", "dsp"]
    backend: Name
    compiler: CompilerTarget | None = None
    compiled: Compiled | None = None
    options: Mapping[OptionName, OptionValue] = {}
    description: Prose = ""
    source: Name
    cores: Annotated[Many[CoreId], Field(max_length=1024)] = ()
    divisions: Divisions | None = None
    streams: Streams | None = None
    host: Name | None = None
    data_types: Annotated[Many[DataType], Field(min_length=1)]
    operators: Support = Support()
    clock: Clock
    launch: Launch
    peak: Peak
    memory: ProcessorMemory
    rates: ClassRates | None = None
    weights: WeightStorage | None = None
    segments: Segments | None = None
    power: Power
    input: Port
    output: Port
    _runs_at_hz: float | None = PrivateAttr(None)
    _most_hz: float = PrivateAttr(inf)
    _whole: Self | None = PrivateAttr(None)
    _divided_into: tuple[str, ...] = PrivateAttr(())
    _at_once: int = PrivateAttr(1)

    def at(self, frequency_hz: float) -> Self:
        """Return the same processor at another of its operating points.

        Raises
        ------
        KeyError
            If it has no point of that frequency.
        """
        if all(point.frequency_hz != frequency_hz for point in self.clock.points):
            raise KeyError(frequency_hz)
        copy = self.model_copy()
        copy._runs_at_hz = frequency_hz
        copy._whole = self._whole and self._whole.at(frequency_hz)
        return copy

    def sustained(self) -> Self:
        """Return it as it is in long runs: at its sustained clock, without any faster point."""
        sustained_hz = self.clock.sustained_frequency_hz
        if sustained_hz is None:
            return self
        copy = self.at(sustained_hz)
        copy._most_hz = sustained_hz
        return copy

    @property
    def captures_graphs(self) -> bool:
        """Whether it starts a run of operators as one captured graph."""
        return self.launch.graph_s is not None

    def launching_each(self) -> Self:
        """Return the same processor, which starts every operator by itself."""
        if not self.captures_graphs:
            return self
        copy = self.model_copy(update={"launch": self.launch.model_copy(update={"graph_s": None})})
        copy._whole = self._whole and self._whole.launching_each()
        return copy

    @property
    def division(self) -> Divisions | Streams | None:
        """How it may work as several processors: its cores divided, or on several streams."""
        return self.divisions or self.streams

    def parts(self, sizes: Sequence[int]) -> tuple[Self, ...]:
        """Return the parts of one of its divisions: of some of its cores each, or its streams."""
        if self.streams:
            description = f"one of {len(sizes)} streams of {self.name}"
            names = stream_names(self.name, len(sizes))
            return tuple(self._as_part(name, self.cores, description, len(sizes)) for name in names)
        of = f"of {len(self.cores)} cores of {self.name}"
        parts = part_cores(self.name, self.cores, sizes).items()
        return tuple(self._as_part(name, cores, f"{len(cores)} {of}", 1) for name, cores in parts)

    def _as_part(self, name: str, cores: tuple[int, ...], description: str, at_once: int) -> Self:
        copy = self.model_copy(update={"name": name, "cores": cores, "description": description})
        copy._whole, copy._at_once = self, at_once
        return copy

    def divided(self, parts: Collection[str]) -> Self:
        """Return it where it works as processors of these names."""
        copy = self.model_copy()
        copy._divided_into = tuple(parts)
        return copy

    @property
    def whole(self) -> Self | None:
        """What it is a part of, at the same operating point; None of a processor of its own."""
        return self._whole

    @property
    def divided_into(self) -> tuple[str, ...]:
        """Names of the parts that it works as here, so that it runs nothing itself; else none."""
        return self._divided_into

    @property
    def stream_of(self) -> str | None:
        """Name of the processor that it is a stream of; None if it is none."""
        return self._whole.name if self._whole and self._at_once > 1 else None

    @property
    def at_once(self) -> int:
        """How many streams of its whole there are if it is one; 1 if it is none."""
        return self._at_once

    def part_slowdown(self, operator_class: str) -> Expression:
        """Return the time on this part over that on the whole; 1 if it is whole.

        By `Divisions`, or `Streams`.
        """
        if self.at_once > 1:
            return file_value("slowdown", "", self, "streams", "slowdown", self.at_once - 1)
        if self._whole is None or self.divisions is None:
            return Expression(1.0)
        key = class_key(self.divisions.parallel_share, operator_class)
        share = file_value("parallel share", "", self, "divisions", "parallel_share", key)
        return share / self._share_of_whole + 1 - share

    @property
    def _share_of_whole(self) -> Expression:
        if self.at_once > 1:
            return named_value("share of the streams", 1 / self.at_once)
        cores = len(self._whole.cores) if self._whole else len(self.cores)
        return named_value("share of the cores", len(self.cores) / cores)

    def supports(
        self,
        type: str,
        dtype: str,
        attributes: Mapping[str, AttributeLike],
        activations: Collection[int] = (),
    ) -> Refusal | None:
        """Return None if the operator can run, else why it cannot.

        Parameters
        ----------
        type
            ONNX operator type.
        dtype
            Data type it computes in (`float32`).
        attributes
            ONNX attributes that are written down.
        activations
            Positions of its inputs that are no constants, counted from 0.
        """
        own = self.computing_type(dtype)
        if own is None:
            own_types = ", ".join(self.data_types)
            return Refusal(self.name, f"{self.name} computes in {own_types}, not in {dtype}")
        cause = self.operators.refusal(type, own, attributes, activations)
        return None if cause is None else Refusal(self.name, cause, type)

    def computing_type(self, dtype: str) -> str | None:
        """Return the type of its own that it computes in where a data type is asked for.

        That is the same one, or integers of the same size with the other sign: a zero point is all
        that tells int8 and uint8 apart in a quantised operator. None if it has neither.
        """
        signed = dtype.removeprefix("u")
        twin = (signed if dtype != signed else f"u{dtype}") if signed.startswith("int") else dtype
        return next((own for own in (dtype, twin) if own in self.data_types), None)

    @cached_property
    def point(self) -> OperatingPoint:
        """The operating point that it runs at: the default one, unless `at` says otherwise."""
        frequency_hz = self._runs_at_hz or self.clock.default_frequency_hz
        return next(point for point in self.clock.points if point.frequency_hz == frequency_hz)

    @cached_property
    def frequency(self) -> Expression:
        """The frequency of its operating point."""
        return self._point_value("frequency", "Hz", "frequency_hz")

    @cached_property
    def voltage(self) -> Expression:
        """The voltage of its operating point."""
        return self._point_value("voltage", "V", "voltage_v")

    def _point_value(self, name: str, unit: str, key: str) -> Expression:
        return file_value(
            name, unit, self, "clock", "points", self.clock.points.index(self.point), key
        )

    def slowdown(self, operator_class: str, base_hz: float) -> Expression | None:
        """Return the time at its operating point over that at another frequency.

        Follows `Clock.scaling`; None if the platform says nothing of it and the frequencies differ.
        """
        if base_hz == self.point.frequency_hz:
            return Expression(1.0)
        if self.clock.scaling is None:
            return None
        key = class_key(self.clock.scaling.compute_share, operator_class)
        share = file_value("compute share", "", self, "clock", "scaling", "compute_share", key)
        default = file_value("default", "Hz", self, "clock", "default_frequency_hz")
        factor = share * default / self.frequency + 1 - share
        if base_hz == default.value:
            return factor
        base = named_value("base", base_hz, "Hz", note="at which it is known")
        return factor / (share * default / base + 1 - share)

    @property
    def is_default(self) -> bool:
        """Whether it is at the point that its state has where nobody chooses another."""
        usual_hz = self.clock.default_frequency_hz if self._most_hz == inf else self._most_hz
        return self.point.frequency_hz == usual_hz

    @property
    def operating_points(self) -> tuple[OperatingPoint, ...]:
        """The operating points that it may be at, as listed."""
        return tuple(each for each in self.clock.points if each.frequency_hz <= self._most_hz)

    @property
    def static_power(self) -> Expression:
        """βV of equation (8), in watts."""
        power = file_value("beta", "W/V", self, "power", "beta_w_per_v") * self.voltage
        return power * self._share_of_whole if self._whole else power

    @property
    def static_power_w(self) -> float:
        """βV of equation (8), in watts."""
        return self.static_power.value

    @property
    def alpha(self) -> Expression:
        """α of equation (8)."""
        return file_value("alpha", "W/(V²·Hz)", self, "power", "alpha_w_per_v2_hz")

    def dynamic_power(self, operator_class: str) -> Expression:
        """Return αV²f × utilisation of equation (8) in watts, while such an operator runs.

        Raises
        ------
        KeyError
            If there is no such operator class.
        """
        if operator_class not in OPERATOR_CLASSES:
            raise KeyError(operator_class)
        key = class_key(self.power.utilisation, operator_class)
        share = file_value("utilisation", "", self, "power", "utilisation", key)
        return self._full_power * share

    @cached_property
    def _full_power(self) -> Expression:
        power = self.alpha * self.voltage**2 * self.frequency
        return power * self._share_of_whole if self._whole else power

    def dynamic_power_w(self, operator_class: str) -> float:
        """Return the same as a number."""
        return self.dynamic_power(operator_class).value

    @property
    def full_power_w(self) -> float:
        """Static power plus that of the operator class that draws the most, in watts."""
        return self.static_power_w + max(map(self.dynamic_power_w, OPERATOR_CLASSES))

    def input_time(self, size_bytes: float) -> Expression:
        """Return the seconds to load a frame of that size."""
        return travel_time(self, size_bytes, "input")

    def output_time(self, size_bytes: float) -> Expression:
        """Return the seconds to read a result of that size."""
        return travel_time(self, size_bytes, "output")
