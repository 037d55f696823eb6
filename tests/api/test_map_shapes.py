"""Several shapes of a model in one search."""

import json

import pytest

import parapipe
from parapipe.documents.shapes_schema import ShapesDocument, load_shapes
from parapipe.errors import (
    ArgumentError,
    FrontError,
    MappingError,
    ModelError,
    NoConfigurationError,
    OutputError,
    VerificationError,
)
from tests.cases.nightly import nightly_from
from tests.cases.recurrent import WIDTH, write_any_shape
from tests.cases.soc_texts import spoil

QUICK = {
    "interleave": "none", "mapper": "heft", "cache": False, "jobs": 1, "exclude": ["gpu"],
}  # fmt: skip
BOTH = {"prefill": {"sequence": 64, "past": 0}, "decode": {"sequence": 1, "past": 64}}
KEYS_BYTES = 64 * WIDTH * 4


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_any_shape(tmp_path_factory.mktemp("shapes") / "any.onnx")


def mapped(model, **said):
    said = {"shape_sets": BOTH, "note": lambda _: None, **QUICK, **said}
    return parapipe.map_shapes(model, "amlogic-a311d", **said)


@pytest.fixture(scope="module")
def fronts(model):
    return mapped(model, mix={"prefill": 1, "decode": 20}, resolution=0)


def test_a_request_takes_the_steps_of_its_mix_and_what_moves(fronts):
    for row in fronts.document.configurations:
        prefill, decode = (fronts.fronts[name][each.id] for name, each in row.placements.items())
        assert row.placements["prefill"].latency_s == prefill.latency_s
        steps_s = prefill.latency_s + decode.latency_s + 19 * decode.period_s
        moved_s = sum(each.time_s for each in row.moves)
        assert row.request_s == pytest.approx(steps_s + moved_s, rel=1e-9)
        assert row.requests_per_second == pytest.approx(1 / row.request_s)


def test_keys_and_values_move_once_and_are_those_of_the_prompt(fronts):
    rows = fronts.document.configurations
    moving = [row for row in rows if row.moves]
    assert moving
    for row in moving:
        assert all((each.begin, each.end) == ("prefill", "decode") for each in row.moves)
        assert all(each.size_bytes == each.states * KEYS_BYTES for each in row.moves)
        assert sum(each.states for each in row.moves) <= 2
    alone = [row for row in rows if "one-processor" in row.names]
    assert [row.moves for row in alone] == [()]


def test_no_row_of_the_front_is_beaten_and_the_baselines_are_listed(fronts):
    rows = fronts.document.configurations

    def figures(row):
        latencies = (each.latency_s for each in row.placements.values())
        return (*latencies, row.request_s, row.energy_j)

    for row in rows:
        beaten = any(
            all(a <= b for a, b in zip(figures(other), figures(row), strict=True))
            and figures(other) != figures(row)
            for other in rows
        )
        assert row.pareto != beaten
    names = {name for row in rows for name in row.names}
    assert {
        "prefill-L", "decode-L", "most-throughput", "most-efficient", "balanced", "one-placement",
        "one-processor",
    } == names  # fmt: skip
    times = {name: row.request_s for row in rows for name in row.names}
    assert times["most-throughput"] <= times["one-placement"] <= times["one-processor"]


def test_weights_are_counted_once_where_all_processors_share_a_memory(fronts):
    for row in fronts.document.configurations:
        (memory,) = row.memories
        both = [fronts.fronts[n][each.id].memories[0] for n, each in row.placements.items()]
        assert memory.weights_bytes == max(each.weights_bytes for each in both)
        working = max(each.peak_bytes - each.weights_bytes for each in both)
        assert row.memory_bytes == memory.peak_bytes == memory.weights_bytes + working


def test_each_plan_of_a_shapes_front_is_written_and_verified(fronts, tmp_path):
    written = fronts.write(tmp_path)
    assert tmp_path / "shapes.json" in written
    document = load_shapes(tmp_path)
    assert document == fronts.document
    assert document == ShapesDocument.model_validate_json(json.dumps(fronts.to_json()))
    for row in document.configurations:
        for name, each in row.placements.items():
            parapipe.verify_plan(tmp_path / name / "plans" / f"{each.id}.json")
            stored = parapipe.load_front(tmp_path / name)
            assert stored[each.id].drawing == each.drawing


