"""`parapipe diff`: what changed from one front to another."""

import json
import re
import shutil

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parapipe as package
from parapipe.cost.profile import Measurement, write_profile
from parapipe.cost.signature import signature_of
from parapipe.digits import plain
from parapipe.documents.difference import difference
from parapipe.documents.front_folder import FrontFolder, load_folder
from parapipe.errors import WorseError

CONVOLUTIONS = """<ir_version: 8, opset_import: ["": 17]> three
(float[1,3,16,16] x) => (float[1,4,16,16] c)
{ a = Conv(x, u)  b = Conv(a, v)  c = Conv(b, w) }"""


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    """Fronts of three convolutions, all of whose times are measured.

    Of the new one, `b` is slower on big; of the slow one, everything by a factor of 2.5: latency
    and energy lose about 1.5, throughput about 0.6.
    """
    folder = tmp_path_factory.mktemp("fronts")
    model = onnx.parser.parse_model(CONVOLUTIONS)
    for name, (made, read) in (("u", (8, 3)), ("v", (6, 8)), ("w", (4, 6))):
        kernel = np.full((made, read, 1, 1), 0.5, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(kernel, name))
    onnx.save(model, folder / "three.onnx")
    graph = package.load_model(folder / "three.onnx")
    processors = package.load_platform("amlogic-a311d").processors
    clock_hz = {each.name: each.point.frequency_hz for each in processors}
    for name, times, on_big in (("old", 1.0, 1.0), ("new", 1.0, 1.5), ("slow", 2.5, 1.0)):
        rows = [
            Measurement(
                signature_of(each, graph), "conv1x1", 1000, 1000, on, clock_hz[on],
                time_s=1e-3 * (v + at + 2) * (on_big if (each.id, on) == ("b", "big") else times),
                rows=5, spread=0.01, method="timed",
            )
            for v, each in enumerate(graph.operators)
            for at, on in enumerate(clock_hz)
        ]  # fmt: skip
        write_profile(folder / f"{name}.csv", rows)
        front = package.map(
            folder / "three.onnx", "amlogic-a311d", profiles=[folder / f"{name}.csv"], cache=False
        )
        front.write(folder / name)
    return folder


@pytest.fixture(scope="module")
def old(where):
    return load_folder(where / "old")


def changed(front, **fields):
    """A front with figures of its configurations multiplied."""
    rows = tuple(
        row.model_copy(update={name: getattr(row, name) * by for name, by in fields.items()})
        for row in front.document.configurations
    )
    document = front.document.model_copy(update={"configurations": rows})
    return FrontFolder(document, front.plans, front.solve_log)


def test_a_front_and_itself_differ_in_nothing(parapipe, where):
    ended = parapipe("diff", where / "old", where / "old" / "front.json", "--max-loss", "0%")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    found = json.loads(parapipe("diff", where / "old", where / "old", "--json").out)
    assert found.pop("same")
    assert [(each["figure"], each["loss"]) for each in found.pop("best")] == [
        ("latency", 0.0), ("throughput", 0.0), ("energy", 0.0)
    ]  # fmt: skip
    assert found.pop("schema") == "parapipe/diff/1"
    assert not any(found.values())


def test_the_cost_that_changed_is_named_and_no_other(parapipe, where):
    found = package.diff(where / "old", where / "new")
    assert [(each.operator, each.processor) for each in found.costs] == [("b", "big")]
    assert found.costs[0].old_s == pytest.approx(3e-3)
    assert found.costs[0].new_s == pytest.approx(4.5e-3)
    assert [each.what for each in found.inputs] == ["inputs.profiles"]
    assert not found.same
    text = parapipe("diff", where / "old", where / "new").out
    assert re.search(r"^b +big +3 +4.5 +\+50.0%$", text, re.MULTILINE)
    assert "inputs.profiles: " in text


def test_losses_are_those_of_the_best_configurations(old):
    latency_s = min(row.latency_s for row in old.document.configurations)
    found = difference(old, changed(old, latency_s=1.03, period_s=2.0, energy_j=0.9))
    losses = {each.figure: each.loss for each in found.best}
    assert losses == pytest.approx({"latency": 0.03, "throughput": 0.5, "energy": -0.1})
    assert re.search("latency .* a loss of 3 %, .*energy .* a gain of 10 %>$", repr(found))
    assert "a gain of 0" not in repr(difference(old, changed(old, latency_s=1.03)))
    assert found.best[0].old == latency_s
    assert found.best[0].new == pytest.approx(1.03 * latency_s)
    for allowed in (0.5, {"latency": 0.031}, {"throughput": 0.5, "energy": 0.0}):
        found.check(allowed)
    for wrong, told in (
        (0.02, "latency .* a loss of 3 %, allowed are 2 %; throughput .* a loss of 50 %,"),
        ({"throughput": 0.49}, "worse: throughput [^;]*$"),
        ({"memory": 0.1}, "memory: no objective of both fronts; there are latency, throughput"),
    ):
        with pytest.raises(WorseError, match=told):
            found.check(wrong)


