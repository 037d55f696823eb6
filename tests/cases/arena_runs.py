"""Random models that join, cut and reshape, planned in any way, and run with arenas.

Segments end at random times, so that processors are ahead of each other as far as they may be.
"""

import os
import random
import time
from types import SimpleNamespace

import numpy as np
import onnx

from parapipe.export.onnxruntime.folder import write_session_folder
from parapipe.graph.onnx_import import import_model
from parapipe.plan.build import build_plan
from parapipe.plan.layout import laid_out
from parapipe.plan.mapped import mapping_view, network_of
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.verify import verify_plan
from parapipe.platform.memories import MemorySystem
from parapipe.runtime.executor import Executor
from parapipe.runtime.folder import open_folder
from parapipe.runtime.views import Views
from tests.cases.interleaved import plan_of, random_document
from tests.cases.plan_cases import Costs, configured, cut_into_stages, platform_of
from tests.cases.split_runs import equal, run

LENT = sorted(os.sched_getaffinity(0))


def moving_model(path, rng, count):
    """Write a network of tensors of one row of tokens, cut and joined along them."""
    tokens, lines = {"x": 12}, []
    for i in range(count):
        name, read = f"t{i}", rng.choice([*tokens][-3:])
        size = tokens[read]
        kind = rng.choice(("Relu", "Add", "MatMul", "Softmax", "Concat", "Slice", "Reshape"))
        other = rng.choice([each for each in tokens if tokens[each] == size])
        if kind == "Concat" and size < 40:
            other = rng.choice([*tokens])
            lines.append(f"{name} = Concat<axis=1>({read}, {other})")
            size += tokens[other]
        elif kind == "Slice" and size > 2:
            begin = rng.randrange(size // 2)
            lines += [
                f"b{i} = Constant<value_ints=[{begin}]>()",
                f"e{i} = Constant<value_ints=[{size - 1}]>()",
                f"{name} = Slice({read}, b{i}, e{i}, one)",
            ]
            size -= begin + 1
        elif kind == "Reshape":
            lines += [
                f"s{i} = Constant<value_ints=[1,{size},8]>()",
                f"{name} = Reshape({read}, s{i})",
            ]
        elif kind == "Add":
            lines.append(f"{name} = Add({read}, {other})")
        elif kind == "Softmax":
            lines.append(f"{name} = Softmax<axis=1>({read})")
        elif kind == "MatMul":
            lines.append(f"{name} = MatMul({read}, w)")
        else:
            lines.append(f"{name} = Relu({read})")
        tokens[name] = size
    results = {f"t{count - 1}", rng.choice([f"t{i}" for i in range(count)])}
    made = ", ".join(f"float[1,{tokens[name]},8] {name}" for name in sorted(results))
    body = "\n".join(["one = Constant<value_ints=[1]>()", *lines])
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 17]> m (float[1,12,8] x) => ({made}) {{ {body} }}'
    )
    weights = np.random.default_rng(0).uniform(-1, 1, (8, 8)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, path)
    return model


TYPES = {
    **dict.fromkeys(("float", "double", "int32", "int64"), ("Max", "Min", "Cast", "Cast")),
    **dict.fromkeys(("float16", "int8", "uint8", "int16", "uint16"), ("Cast",)),
    "bool": ("Not", "And", "Cast"),
}
"""What is made of tensors of each type, with elements of 1 to 8 bytes."""


def casting_model(path, rng, count):
    """Write a network of element-wise operators on tensors of few elements of all types."""
    size = rng.choice([1, 2, 3, 7, 8, 9, 16, 17])
    types, lines = {"a": "float"}, ["f = Mul(x, c)", "a = Abs(f)"]
    for i in range(count):
        name, read = f"t{i}", rng.choice([*types][-3:])
        dtype = types[read]
        kind = rng.choice(TYPES[dtype])
        if kind == "Cast":
            dtype = rng.choice([*TYPES])
            number = onnx.parser.parse_graph(f"g ({dtype} y) => () {{}}").input[0]
            lines.append(f"{name} = Cast<to={number.type.tensor_type.elem_type}>({read})")
        elif kind == "Not":
            lines.append(f"{name} = Not({read})")
        else:
            other = rng.choice([each for each in types if types[each] == dtype])
            lines.append(f"{name} = {kind}({read}, {other})")
        types[name] = dtype
    last = f"t{count - 1}"
    body = "\n".join(["c = Constant<value_float=9.0>()", *lines])
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 17]> m (float[1,{size}] x) => '
        f"({types[last]}[1,{size}] {last}) {{ {body} }}"
    )
    onnx.save(model, path)
    return model


