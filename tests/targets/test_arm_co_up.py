"""A plan as a command line of the public ARM-CO-UP runtime."""

from itertools import accumulate, pairwise

import pytest

from parapipe.cost.measured_network import measured_networks, recognise
from parapipe.errors import ExportError
from parapipe.graph.onnx_import import import_model
from parapipe.graph.rewrites import fuse
from parapipe.platform.load import load_platform
from parapipe.targets.arm_co_up import export
from parapipe.zoo.registry import write
from tests.cases.armcl_plans import BOARD, placed

BIG, LITTLE, GPU = range(3)
PLACES = {"B": BIG, "L": LITTLE, "G": GPU}
A311D = load_platform("amlogic-a311d")


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """A zoo model by name: its file, its fused graph, the block of each of its operators."""
    known = {}

    def network(name):
        if name not in known:
            path = tmp_path_factory.mktemp("zoo") / "model.onnx"
            write(name, path, weightless=True)
            known[name] = path, *_blocks(path)
        return known[name]

    return network


def _blocks(path):
    single = import_model(path, granularity="onnx")
    graph = fuse(single)
    found = recognise(single, measured_networks("amlogic-a311d"))
    if found is None:
        return graph, [0] * len(graph.operators)
    block = {o.id: b for o, b in zip(single.operators, found.blocks_of(single), strict=True)}
    return graph, [block[operator.id] for operator in graph.operators]


def ordered(network, order, *, stages=True, board=A311D):
    """The plan that an order stands for; each run of letters a stage, or all in one."""
    path, graph, blocks = network
    stage = list(accumulate((a != b for a, b in pairwise(order)), initial=0))
    place = [(stage[block] if stages else 0, PLACES[order[block]]) for block in blocks]
    return placed(graph, board, place), path


@pytest.mark.parametrize(
    ("name", "order", "line"),
    [
        (
            "googlenet",
            "GGGGBBBBBLL",
            (
                "graph_googlenet_pipeline --order=GGGGBBBBBLL --threads=4 --threads2=2 "
                "--total_cores=6 --little_cores=2 --big_cores=4"
            ),
        ),
        (
            "alexnet",
            "BBBBBBGG",
            (
                "graph_alexnet_pipeline --order=BBBBBBGG --threads=4 "
                "--total_cores=6 --little_cores=2 --big_cores=4"
            ),
        ),
        (
            "mobilenet-v1",
            "L" * 7 + "G" * 7,
            "graph_mobilenet_pipeline --order=LLLLLLLGGGGGGG --threads2=2",
        ),
        ("resnet-50", "G" * 18, "graph_resnet50_pipeline --order=GGGGGGGGGGGGGGGGGG"),
    ],
)
def test_a_pipeline_of_blocks_is_its_order(networks, name, order, line):
    plan, path = ordered(networks(name), order)
    exported = export(plan, path, None)
    assert exported.text == line
    assert exported.files == ()


def test_blocks_in_turn_within_one_stage_are_switch_mode(networks):
    plan, path = ordered(networks("googlenet"), "GGBBGGBBLLG", stages=False)
    exported = export(plan, path, None)
    assert "--order=GGBBGGBBLLG " in exported.text
    assert exported.notes[0].startswith("switch mode: ")


def test_stages_are_pipeline_mode_and_clocks_are_said(networks):
    plan, path = ordered(networks("googlenet"), "GGGGBBBBBBB")
    notes = export(plan, path, None).notes
    assert notes[0].startswith("pipeline mode: set `parallel=true`")
    assert notes[1].endswith("which nothing here sets: big 2208 MHz, gpu 800 MHz")


def test_a_script_is_written_into_a_folder_or_under_a_name(networks, tmp_path):
    plan, path = ordered(networks("googlenet"), "G" * 11)
    for destination, script in (
        (tmp_path, tmp_path / "arm-co-up.sh"),
        (tmp_path / "run.sh", tmp_path / "run.sh"),
    ):
        exported = export(plan, path, destination)
        assert exported.files == (script,)
        text = script.read_text()
        assert text.endswith('"${PROGRAMS:-.}"/graph_googlenet_pipeline --order=GGGGGGGGGGG "$@"\n')
        assert exported.size_bytes == len(text.encode())
        assert script.stat().st_mode & 0o111


def test_a_network_without_a_program_is_refused(networks):
    plan, path = ordered(networks("inception-v3"), "G" * 17)
    with pytest.raises(ExportError, match=r"has programs for .*GoogLeNet.* only, and this network"):
        export(plan, path, None)
    plan, path = ordered(networks("squeezenet"), "G")
    with pytest.raises(ExportError, match="and this network is none of them"):
        export(plan, path, None)


def test_operator_parallelism_within_a_block_is_refused(networks):
    path, graph, blocks = networks("googlenet")
    place = [(0, GPU if block != 2 or v % 2 else BIG) for v, block in enumerate(blocks)]
    plan = placed(graph, A311D, place)
    with pytest.raises(
        ExportError,
        match=r"a block runs on one processor, and the plan shares out block 3 \((gpu|big) and ",
    ):
        export(plan, path, None)


def test_a_pipeline_stage_on_two_processors_is_refused(networks):
    path, graph, blocks = networks("googlenet")
    place = [(0, GPU) if block < 4 else (1, BIG if block < 8 else LITTLE) for block in blocks]
    plan = placed(graph, A311D, place)
    with pytest.raises(ExportError, match=r"the plan has more in stage 2 \(big and little\)"):
        export(plan, path, None)


def test_interleaved_frames_are_refused_in_one_line(networks):
    plan, path = ordered(networks("alexnet"), "BBBBBBGG")
    first, second = plan.stages
    (processor,) = first.processors
    *early, last = processor.operators
    late = (*early, last.model_copy(update={"lag": 1}))
    processor = processor.model_copy(update={"operators": late})
    first = first.model_copy(update={"processors": (processor,)})
    with pytest.raises(ExportError) as error:
        export(plan.model_copy(update={"stages": (first, second)}), path, None)
    assert (
        "a stage works on one frame at a time, and the plan interleaves frames, which "
        "`map --interleave none` does not; choose another configuration, or export to native"
    ) in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_cores_in_another_order_are_refused(networks):
    plan, path = ordered(networks("googlenet"), "B" * 5 + "L" * 6, board=BOARD)
    with pytest.raises(ExportError, match="takes the little cluster's cores to be the first ones"):
        export(plan, path, None)


def test_a_processor_without_a_letter_is_refused(networks):
    path, graph, _ = networks("googlenet")
    plan = placed(graph, BOARD, [(0, 2)] * len(graph.operators))
    with pytest.raises(ExportError, match=r"the plan uses 'middle' \(cpu\)"):
        export(plan, path, None)
