"""The target `genai`: a folder of ONNX Runtime GenAI whose decoder runs by plans.

A plan for the prompt, and perhaps another one for the tokens after it: each segment is a model of
its own in `decoder.pipeline`, with `run_on_prompt` or `run_on_token_gen`. GenAI runs the models of
a step one after the other and hands tensors on by their names. A plan is made for one length; its
segments are cut out of the model as it stands, so that they take others, too. Weights stand once,
in a file that all models refer to.

Source: ONNX Runtime GenAI's page "Config reference" and `decoder_only_pipeline.cpp`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from parapipe.errors import ExportError
from parapipe.export.exported import Exported, export_folder, readme, refuse_converted
from parapipe.export.onnxruntime.folder import WITHOUT_ARRAY
from parapipe.export.onnxruntime.session_document import numbered_segments
from parapipe.graph.data_types import element_type
from parapipe.graph.model_folder import GENAI
from parapipe.graph.order import inline_functions, reads_of
from parapipe.plan.schema import Plan, Processor
from parapipe.profiling.providers import CPU_PROVIDER, Choice, choice_of
from parapipe.runtime.document import Segment

TAKES = ("token_plan",)
TARGET = "genai"
SCHEMA = "parapipe/genai/1"
WEIGHTS = "weights.bin"
DOCUMENT = "plan.json"
_INLINE_BYTES = 1024  # smaller constants stay in the models, since shapes may follow from them
_ALIGNED = 4096  # bytes, so that weights can be mapped into memory
_USE = """
It needs ONNX Runtime GenAI, nothing of parapipe:

    import onnxruntime_genai
    model = onnxruntime_genai.Model("THIS FOLDER")

