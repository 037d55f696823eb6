"""Maps the zoo's models with interleaved frames, and writes that section of fronts.md.

python -m docs.interleaved_fronts FOLDER [--minutes N]

Each result is kept in FOLDER, and results that are there already are taken, so that the script may
be stopped and started again; after N minutes no further run is started. Rows that are missing say
so. Then it asks for proofs where nothing better than stages was found (`interleaved_proofs.py`),
which are kept in FOLDER, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, exp, log
from pathlib import Path
from time import monotonic

import yaml

from docs.interleaved_proofs import EFFORT_S, MOST_OPERATORS, Answers, Question
from docs.networks import NETWORKS
from parapipe import __version__

HERE = Path(__file__).parent
PAGE = HERE / "fronts.md"
INTERLEAVED = "\n## Interleaved frames\n"  # as in fronts.py
BOUNDS = HERE.parent / "benchmarks/results/interleaved_bounds.json"
BUDGETS = {"petr": "2min"}
MOST = "10min"  # the others end by themselves
TITLES = ("stages, fps", "interleaved, fps", "×", "bound, fps", "gap", "ms", "frames")
LATENCIES = (1.0, 1.5, 2.0)
CLOSE = 0.01  # share of throughput below which two are not told apart

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Case:
    """A board, and whether hand-overs keep the receiver busy."""

    board: str
    received: bool

    @property
    def title(self) -> str:
        """Heading of the case's table."""
        return f"{self.board}, hand-overs as {'work' if self.received else 'delays'}"

    @property
    def name(self) -> str:
        """Folder of the case's results."""
        return f"{self.board}-shipped-{'work' if self.received else 'delay'}"


CASES = tuple(Case("amlogic-a311d", received) for received in (False, True))


def platform_of(case: Case, folder: Path) -> str:
    """Return the name of the shipped platform, or a file that is derived from it."""
    if not case.received:
        return case.board
    out = folder / "platforms" / case.name / f"{case.board}.yaml"
    if not out.exists():
        shipped = HERE.parent / "platforms" / f"{case.board}.yaml"
        document = yaml.safe_load(shipped.read_text(encoding="utf-8"))
        for link in document["links"]:
            link["occupies"] = "receiver"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return str(out)


def place_of(case: Case, model: str, interleave: str, folder: Path) -> Path:
    """Return where the front of a run is kept."""
    return folder / case.name / interleave / model.replace(":", "-") / "front.json"