def test_the_verifier_works_all_out_by_the_plans(fronts, tmp_path):
    fronts.write(tmp_path)
    assert parapipe.verify_shapes(tmp_path) == fronts.document
    document = json.loads((tmp_path / "shapes.json").read_text())
    place = next(n for n, each in enumerate(document["configurations"]) if each["moves"])

    def violations(change):
        wrong = json.loads(json.dumps(document))
        change(wrong["configurations"][place])
        (tmp_path / "shapes.json").write_text(json.dumps(wrong))
        with pytest.raises(VerificationError) as caught:
            parapipe.verify_shapes(tmp_path)
        return " ".join(caught.value.violations)

    def changed(*path, factor=2):
        def change(row):
            for key in path[:-1]:
                row = row[key]
            row[path[-1]] *= factor

        return change

    breaks = {
        "a request takes": changed("request_s", factor=1.01),
        "the throughput is not": changed("requests_per_second"),
        "J at least": changed("energy_j", factor=0.5),
        "prefill takes": changed("placements", "prefill", "latency_s"),
        "20 steps of decode": changed("placements", "decode", "steps_s"),
        "J by its plan": changed("placements", "decode", "energy_j", factor=0.5),
        "states of": changed("moves", 0, "size_bytes"),
        "weights take": changed("memories", 0, "weights_bytes"),
        "bytes, not": changed("memories", 0, "peak_bytes"),
        "all memories need": changed("memory_bytes"),
        "2 states": lambda row: row.update(moves=[]),
    }
    found = {words: violations(change) for words, change in breaks.items()}
    assert [words for words, text in found.items() if words not in text] == []


def test_a_row_that_is_marked_and_beaten_is_found(fronts, tmp_path):
    fronts.write(tmp_path)
    document = json.loads((tmp_path / "shapes.json").read_text())
    best, *others = document["configurations"]
    worse = {**json.loads(json.dumps(best)), "id": "s99", "energy_j": best["energy_j"] * 9}
    document["configurations"] = [best, worse, *others]
    (tmp_path / "shapes.json").write_text(json.dumps(document))
    with pytest.raises(VerificationError) as caught:
        parapipe.verify_shapes(tmp_path)
    assert any("s99 is marked" in each for each in caught.value.violations)


def test_configurations_go_by_id_and_name(fronts):
    document = fronts.document
    count = len(document.configurations)
    assert repr(fronts).endswith(f"amlogic-a311d: {count} placements of prefill, decode>")
    row = document.configuration("balanced")  # as docs/language-models.md goes on
    chosen = fronts.fronts["decode"][row.placements["decode"].id]
    assert chosen.drawing == row.placements["decode"].drawing
    assert document.configuration("s01") is document.configurations[0]
    assert "balanced" in document.configuration("balanced").names
    with pytest.raises(NoConfigurationError, match="give an id"):
        document.configuration("c01")


def test_a_front_of_one_shape_takes_the_place_of_several_in_a_folder(fronts, tmp_path):
    fronts.write(tmp_path)
    assert (tmp_path / "shapes.json").is_file()
    fronts.fronts["decode"].write(tmp_path)
    assert not (tmp_path / "shapes.json").exists()
    (tmp_path / "shapes.json").write_text("circles, squares")
    fronts.fronts["decode"].write(tmp_path)
    assert (tmp_path / "shapes.json").read_text() == "circles, squares"


def test_other_files_are_no_front_of_shapes(tmp_path):
    (tmp_path / "shapes.json").write_text('{"schema": "parapipe/front/1"}')
    with pytest.raises(FrontError):
        load_shapes(tmp_path)


def test_lengths_are_buckets_and_nothing_moves_between_them(model):
    sets = {f"sequence-{size}": {"sequence": size} for size in (16, 64)}
    found = mapped(model, shape_sets=sets, dims={"past": 0}, mix={"10": 3, "40": 1})
    document = found.document
    assert document.bucket == "sequence"
    assert [(each.from_size, each.to_size, each.steps) for each in document.shapes] == [
        (1, 16, 3), (17, 64, 1),
    ]  # fmt: skip
    assert [each.padding for each in document.shapes] == pytest.approx([1 - 10 / 16, 1 - 40 / 64])
    assert not any(row.moves for row in document.configurations)


