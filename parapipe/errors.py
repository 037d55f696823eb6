"""Every error a user can meet: one sentence each that says what, where and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class ParapipeError(Exception):
    """Base of all errors that parapipe raises on purpose; the commands print it as one line."""


class ArgumentError(ParapipeError, ValueError):
    """Arguments of a function are not what they must be; the message names all of them.

    `complaint` is the message without the name of the function.
    """

    def __init__(self, complaint: str, function: str = "") -> None:
        super().__init__(f"{function}: {complaint}" if function else complaint)
        self.complaint = complaint


class KeywordError(ArgumentError, TypeError):
    """A function takes no argument of that name, or lacks one; the message names the near ones."""


class ModelError(ParapipeError):
    """The ONNX model cannot be read or lacks something that mapping needs."""


class FileError(ParapipeError):
    """A YAML file is wrong; `mistakes` lists every one, each with file, line and key."""

    def __init__(self, message: str, mistakes: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.mistakes = tuple(mistakes)


class PlatformError(FileError):
    """The platform file is wrong."""


class RulesError(FileError):
    """A rules file is wrong."""


class AssignmentError(FileError):
    """An assignment does not fit its model or platform."""


class SplitError(ParapipeError):
    """Operators cannot be split as asked."""


class SweepError(FileError):
    """A sweep's file is wrong, its folder cannot be read, or its work cannot be handed out."""


class CostError(ParapipeError):
    """A profile is wrong, or a number that is needed cannot be had from any source."""


class MappingError(ParapipeError):
    """No schedule exists or was found, for a reason that the message names."""


class DemandError(MappingError):
    """No configuration meets all demands; the message says which are missed."""


class VerificationError(ParapipeError):
    """A schedule or a plan breaks a rule; `violations` lists every one."""

    def __init__(self, message: str, violations: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.violations = tuple(violations)


class ComparisonError(ParapipeError):
    """Predictions cannot be read, or none of them is of a measured run."""


class PlanError(ParapipeError):
    """A plan file cannot be read or does not fit its model."""


class FrontError(ParapipeError):
    """The files of a front cannot be read, or do not belong together."""


class WorseError(ParapipeError):
    """A front is worse than an earlier one by more than is allowed; the message says in what."""


class NoConfigurationError(FrontError, KeyError, IndexError):
    """A front has no configuration of that id, name or place; the message names the near ones."""

    __str__ = Exception.__str__  # that of KeyError would quote it


class ExportError(ParapipeError):
    """A plan cannot be exported; `operators` lists the ids of those that stand in the way."""

    def __init__(self, message: str, operators: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.operators = tuple(operators)


class SimulationError(ParapipeError):
    """A plan cannot be simulated as asked."""


class StrategyError(ParapipeError):
    """There is no such strategy, or it does what a strategy may not do."""


class ExecutionError(ParapipeError):
    """A plan cannot be run on this machine, or a run ended before its time."""


class OutputError(ParapipeError):
    """A result cannot be written; `path` says where, if the system refused it."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class RuntimeMissingError(ParapipeError):
    """ONNX Runtime is needed and not installed."""


class ProfilingError(ParapipeError):
    """A machine cannot be described or measured as asked."""
