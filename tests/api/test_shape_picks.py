"""Placements of several shapes are picked by demands, reported, explained and exported."""

from __future__ import annotations

import re

import pytest

import parapipe
from parapipe.documents.shapes_schema import load_shapes
from parapipe.errors import ArgumentError, DemandError, PlanError, VerificationError
from tests.cases.genai_folder import write_genai_folder
from tests.cases.recurrent import write_any_shape

QUICK = {
    "interleave": "none", "mapper": "heft", "cache": False, "jobs": 1, "note": lambda _: None,
}  # fmt: skip
SHAPES = {"prefill": {"sequence": 64, "past": 0}, "decode": {"sequence": 1, "past": 64}}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("picks")
    parapipe.map_shapes(
        write_any_shape(folder / "any.onnx"), "amlogic-a311d", shape_sets=SHAPES,
        mix={"prefill": 1, "decode": 20}, exclude=["gpu"], resolution=0.02, **QUICK,
    ).write(folder / "out")  # fmt: skip
    return folder / "out"


@pytest.fixture(scope="module")
def rows(out):
    return load_shapes(out).configurations


def test_figures_of_tokens_follow_from_steps_and_moves(out, rows):
    fronts = {name: parapipe.load_front(out / name) for name in SHAPES}
    for row in rows:
        prefill, decode = (fronts[name][each.id] for name, each in row.placements.items())
        assert row.first_token_s == pytest.approx(prefill.first_token_s, rel=1e-9)
        moved_s = sum(each.time_s for each in row.moves)
        answer_s = moved_s + decode.latency_s + 19 * decode.period_s
        assert row.tokens_per_second == pytest.approx(20 / answer_s, rel=1e-9)
        # of the request's joules, all but the prompt's are those of 20 tokens and of the moves
        answer_j = row.energy_j - row.placements["prefill"].energy_j
        assert row.energy_per_token_j == pytest.approx(answer_j / 20, rel=1e-8)
        assert row.energy_per_token_j >= decode.energy_per_token_j * (1 - 1e-9)
    assert parapipe.verify_shapes(out).configurations == rows


@pytest.mark.parametrize("field", ["first_token_s", "tokens_per_second", "energy_per_token_j"])
def test_the_verifier_finds_wrong_figures_of_tokens(out, rows, tmp_path, field):
    document = load_shapes(out)
    wrong = rows[0].model_copy(update={field: getattr(rows[0], field) * 1.01})
    changed = document.model_copy(update={"configurations": (wrong, *rows[1:])})
    (tmp_path / "shapes.json").write_bytes(changed.to_bytes())
    for name in SHAPES:
        (tmp_path / name).symlink_to(out / name)
    with pytest.raises(VerificationError) as caught:
        parapipe.verify_shapes(tmp_path)
    assert any(f"{field} is" in each for each in caught.value.violations)