BY = {"latency": "latency_s", "throughput": "period_s", "energy": "energy_j"}


@given(
    by=st.fixed_dictionaries({each: st.sampled_from([0.5, 1.0, 1.5, 2.5, 4.0]) for each in BY}),
    allowed=st.one_of(
        st.sampled_from([0.0, 0.4, 0.99, 2.0]),
        st.dictionaries(st.sampled_from([*BY]), st.sampled_from([0.0, 0.4, 0.99, 2.0])),
    ),
)
def test_exactly_the_figures_that_are_named_may_not_lose_more(old, by, allowed):
    # 4 times the period is a loss of 3/4 of the throughput, and 4 times the latency one of 3.
    lost = {
        each: 1 - 1 / times if each == "throughput" else times - 1 for each, times in by.items()
    }
    limits = allowed if isinstance(allowed, dict) else dict.fromkeys(BY, allowed)
    wrong = [each for each in BY if each in limits and lost[each] > limits[each]]
    found = difference(old, changed(old, **{BY[each]: times for each, times in by.items()}))
    if not wrong:
        found.check(allowed)
        return
    with pytest.raises(WorseError) as raised:
        found.check(allowed)
    named = re.findall(r"(?:worse: |; )(\w+)", str(raised.value))
    assert named == wrong


@pytest.mark.parametrize("figure", [*BY])
@pytest.mark.parametrize("share", ["0%", "49%", "99%"])
def test_a_loss_of_a_figure_that_is_not_named_is_let_pass(parapipe, where, figure, share):
    allowed = "--max-loss", f"{figure}={share}"
    for form in ([], ["--json"]):
        ended = parapipe("diff", where / "old", where / "slow", *allowed, *form)
        passes = (figure, share) == ("throughput", "99%")
        assert (ended.code, len(ended.err.splitlines())) == ((0, 0) if passes else (1, 1))
        assert passes or f"is worse: {figure} " in ended.err


def test_configurations_are_lost_and_gained_by_what_they_offer(old):
    rows = old.document.configurations
    best = min((row for row in rows if row.pareto), key=lambda row: row.latency_s)
    left = tuple(row for row in rows if row is not best)
    document = old.document.model_copy(update={"configurations": left})
    less = FrontFolder(document, old.plans, old.solve_log)
    assert [each.id for each in difference(old, less).lost] == [best.id]
    assert [each.id for each in difference(less, old).gained] == [best.id]
    assert not difference(old, less).gained
    faster = difference(old, changed(old, latency_s=0.5))
    assert not faster.lost
    assert {each.id for each in faster.gained} == {row.id for row in rows if row.pareto}


def test_other_operators_are_named(old):
    kept = tuple(each for each in old.document.operators if each.id != "c")
    document = old.document.model_copy(update={"operators": kept})
    less = FrontFolder(document, old.plans, old.solve_log)
    assert difference(old, less).operators_removed == ("c",)
    assert difference(less, old).operators_added == ("c",)


def test_a_front_that_is_worse_than_allowed_ends_with_one_line_and_its_tables(parapipe, where):
    ended = parapipe("diff", where / "old", where / "new", "--max-loss", "latency=1%")
    assert ended.code == 1
    assert ended.out.startswith("the best in")
    (line,) = ended.err.splitlines()
    assert line.startswith("parapipe: the new front is worse: latency ")
    assert parapipe("diff", where / "old", where / "new", "--max-loss", "99%").code == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["2"], "'2' is not a share below 100 %"),
        (["fast"], "'fast' is not a share"),
        (["=2%"], "'=2%' names no figure: give 2% or NAME=2%"),
        (["2%", "3%"], "the share of all figures is given twice: say which"),
        (["energy=2%", "energy=3%"], "'energy' is given twice: say which"),
        (["2%", "energy=3%"], "one share for all figures, or shares by name, not both"),
    ],
)
def test_a_share_that_is_none_is_a_usage_error(parapipe, where, given, told):
    options = [word for each in given for word in ("--max-loss", each)]
    ended = parapipe("diff", where / "old", where / "new", *options)
    assert ended.code == 2
    assert told in " ".join(ended.err.split())


def test_a_folder_without_a_front_is_told(parapipe, where, tmp_path):
    assert "front.json" in parapipe("diff", where / "old", tmp_path).complaint


SEVERAL = """<ir_version: 8, opset_import: ["": 17]> two
(float[1,3,16,16] x) => (float[1,8,16,16] b) { a = Conv(x, u)  b = Relu(a) }"""