The models of a prompt, or of a token, run one after the other.
"""
_FILES = {
    GENAI: "the configuration, with the models in `decoder.pipeline`",
    "prompt-NN-PROCESSOR.onnx, token-NN-PROCESSOR.onnx": "a segment of the prompt's or of the "
    "tokens' plan; step-NN-PROCESSOR.onnx of a plan for both",
    WEIGHTS: "the weights of all segments",
    DOCUMENT: "which operators and which processor each model stands for",
}


def export(
    plan: Plan, model: Path, destination: Path | None, *, token_plan: Plan | None = None
) -> Exported:
    """Write the folder; an earlier export that stands there is replaced.

    Parameters
    ----------
    plan
        Of the prompt; of the tokens after it, too, if they have none of their own.
    model
        A decoder in a folder of ONNX Runtime GenAI, whose other files are copied.
    token_plan
        Of one token, made for the same model.

    Raises
    ------
    ExportError
        If no folder is named, the model is none of GenAI's, the plans are of several models, or a
        plan has parts or types that are not the model's.
    OutputError
        If the folder holds anything else, or cannot be written.
    """
    plans = {"step": plan} if token_plan is None else {"prompt": plan, "token": token_plan}
    for each in plans.values():
        _check_plan(each, plan)
    config = _configuration(model)
    source = inline_functions(onnx.load(model), str(model))
    cuts = {f"{when}-{cut.segment.id}": cut for when, each in plans.items()
            for cut in _Cutter(source, each).cuts()}  # fmt: skip

    def write(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        copied = [each for each in sorted(model.parent.iterdir()) if _is_companion(each)]
        for each in copied:
            shutil.copyfile(each, folder / each.name)
        weights = _write_weights(source, cuts.values(), folder / WEIGHTS)
        for name, cut in cuts.items():
            onnx.save(cut.model(source, weights, name), folder / f"{name}.onnx")
        pipeline = [{name: _stage(name, cut)} for name, cut in cuts.items()]
        decoder = {k: v for k, v in config["model"]["decoder"].items() if k != "filename"}
        changed = {"type": "decoder-pipeline", "decoder": {**decoder, "pipeline": pipeline}}
        _write_json(folder / GENAI, {**config, "model": {**config["model"], **changed}})
        names = [each.name for each in copied]
        _write_json(folder / DOCUMENT, _document(plan, cuts, names))
        return tuple(_summary(plans, cuts)), tuple(dict.fromkeys(_notes(cuts.values())))

    about = readme(plan, TARGET, _USE, _FILES)
    return export_folder(TARGET, destination, SCHEMA, _earlier_names, write, readme=about)


def _check_plan(each: Plan, plan: Plan) -> None:
    refuse_converted(each, TARGET)
    if each.model.split:
        raise ExportError(
            "the target genai cuts the model between its own operators: map it without `split`"
        )
    if each.model.sha256 != plan.model.sha256:
        raise ExportError(
            f"the plan of the tokens is of another model, '{each.model.name}': map both of "
            f"'{plan.model.name}', with a `dims` for each"
        )


def _configuration(model: Path) -> dict[str, Any]:
    """Return the configuration beside the model."""
    path = model.parent / GENAI
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        named = config["model"]["decoder"]["filename"]
    except FileNotFoundError:
        raise ExportError(
            "the target genai wants the decoder of a folder of ONNX Runtime GenAI, and there is "
            f"no '{path}': map the folder that its model builder wrote"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExportError(
            f"'{path}' names no decoder as model.decoder.filename ({error!r}): it is not as ONNX "
            "Runtime GenAI writes it"
        ) from None
    if named != model.name:
        raise ExportError(f"'{path}' names the decoder '{named}', not '{model.name}'")
    return config


def _is_companion(path: Path) -> bool:
    """Tell tokenizers and other settings from models and their weights."""
    return path.is_file() and path.name != GENAI and path.suffix in {".json", ".txt", ".model"}


@dataclass(frozen=True, slots=True)
class _Cut:
    """A segment as a model: nodes of the source, in its order.

    Parameters
    ----------
    inputs, outputs
        Tensors that it reads and makes, constants apart.
    constants
        Initializers of the source that it reads.
    kinds
        Types of tensors that the source does not state.
    """

    segment: Segment
    processor: Processor
    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: frozenset[str]
    kinds: Mapping[str, onnx.ValueInfoProto]

    def model(
        self, source: onnx.ModelProto, weights: Mapping[str, TensorProto], name: str
    ) -> onnx.ModelProto:
        """Return the model, whose weights are elsewhere."""
        graph = source.graph
        return helper.make_model(
            helper.make_graph(
                [graph.node[at] for at in self.nodes],
                name,
                [self.kinds[each] for each in self.inputs],
                [self.kinds[each] for each in self.outputs],
                [weights[each.name] for each in graph.initializer if each.name in self.constants],
            ),
            opset_imports=source.opset_import,
            ir_version=source.ir_version,
        )


@dataclass(slots=True)
class _Cutter:
    """Cuts a model along the segments of a plan."""

    source: onnx.ModelProto
    plan: Plan
    makers: dict[str, int] = field(init=False)
    owners: dict[str, int] = field(init=False)
    segments: tuple[Segment, ...] = field(init=False)

    def __post_init__(self) -> None:
        nodes = self.source.graph.node
        self.makers = {name: at for at, node in enumerate(nodes) for name in node.output if name}
        self.segments = numbered_segments(self.plan)
        by_id = {each.id: each for each in self.plan.operators}
        self.owners = {
            name: number
            for number, segment in enumerate(self.segments)
            for operator in segment.operators
            for name in by_id[operator].outputs
            if name in self.makers
        }

    def cuts(self) -> list[_Cut]:
        """Return the segments in their order; what nothing owns is made where it is read."""
        last = len(self.segments) - 1
        wanted: list[set[str]] = [set() for _ in self.segments]
        for value in self.source.graph.output:
            wanted[self.owners.get(value.name, last)].add(value.name)
        processors = {each.name: each for each in self.plan.processors}
        kinds = self._kinds()
        found = []
        for number in range(last, -1, -1):
            nodes, read = self._needed(wanted[number], number)
            constants = {each.name for each in self.source.graph.initializer} & read
            inputs = sorted(read - constants)
            for name in inputs:
                owner = self.owners.get(name, -1)
                if owner > number:
                    raise ExportError(
                        f"segment {self.segments[number].id} reads '{name}', which a later one "
                        "makes: choose a plan with fewer segments"
                    )
                if owner >= 0:
                    wanted[owner].add(name)
            segment = self.segments[number]
            found.append(_Cut(
                segment, processors[segment.processor], tuple(sorted(nodes)), tuple(inputs),
                tuple(sorted(wanted[number])), frozenset(constants), kinds,
            ))  # fmt: skip
        return [each for each in reversed(found) if each.outputs]

    def _needed(self, outputs: Iterable[str], number: int) -> tuple[set[int], set[str]]:
        """Return the nodes that make tensors from what other segments make, and what they read."""
        nodes: set[int] = set()
        read: set[str] = set()
        left = [*outputs]
        while left:
            name = left.pop()
            if name not in self.makers or self.owners.get(name, number) != number:
                read.add(name)
            elif (at := self.makers[name]) not in nodes:
                nodes.add(at)
                left += [each for each in reads_of(self.source.graph.node[at]) if each]
        return nodes, read

    def _kinds(self) -> dict[str, onnx.ValueInfoProto]:
        """Return the types of tensors: as the model states them, or of the plan's ranks."""
        graph = self.source.graph
        kinds = {
            name: helper.make_tensor_value_info(
                name, element_type(each.dtype) or TensorProto.FLOAT, [None] * len(each.shape)
            )
            for name, each in self.plan.tensors.items()
        }
        stated = (*graph.value_info, *graph.output, *graph.input)
        return kinds | {each.name: each for each in stated if each.type.HasField("tensor_type")}


