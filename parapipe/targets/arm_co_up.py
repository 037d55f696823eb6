"""The target `arm-co-up`: the command line that makes the public ARM-CO-UP runtime run a plan.

That runtime has a program for each of a few networks, cut into blocks. `--order` has a letter for
each block: the big cluster, the little one, the GPU. Each maximal run of equal letters is a part
of its own; parts of one frame run one after the other (switch mode), or on frames that follow each
other (pipeline mode, a constant in its source). Nothing within a block runs side by side, and
nothing within a frame.

Source: the repository Ehsan-aghapour/ARM-CO-UP, commit de24fb7: `utils/CommonGraphOptions.cpp` has
the options, `Example_Pipeline::config_pipeline` in `utils/UtilsPipeline.h` reads the order,
`utils/main_layer_checker.h` says where blocks end, `src/graph/backends/NEON/NEDeviceBackend.cpp`
and `src/graph/frontend/StreamPipeline.cpp` bind threads to cores, the little ones first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from parapipe.cost.measured_network import measured_networks, recognise
from parapipe.errors import ExportError
from parapipe.export.exported import Exported, Written, refuse_converted
from parapipe.files.atomic import write_atomically
from parapipe.files.mistakes import listed, listed_sentences
from parapipe.graph.onnx_import import import_model
from parapipe.plan.mapped import mapping_view
from parapipe.plan.schema import Plan

TARGET = "arm-co-up"
_SCRIPT = "arm-co-up.sh"
_EXEC = 'exec "${PROGRAMS:-.}"/'
_MEASURED_ON = "amlogic-a311d"  # whose profile knows the operators of each block
_PROGRAMS: Mapping[str, str] = {
    "AlexNet": "graph_alexnet_pipeline",
    "GoogLeNet": "graph_googlenet_pipeline",
    "MobileNet-v1": "graph_mobilenet_pipeline",
    "ResNet-50-v1": "graph_resnet50_pipeline",
}
_LETTERS = {("cpu", "b"): "B", ("cpu", "l"): "L", ("gpu", "g"): "G"}


def export(plan: Plan, model: Path, destination: Path | None) -> Exported:
    """Return the command line, and write it as a shell script if there is a destination.

    Parameters
    ----------
    destination
        A file, or a folder that is there; then the script is `arm-co-up.sh` in it.

    Raises
    ------
    ExportError
        If that runtime cannot run the network, or cannot run it like this; it says why.
    OutputError
        If the script cannot be written.
    """
    refuse_converted(plan, TARGET)
    letters = _letters_of_processors(plan)
    program, blocks = _program_and_blocks(plan, model)
    options = [f"--order={_order_letters(plan, blocks, letters)}", *_thread_options(plan, letters)]
    line, notes = f"{program} {' '.join(options)}", tuple(_notes(plan))
    if destination is None:
        return Exported(TARGET, (), 0, (), notes, line)
    path = _script_path(destination)
    comments = "".join(f"# {note}\n" for note in notes)
    content = f'#!/bin/sh\n{comments}{_EXEC}{line} "$@"\n'.encode()
    write_atomically(path, content, executable=True)
    return Exported(TARGET, (path,), len(content), (f"command     {line}",), notes)


def written(destination: Path) -> Iterator[Written]:
    """Yield the script; its last line tells that it is an export's."""
    yield Written(_script_path(destination), lambda content: f"\n{_EXEC}graph_".encode() in content)


def _script_path(destination: Path) -> Path:
    return destination / _SCRIPT if destination.is_dir() else destination


def _letters_of_processors(plan: Plan) -> dict[str, str]:
    """Return the letter of each processor, by its name."""
    letters = {p.name: _LETTERS.get((p.kind, p.name[0].lower()), "") for p in plan.processors}
    odd = [f"'{p.name}' ({p.kind})" for p in plan.processors if not letters[p.name]]
    if odd:
        raise _refusal(
            plan, f"it knows the processors big, little and gpu, and the plan uses {listed(odd)}"
        )
    doubled = [name for name, letter in letters.items() if [*letters.values()].count(letter) > 1]
    if doubled:
        raise _refusal(plan, f"{listed(doubled)} have the same letter")
    return letters


