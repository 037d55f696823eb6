"""The mapping problems that are measured: subgraphs of real networks and seeded families.

What is in here follows from rules, not from how long anything takes:

- of each real model the smallest and the largest subgraph with parallel branches, on every set of
  two or more processors of both platforms, and of models with subgraphs of more than `LARGE`
  operators just the largest subgraph on all processors;
- of each family of `instances` sizes, processors and seeds in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import parapipe
from benchmarks.instances import decoder_like, inception_like, irregular, parallel_series
from benchmarks.real_subgraphs import (
    light_model,
    parallel_subgraphs,
    processor_sets,
    subgraph_problem,
)
from parapipe.solvers.problem import MappingProblem

PLATFORMS = ("amlogic-a311d", "bst-a1000")
LIGHT = ("light_inception_v2", "light_resnet50", "light_shufflenet", "light_squeezenet")
ZOO = (
    "googlenet",
    "inception-v3",
    "inception-v4",
    "inception-resnet-v2",
    "petr",
    "bevformer",
)
LARGE = 20


@dataclass(frozen=True, slots=True)
class Instance:
    """A mapping problem by name.

    Parameters
    ----------
    build
        Returns the problem, the same each time.
    """

    name: str
    build: Callable[[], MappingProblem]


def instances(*, quick: bool = False) -> Iterator[Instance]:
    """Yield all instances, or a few that take no time; names are unique."""
    if quick:
        yield from real_instances("light_squeezenet", PLATFORMS[:1])
        yield _inception(8, 2, 0)
        return
    known = parapipe.zoo_names()
    for name in (*(name for name in ZOO if name in known), *LIGHT):
        yield from real_instances(name, PLATFORMS)
    yield from family_instances()


def real_instances(name: str, platforms: Sequence[str]) -> Iterator[Instance]:
    """Yield those of one model of the zoo, or that the onnx wheel brings along."""
    model = light_model(name) if name in LIGHT else f"zoo:{name}"
    subgraphs = parallel_subgraphs(model)
    by_size = sorted(subgraphs, key=lambda number: (len(subgraphs[number]), number))
    largest = by_size[-1]
    chosen = sorted({by_size[0], largest})
    for platform in platforms:
        sets = list(processor_sets(platform))
        if len(subgraphs[largest]) > LARGE:
            chosen, sets = [largest], sets[-1:]
        for number in chosen:
            for processors in sets:
                problem = subgraph_problem(model, number, platform, processors)
                if problem is not None:
                    where = f"{platform} {'+'.join(processors)}"
                    yield Instance(f"{name} #{number} on {where}", partial(_itself, problem))


def family_instances() -> Iterator[Instance]:
    """Yield those of seeded families."""
    for operators in (8, 11, 14, 17, 20):
        for processors in (2, 3):
            for seed in range(2):
                yield _inception(operators, processors, seed)
    for operators, width in ((60, 8), (169, 16)):
        for family in (decoder_like, parallel_series, irregular):
            name = family.__name__.replace("_", "-")
            build = partial(family, operators, width, seed=0)
            yield Instance(f"{name} {operators} width {width} seed 0", build)


def _inception(operators: int, processors: int, seed: int) -> Instance:
    return Instance(
        f"inception-like {operators} on {processors} seed {seed}",
        partial(inception_like, operators, processors=processors, seed=seed),
    )


def _itself(problem: MappingProblem) -> MappingProblem:
    return problem