def run(case: Case, model: str, interleave: str, folder: Path) -> None:
    """Map the model unless that was done before."""
    front = place_of(case, model, interleave, folder)
    if front.exists():
        return
    subprocess.run(
        [sys.executable, "-m", "parapipe.cli.main", "map", f"zoo:{model}",
         "--platform", platform_of(case, folder), "--interleave", interleave,
         "--objectives", "latency-throughput", "--budget", BUDGETS.get(model, MOST), "--quiet",
         "--out", str(front.parent)],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def fill(folder: Path, minutes: float) -> None:
    """Make the results that are missing, small models first, delays before work."""
    sizes = json.loads(BOUNDS.read_text(encoding="utf-8"))["amlogic-a311d"]
    end = monotonic() + 60 * minutes
    for received in (False, True):
        for model in sorted(NETWORKS, key=lambda each: sizes[each]["operators"]):
            for case in CASES:
                for interleave in ("none", "auto") if case.received == received else ():
                    if monotonic() < end:
                        run(case, model, interleave, folder)


@dataclass(frozen=True, slots=True)
class Pair:
    """A model's front without interleaved frames, and with them."""

    stages: Sequence[Row]
    both: Sequence[Row]
    ended: bool

    @property
    def gain(self) -> float:
        """Throughput of the best of both over that of stages."""
        return _least(self.stages, "period_s") / _least(self.both, "period_s")


def pair_of(case: Case, model: str, folder: Path) -> Pair | None:
    """Read both fronts; None if one is missing."""
    paths = [place_of(case, model, each, folder) for each in ("none", "auto")]
    if not all(path.exists() for path in paths):
        return None
    stages, both = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    return Pair(
        stages["configurations"],
        [*stages["configurations"], *both["configurations"]],
        bool(stages.get("unfinished") or both.get("unfinished")),
    )


def bound_of(case: Case, model: str, pair: Pair) -> float | None:
    """Return the proven least period: that of interleaved rows, else the benchmark's."""
    bounds = [_least_period_s(each) for each in pair.both if _in_turn(each)]
    if bounds:
        return max(bounds)
    measured = json.loads(BOUNDS.read_text(encoding="utf-8"))[case.board][model]
    return 1 / _number(measured["work bound" if case.received else "given bound"])


def _in_turn(each: Row) -> bool:
    """Tell whether a row comes of the search with frames interleaved; of old, by its kind."""
    return each["kind"] == "interleaved" or bool(each.get("least"))


def _least_period_s(each: Row) -> float:
    """Return the bound of an interleaved row: in fronts of before that was in its gap."""
    least = each.get("least")
    if isinstance(least, dict):
        return _number(least["period_s"])
    return _number(each["period_s"]) * (1 - _number(each["gap"]))


def answers_of(case: Case, model: str, folder: Path) -> Answers:
    """Return the proofs of a model's row."""
    path = folder / case.name / "proofs" / f"{model.replace(':', '-')}.json"
    return Answers(path, model, platform_of(case, folder))


def prove(folder: Path, minutes: float) -> None:
    """Ask for proofs where nothing better than stages was found, small models first."""
    end = monotonic() + 60 * minutes
    sizes = json.loads(BOUNDS.read_text(encoding="utf-8"))["amlogic-a311d"]
    for model in sorted(NETWORKS, key=lambda each: sizes[each]["operators"]):
        for case in CASES:
            pair = pair_of(case, model, folder)
            if pair is not None and monotonic() < end:
                questions = [each for times in LATENCIES if (each := question_of(pair, times))]
                answers_of(case, model, folder).of(questions, search=True)


def row(case: Case, model: str, pair: Pair | None, folder: Path) -> str:
    """Return the table's row for a model."""
    if pair is None:
        return f"| `{model}` | not run yet |" + " |" * (len(TITLES) + len(LATENCIES) - 1)
    best = min(pair.both, key=lambda each: _number(each["period_s"]))
    period, latency = _number(best["period_s"]), _number(best["latency_s"])
    bound = bound_of(case, model, pair)
    cells = [
        f"`{model}`" + ("*" if pair.ended else ""),
        f"{1 / _least(pair.stages, 'period_s'):.4g}",
        f"{1 / period:.4g}" if _in_turn(best) else "none better",
        f"{pair.gain:.2f}",
        f"{1 / bound:.4g}" if bound else "not stated",
        f"{1 - bound / period:.1%}" if bound else "not stated",
        f"{latency * 1e3:.4g}",
        str(ceil(latency / period * (1 - 1e-6))),
        *(_within(pair, times, answers_of(case, model, folder)) for times in LATENCIES),
    ]
    return f"| {' | '.join(cells)} |"


def _best_within(pair: Pair, times: float) -> tuple[float, float, float] | None:
    """Return the periods of stages and of both at a bounded latency, and that."""
    pipes = [each for each in pair.stages if "pipe-only" in _names(each)]
    if not pipes:
        return None
    limit_s = times * _least(pipes, "latency_s")
    most_s = limit_s * (1 + 1e-9)
    stages_s, both_s = (
        _least([each for each in rows if _number(each["latency_s"]) <= most_s], "period_s")
        for rows in (pair.stages, pair.both)
    )
    return stages_s, both_s, limit_s


def question_of(pair: Pair, times: float) -> Question | None:
    """Return what is to be proven: nothing if interleaved frames are better, or without pipes."""
    best = _best_within(pair, times)
    if best is None or best[0] > best[1] * (1 + CLOSE):
        return None
    return Question(best[2], best[0] / (1 + CLOSE))


def _within(pair: Pair, times: float, answers: Answers) -> str:
    """Return the best throughput of stages and of both at a bounded latency."""
    best = _best_within(pair, times)
    if best is None:
        return "no pipe-only"
    stages_s, both_s, _ = best
    question = question_of(pair, times)
    if question is None:
        return f"{1 / stages_s:.4g} → {1 / both_s:.4g}"
    [answer] = answers.of([question], search=False)
    words = answer.words if answer else "none found"
    return f"{1 / stages_s:.4g}{' ' if words.startswith('→') else ', '}{words}"


def section(folder: Path) -> Iterator[str]:
    """Yield the parts of the section."""
    yield f"""{INTERLEAVED}
    parapipe map zoo:MODEL --platform PLATFORM

Best throughput where operators of several frames may take turns on every processor, as by
default, beside that of `--interleave none`. *Bound*: no mapping with each operator on one
processor has more throughput, which is proven; where the search found no interleaved
configuration, it is that of `benchmarks/results/interleaved_bounds.md`. *Gap* is how far the
period found is above the least one at most. *ms* and *frames* are the latency and the frames in
flight of the configuration with the most throughput. The last columns have the most throughput
among configurations with at most 1, 1.5 and 2 times the latency of `pipe-only`: stages → with
interleaved frames, where that is more by {CLOSE:.0%}. *Proven: none* says that no mapping with each
operator on one processor has so much more: the loads, prices of the loads along the longest path,
or CP-SAT over assignments, orders, lags and the period prove it. *None found* says that the search
found none and nothing is proven; CP-SAT was asked up to {MOST_OPERATORS} operators, with
{EFFORT_S:g} deterministic seconds. *(CP-SAT)* marks
what it found and `map` did not.

Where hand-overs are *work*, each of them keeps its receiver busy (`occupies: receiver` in all
links of the platform's file). There the bound is one on loads, and a schedule of that period need
not exist. An asterisk: the budget of
{BUDGETS["petr"]} ended a search, so that the row may be worse than the front without a budget.
Objectives are `latency-throughput`. Made by `python -m docs.interleaved_fronts FOLDER` on
{date.today()} with parapipe {__version__}, commit {_commit()}.
"""
    for case in CASES:
        pairs = {model: pair_of(case, model, folder) for model in NETWORKS}
        gains = [pair.gain for pair in pairs.values() if pair]
        mean = exp(sum(map(log, gains)) / len(gains)) if gains else None
        yield f"\n### {case.title}\n\n"
        yield (
            f"Geometric mean of {len(gains)} of {len(pairs)} models: {mean:.2f} × "
            "the throughput of stages.\n\n"
            if mean
            else "Not run yet.\n\n"
        )
        bounded = (f"fps at {times:g} ×" for times in LATENCIES)
        titles = ("model", *TITLES, *bounded)
        yield f"| {' | '.join(titles)} |\n|---|" + "---:|" * (len(titles) - 1) + "\n"
        for model, pair in pairs.items():
            yield row(case, model, pair, folder) + "\n"


def _commit() -> str:
    """Return the last commit that changed the package."""
    asked = ["git", "log", "-1", "--format=%h", "--", "parapipe", "platforms"]
    return subprocess.run(
        asked, cwd=HERE.parent, check=True, capture_output=True, text=True
    ).stdout.strip()


def _names(each: Row) -> Sequence[str]:
    names = each["names"]
    assert isinstance(names, list)
    return names


def _least(rows: Sequence[Row], key: str) -> float:
    return min((_number(each[key]) for each in rows), default=float("inf"))


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    given = parser.parse_args()
    began = monotonic()
    fill(given.folder, given.minutes)
    prove(given.folder, given.minutes - (monotonic() - began) / 60)
    before = PAGE.read_text(encoding="utf-8").partition(INTERLEAVED)[0]
    PAGE.write_text(before + "".join(section(given.folder)), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
