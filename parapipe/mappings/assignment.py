"""An assignment: the processor of each operator, and the stages; from a file or an order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from parapipe.errors import AssignmentError
from parapipe.files.mistakes import listed
from parapipe.files.yaml_file import FileKind, Strict, WholeFile, parse_as, read_yaml_text
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.platform.fields import Many, Name, Text

_KIND = FileKind("assignment file", AssignmentError, "give the path of a YAML or JSON file")


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where every operator of a graph runs.

    Parameters
    ----------
    processors
        Platform index of each operator's processor.
    stages
        Indices of the operators of each stage, in topological order; each operator in one stage,
        and none reads what a later stage makes. A processor may be in several stages.
    ordered
        Whether processors take their operators in the order in which they stand in the stages.
    """

    processors: tuple[int, ...]
    stages: tuple[tuple[int, ...], ...]
    ordered: bool = False


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _text_keys(value: object) -> object:
    return (
        {_as_text(key): each for key, each in value.items()} if isinstance(value, dict) else value
    )


Range = Annotated[str, Field(pattern=r"^[0-9]{1,6}(-[0-9]{1,6})?$"), BeforeValidator(_as_text)]
OperatorName = Annotated[str, Field(min_length=1, max_length=4000)]


class StageEntry(Strict):
    """A stage: the subgraphs or the operators that it holds."""

    subgraphs: Range | None = None
    operators: Annotated[Many[OperatorName], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.subgraphs is None) == (self.operators is None):
            raise ValueError("holds either subgraphs or operators; give one of them")
        return self


class AssignmentFile(WholeFile):
    """An assignment as it is written down.

    Parameters
    ----------
    default
        Processor of whatever is not named.
    subgraphs
        Processor by number of a subgraph, or by a range such as `3-7`, as `inspect` counts them.
    operators
        Processor by name of an operator: its id, its name, or that of an ONNX node it stands for.
        It counts before `subgraphs`.
    stages
        In order. One stage if left out.
    source
        Where the assignment comes from, for people.
    """

    format: Literal["parapipe/assignment/1"] = Field(alias="schema")
    source: Text | None = None
    default: Name | None = None
    subgraphs: Annotated[dict[Range, Name], BeforeValidator(_text_keys)] = Field(
        default_factory=dict
    )
    operators: dict[OperatorName, Name] = Field(default_factory=dict)
    stages: Annotated[Many[StageEntry], Field(min_length=1)] | None = None

    @property
    def processors(self) -> set[str]:
        """Names of the processors that it speaks of."""
        named = {*self.subgraphs.values(), *self.operators.values()}
        return named if self.default is None else {*named, self.default}


def load_assignment(path: Path) -> AssignmentFile:
    """Read an assignment file, in YAML or JSON.

    Raises
    ------
    AssignmentError
        If it cannot be read or is wrong; then `mistakes` holds every mistake with its line.
    """
    return parse_as(AssignmentFile, read_yaml_text(path, _KIND), str(path), _KIND)


def assignment_of_file(
    file: AssignmentFile,
    path: str,
    *,
    graph: OperatorGraph,
    partition: Partition,
    names: Sequence[str],
) -> Assignment:
    """Return what a file says of a graph.

    Parameters
    ----------
    path
        What errors call the file.
    names
        The platform's processors.

    Raises
    ------
    AssignmentError
        If it names what does not exist, leaves operators without a processor or a stage, puts
        one twice, or cuts against the flow of data; all of it at once.
    """
    resolved = _NameResolver(file, graph, partition, names)
    processors = resolved.processors()
    stages = resolved.stages(partition.order)
    mistakes = resolved.mistakes
    if mistakes:
        count = "one mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise AssignmentError(
            f"assignment file '{path}' does not fit '{graph.source.name}': it has {count}; "
            "correct what is listed and try again",
            [f"{path}: {mistake}" for mistake in mistakes],
        )
    return Assignment(processors, stages)


