"""Where parapipe is better than the paper's published numbers, equal, and worse, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Literal

from benchmarks import paper_published as published
from benchmarks.granularity import Row as GranularityRow
from benchmarks.paper_page import NOT_AT_HAND, percent
from benchmarks.paper_runs import Overtaken, Solving
from benchmarks.tables import markdown_table
from parapipe.documents.comparison import METRICS, Errors

EQUAL = 0.05
EQUAL_OPERATORS = 2
Judgement = Literal["better", "equal", "worse", "not judged"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A published figure beside ours.

    Parameters
    ----------
    paper, ours
        As they are written.
    reason
        What was measured that explains it.
    """

    what: str
    paper: str
    ours: str
    judgement: Judgement
    reason: str


def judged(paper: float, ours: float, *, less_is_better: bool) -> Judgement:
    """Compare two figures; within a share of `EQUAL` of the paper's they are equal."""
    if abs(ours - paper) <= EQUAL * abs(paper):
        return "equal"
    return "better" if (ours < paper) == less_is_better else "worse"


def of_networks(counted: Mapping[str, published.Network]) -> list[Verdict]:
    """Judge Tables I and III."""
    pairs = [(ours, published.NETWORKS[model]) for model, ours in counted.items()]
    same = sum((o.subgraphs, o.parallelism) == (p.subgraphs, p.parallelism) for o, p in pairs)
    most = max(abs(o.operators - p.operators) for o, p in pairs)
    return [
        Verdict(
            "subgraphs and parallelism, networks with the same", str(len(pairs)), str(same),
            "equal" if same == len(pairs) else "worse",
            "the partition equals the paper's Algorithm 1 where that is well defined",
        ),
        Verdict(
            "operators, largest difference", "0", str(most),
            "equal" if most <= EQUAL_OPERATORS else "worse",
            "the paper's counts of the four convolutional networks follow from no one rule exactly",
        ),
    ]  # fmt: skip


def of_estimator(errors: Mapping[str, Errors], plain: Mapping[str, Errors]) -> list[Verdict]:
    """Judge the estimator's errors; `plain`: those of adding up what was metered block by block."""
    made = []
    for name in METRICS:
        paper, ours = published.ESTIMATOR_RMSPE[name], errors[name].rmspe
        reason = (
            f"operators take their own measured times; {errors[name].runs} runs of three networks, "
            "one left out in turn, and not the paper's networks"
        )
        if name == "energy":
            reason = (
                f"the meter's lag is taken back; the plain sum has {_share(plain[name].rmspe, 2)}"
            )
        made.append(
            Verdict(
                f"error of {name}, RMSPE", _share(paper, 2), _share(ours, 2),
                judged(paper, ours, less_is_better=True), reason,
            )
        )  # fmt: skip
    return made


def of_solving(found: Sequence[Solving]) -> list[Verdict]:
    """Judge the time to solve a front against one programme of the paper; the slower platform."""
    made = []
    for model, paper in published.SOLVE_S.items():
        ours = max((each for each in found if each.model == model), key=lambda each: each.total_s)
        made.append(
            Verdict(
                f"seconds to solve, {model}", f"{paper:.0f}", f"{ours.total_s:.0f}",
                "not judged"  # a limit of time is no time to solve
                if ours.proven < ours.problems
                else judged(paper, ours.total_s, less_is_better=True),
                f"ours are {ours.problems} problems on {ours.platform}, {ours.proven} proven, the "
                f"longest {ours.longest_s:.1f} s: bounds and constraint programming in place of "
                "the big-M programme, both on one machine in the benchmark of mappers; the paper's "
                "machine is not at hand",
            )
        )  # fmt: skip
    return made


def of_heuristics(found: Sequence[Overtaken]) -> list[Verdict]:
    """Judge the improvement over the better of HEFT and CPOP."""
    made = []
    for platform in dict.fromkeys(each.platform for each in found):
        paper = published.OVER_HEFT_CPOP[platform]
        own = [each for each in found if each.platform == platform]
        ours = mean(each.latency for each in own)
        busiest, most = mean(each.busiest for each in own), max(own, key=lambda each: each.latency)
        made.append(
            Verdict(
                f"less latency than the better of HEFT and CPOP, {platform}",
                _share(paper), _share(ours), judged(paper, ours, less_is_better=False),
                f"from {_share(min(each.latency for each in own))} to {_share(most.latency)} "
                f"({most.model}). Running side by side brings "
                f"{_share(mean(e.sequence for e in own))} at all over the best sequence, and one "
                f"processor computes {_share(busiest)} of our shortest schedules; HEFT and CPOP, "
                "which know every transfer and fill gaps, find the rest. How the paper made them "
                "is not at hand. In throughput, where stages count, ours are "
                f"{_share(mean(e.throughput for e in own))} above the same heuristic",
            )
        )  # fmt: skip
    return made


