"""Why a configuration is what it is, in sentences: each from figures of its plan and its front."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.documents.explanation_schema import EffectRow, ReasonRow
from parapipe.documents.figure_table import DRAWN
from parapipe.documents.front_schema import ConfigurationRow, FrontDocument
from parapipe.files.mistakes import join_with_and, listed, together
from parapipe.front.critical_paths import (
    bound_texts,
    busiest_resource,
    frame_path,
    interval_s,
    longest_path,
    moves_lowering_load,
    round_robin_of,
    spent_by_kind,
)
from parapipe.front.limits import limit_texts, state_texts
from parapipe.front.memory_and_doubt import memory_texts, segment_texts
from parapipe.front.memory_bound import beside_texts, co_run_texts, is_slowed
from parapipe.front.token_bound import token_texts
from parapipe.front.what_if import Change
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.plan.co_run import busy_times_s
from parapipe.plan.mapped import mapping_view
from parapipe.plan.schema import Plan, Stage

LARGEST = 3  # operators that are named
SAME = 1e-9
_MORE = {"least": "less", "most": "more"}
NOTEWORTHY = 0.005  # by which the sustained period differs from the longest stage
FIGURES: Mapping[str, tuple[str, str]] = {
    each.compared: (f"{_MORE[each.best]} {each.name}", f"the {each.best} {each.name}")
    for each in DRAWN
}


@dataclass(frozen=True, slots=True)
class Reasons:
    """A configuration of a front, with all that its reasons follow from."""

    front: FrontDocument
    row: ConfigurationRow
    plan: Plan
    graph: OperatorGraph
    costs: CostTable

    def rows(self) -> tuple[ReasonRow, ...]:
        """Return the sentences: what limits it, what runs nowhere else, why nothing is better."""
        return tuple(
            ReasonRow(about=about, text=text)  # type: ignore[arg-type]
            for about, texts in (
                ("bottleneck", self._bottleneck_texts()),
                ("critical path", self._path_texts()),
                ("processors", self._processor_texts()),
                ("memory", memory_texts(self.row, self.plan)),
                ("segments", segment_texts(self.row)),
                ("unsupported", together(dict(self._refusals())).values()),
                ("bound", (*self._bound_texts(), *state_texts(self.front))),
                ("bound", token_texts(self.front, self.row, self.plan, self.graph, self.costs)),
                ("front", self._front_texts()),
                ("doubt", self._quantile_texts()),
            )
            for text in texts
        )

    @property
    def _interleaved(self) -> bool:
        return mapping_view(self.plan).period_s is not None

    @property
    def _available_processors(self) -> list[tuple[int, str]]:
        """Indices and names of the processors; a cluster that is divided here is not there."""
        names = self.costs.processors
        divided = {each.part_of for each in self.front.processors if each.name in names}
        return [(p, name) for p, name in enumerate(names) if name not in divided]

    def _bottleneck_texts(self) -> Iterator[str]:
        yield from co_run_texts(self.plan)
        yield from (served := [*limit_texts(self.plan, self.costs)])
        if served:
            return
        if self._interleaved:
            yield from self._busiest_texts()
            return
        yield self._longest_stage_text()
        yield from beside_texts(self.plan)
        sustained_fps = 1 / self.row.sustained_period_s
        if abs(sustained_fps * self.row.period_s - 1) > NOTEWORTHY:
            yield (
                f"That is {plain(self.row.throughput_fps)} frames/s; {plain(sustained_fps)} can be "
                "sustained, because a processor may start the next frame before its stage has "
                "ended. Throughput below is that of the longest stage."
            )

    def _longest_stage_text(self) -> str:
        stages = self.plan.stages
        longest = max(stages, key=interval_s)
        turns = round_robin_of(longest)
        if len(stages) == 1:
            if len(turns) == 1:
                return (
                    f"There is one stage, so a frame comes every {_ms(longest.time_s)}, when the "
                    "previous one has ended."
                )
            return (
                f"There is one stage, and {listed(turns)} take turns on its frames: each takes "
                f"{_ms(longest.time_s)}, so a frame comes every {_ms(interval_s(longest))}."
            )
        others = ", ".join(
            f"stage {stage.index + 1} ({_processor_names(stage)}) takes "
            f"{_percent(interval_s(stage) / interval_s(longest))}{_divisor(stage)}"
            for stage in stages
            if stage is not longest
        )
        first, last = "Stage", ", and sets the period"
        if is_slowed(self.plan):
            first, last = "Alone, stage", ""
        return (
            f"{first} {longest.index + 1} ({_processor_names(longest)}) is the longest, "
            f"{_ms(interval_s(longest))}{_divisor(longest)}{last}; of that, {others}."
        )

    def _busiest_texts(self) -> Iterator[str]:
        name, steps = busiest_resource(self.plan)
        period_s = self.row.period_s
        spent_s: dict[str, float] = defaultdict(float)
        for step in steps:
            spent_s[step.kind] += step.time_s
        moving = f" and {_ms(spent_s['transfer'])} of hand-overs" if spent_s["transfer"] else ""
        how = (
            "Processors take turns on several frames"
            if self.row.kind == "interleaved"
            else "Hand-overs go on while both ends work on other frames"
        )
        slowed = is_slowed(self.plan)
        yield (
            f"{how}, and {name} is the busiest{', by times alone' * slowed}: "
            f"{_ms(spent_s['operator'])} of operators{moving} in each period of {_ms(period_s)}."
        )
        yield from beside_texts(self.plan)
        place = {operator: name for operator, (name, _) in self._placements().items()}
        best = [*moves_lowering_load(self.graph, self.costs, place)][:LARGEST]
        moves = "; ".join(
            f"{self._operator_name(move.operator)} on {move.processor} leaves {_ms(move.load_s)}"
            for move in best
        )
        yield (
            f"What would lower its load most, by a single operator: {moves}."
            if moves
            else "No single operator that runs elsewhere would lower the greatest load."
        )
        yield from self._delay_texts()

    def _delay_texts(self) -> Iterator[str]:
        """Say what rests on hand-overs that keep nothing busy."""
        delays = [transfer for transfer in self.plan.transfers if transfer.occupies is None]
        load_s = {each.name: each.busy_s + each.transfer_s for each in self.row.processors}
        for transfer in delays:
            load_s[transfer.target] += transfer.time_s
        if delays:
            yield (
                f"By the platform's file, {len(delays)} of the {len(self.plan.transfers)} "
                "hand-overs only take time and keep no processor busy. If they kept their "
                f"receivers busy, the period would be at least {_ms(max(load_s.values()))}."
            )

    def _path_texts(self) -> Iterator[str]:
        if self._interleaved:
            latency_s = self.row.latency_s
            periods = plain(latency_s / self.row.period_s, 3)
            yield (
                f"A frame stays {_ms(latency_s)}, {periods} periods. On "
                f"its critical path: {spent_by_kind(frame_path(self.plan))}."
            )
        else:
            yield from map(self._stage_path_text, self.plan.stages)

    def _stage_path_text(self, stage: Stage) -> str:
        steps = longest_path(self.plan, stage)
        operators = [step for step in steps if step.kind == "operator"]
        largest = ", ".join(
            f"{self._operator_name(step.name)} {_ms(step.time_s)}"
            for step in sorted(operators, key=lambda step: -step.time_s)[:LARGEST]
        )
        turns = round_robin_of(stage)
        alone = " alone" * is_slowed(self.plan)
        every = f", ÷ {len(turns)} as {listed(turns)} take turns" if len(turns) > 1 else ""
        return (
            f"Stage {stage.index + 1} takes {_ms(stage.time_s)}{alone} on its critical path"
            f"{every}: {spent_by_kind(steps)}. What takes longest on it: {largest}."
        )

    def _operator_name(self, operator: str) -> str:
        return self.graph.operators[self.graph.producer[operator]].name or operator

    def _processor_texts(self) -> Iterator[str]:
        if self.front.conversion:
            yield f"It is {self.front.conversion}."
        used = self.row.processors
        beside_s, period_s = busy_times_s(self.plan), self.row.period_s
        busy = [
            f"{each.name} {beside_s.get(each.name, each.busy_s) / period_s:.0%}" for each in used
        ]
        names = {each.name for each in used}
        idle = [name for _, name in self._available_processors if name not in names]
        unused = f"; {listed(idle)} not used" if idle else ""
        yield f"Share of the period in which they compute: {', '.join(busy)}{unused}."

    def _placements(self) -> Mapping[str, tuple[str, float]]:
        """Return each operator's processor and seconds."""
        view = mapping_view(self.plan)
        return {k: (view.name(at), at.end_s - at.start_s) for k, at in view.placements.items()}

    def _refusals(self) -> Iterator[tuple[str, str]]:
        placements = self._placements()
        for p, name in self._available_processors:
            refused: dict[str, list[int]] = defaultdict(list)
            for v, operator in enumerate(self.graph.operators):
                if self.costs.unsupported(v, p) is not None:
                    refused[operator.type].append(v)
            if not refused:
                continue
            every = [v for operators in refused.values() for v in operators]
            elsewhere_s: dict[str, float] = defaultdict(float)
            for v in every:
                where, time_s = placements[self.graph.operators[v].id]
                elsewhere_s[where] += time_s
            by_reason: dict[str, list[str]] = defaultdict(list)
            for kind, operators in refused.items():
                reason = str(self.costs.unsupported(operators[0], p))
                by_reason[reason].append(f"{kind} ({len(operators)})")
            types = "; ".join(f"{listed(kinds)}: {reason}" for reason, kinds in by_reason.items())
            times = ", ".join(f"{_ms(time_s)} on {where}" for where, time_s in elsewhere_s.items())
            refusal = f"{name} cannot run {len(every)} of {len(self.graph.operators)} operators"
            yield name, f"{refusal}, which take {times}: {types}."

    def _bound_texts(self) -> Iterator[str]:
        if self._interleaved or self.row.least:
            yield from bound_texts(self.row, self.front.options.split)
            return
        proves = join_with_and(self.front.options.proves)
        if undone := self.front.unfinished:
            yield f"That none is better is not proven: {'; '.join(undone.reasons)}."
            return
        if self.front.options.max_memory_bytes is not None:
            yield (
                "It is one of the best that were found to fit into --max-memory; that none is "
                f"better is not proven. Of its schedules, one may be {self.row.gap:.1%} from "
                f"optimal in {proves}, whatever memory they need."
            )
            return
        yield (
            f"Each of its schedules is proven optimal in {proves}, and the search tries all cuts, "
            "sets of processors and places of tensors. Where all schedules are proven, "
            "no mapping in stages at these costs is better than those that the front shows"
            f"{self._describe_omissions()}."
            if self.row.proven
            else f"A schedule of it may be {self.row.gap:.1%} from optimal in {proves} at most; "
            "a longer --time-limit may find better ones. The search tries all cuts, sets of "
            "processors and places of tensors."
        )

    def _describe_omissions(self) -> str:
        """Say what the options of the front leave out."""
        options, left, where = self.front.options, [], ""
        if self.front.dvfs:
            where += " at the default points"
        if any(each.part_of for each in self.front.processors):
            where += " on undivided processors"
        if options.resolution:
            left.append(f"to within {options.resolution * 100:g} % (--resolution)")
        if "energy" not in options.objectives:
            left.append("energy not counted (--objectives)")
        elif options.energy_resolution_asked is None:
            left.append("with energy counted, among the mapper's own schedules only")
        elif options.energy_resolution is None:
            left.append("with energy counted, to within an unknown share (time ran out)")
        elif options.energy_resolution:
            near = f"{plain(options.energy_resolution * 100, 2)} %"
            left.append(f"with energy counted, to within {near}{where} (--energy-resolution)")
        return f", {', '.join(left)}" if left else ""

    def _quantile_texts(self) -> Iterator[str]:
        """Say what it keeps at the quantile that was asked for, and what keeps less."""
        quantiles, rows = self.row.quantiles, self.front.configurations
        if quantiles is None:
            return
        texts = []
        for key, words in (("latency_s", "latency"), ("period_s", "period")):
            best = min(rows, key=lambda row: getattr(row.quantiles, key))
            figure = getattr(quantiles, key) * 1e3
            least = getattr(best.quantiles, key) * 1e3
            than = f"the least is {plain(least)}, of {best.id}" if least < figure else "the least"
            texts.append(f"its {words} is at most {plain(figure)} ms ({than})")
        yield f"In {100 * quantiles.share:g} % of the draws of the costs, {' and '.join(texts)}."

    def _front_texts(self) -> Iterator[str]:
        """Say what is better in one figure, and what that costs in the others."""
        rows, own = self.front.configurations, self.row
        beats = [row for row in rows if _beats(row, own)]
        if beats:
            better = min(beats, key=lambda row: _worst_ratio(row, own))
            yield f"{better.id} is as good or better in everything: {_differences(better, own)}."
            return
        if own.pareto_latency_throughput:
            yield "No configuration has both less latency and more throughput."
        advice: dict[tuple[str, str], list[str]] = defaultdict(list)
        for key, (what, _) in FIGURES.items():
            better_rows = [row for row in rows if _is_less(row, own, key)]
            if not better_rows:
                yield f"None has {what}."
                continue
            nearest = min(better_rows, key=lambda row: _worst_ratio(row, own))
            least = min(better_rows, key=lambda row: (getattr(row, key), _worst_ratio(row, own)))
            advice[nearest.id, least.id].append(key)
        against = {row.id: _differences(row, own) for row in rows}
        for (near, far), keys in advice.items():
            what, most = map(join_with_and, zip(*(FIGURES[key] for key in keys), strict=True))
            if near == far:
                yield f"For {what} take {near}: {against[near]}."
            else:
                nearest_is = f"{near} is nearest: {against[near]}"
                yield f"For {what}, {nearest_is}; {far} has {most}: {against[far]}."