def staged(path, rng, *, replicated=False, cpus=False):
    """A plan of stages; of replicated ones, one stage runs on several processors in turn.

    Those, and where it is asked for, are all CPUs.
    """
    graph = import_model(path)
    count = len(graph.operators)
    costs = Costs([[rng.choice([0.0, 0.1, 0.7, 1.5])] * 5 for _ in range(count)], {})
    costs.table[0] = [0.4] * 5
    platform = platform_of(5)
    stages = cut_into_stages(rng, count, rng.randint(1, 4))
    if replicated:
        stages = [[(v, s) for v, _ in stage] for s, stage in enumerate(stages)]
    if replicated or cpus:
        for processor in platform.processors:
            processor.kind, processor.backend, processor.cores = "cpu", "nominal", ()
            processor.point = SimpleNamespace(frequency_hz=1e9, voltage_v=0.8)
    mapping = configured(graph, costs, stages)
    if replicated:
        turn = rng.randrange(len(stages))
        mapping = mapping.with_replicas([(turn, *range(len(stages), 5))])
    return build_plan(graph, platform, costs, mapping)


def interleaved(path, seed, *, processors=3):
    """A plan whose processors work on several frames; None if this seed gives none."""
    document = random_document(import_model(path), seed, processors=processors)
    return laid(plan_of(document)) if document else None


def laid(plan, names=("shared",), memory_of=lambda _: 0, alignment_bytes=4):
    """The plan with offsets, in memories of its processors."""
    view = mapping_view(plan)
    system = MemorySystem(
        names=tuple(names),
        assumed=False,
        memory_of={name: memory_of(name) for name in view.resources},
        alignment_bytes=(alignment_bytes,) * len(names),
        usable_bytes=(None,) * len(names),
        copying=frozenset(),
        packing={},
    )
    return laid_out(plan, PlanLives(plan, network_of(plan), system))


def exported(plan, path, place, *, single):
    """The folder of a plan, on this machine's cores."""
    verify_plan(plan)
    place.mkdir()
    write_session_folder(plan, path, place, single=single)
    folder = open_folder(place)
    names = [each.name for each in folder.processors]
    return folder.on_cores({name: (LENT[i % len(LENT)],) for i, name in enumerate(names)})


class Watched(Views):
    """Sleeps at random around segments, and checks that what they make lies where it should."""

    rng = random.Random(0)

    def run(self, session, segment, frame, made, options):
        """As in any run."""
        time.sleep(self.rng.choice([0.0, 0.0, 0.001, 0.003]))
        arrays = super().run(session, segment, frame, made, options)
        for name, array in zip(segment.outputs, arrays, strict=True):
            self._check(name, frame, array)
        time.sleep(self.rng.choice([0.0, 0.0, 0.001]))
        return arrays

    def _check(self, name, frame, array):
        for place in self.plan.places:
            if place.tensor == name:
                begin = self.arenas[place.arena].ctypes.data
                offset = place.offset_bytes[frame % len(place.offset_bytes)]
                assert array.ctypes.data == begin + offset

    def __init__(self, plan, arenas=None):
        """As in any run."""
        self.plan, self.arenas = plan, arenas
        super().__init__(plan, arenas)


def check(folder, model, monkeypatch, count=20, seed=0):
    """Run frames with arenas; results are those of one session. Return the executor."""
    Watched.rng = random.Random(seed)
    monkeypatch.setattr("parapipe.runtime.executor.Views", Watched)
    rng = np.random.default_rng(seed)
    shapes = {name: folder.tensors[name].shape for name in folder.inputs}
    frames = [
        {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
        for _ in range(count)
    ]
    executor = Executor(folder, arena=True, patience_s=60)
    results = list(executor.run(frames))
    assert len(results) == count
    order = [each.name for each in model.graph.output]
    for frame, made in zip(frames, results, strict=True):
        assert equal(run(model, frame), [made[name] for name in order])
    return executor
