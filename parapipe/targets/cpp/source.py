"""The C++ source of a generated program: what a plan says, in the words of its library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from parapipe.digits import plain
from parapipe.targets.cpp.clusters import Cluster
from parapipe.targets.native.library_plan import (
    FORMS,
    Attribute,
    LibraryPlan,
    Operator,
)

_WIDTH = 116
_RESERVED_WORDS = """
    all alignas alignof and auto bool break case catch char class clean const constexpr continue
    decltype default delete do double else enum explicit export extern false float for friend
    goto help if inline install int long main mutable namespace new noexcept not nullptr
    operator or parapipe private protected public register return runtime short signed sizeof
    static std struct switch template test this throw true try typedef typename union unsigned
    using virtual void volatile while xor
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())


def identifier(text: str) -> str:
    """Return a name that C++ and CMake take."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "network"
    if name[0].isdigit():
        name = f"model_{name}"
    return f"{name}_model" if name in _RESERVED else name


def distinct_identifiers(texts: Iterable[str]) -> dict[str, str]:
    """Return an identifier of each text, no two the same."""
    names: dict[str, str] = {}
    for text in texts:
        name = base = identifier(text)
        count = 1
        while name in names.values():
            count += 1
            name = f"{base}_{count}"
        names[text] = name
    return names


@dataclass(frozen=True, slots=True)
class Source:
    """What the source is written from.

    Parameters
    ----------
    name
        Name of the program and of its namespace, see `identifier`.
    title
        What it is of, for people: one line.
    document
        The plan in the library's words.
    clusters
        See `clusters_of`; `orders` as well, by the name of a processor.
    kind
        What runs all streams, in place of what the document says.
    """

    name: str
    title: str
    document: LibraryPlan
    clusters: Sequence[Cluster]
    orders: Mapping[str, Sequence[int]]
    kind: str | None = None


def header_text(source: Source) -> str:
    """Return `network.hpp`."""
    document = source.document
    inputs, outputs = (
        ", ".join(_tensor_title(name, document) for name in names) or "none"
        for names in (document.inputs, document.outputs)
    )
    return f"""// {source.title}.
#pragma once

#include "program/program.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace {source.name} {{

/// The network, with a thread for each stream of the plan.
class Network {{
public:
    /// Where the graph inputs of a frame lie, dense float32 in ONNX's order:
    /// {inputs}.
    using Inputs = std::array<const float *, {len(document.inputs)}>;
    /// Where the graph outputs of a frame are written: {outputs}.
    using Outputs = std::array<float *, {len(document.outputs)}>;

    /// Reads the weights and gets everything ready; may be called again.
    /// @param weights Path of weights.bin.
    /// @param cores Cores to use in place of the plan's, by the name of a stream.
    /// @throws parapipe::Error if a file or a core is missing.
    void load(const std::string &weights = "weights.bin", const parapipe::Cores &cores = {{}});

    /// Computes a frame; nothing is allocated. One call at a time, after `load`.
    void run(const Inputs &inputs, const Outputs &outputs) {{ run(&inputs, &outputs, 1); }}
    /// Computes several frames, as many at a time as the plan has, and waits for the last.
    void run(const Inputs *inputs, const Outputs *outputs, std::size_t frames);