def test_the_pick_is_the_least_of_those_that_keep_all_demands(out, rows):
    speeds = sorted(row.tokens_per_second for row in rows)
    least = speeds[len(speeds) // 2]
    picked = parapipe.pick_shapes(out, "energy", min_tokens_per_second=least)
    able = [row for row in rows if row.tokens_per_second >= least]
    assert picked.configuration.energy_j == min(row.energy_j for row in able)
    assert {*picked.plans} == {*SHAPES}
    for path in picked.plans.values():
        parapipe.verify_plan(path)
    picked = parapipe.pick_shapes(out, "throughput", max_latency_s=1, max_memory_bytes=10**9)
    assert picked.configuration.request_s == min(row.request_s for row in rows)
    assert picked.power_w == picked.configuration.energy_j / picked.configuration.request_s
    tokens_j = sorted(row.energy_per_token_j for row in rows)
    most_j = tokens_j[len(tokens_j) // 2]
    picked = parapipe.pick_shapes(out, "throughput", max_energy_per_token_j=most_j)
    able = [row for row in rows if row.energy_per_token_j <= most_j]
    assert picked.configuration.request_s == min(row.request_s for row in able)
    first = parapipe.pick_shapes(out).configuration
    assert first.first_token_s == pytest.approx(min(row.first_token_s for row in rows), rel=1e-6)


def test_what_no_placements_meet_is_said_with_what_there_is(out, rows):
    best = max(rows, key=lambda row: row.tokens_per_second)
    with pytest.raises(DemandError, match=f"are asked, and {best.id} has the most, "):
        parapipe.pick_shapes(out, min_tokens_per_second=1e6)
    with pytest.raises(DemandError, match=r"energy per token of .* mJ is asked, and s\d+ has the"):
        parapipe.pick_shapes(out, max_energy_per_token_j=1e-9)
    with pytest.raises(DemandError, match=r"energy of a request of .* is asked, and s\d+ has the"):
        parapipe.pick_shapes(out, max_energy_j=1e-9)


@pytest.mark.parametrize("name", ["board", "sustained", "confidence", "max_segments"])
def test_demands_that_shapes_do_not_have_are_refused(out, name):
    value = {"confidence": 0.9, "max_segments": 3}.get(name, True)
    with pytest.raises(DemandError, match=rf"cannot be picked by {name} \("):
        parapipe.pick_shapes(out, **{name: value})


def test_a_report_shows_all_placements_and_leads_to_each_shape(out, rows, tmp_path):
    page = parapipe.report_shapes(out)
    text = page.read_text(encoding="utf-8")
    assert page == out / "report.html"
    assert len(re.findall("<circle ", text)) == len(rows)
    assert len(re.findall("<tr[ >]", text)) == len(rows) + 1
    for name in SHAPES:
        assert f'<a href="{name}/report.html">' in text
        assert (out / name / "report.html").is_file()
    for row in rows:
        assert f"<td>{row.id}</td>" in text
    assert "<script" not in text
    elsewhere = parapipe.report_shapes(out, tmp_path / "page.html").read_text(encoding="utf-8")
    (link,) = re.findall(r'href="([^"]*prefill/report.html)"', elsewhere)
    assert (tmp_path / link).resolve() == (out / "prefill/report.html").resolve()


def test_a_front_of_an_older_version_has_no_energy_per_token_and_says_so(out, rows, tmp_path):
    document = load_shapes(out)
    older = [row.model_copy(update={"energy_per_token_j": None}) for row in rows]
    changed = document.model_copy(update={"configurations": tuple(older)})
    (tmp_path / "shapes.json").write_bytes(changed.to_bytes())
    for name in SHAPES:
        (tmp_path / name).symlink_to(out / name)
    assert b"energy_per_token_j" not in changed.to_bytes()
    assert parapipe.verify_shapes(tmp_path).configurations == tuple(older)
    with pytest.raises(
        DemandError, match=r"s01 says nothing of energy per token: .* older version"
    ):
        parapipe.pick_shapes(tmp_path, max_energy_per_token_j=1)
    assert "mJ per token" not in parapipe.report_shapes(tmp_path).read_text(encoding="utf-8")
    assert "mJ per token" in parapipe.report_shapes(out).read_text(encoding="utf-8")
    assert parapipe.simulate_shapes(tmp_path).energy_per_token_j is None


def test_a_request_states_the_energy_of_its_tokens_as_predicted(out, rows):
    for row in rows:
        step_j = parapipe.load_front(out / "decode")[row.placements["decode"].id].energy_j
        in_mix = parapipe.simulate_shapes(out, row.id)
        assert in_mix.energy_per_token_j == pytest.approx(row.energy_per_token_j, rel=1e-9)
        few = parapipe.simulate_shapes(out, row.id, tokens=5).energy_per_token_j
        once_j = 20 * (row.energy_per_token_j - step_j)  # moves, and the last step's latency
        assert few == pytest.approx(step_j + once_j / 4, rel=1e-9)


def test_the_interval_of_the_first_token_is_that_of_the_prompts_placement(out, rows):
    """The prompt is one step, nothing moves before it, and loading and reading are not drawn."""
    front = parapipe.map(
        out.parent / "any.onnx", "amlogic-a311d", dims=SHAPES["prefill"], exclude=["gpu"],
        resolution=0.02, **QUICK,
    )  # fmt: skip
    alone = {row.drawing: row for row in front.document.configurations}
    compared = 0
    for row in rows:
        if (one := alone.get(row.placements["prefill"].drawing)) is not None:
            around_s = row.first_token_s - one.latency_s
            wanted = [end_s + around_s for end_s in one.intervals.latency_s]
            assert row.intervals.first_token_s == pytest.approx(wanted, rel=1e-8)
            compared += 1
        assert row.intervals.request_s[0] < row.intervals.request_s[1]
        assert row.intervals.tokens_per_second[0] < row.intervals.tokens_per_second[1]
    assert compared


def test_without_draws_there_are_no_intervals(tmp_path):
    parapipe.map_shapes(
        write_any_shape(tmp_path / "any.onnx"), "amlogic-a311d", shape_sets=SHAPES, exclude=["gpu"],
        draws=0, **QUICK,
    ).write(tmp_path / "out")  # fmt: skip
    assert {row.intervals for row in load_shapes(tmp_path / "out").configurations} == {None}


def test_an_explanation_is_that_of_each_placement(out, rows):
    found = parapipe.explain_shapes(out, rows[-1].id)
    for name, each in rows[-1].placements.items():
        assert found[name] == parapipe.explain(out / name, each.id)


def test_both_plans_are_exported_together(tmp_path):
    source = tmp_path / "genai"
    source.mkdir()
    write_genai_folder(source)
    parapipe.new_platform(chip="rk3588").write(tmp_path / "rk3588.yaml")
    sets = {
        name: {"sequence_length": new, "past_sequence_length": past,
               "total_sequence_length": new + past}
        for name, new, past in (("prefill", 8, 0), ("decode", 1, 8))
    }  # fmt: skip
    parapipe.map_shapes(
        source / "model.onnx", tmp_path / "rk3588.yaml", shape_sets=sets, dims={"batch_size": 1},
        exclude=["gpu", "npu0", "npu1", "npu2"], **QUICK,
    ).write(tmp_path / "out")  # fmt: skip
    exported = parapipe.export_shapes(tmp_path / "out", "s01", "genai", tmp_path / "decoder")
    row = load_shapes(tmp_path / "out").configurations[0]
    prompt, token = (tmp_path / "out" / n / "plans" / f"{p.id}.json"
                     for n, p in row.placements.items())  # fmt: skip
    other = parapipe.export_plan(prompt, "genai", tmp_path / "same", token_plan=token)
    assert exported.summary == other.summary
    config = "genai_config.json"
    assert (tmp_path / "decoder" / config).read_bytes() == (tmp_path / "same" / config).read_bytes()


def test_shapes_without_tokens_are_picked_by_requests_and_not_exported(tmp_path):
    model = write_any_shape(tmp_path / "any.onnx")
    lengths = {f"sequence-{n}": {"sequence": n} for n in (4, 8)}
    parapipe.map_shapes(
        model, "amlogic-a311d", shape_sets=lengths, dims={"past": 0}, exclude=["gpu", "little"],
        **QUICK,
    ).write(tmp_path / "out")  # fmt: skip
    rows = load_shapes(tmp_path / "out").configurations
    assert {row.tokens_per_second for row in rows} == {None}
    assert parapipe.pick_shapes(tmp_path / "out", "throughput").configuration == rows[0]
    with pytest.raises(DemandError, match="s01 says nothing of tokens"):
        parapipe.pick_shapes(tmp_path / "out")
    with pytest.raises(PlanError, match="buckets"):
        parapipe.export_shapes(tmp_path / "out", "s01", "genai", tmp_path / "decoder")
    one = re.escape(f"has one for each shape: '{tmp_path / 'out' / 'sequence-4'}' c")
    with pytest.raises(ArgumentError, match=f"'segments' takes one plan, and s01 {one}"):
        parapipe.export_shapes(tmp_path / "out" / "shapes.json", "s01", "segments", tmp_path / "x")
    assert "requests/s" in parapipe.report_shapes(tmp_path / "out").read_text(encoding="utf-8")
