"""`parapipe explain` as a user types it: every number, from the file that holds it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from parapipe import load_model, load_platform
from parapipe import map as map_model
from parapipe.cost.profile import Measurement, write_profile
from parapipe.cost.signature import signature_of

A311D = Path(__file__).parents[2] / "platforms" / "amlogic-a311d.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Map a small model on a platform file of its own, operating points chosen."""
    folder = tmp_path_factory.mktemp("explained")
    platform, model = folder / "soc.yaml", folder / "small.onnx"
    platform.write_text(A311D.read_text(encoding="utf-8"), encoding="utf-8")
    write_model(model, (1, 64, 128, 128))
    front = map_model(model, platform, dvfs=True, dvfs_points=2, resolution=0.1, interleave="none")
    front.write(folder / "out")
    return folder


@pytest.fixture
def mapped(folder, tmp_path):
    """Return a copy: the folder of the front, the model and the platform."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    front = copy / "out" / "front.json"
    front.write_text(front.read_text().replace(str(folder), str(copy)))
    return copy / "out", copy / "small.onnx", copy / "soc.yaml"


def write_model(path, shape):
    """Write a chain of a Relu, a Sigmoid and a Tanh."""
    names = ["data", "t0", "t1", "t2"]
    nodes = [
        helper.make_node(kind, [names[i]], [names[i + 1]], name=f"node{i}")
        for i, kind in enumerate(("Relu", "Sigmoid", "Tanh"))
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("data", "t2")]
    graph = helper.make_graph(nodes, "small", ends[:1], ends[1:])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def again(row):
    return eval(row["numbers"], {"max": max})


def test_every_figure_of_every_configuration_can_be_worked_out(parapipe, mapped):
    front = json.loads((mapped[0] / "front.json").read_text())
    rows = front["configurations"]
    slowed = [row for row in rows if "@" in row["drawing"]]
    pipelined = [row for row in rows if len(row["stages"]) > 1]
    for configuration in (rows[0], slowed[-1], pipelined[0]):
        document = json.loads(parapipe("explain", mapped[0], configuration["id"], "--json").out)
        figures = document["figures"]
        for name in ("latency_s", "period_s", "energy_j", "board_energy_j", "throughput_fps"):
            assert figures[name]["value"] == configuration[name]
            assert again(figures[name]) == pytest.approx(configuration[name], rel=1e-6)
        sustained = figures["sustained_period_s"]
        least = eval(sustained["numbers"].removeprefix("at least "), {"max": max})
        assert least <= sustained["value"] * (1 + 1e-6)
        for stage, shown in zip(document["stages"], configuration["stages"], strict=True):
            assert again(stage["time"]) == pytest.approx(shown["time_s"], rel=1e-6)
        for operator in document["operators"]:
            parts = operator["parts"]
            assert sum(map(again, (part["time"] for part in parts))) == pytest.approx(
                operator["end_s"] - operator["start_s"], rel=1e-5
            )
        dynamic = sum(operator["energy_j"] for operator in document["operators"])
        static = sum(p["static_power_w"]["value"] for p in document["processors"])
        assert dynamic + static * configuration["period_s"] == pytest.approx(
            configuration["energy_j"]
        )


def test_the_summary_names_file_line_and_key(parapipe, mapped):
    shown = parapipe("explain", mapped[0], "--figures").out
    text = mapped[2].read_text(encoding="utf-8").splitlines()
    found = re.search(r"idle power 2\.02 W +\S*soc\.yaml:(\d+) board\.idle_power_w", shown)
    assert "idle_power_w: 2.02" in text[int(found[1]) - 1]
    assert "energy_j = " in shown
    assert "times of 3 operators\n" in shown
    assert re.search(r"stage 1 \(\w+.*\) = \S+ s: \d+ operators? in a row", shown)


def test_sources_lists_operators_and_operator_shows_one_in_full(parapipe, mapped):
    listed = parapipe("explain", mapped[0], "big-alone", "--sources").out
    assert all(name in listed for name in ("node0", "node1", "node2"))
    one = parapipe("explain", mapped[0], "big-alone", "--operator", "node1").out
    assert "utilisation" in one
    assert "node2" not in one


def test_what_is_not_there_is_told_with_what_is(parapipe, mapped, tmp_path):
    assert "c01 to c" in parapipe("explain", mapped[0], "c99x").complaint
    complaint = parapipe("explain", tmp_path / "nowhere").complaint
    assert "name a folder that `parapipe map` wrote" in complaint
    complaint = parapipe("explain", mapped[0], "--operator", "conv9").complaint
    assert "has no operator 'conv9'" in complaint


@pytest.mark.parametrize(
    ("number", "changed", "what"),
    [
        ("idle_power_w: 2.02", "idle_power_w: 2.2", "board_energy_j was"),
        ("beta_w_per_v: 0.4242", "beta_w_per_v: 0.5", "energy_j was"),
    ],
)
def test_a_platform_that_has_changed_since_is_told(parapipe, mapped, number, changed, what):
    out, _, platform = mapped
    text = platform.read_text(encoding="utf-8")
    assert number in text
    platform.write_text(text.replace(number, changed), encoding="utf-8")
    complaint = parapipe("explain", out, "big-alone").complaint
    assert "the platform or a profile has changed since" in complaint
    assert what in complaint
    assert "map again" in complaint


def test_what_has_changed_is_told_in_milliseconds_and_millijoules(parapipe, mapped):
    out, _, platform = mapped
    text = platform.read_text(encoding="utf-8")
    changed = text.replace("idle_power_w: 2.02", "idle_power_w: 2.2")
    platform.write_text(changed, encoding="utf-8")
    complaint = parapipe("explain", out, "big-alone").complaint
    assert re.search(r"board_energy_j was [\d.]+ mJ and is [\d.]+ mJ", complaint)
    platform.write_text(text.replace("profile: amlogic-a311d", "profile: none"), encoding="utf-8")
    complaint = parapipe("explain", out, "big-alone").complaint
    gone = out.parent / "profiles" / "none"
    assert f"made with are gone: there is none in '{gone}'" in complaint


def test_another_folder_than_that_of_map_is_told(parapipe, mapped):
    out, model, platform = mapped
    model.unlink()
    platform.unlink()
    complaint = parapipe("explain", out).complaint
    assert f"no file for the model '{model}', the platform '{platform}'" in complaint
    assert "this is not the folder where it was mapped" in complaint


def test_a_profile_that_is_gone_is_named(parapipe, mapped):
    out, _, _ = mapped
    front = json.loads((out / "front.json").read_text())
    front["inputs"]["profiles"] = ["mine/times.csv"]
    (out / "front.json").write_text(json.dumps(front))
    assert "no file for the profile 'mine/times.csv'" in parapipe("explain", out).complaint


def test_what_a_proof_leaves_out_is_said(parapipe, mapped):
    shown = " ".join(parapipe("explain", mapped[0], "big-alone").out.split())
    assert "than those that the front shows, to within 10 % (--resolution)" in shown


def test_one_operator_is_shown_alone_or_with_what_would_help(parapipe, mapped):
    ended = parapipe("explain", mapped[0], "--operator", "node1", "--figures")
    assert ended.code == 2
    assert "leave --figures and --sources out" in ended.err


def test_a_model_that_has_changed_since_is_told(parapipe, mapped):
    write_model(mapped[1], (1, 32, 128, 128))
    assert "has changed since it was mapped" in parapipe("explain", mapped[0]).complaint


def test_it_says_in_words_why_a_configuration_is_what_it_is(parapipe, mapped):
    front = json.loads((mapped[0] / "front.json").read_text())
    pipelined = next(row for row in front["configurations"] if len(row["stages"]) > 1)
    shown = " ".join(parapipe("explain", mapped[0], pipelined["id"]).out.split())
    longest = max(stage["time_s"] for stage in pipelined["stages"])
    assert f"is the longest, {longest * 1e3:.4g} ms, and sets the period" in shown
    for number, stage in enumerate(pipelined["stages"], start=1):
        assert f"Stage {number} takes {stage['time_s'] * 1e3:.4g} ms on its critical path" in shown
    alone = next(row for row in front["configurations"] if row["kind"] == "sequential")
    shown = parapipe("explain", mapped[0], alone["id"]).out
    assert "There is one stage" in shown
    assert "not used" in shown
    assert "proven optimal in" in shown


def test_what_if_finds_the_front_again(parapipe, mapped, monkeypatch, tmp_path):
    monkeypatch.setenv("PARAPIPE_CACHE", str(tmp_path / "cache"))
    document = json.loads(parapipe("explain", mapped[0], "--what-if", "--json").out)
    by_change = {row["change"]: row for row in document["what_if"]}
    big = by_change["big 10 % faster"]
    assert big["latency_change"] <= 1e-9
    assert big["throughput_change"] >= -1e-9
    told = [row for row in document["what_if"] if row["latency_s"] is not None]
    gains = [max(-row["latency_change"], row["throughput_change"]) for row in told]
    assert gains == sorted(gains, reverse=True)
    assert any(gain > 0.01 for gain in gains)
    text = parapipe("explain", mapped[0], "--what-if").out
    assert "What would help (a new search of stages for each change):" in text
    assert "big 10 % faster: least latency" in text
    both = parapipe("explain", mapped[0], "--what-if", "--operator", "node1").out
    assert "utilisation" in both
    assert "big 10 % faster: least latency" in both


def test_noisy_times_are_counted_where_they_are_placed_with_their_spread(parapipe, tmp_path):
    model, platform = tmp_path / "small.onnx", tmp_path / "soc.yaml"
    platform.write_text(A311D.read_text(encoding="utf-8"), encoding="utf-8")
    write_model(model, (1, 64, 128, 128))
    graph = load_model(model)
    clock_hz = {p.name: p.point.frequency_hz for p in load_platform(platform).processors}
    rows = [
        Measurement(
            signature_of(each, graph), "elementwise", 0, 8 << 20, name, clock_hz[name],
            time_s=1e-3, rows=5, spread=0.25, method="timed", noisy=name == "big",
        )
        for each in graph.operators[:2]
        for name in ("big", "little")
    ]  # fmt: skip
    write_profile(tmp_path / "times.csv", rows)
    front = map_model(model, platform, profiles=[tmp_path / "times.csv"], interleave="none")
    front.write(tmp_path / "out")
    told = "measured, noisy: 2, "
    shown = parapipe("explain", tmp_path / "out", "big-alone").out
    assert re.search(rf"^{told}\d+ % of the time; rounds spread by 25 %$", shown, re.MULTILINE)
    assert told in parapipe("explain", tmp_path / "out", "big-alone", "--figures").out
    assert "measured, noisy" not in parapipe("explain", tmp_path / "out", "little-alone").out