def effect_rows(
    changes: Iterable[Change], best: Callable[[CostTable], tuple[float, float]], costs: CostTable
) -> tuple[EffectRow, ...]:
    """Return what each change brings, the most useful first, then those that could not be priced.

    `best` is the least latency and the shortest period of the front with a cost table, in seconds.
    """
    latency_s, period_s = best(costs)
    rows = []
    for change in changes:
        least_s, shortest_s = (None, None) if change.costs is None else best(change.costs)
        row = EffectRow(
            change=change.words,
            latency_s=least_s,
            throughput_fps=shortest_s and 1 / shortest_s,
            latency_change=least_s and least_s / latency_s - 1,
            throughput_change=shortest_s and period_s / shortest_s - 1,
            remark=change.remark,
        )
        gain = max(-(row.latency_change or 0), row.throughput_change or 0)
        rows.append((row.latency_s is None, -gain, row))
    return tuple(row for *_, row in sorted(rows, key=lambda each: each[:2]))


def _is_less(row: ConfigurationRow, own: ConfigurationRow, key: str) -> bool:
    return bool(getattr(row, key) < getattr(own, key) * (1 - SAME))


def _beats(row: ConfigurationRow, own: ConfigurationRow) -> bool:
    """Tell whether a configuration is worse in no figure, and better in one."""
    return any(_is_less(row, own, key) for key in FIGURES) and not any(
        _is_less(own, row, key) for key in FIGURES
    )


def _worst_ratio(row: ConfigurationRow, own: ConfigurationRow) -> float:
    """Return how much the figure that suffers most is larger than one's own."""
    return float(max(getattr(row, key) / getattr(own, key) for key in FIGURES))


def _differences(row: ConfigurationRow, own: ConfigurationRow) -> str:
    return ", ".join(
        f"{each.name} {getattr(row, each.field) / getattr(own, each.field) - 1:+.1%}"
        for each in DRAWN
    )


def _processor_names(stage: Stage) -> str:
    turns = round_robin_of(stage)
    if len(turns) > 1:
        return "/".join(turns)
    return "+".join(processor.name for processor in stage.processors)


def _percent(share: float) -> str:
    """Return a share of the longest in percent; 100% where it is as long."""
    return f"{share:.0%}" if share < 0.995 or share > 1 - SAME else f"{min(share, 0.9999):.2%}"


def _divisor(stage: Stage) -> str:
    """Return by how many that take turns a stage's time is divided; nothing if by one."""
    turns = len(round_robin_of(stage))
    return f" ({_ms(stage.time_s)} ÷ {turns} in turn)" if turns > 1 else ""


def _ms(time_s: float) -> str:
    return f"{plain(time_s * 1e3)} ms"
