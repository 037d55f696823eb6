"""Offsets of buffers in plans: drawn by hand, checked by rules, and run frame by frame."""

from __future__ import annotations

import random
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.plan.build import build_plan
from parapipe.plan.layout import laid_out
from parapipe.plan.mapped import mapped
from parapipe.plan.network import network_of
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.verify import verify_plan
from parapipe.platform.memories import MemorySystem
from tests.cases.arena_replay import Replay
from tests.cases.interleaved import plan_of, random_document
from tests.cases.moving_networks import moving_graph
from tests.cases.plan_cases import Costs, configured, platform_of
from tests.cases.plan_cases import _cut as cut_into_stages

SEEDS = st.integers(0, 10**9)
NAMES = Costs.processors


def system_of(rng, names):
    """One memory or two, with processors at random."""
    shuffled = rng.sample(names, len(names))
    cut = rng.randint(1, len(names))
    memories = [each for each in (shuffled[:cut], shuffled[cut:]) if each]
    pairs = [(p, q) for p in names for q in names if p != q]
    return MemorySystem(
        names=tuple(f"m{m}" for m in range(len(memories))),
        assumed=False,
        memory_of={name: m for m, each in enumerate(memories) for name in each},
        alignment_bytes=tuple(rng.choice([1, 4, 16, 64]) for _ in memories),
        usable_bytes=(None,) * len(memories),
        copying=frozenset(rng.sample(pairs, len(pairs) // 4)),
        packing={},
    )


def replay(plan):
    """Run frames in the plan's arenas, with lives that the oracle finds by itself."""
    view = mapped(plan)
    lives = PlanLives(view, network_of(plan), plan.memory.system)
    lags = max(at.lag for at in view.mapping.placements)
    Replay(plan, view.mapping, lives.storage).frames(lags + 12)


def staged(seed, *, replicated=False):
    """A plan of stages, sequential ones and hybrid ones included."""
    rng = random.Random(seed)
    count = rng.randint(2, 12)
    graph = moving_graph(rng, count)
    processors = rng.randint(2, 5)
    moved_s = {
        (name, p, q): rng.choice([0.0, 0.125, 0.3])
        for name in graph.tensors for p in range(5) for q in range(5)
    }  # fmt: skip
    costs = Costs([[rng.choice([0.0, 0.1, 0.7, 1.5])] * 5 for _ in range(count)], moved_s)
    costs.table[0] = [0.4] * 5
    costs.memory_system = system_of(rng, [*NAMES])
    platform = platform_of(5)
    stages = cut_into_stages(rng, count, processors)
    if replicated:
        stages = [[(v, s) for v, _ in stage] for s, stage in enumerate(stages)]
        for processor in platform.processors:
            processor.kind, processor.backend, processor.cores = "cpu", "same", ()
            processor.point = SimpleNamespace(frequency_hz=1e9, voltage_v=0.8)
    mapping = configured(graph, costs, stages)
    if replicated and len(stages) < len(NAMES):
        turn = rng.randrange(len(stages))
        mapping = mapping.taken_in_turn(
            [(turn, *range(len(stages), rng.randint(len(stages), 4) + 1))]
        )
    return build_plan(graph, platform, costs, mapping)


@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_frames_of_stages_find_what_they_read(seed):
    replay(staged(seed))


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_frames_of_replicated_stages_find_what_they_read(seed):
    replay(staged(seed, replicated=True))


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_interleaved_frames_find_what_they_read(seed):
    rng = random.Random(seed)
    graph = moving_graph(rng, rng.randint(2, 12))
    if (document := random_document(graph, seed)) is None:
        return
    plan = plan_of(document)
    view = mapped(plan)
    plan = laid_out(plan, PlanLives(view, graph, system_of(rng, [*view.resources])))
    verify_plan(plan)
    replay(plan)