def _write_weights(
    source: onnx.ModelProto, cuts: Iterable[_Cut], path: Path
) -> dict[str, TensorProto]:
    """Write what models read, once; return initializers that refer to it, by name."""
    read = frozenset[str]().union(*(each.constants for each in cuts))
    written: dict[str, TensorProto] = {}
    with path.open("wb") as file:
        for tensor in source.graph.initializer:
            content = _content(tensor) if tensor.name in read else b""
            if len(content) <= _INLINE_BYTES:
                written[tensor.name] = tensor
                continue
            file.write(bytes(-file.tell() % _ALIGNED))
            place = {"location": path.name, "offset": file.tell(), "length": len(content)}
            file.write(content)
            elsewhere = TensorProto(
                name=tensor.name, dims=tensor.dims, data_type=tensor.data_type,
                data_location=TensorProto.EXTERNAL,
            )  # fmt: skip
            for key, value in place.items():
                elsewhere.external_data.add(key=key, value=str(value))
            written[tensor.name] = elsewhere
    return written


def _content(tensor: TensorProto) -> bytes:
    """Return the bytes of a weight; none of one that a model has to hold itself."""
    if tensor.HasField("raw_data"):
        return bytes(tensor.raw_data)
    packed = helper.tensor_dtype_to_np_dtype(tensor.data_type).name in WITHOUT_ARRAY
    if packed or tensor.data_type == TensorProto.STRING:
        return b""
    content: bytes = onnx.numpy_helper.to_array(tensor).tobytes()
    return content


def _stage(name: str, cut: _Cut) -> dict[str, Any]:
    """Return a model's entry in the pipeline."""
    when = name.partition("-")[0]
    choice = _choice(cut.processor)
    session: dict[str, Any] = {"intra_op_num_threads": cut.processor.threads}
    if choice.provider and choice.provider != CPU_PROVIDER:
        session["provider_options"] = [
            {choice.provider.removesuffix("ExecutionProvider"): dict(choice.options)}
        ]
    return {
        "filename": f"{name}.onnx",
        "inputs": list(cut.inputs),
        "outputs": list(cut.outputs),
        "run_on_prompt": when != "token",
        "run_on_token_gen": when != "prompt",
        "session_options": session,
    }


def _document(plan: Plan, cuts: Mapping[str, _Cut], copied: Sequence[str]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "model": {"name": plan.model.name, "sha256": plan.model.sha256},
        "platform": plan.platform,
        "segments": {
            name: {"processor": cut.processor.name, "operators": list(cut.segment.operators)}
            for name, cut in cuts.items()
        },
        "files": sorted([GENAI, WEIGHTS, *copied, *(f"{name}.onnx" for name in cuts)]),
    }


def _earlier_names(document: Mapping[str, Any]) -> set[str]:
    return {*document.get("files", ())}


def _summary(plans: Mapping[str, Plan], cuts: Mapping[str, _Cut]) -> Iterator[str]:
    for when in plans:
        mine = [cut.processor.name for name, cut in cuts.items() if name.startswith(f"{when}-")]
        shares = ", ".join(f"{mine.count(name)} on {name}" for name in dict.fromkeys(mine))
        yield f"{when:<12}{len(mine)} model{'s' * (len(mine) > 1)}: {shares}"


def _notes(cuts: Iterable[_Cut]) -> Iterator[str]:
    for each in cuts:
        obstacle = _choice(each.processor).obstacle
        if obstacle and each.processor.kind != "cpu":
            yield f"models of '{each.processor.name}' run on the CPU: {obstacle}"


def _choice(processor: Processor) -> Choice:
    return choice_of(processor.kind, processor.backend, processor.cores, processor.options)


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