def _program_and_blocks(plan: Plan, model: Path) -> tuple[str, dict[str, int]]:
    """Return the program of the network, and the block of each single operator by its id."""
    shapes = {name: plan.tensors[name].shape for name in plan.inputs}
    graph = import_model(model, granularity="onnx", shapes=shapes, digests=False)
    recognised = recognise(graph, measured_networks(_MEASURED_ON))
    if recognised is None or recognised.network.name not in _PROGRAMS:
        raise _refusal(
            plan,
            f"it has programs for {listed([*_PROGRAMS])} only, and this network is none of them",
        )
    of_graph = recognised.blocks_of(graph)
    blocks = {operator.id: of_graph[v] for v, operator in enumerate(graph.operators)}
    return _PROGRAMS[recognised.network.name], blocks


def _order_letters(plan: Plan, blocks: Mapping[str, int], letters: Mapping[str, str]) -> str:
    """Return a letter for each block."""
    view = mapping_view(plan)
    runs: dict[int, dict[str, None]] = {}
    for at in view.placements.values():
        placed = plan.operators[at.operator]
        for single in placed.parts or (placed,):
            runs.setdefault(blocks[single.id], {})[view.name(at)] = None
    obstacles = list(_obstacles(plan, runs))
    if obstacles:
        raise _refusal(plan, listed_sentences(obstacles))
    order = "".join(letters[next(iter(runs[block]))] for block in sorted(runs))
    parts = len(list(groupby(order)))
    if len(plan.stages) > 1 and parts != len(plan.stages):
        raise _refusal(plan, f"its blocks {order} are {parts} parts and {len(plan.stages)} stages")
    return order


def _obstacles(plan: Plan, runs: Mapping[int, Mapping[str, None]]) -> Iterator[str]:
    shared = [
        f"block {block + 1} ({' and '.join(names)})"
        for block, names in sorted(runs.items())
        if len(names) > 1
    ]
    if shared:
        yield f"a block runs on one processor, and the plan shares out {listed(shared)}"
    parallel = [
        f"stage {stage.index + 1} ({' and '.join(p.name for p in stage.processors)})"
        for stage in plan.stages
        if len(stage.processors) > 1
    ]
    if len(plan.stages) > 1 and parallel:
        yield f"a pipeline's stage has one processor, and the plan has more in {listed(parallel)}"
    if mapping_view(plan).replicas:
        yield "a stage has one processor, and the plan lets several take turns on its frames"
    elif mapping_view(plan).out_of_step is not None:
        yield (
            "a stage works on one frame at a time, and the plan interleaves frames, which "
            "`map --interleave none` does not"
        )


def _thread_options(plan: Plan, letters: Mapping[str, str]) -> list[str]:
    """Return how many threads clusters have, and which cores are theirs: the little ones first."""
    cores = {letters[p.name]: sorted(p.cores) for p in plan.processors if p.cores}
    little = len(cores["L"]) if "L" in cores else min(cores.get("B", [0]))
    big = cores.get("B", [])
    wanted = {"L": list(range(little)), "B": list(range(little, little + len(big)))}
    odd = [letter for letter in cores if letter in wanted and cores[letter] != wanted[letter]]
    if odd:
        raise _refusal(
            plan, "it takes the little cluster's cores to be the first ones, then the big one's"
        )
    options = [f"--threads={len(big)}"] if big else []
    options += [f"--threads2={little}"] if "L" in cores else []
    if big:  # without them nothing says how many cores there are
        options += [f"--total_cores={little + len(big)}", f"--little_cores={little}"]
        options += [f"--big_cores={len(big)}"]
    return options


def _notes(plan: Plan) -> Iterator[str]:
    if len(plan.stages) > 1:
        yield (
            "pipeline mode: set `parallel=true` in src/graph/GraphManagerPipeline.cpp before "
            "ARM-CO-UP is built"
        )
    else:
        yield (
            "switch mode: `parallel=false` in src/graph/GraphManagerPipeline.cpp, as ARM-CO-UP "
            "is published"
        )
    clocks = ", ".join(
        f"{p.name} {p.operating_point.frequency_hz / 1e6:.0f} MHz" for p in plan.processors
    )
    yield f"the plan was made for these clocks, which nothing here sets: {clocks}"


def _refusal(plan: Plan, why: str) -> ExportError:
    return ExportError(
        f"{plan.model.name}: ARM-CO-UP cannot run this plan: {why}; choose another configuration, "
        "or export to native"
    )