    const parapipe::Program &program() const {{ return *program_; }}

private:
    std::unique_ptr<parapipe::Program> program_;
}};

}}  // namespace {source.name}
"""


def network_text(source: Source) -> str:
    """Return `network.cpp`."""
    document = source.document
    lines = [
        f"// {source.title}.",
        "//",
        "// Tensors have their ONNX names and shapes. A cluster is what a stream runs at one go;",
        "// its comment says for which clusters of other streams it waits.",
        '#include "network.hpp"',
        "",
        f"namespace {source.name} {{",
        "namespace {",
        "",
        "using parapipe::BackendKind;",
        "using parapipe::Description;",
        "",
    ]
    streams = distinct_identifiers(each.name for each in document.processors)
    lines += [
        "/// The streams, as they are added below.",
        f"enum Stream : std::size_t {{ {', '.join(streams.values())} }};",
        "",
        *_inputs_and_weights(document),
    ]
    spans = document.arena.spans if document.arena else {}
    for number, cluster in enumerate(source.clusters):
        lines += _cluster(number, cluster, document, spans)
    lines += _streams(source)
    lines += _transfers(document, streams)
    lines += _pool(document, streams)
    lines += _description(source)
    lines += [
        "}  // namespace",
        "",
        "void Network::load(const std::string &weights, const parapipe::Cores &cores) {",
        "    program_ = std::make_unique<parapipe::Program>(description(), weights, cores);",
        "}",
        "",
        "void Network::run(const Inputs *inputs, const Outputs *outputs, std::size_t frames) {",
        "    program_->run(inputs->data(), outputs->data(), frames);",
        "}",
        "",
        f"}}  // namespace {source.name}",
        "",
    ]
    return "\n".join(lines)


def _inputs_and_weights(document: LibraryPlan) -> Iterator[str]:
    yield "void add_inputs(Description &network) {"
    for name in document.inputs:
        yield f"    network.input({quoted(name)}, {_shape(document.tensors[name].shape)});"
    yield "}"
    yield ""
    yield "/// Constants: their shapes, and bytes from the start of weights.bin."
    yield "void add_weights(Description &network) {"
    yield f"    network.weights({document.weights.size_bytes});"
    for name, tensor in document.tensors.items():
        if tensor.offset is not None:
            shape = _shape(tensor.shape)
            yield f"    network.constant({quoted(name)}, {shape}, {tensor.offset});"
    yield "}"
    yield ""


def _cluster(
    number: int, cluster: Cluster, document: LibraryPlan, spans: Mapping[str, tuple[int, int]]
) -> Iterator[str]:
    count = len(cluster.operators)
    title = f"{cluster.stream}, {count} operator{'s' * (count != 1)}"
    time = f"{plain(cluster.time_s * 1e3)} ms predicted"
    waits = ", ".join(map(str, cluster.waits))
    yield f"/// {one_line(title)}, {time}{f'; waits for {waits}' if waits else ''}."
    yield f"void cluster_{number}(Description &network) {{"
    calls = [
        line for step in cluster.operators for line in _operator(step, document, spans.get(step.id))
    ]
    yield from ["    network.cluster()", *calls[:-1], f"{calls[-1]};"]
    yield "}"
    yield ""


def _operator(step: Operator, document: LibraryPlan, span: tuple[int, int] | None) -> Iterator[str]:
    shape = _shape(document.tensors[step.outputs[0]].shape)
    inputs = _list(map(quoted, step.inputs))
    words = [quoted(step.type), quoted(step.outputs[0]), shape, inputs]
    if step.attributes:
        words.append(_attributes(step.type, step.attributes))
    yield from _wrapped("        .op(", words, ")")
    if step.activation:
        words = [quoted(step.activation.type)]
        if step.activation.attributes:
            words.append(_attributes(step.activation.type, step.activation.attributes))
        yield f"        .then({', '.join(words)})"
    if step.source and step.source != step.outputs[0]:
        yield f"        .of({quoted(step.source)})"
    if span:
        yield f"        .during({span[0]}, {span[1]})"


def _streams(source: Source) -> Iterator[str]:
    document = source.document
    stage_of = {p.name: stage.index for stage in document.stages for p in stage.processors}
    yield "/// A thread each: its cores, how many threads, its stage, and its clusters in turn,"
    yield "/// those with a second number so many rounds behind the frame's first ones."
    yield "void add_streams(Description &network) {"
    for each in document.processors:
        lags = [source.clusters[k].lag for k in source.orders[each.name]]
        turns = [
            f"{{{k}, {lag - min(lags)}}}" if lag > min(lags) else f"{{{k}}}"
            for k, lag in zip(source.orders[each.name], lags, strict=True)
        ]
        words = [
            quoted(each.name),
            f"BackendKind::{source.kind or each.backend}",
            _list(map(str, () if source.kind else each.cores)),
            "1" if source.kind else str(each.threads),
            str(stage_of[each.name]),
        ]
        yield from _wrapped("    network.stream(", [*words, _list(turns)], ");")
    yield "}"
    yield ""


def _transfers(document: LibraryPlan, streams: Mapping[str, str]) -> Iterator[str]:
    yield "/// What one stream makes and another one reads, and how many frames of it may be held."
    yield "void add_transfers(Description &network) {"
    for each in document.transfers:
        route = f"{streams[each.source]}, {streams[each.target]}"
        yield f"    network.transfer({quoted(each.tensor)}, {route}, {each.queue_depth});"
    if not document.transfers:
        yield "    (void)network;"
    yield "}"
    yield ""


def _pool(document: LibraryPlan, streams: Mapping[str, str]) -> Iterator[str]:
    yield "/// Memory for tensors, and where they lie in it: bytes from its start, frame n at the"
    yield "/// offset number n modulo their count. The others get memory while loading."
    yield "void add_pool(Description &network) {"
    arena = document.arena
    for memory in arena.memories if arena else ():
        size = f"{memory.size_bytes}, {arena.points if arena else 1}"
        yield f"    network.pool({quoted(memory.name)}, {size});"
    for place in arena.places if arena else ():
        users = _list(streams[name] for name in place.processors)
        offsets = _list(map(str, place.offset_bytes))
        words = [quoted(place.tensor), users, quoted(place.memory), offsets]
        yield from _wrapped("    network.place(", words, ");")
    if arena is None:
        yield "    (void)network;"
    yield "}"
    yield ""


def _description(source: Source) -> Iterator[str]:
    document = source.document
    predicted = document.predicted
    times = [repr(float(value)) for value in (
        (predicted.latency_s, predicted.sustained_period_s) if predicted else (0.0, 0.0)
    )]  # fmt: skip
    head = [quoted(document.model.name), quoted(document.platform), *times]
    yield "/// Seconds of a frame, and from frame to frame, are those that the plan predicts."
    yield "Description description() {"
    yield f"    Description network({', '.join(head)});"
    yield "    add_inputs(network);"
    yield "    add_weights(network);"
    for number in range(len(source.clusters)):
        yield f"    cluster_{number}(network);"
    yield "    add_streams(network);"
    yield "    add_transfers(network);"
    yield "    add_pool(network);"
    yield from _wrapped("    network.outputs({", [quoted(name) for name in document.outputs], "});")
    yield "    return network;"
    yield "}"
    yield ""


def quoted(text: str) -> str:
    """Return a text as a C++ literal."""
    return '"' + "".join(_character(each) for each in text.encode()) + '"'


def one_line(text: str) -> str:
    """Return a text that a comment may hold: no control characters, no backslash at its end."""
    return "".join(each if each.isprintable() else " " for each in text).rstrip("\\")


def _character(byte: int) -> str:
    if byte in b'"\\':
        return "\\" + chr(byte)
    return chr(byte) if 0x20 <= byte < 0x7F and byte != ord("?") else f"\\{byte:03o}"


def _tensor_title(name: str, document: LibraryPlan) -> str:
    return f"{one_line(name)} {_shape(document.tensors[name].shape)}"


def _shape(shape: Iterable[int]) -> str:
    return _list(map(str, shape))


def _list(words: Iterable[str]) -> str:
    return f"{{{', '.join(words)}}}"


def _attributes(kind: str, attributes: Mapping[str, Attribute]) -> str:
    form = FORMS[kind].attributes
    return _list(
        f"{{{quoted(name)}, {_value(value, form[name])}}}" for name, value in attributes.items()
    )


def _value(value: Attribute, kind: str) -> str:
    if isinstance(value, tuple):
        return _list(map(str, value))
    if isinstance(value, str):
        return quoted(value)
    return repr(float(value)) if kind == "number" else str(value)


def _wrapped(head: str, words: Sequence[str], tail: str) -> Iterator[str]:
    """Lines of a call, no longer than the width where a word allows it."""
    line, indent = head, " " * len(head)
    for number, word in enumerate(words):
        last = number == len(words) - 1
        piece = word + (tail if last else ",")
        if line.strip() and line != head and len(line) + len(piece) + 1 > _WIDTH:
            yield line.rstrip()
            line = indent
        line += piece if line in (head, indent) else f" {piece}"
    yield line if words else head + tail
