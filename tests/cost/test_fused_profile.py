"""Profiles that hold operators measured at one go with the activation behind them."""

from dataclasses import replace

import pytest

from parapipe.cost.cost_table import build_cost_table
from parapipe.cost.profile import Measurement, Profile, profiles_beside, read_profile, write_profile
from parapipe.cost.signature import signature_of
from parapipe.graph.rewrites import fuse
from tests.cases.hand_built import GraphBuilder, platform


@pytest.fixture
def graph():
    builder = GraphBuilder(data=(1, 8, 4, 4))
    conv = builder.conv("data", 8)
    builder.add("Relu", [conv], (1, 8, 4, 4))
    return fuse(builder.graph())


def measured(graph, part, time_s, then=""):
    signature = signature_of(graph.operators[0].parts[part], graph)
    return Measurement(
        signature, "conv3x3", 9216, 1024, "big", 1e9, time_s, 5, 0.02, "timed", then,
        observed_hz=1.1e9, load=0.5,
    )  # fmt: skip


def test_a_joint_measurement_stands_for_the_whole_fused_operator(graph):
    profile = Profile("mine", (measured(graph, 0, 0.003, "Relu"), measured(graph, 0, 0.002)))
    costs = build_cost_table(graph, platform(), profiles=[profile])
    assert costs.time_s(0, 0) == 0.003
    (part,) = costs.cost(0, 0).parts
    assert part.source == "profile mine, timed with Relu, median of 5, spread 2%"
    assert part.provenance == "measured"


def test_without_a_joint_measurement_the_parts_are_added(graph):
    parts = (measured(graph, 0, 0.002), measured(graph, 1, 0.0005))
    costs = build_cost_table(graph, platform(), profiles=[Profile("mine", parts)])
    assert costs.time_s(0, 0) == pytest.approx(0.0025)


def test_what_was_seen_while_measuring_is_written_and_read(graph, tmp_path):
    noisy = replace(measured(graph, 0, 0.003, "Relu"), noisy=True)
    rows = (noisy, measured(graph, 1, 0.001))
    write_profile(tmp_path / "mine.csv", rows)
    assert read_profile(tmp_path / "mine.csv").measurements == rows


def test_profiles_beside_a_platform_file_are_those_of_its_name(graph, tmp_path):
    folder = tmp_path / "profiles" / "mine"
    folder.mkdir(parents=True)
    write_profile(folder / "onnxruntime.csv", [measured(graph, 0, 0.003)])
    (found,) = profiles_beside(tmp_path / "mine.yaml", "mine")
    assert found.name == "mine/onnxruntime"
    assert profiles_beside(tmp_path / "mine.yaml", "other") == ()