class _NameResolver:
    """Looks up names and collects what is wrong."""

    def __init__(
        self, file: AssignmentFile, graph: OperatorGraph, partition: Partition, names: Sequence[str]
    ) -> None:
        self.file = file
        self.graph = graph
        self.members = [subgraph.operators for subgraph in partition.subgraphs]
        self.names = names
        self.mistakes: list[str] = []
        self.named: dict[str, set[int]] = {}
        for v, operator in enumerate(graph.operators):
            for part in (operator, *operator.parts):
                for name in (part.id, part.name, *part.members):
                    self.named.setdefault(name, set()).add(v)

    def processors(self) -> tuple[int, ...]:
        """Return the processor of each operator; -1 where there is none."""
        count = len(self.graph.operators)
        default = self._processor_index(self.file.default, "default") if self.file.default else -1
        processor_of = [default] * count
        for text, name in self.file.subgraphs.items():
            p = self._processor_index(name, f"subgraphs.{text}")
            for v in self._operators_in_range(text, f"subgraphs.{text}"):
                processor_of[v] = p
        own: dict[int, int] = {}
        for text, name in self.file.operators.items():
            p = self._processor_index(name, f"operators.{text}")
            for v in self._operators_named(text, f"operators.{text}"):
                if own.setdefault(v, p) != p:
                    self.mistakes.append(
                        f"operators.{text}: '{self.graph.operators[v].name}' is one operator "
                        "with what is fused into it; give all of it one processor"
                    )
                processor_of[v] = p
        self._report_missing([v for v in range(count) if processor_of[v] < 0], "has no processor")
        return tuple(processor_of)

    def stages(self, order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the operators of each stage."""
        if self.file.stages is None:
            return (tuple(order),)
        stage_of: dict[int, int] = {}
        for number, entry in enumerate(self.file.stages):
            where = f"stages[{number}]"
            for v in self._stage_operators(entry, where):
                if stage_of.setdefault(v, number) != number:
                    self.mistakes.append(
                        f"{where}: '{self.graph.operators[v].name}' is in stages[{stage_of[v]}] "
                        "already; put it into one stage"
                    )
        self._report_missing([v for v in order if v not in stage_of], "is in no stage")
        self.mistakes += _backward_reads(self.graph, stage_of)
        runs: list[list[int]] = [[] for _ in self.file.stages]
        for v in order:
            if v in stage_of:
                runs[stage_of[v]].append(v)
        return tuple(map(tuple, runs))

    def _stage_operators(self, entry: StageEntry, where: str) -> Iterator[int]:
        if entry.subgraphs is not None:
            yield from self._operators_in_range(entry.subgraphs, where)
        for name in entry.operators or ():
            yield from self._operators_named(name, where)

    def _processor_index(self, name: str, where: str) -> int:
        if name in self.names:
            return self.names.index(name)
        self.mistakes.append(
            f"{where}: there is no processor '{name}'; name one of {', '.join(self.names)}"
        )
        return 0

    def _operators_in_range(self, text: str, where: str) -> Iterable[int]:
        first, _, last = text.partition("-")
        begin, end = int(first), int(last or first)
        if not 1 <= begin <= end <= len(self.members):
            self.mistakes.append(
                f"{where}: '{text}' is no range of subgraphs; they go from 1 to "
                f"{len(self.members)}, see inspect"
            )
            return ()
        return [v for members in self.members[begin - 1 : end] for v in members]

    def _operators_named(self, name: str, where: str) -> Iterable[int]:
        operators = self.named.get(name, set())
        if not operators:
            self.mistakes.append(
                f"{where}: the model has no operator or node '{name}'; correct the name"
            )
        elif len(operators) > 1:
            ids = listed([self.graph.operators[v].id for v in sorted(operators)])
            self.mistakes.append(f"{where}: several operators bear that name; use an id: {ids}")
        return operators

    def _report_missing(self, left: Sequence[int], fault: str) -> None:
        if left:
            names = listed([f"'{self.graph.operators[v].name}'" for v in left])
            self.mistakes.append(f"{names} {fault}; name each, or its subgraph, or a default")


def _backward_reads(graph: OperatorGraph, stage_of: Mapping[int, int]) -> Iterator[str]:
    for v, operator in enumerate(graph.operators):
        for u in graph.predecessors(v):
            if stage_of.get(u, 0) > stage_of.get(v, len(stage_of)):
                yield (
                    f"stages[{stage_of[v]}]: '{operator.name}' reads what "
                    f"'{graph.operators[u].name}' makes in stages[{stage_of[u]}]; move one of them"
                )


def assignment_of_order(
    order: str, *, graph: OperatorGraph, blocks: Sequence[int], names: Sequence[str]
) -> Assignment:
    """Return the assignment that a letter for each block stands for, as in `GGGGBBBBBBG`.

    Each maximal run of equal letters is a stage. Equal letters only stand for all blocks, however
    many there are: published orders of a network count its blocks in different ways.

    Parameters
    ----------
    order
        First letters of processors' names, of any case, one for each block.
    blocks
        Block of each operator of the graph, ascending along each path of data.
    names
        The platform's processors.

    Raises
    ------
    AssignmentError
        If the number of letters is not that of the blocks, or a letter stands for no processor
        or for several.
    """
    count = 1 + max(blocks)
    mistakes = []
    if len(set(order.lower())) == 1:
        order = order[0] * count
    if len(order) != count:
        ends = (graph.operators[blocks.index(block)].name for block in (0, count - 1))
        first, last = (f"'{name}'" for name in ends)
        mistakes.append(
            f"it has {len(order)} letters for {count} blocks, of which the first begins with "
            f"{first} and the last with {last}"
        )
    starts: dict[str, list[int]] = {}
    for p, name in enumerate(names):
        starts.setdefault(name[0].lower(), []).append(p)
    for letter in dict.fromkeys(order.lower()):
        able = [names[p] for p in starts.get(letter, [])]
        if len(able) != 1:
            meant = f"several processors, {', '.join(able)}" if able else "no processor"
            mistakes.append(f"'{letter.upper()}' stands for {meant}")
    if mistakes:
        raise AssignmentError(
            f"order '{order}' does not fit '{graph.source.name}': {'; '.join(mistakes)}; give one "
            f"letter for each block, the first of {', '.join(names)}"
        )
    processor_of = [starts[letter][0] for letter in order.lower()]
    stage_of: list[int] = []
    for number, (_, run) in enumerate(groupby(processor_of)):
        stage_of += [number] * len(list(run))
    stages: list[list[int]] = [[] for _ in range(1 + stage_of[-1])]
    for v, block in enumerate(blocks):
        stages[stage_of[block]].append(v)
    return Assignment(tuple(processor_of[block] for block in blocks), tuple(map(tuple, stages)))
