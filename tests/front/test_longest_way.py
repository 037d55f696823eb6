"""The longest way through a stage fills all of its time, whatever operators wait for."""

from __future__ import annotations

import pytest

import parapipe
from parapipe.front.critical_paths import longest_path

OCCUPIED = """
schema: parapipe/platform/1
name: busy-links
board: {idle_power_w: 1, source: guess}
memory: {bandwidth_bytes_per_s: 1.0e10, source: guess}
processors:
PROCESSORS
links:
  - {from: a, to: b, latency_s: 20e-6, bandwidth_bytes_per_s: 1.0e9, occupies: dma, both_ways: true,
     source: guess}
sources: {guess: {provenance: nominal, title: made up}}
"""
PROCESSOR = """
  - name: NAME
    kind: cpu
    backend: nominal
    cores: [CORE]
    data_types: [float32]
    source: guess
    clock:
      {default_frequency_hz: 1.0e9, points: [{frequency_hz: 1.0e9, voltage_v: 1}], source: guess}
    launch: {overhead_s: 1e-5, source: guess}
    peak: {macs_per_s: {float32: 4.0e9}, source: guess}
    memory: {bandwidth_bytes_per_s: 2.0e9, source: guess}
    power: {alpha_w_per_v2_hz: 1e-9, beta_w_per_v: 0.1, utilisation: {default: 1}, source: guess}
    input: {latency_s: 0, source: guess}
    output: {latency_s: 0, source: guess}
"""


@pytest.fixture(scope="module")
def busy_links(tmp_path_factory):
    processors = "".join(
        PROCESSOR.replace("NAME", name).replace("CORE", str(core)).lstrip("\n")
        for core, name in enumerate("ab")
    )
    path = tmp_path_factory.mktemp("soc") / "busy-links.yaml"
    path.write_text(OCCUPIED.replace("PROCESSORS\n", processors))
    return path


def ways(front):
    for made in front:
        plan = made.plan()
        for stage in plan.stages:
            yield stage, longest_path(plan, stage)


def test_steps_add_up_to_the_stage_and_none_of_them_waits(small_front):
    kinds = set()
    for stage, steps in ways(small_front):
        assert sum(step.time_s for step in steps) == pytest.approx(stage.time_s)
        kinds |= {step.kind for step in steps}
    assert kinds == {"operator", "transfer"}


def test_where_transfers_occupy_a_link_the_steps_fill_the_stage_all_the_same(busy_links):
    front = parapipe.map(
        "zoo:squeezenet", busy_links, time_limit_s=5, note=lambda _: None, interleave="none"
    )
    assert any(
        moved.resource is not None
        for made in front
        for moved in made.configuration.mapping.transfers
    )
    for stage, steps in ways(front):
        assert sum(step.time_s for step in steps) == pytest.approx(stage.time_s)


@pytest.fixture(scope="module")
def small_front():
    return parapipe.map(
        "zoo:squeezenet",
        "amlogic-a311d",
        objectives="latency-throughput",
        note=lambda _: None,
        interleave="none",
    )