def of_two(folder, rates, first="one"):
    """The folder of a front of two models at some rates, the second twice the first by default."""
    for name in (first, "two"):
        model = onnx.parser.parse_model(SEVERAL)
        kernel = np.full((8, 3, 1, 1), 0.5, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(kernel, "u"))
        onnx.save(model, folder / f"{name}.onnx")
    front = package.map(
        [folder / f"{first}.onnx", folder / "two.onnx"], "amlogic-a311d",
        rates=dict(zip((first, "two"), rates, strict=True)), cache=False,
    )  # fmt: skip
    place = folder / f"{first}-{'-'.join(map(str, rates))}"
    front.write(place)
    return load_folder(place)


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    return of_two(tmp_path_factory.mktemp("several"), (10, 20))


def longer(front, times):
    """The same front with a pattern that has so many times as many frames."""
    asked = front.document.several
    models = tuple(each.model_copy(update={"frames": each.frames * times}) for each in asked.models)
    period_s = asked.period_s * times
    made = asked.model_copy(update={"models": models, "period_s": period_s})
    rows = tuple(
        row.model_copy(
            update={
                "period_s": period_s, "throughput_fps": 1 / period_s,
                "energy_j": row.energy_j * times, "latency_s": row.latency_s + period_s,
            }
        )
        for row in front.document.configurations
    )  # fmt: skip
    document = front.document.model_copy(update={"several": made, "configurations": rows})
    return FrontFolder(document, front.plans, front.solve_log)


def test_fronts_of_several_models_are_compared_by_frames_whatever_the_pattern(several):
    found = difference(several, longer(several, 3))
    assert [(each.figure, each.model) for each in found.best] == [
        ("latency", "one"), ("latency", "two"), ("throughput", "one"), ("throughput", "two"),
        ("energy", None),
    ]  # fmt: skip
    assert not any(each.loss for each in found.best)
    assert [*found.lost, *found.gained, *found.uncompared] == []
    found.check(0.0)
    rows = several.document.configurations
    growth = max(
        min(row.several.rate_factor, row.several.contended_rate_factor or 9e9) for row in rows
    )
    asked = {"one": 10, "two": 20}
    for each in found.best:
        if each.figure == "latency":
            assert each.old == min(row.several.models[each.model].latency_s for row in rows)
        if each.figure == "throughput":
            assert each.old == pytest.approx(asked[each.model] * growth)
    assert found.best[-1].old == pytest.approx(min(row.energy_j for row in rows) / 3)


def test_energy_of_other_shares_of_the_frames_is_not_compared_and_passes_no_check(
    several, tmp_path
):
    other = of_two(tmp_path, (10, 10))
    found = difference(several, other)
    assert [each.figure for each in found.uncompared] == ["energy"]
    assert "several.two" in [each.what for each in found.inputs]
    for wrong in (0.99, {"energy": 0.99}):
        with pytest.raises(WorseError, match="energy cannot be compared: the models' shares"):
            found.check(wrong)
    found.check({"latency": 9.0, "throughput": 0.99})


def test_fronts_without_a_common_model_have_no_common_figure(several, old, tmp_path):
    for one, other, told in (
        (several, old, "the other one of a single model"),
        (old, several, "the other one of a single model"),
        (several, of_two(tmp_path, (10, 20), first="three"), "shares"),
    ):
        found = difference(one, other)
        assert not found.same
        with pytest.raises(WorseError, match=told):
            found.check(0.99)
    assert {each.model for each in found.best} == {"two"}


def test_the_text_says_which_model_and_in_what_it_is_compared(tmp_path, parapipe):
    other = of_two(tmp_path, (10, 10))
    folders = [tmp_path / "old", tmp_path / "one-10-10"]
    of_two(tmp_path, (10, 20))
    (tmp_path / "one-10-20").rename(folders[0])
    assert other.document.several
    ended = parapipe("diff", *folders)
    assert ended.code == 0
    text = " ".join(ended.out.split())
    assert "latency of one" in text
    assert "throughput of two" in text
    assert "as far as all rates can grow together" in text
    assert "energy is not compared: the models' shares" in text
    assert "who runs what" in text


def test_a_best_figure_outside_of_its_interval_has_the_median_below_it(parapipe, where, tmp_path):
    document = json.loads((where / "new/front.json").read_text())
    for row in document["configurations"]:
        row["intervals"]["period_s"] = [2 * row["period_s"], 8 * row["period_s"]]
        row["medians"]["period_s"] = 4 * row["period_s"]
    new = tmp_path / "new"
    shutil.copytree(where / "new", new)
    (new / "front.json").write_text(json.dumps(document))
    best = max(row["throughput_fps"] for row in document["configurations"])
    ended = parapipe("diff", where / "old", new)
    assert re.search(rf"^ +median {plain(best / 4)}$", ended.out, re.MULTILINE)
    assert "figures are by the stated costs" in ended.out
    assert "stated costs" not in parapipe("diff", where / "old", where / "new").out
    rows = {
        row["figure"]: row
        for row in json.loads(parapipe("diff", where / "old", new, "--json").out)["best"]
    }
    assert rows["throughput"]["new_median"] == pytest.approx(best / 4)
    assert rows["throughput"]["old_median"] is rows["latency"]["new_median"] is None