def of_granularity(found: Mapping[tuple[str, str], GranularityRow]) -> list[Verdict]:
    """Judge fine against coarse, and tell what is fitted to the paper's figures."""
    clusters = [row for (_, processors), row in found.items() if processors == "big+little"]
    gained = [1 - fine / coarse for coarse, fine, _ in (row.with_ms for row in clusters)]
    ours = mean(gained)
    made = [
        Verdict(
            "fine better than coarse on the CPU clusters", _share(published.FINE_OVER_COARSE, 2),
            _share(ours, 2), judged(published.FINE_OVER_COARSE, ours, less_is_better=False),
            f"mean of {len(clusters)} networks as one stage, from {_share(min(gained), 2)} to "
            f"{_share(max(gained), 2)}",
        )
    ]  # fmt: skip
    for processors, paper in published.SYNCHRONISATION.items():
        each = found["googlenet", processors]
        longer = each.unaware_ms / each.without_ms[1] - 1
        won = each.unaware_ms - each.with_ms[1]
        made.append(
            Verdict(
                f"waiting of fine plans, {processors}", _share(paper), _share(longer),
                "not judged",
                "our overhead per hand-over is fitted to it; a mapper that knows of it wins "
                f"{_share(won / (each.unaware_ms - each.without_ms[1]), 0)} of that back",
            )
        )  # fmt: skip
    made.append(
        Verdict(
            "program overhead of fine plans", _share(published.PROGRAM_OVERHEAD), NOT_AT_HAND,
            "not judged", "a figure of the board; no run of such plans on it is at hand",
        )
    )  # fmt: skip
    return made


def of_sets(found: Mapping[str, Mapping[str, float]], alone: Mapping[str, float]) -> list[Verdict]:
    """Judge the gains of sets of processors, one stage.

    Parameters
    ----------
    alone
        By which share a processor alone has more frames per joule than big alone.
    """
    made = []
    for processors, paper in published.GAINS.items():
        gain = found[processors]
        figures = {
            "latency": (paper.latency, gain["latency_s"]),
            "throughput": (paper.throughput, gain["one_stage_fps"]),
            "efficiency": (paper.efficiency, gain["one_stage_frames_per_joule"]),
        }
        reasons = {
            "latency": "the same networks on the same kind of board, predicted",
            "throughput": "one stage, as the paper's latency suggests; with stages it is "
            f"{percent(gain['throughput_fps'])}",
            "efficiency": "alone, on the same networks, "
            + " and ".join(f"{p} has {percent(x)}" for p, x in alone.items() if p in processors)
            + " over big, and a plan that shares the work lies between; ours is the shortest, the "
            f"most efficient one has {percent(gain['frames_per_joule'])}",
        }
        for name, (theirs, ours) in figures.items():
            if theirs is not None:
                made.append(
                    Verdict(
                        f"{name}, {processors} against big alone", percent(theirs), percent(ours),
                        judged(theirs, ours, less_is_better=name == "latency"), reasons[name],
                    )
                )  # fmt: skip
    return made


def table(found: Sequence[Verdict]) -> str:
    """Return what was judged, the better first; numbers lead to the reasons below."""
    order = ("better", "equal", "worse", "not judged")
    return markdown_table(
        ["", "the paper's", "ours", "", "why"],
        [
            [each.what, each.paper, each.ours, each.judgement, each.reason]
            for judgement in order
            for each in found
            if each.judgement == judgement
        ],
    )


def counts(found: Sequence[Verdict]) -> str:
    """Return how many are better, equal and worse, in a sentence."""
    of = Counter(each.judgement for each in found)
    return (
        f"Of {of.total() - of['not judged']} published figures, ours are better in {of['better']}, "
        f"equal in {of['equal']} and worse in {of['worse']}; {of['not judged']} can't be judged."
    )


def _share(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"
