"""Arguments of the API: each is what it must be, or one error names all that are not.

An argument of one name means the same in every function, so there is one rule for a name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real

from parapipe.errors import ArgumentError

LONGEST = 60  # characters of a value that are shown


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must be, in words and as a test."""

    words: str
    holds: Callable[[object], bool]


def check_arguments(function: str, given: Mapping[str, object]) -> None:
    """Raise an error that names every argument that breaks its rule.

    Parameters
    ----------
    given
        Arguments by name.

    Raises
    ------
    ArgumentError
        Arguments are wrong.
    """
    wrong = [
        f"{name} must be {RULES[name].words}, and is {_shown(value)}"
        for name, value in given.items()
        if name in RULES and not RULES[name].holds(value)
    ]
    if wrong:
        raise ArgumentError(f"{function}: {'; '.join(wrong)}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike) and str(value) != ""


def _is_whole(value: object, least: int) -> bool:
    # True is a whole number to Python
    return type(value) is not bool and isinstance(value, Integral) and int(value) >= least


def _is_share(value: object) -> bool:
    return type(value) is not bool and isinstance(value, Real) and 0 <= float(value) < 1


def _is_time(value: object) -> bool:
    return type(value) is not bool and isinstance(value, Real) and 0 < float(value) < inf


def _is_least(value: object) -> bool:
    return type(value) is not bool and isinstance(value, Real) and 0 <= float(value) < inf


def _is_most(value: object) -> bool:
    return type(value) is not bool and isinstance(value, Real) and float(value) > 0


def _is_list(value: object, holds: Callable[[object], bool]) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(map(holds, value))


def _is_table(value: object, holds: Callable[[object], bool]) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and holds(each) for name, each in value.items()
    )


def _is_size(value: object) -> bool:
    return _is_whole(value, 1)


def _is_shape(value: object) -> bool:
    match value:
        case (str(), shape):
            return _is_list(shape, _is_size)
    return _is_list(value, _is_size)


def _one_of(*words: str) -> Rule:
    return Rule(" or ".join(f"'{word}'" for word in words), lambda value: value in words)


def _or_none(rule: Rule) -> Rule:
    return Rule(f"{rule.words}, or None", lambda value: value is None or rule.holds(value))


_FLAG = Rule("True or False", lambda value: isinstance(value, bool))
_FUNCTION = _or_none(Rule("a function", callable))
RULES: Mapping[str, Rule] = {
    "model": Rule("the path of an ONNX file or 'zoo:NAME'", _is_path),
    "platform": Rule("the name of a shipped platform or the path of a YAML file", _is_path),
    "mapper": Rule("the name of a mapper", lambda value: isinstance(value, str)),
    "granularity": _one_of("fused", "onnx"),
    "time_limit_s": Rule("a positive finite number of seconds", _is_time),
    "seed": Rule("a whole number of at least 0", lambda value: _is_whole(value, 0)),
    "deterministic": _FLAG,
    "jobs": _or_none(Rule("a whole number of at least 1", _is_size)),
    "executor": _or_none(
        Rule("a concurrent.futures.Executor", lambda value: isinstance(value, Executor))
    ),
    "cache": Rule(
        "True, False or the path of a folder",
        lambda value: isinstance(value, bool) or _is_path(value),
    ),
    "objectives": _one_of("latency-throughput-energy", "latency-throughput"),
    "resolution": Rule("a number of at least 0 and less than 1", _is_share),
    "energy_resolution": Rule("a number from 0 to 1", lambda value: value == 1 or _is_share(value)),
    "assignment": _or_none(Rule("the path of a YAML or JSON file", _is_path)),
    "order": _or_none(
        Rule("a letter for each block, as in 'GGBB'", lambda value: isinstance(value, str))
    ),
    "view": _or_none(_one_of("deployed", "as-measured")),
    "dvfs": _FLAG,
    "dvfs_points": Rule("a whole number of at least 2", lambda value: _is_whole(value, 2)),
    "profiles": Rule("a list of paths of CSV files", lambda value: _is_list(value, _is_path)),
    "dims": _or_none(
        Rule(
            "whole numbers of at least 1 by name, as in {'batch': 1}",
            lambda value: _is_table(value, _is_size),
        )
    ),
    "shapes": _or_none(
        Rule(
            "whole numbers of at least 1 by input, as in {'data': (1, 3, 224, 224)}, or with a "
            "data type, as in {'result': ('float32', (1, 64))}",
            lambda value: _is_table(value, _is_shape),
        )
    ),
    "rules": _or_none(Rule("the path of a YAML file", _is_path)),
    "name": Rule("a name", lambda value: isinstance(value, str) and value != ""),
    "split": _or_none(Rule("a whole number of at least 1", _is_size)),
    "processors": Rule(
        "lists of core numbers, as in [[0, 1], [2, 3]]",
        lambda value: _is_list(value, lambda group: _is_list(group, lambda c: _is_whole(c, 0))),
    ),
    "out": _or_none(Rule("the path of a file", _is_path)),
    "again": _FLAG,
    "path": Rule("the path of a file", _is_path),
    "configuration": _or_none(
        Rule("the id or a name of a configuration", lambda value: isinstance(value, str))
    ),
    "operators": Rule(
        "a list of names", lambda value: _is_list(value, lambda name: isinstance(name, str))
    ),
    "predicted": Rule("the path of a JSON file", _is_path),
    "measured": Rule("the path of a CSV file", _is_path),
    "directory": Rule("the path of a folder", _is_path),
    "minimise": _one_of("latency", "period", "energy", "power"),
    "min_throughput_fps": Rule("a number of at least 0", _is_least),
    "max_latency_s": Rule("a positive number of seconds", _is_most),
    "max_energy_j": Rule("a positive number of joules", _is_most),
    "max_power_w": Rule("a positive number of watts", _is_most),
    "board": _FLAG,
    "sustained": _FLAG,
    "frames": Rule("a whole number of at least 1", _is_size),
    "queue": _or_none(Rule("a whole number of at least 1", _is_size)),
    "jitter": Rule("a number of at least 0 and less than 1", _is_share),
    "saturate": _FLAG,
    "contention": Rule(
        "True, False or a positive finite number",
        lambda value: isinstance(value, bool) or _is_time(value),
    ),
    "unit": _one_of("operator", "segment"),
    "given": Rule("the path of an .npz file", _is_path),
    "warmup": Rule("a whole number of at least 0", lambda value: _is_whole(value, 0)),
    "period_s": Rule("a positive finite number of seconds", _is_time),
    "patience_s": Rule("a positive finite number of seconds", _is_time),
    "keep": Rule("the path of a file", _is_path),
    "cores": Rule(
        "lists of core numbers by processor, as in {'big': [0, 1]}",
        lambda value: _is_table(
            value, lambda group: _is_list(group, lambda core: _is_whole(core, 0)) and bool(group)
        ),
    ),
    "progress": _FUNCTION,
    "note": _FUNCTION,
}