def test_a_wrong_shape_is_named_before_any_search(model):
    def note(sentence):
        pytest.fail(f"a search began: {sentence}")

    sets = {"prefill": {"sequence": 8, "past": 0}, "decode": {"sequence": 1, "pst": 8}}
    with pytest.raises(ModelError, match=r"^shape 'decode': .* no dimension named pst"):
        mapped(model, shape_sets=sets, note=note, progress=note)


def test_what_is_asked_wrongly_is_refused(model):
    wrong = {
        "names of shapes": {"shape_sets": {"a/b": {"past": 1}}},
        "no shape is given": {"shape_sets": {}},
        "the mix names 'prompt'": {"mix": {"prompt": 1}},
        "no step of any shape": {"mix": {"prefill": 0}},
        r"take no --rate \(requests follow each other": {"rates": 30},
        r"--robust \(the search of several shapes is by the stated costs": {"robust": 0.9},
        r"--compiler \(it compiles segments of one shape": {"compiler": "rknn"},
        "must be values of dimensions": {"shape_sets": {"a": {"past": -1}}},
    }
    for words, said in wrong.items():
        with pytest.raises(ArgumentError, match=words):
            mapped(model, **said)


def test_a_limit_of_memory_that_nothing_keeps_is_refused(model):
    with pytest.raises(MappingError, match="no mapping of"):
        mapped(model, max_memory_bytes=1000, exclude=["gpu", "little"])


@pytest.mark.parametrize("weights", nightly_from(1, ["own_copy: true", "", "packing: 1.5"]))
def test_two_memories_have_the_weights_of_each_and_the_verifier_finds_the_same(
    model, tmp_path, weights
):
    """A platform of a CPU and a GPU: with memories of their own, or with packed weights."""
    text = spoil(
        ("launch: {overhead_s: 100e-6", "launch: {overhead_s: 5e-6"),
        ("cpu, to: gpu, latency_s: 1e-3", "cpu, to: gpu, latency_s: 1e-6"),
        ("gpu, to: cpu, latency_s: 5e-4", "gpu, to: cpu, latency_s: 1e-6"),
    )
    if weights:
        said = f"    host: cpu\n    weights: {{{weights}, source: guess}}\n"
        text = spoil(("    host: cpu\n", said), text=text)
    else:
        local = "memories: [{name: dram, processors: [cpu], source: guess}, "
        local += "{name: local, processors: [gpu], alignment_bytes: 64, source: guess}]"
        text = spoil(("processors:\n", f"{local}\nprocessors:\n"), text=text)
    platform = tmp_path / "soc.yaml"
    platform.write_text(text)
    found = parapipe.map_shapes(
        model, platform, shape_sets=BOTH, note=lambda _: None,
        **{**QUICK, "exclude": []}, resolution=0,
    )  # fmt: skip
    found.write(tmp_path / "out")
    document = parapipe.verify_shapes(tmp_path / "out")
    least = min(sum(m.weights_bytes for m in row.memories) for row in document.configurations)
    most = max(sum(m.weights_bytes for m in row.memories) for row in document.configurations)
    assert most > least
    assert len(document.configurations[0].memories) == (1 if weights else 2)


def test_an_interruption_gives_what_was_found(model, tmp_path):
    """Once the first shape has a front, Ctrl-C ends its search, and later ones soon."""
    told, interrupted = [], []

    def interrupt(progress):
        if progress.best_period_s and not interrupted:
            interrupted.append(progress)
            raise KeyboardInterrupt

    found = mapped(model, progress=interrupt, note=told.append, mapper="coarse", exclude=[])
    assert interrupted
    assert any(each.startswith("interrupted: searches ended") for each in told)
    assert [*found.document.configurations[0].placements] == ["prefill", "decode"]
    found.write(tmp_path)
    assert parapipe.verify_shapes(tmp_path) == found.document


def test_an_interruption_before_there_is_a_front_is_none_of_ours(model):
    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mapped(model, progress=interrupt)


def test_the_front_is_drawn(fronts, tmp_path):
    ax = fronts.plot()
    assert ax.get_xlabel() == "time to the first token (ms)"
    points = sum(len(each.get_offsets()) for each in ax.collections)
    assert points == len(fronts.document.configurations)
    assert fronts.write_figure(tmp_path / "front.svg").stat().st_size > 1000
    with pytest.raises(OutputError):
        fronts.write_figure(tmp_path / "front.xyz")
