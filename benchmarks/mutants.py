"""Damaged ONNX files and YAML texts, drawn from a seed: the same number gives the same mutant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

LARGEST_BASE = 20_000  # bytes
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
NUMBERS = (0, 1, -1, 2, 7, 255, 2**31 - 1, -(2**31), 2**32, 2**40, 2**63 - 1, -(2**63))
REALS = (0.0, 1.0, -1.0, 1e-30, 1e38, float("inf"), float("-inf"), float("nan"))
WORDS = ("", "x", "y", "ai.onnx", "com.microsoft", "../../etc/passwd", "\0", "ä", "a" * 3000, "-1")
YAML_WORDS = (
    "0", "-1", "1e400", ".nan", ".inf", "~", "true", "[]", "{}", "''", "&a [*a]", "*a", "!!int x",
    "- -", "? :", "|", ">", "%", "1" * 90, "a" * 5000, "\t", "é", "\u2028", "0x", "12:30:45",
)  # fmt: skip

TEXTS = (
    """control (bool c, float[2,3] x, int64 n) => (float[2,3] y, float[k,2,3] z, float[4,2,3] w) {
        y = If(c) <then_branch = t () => (a) { a = Relu(x) },
                   else_branch = e () => (b) { two = Constant<value_int = 2>() f = Cast<to = 1>(two)
                                               b = Mul(x, f) }>
        four = Constant<value_int = 4>()
        yes = Constant<value_int = 1>()
        go = Cast<to = 9>(yes)
        s, w = Loop(four, go, x) <body = b (int64 i, bool c0, float[2,3] v) => (bool k0, v1, v2) {
            k0 = Identity(go) v1 = Neg(v) v2 = Exp(v1) }>
        t, z = Scan(s, w) <num_scan_inputs = 1, body = b (float[2,3] a0, float[2,3] r) => (a1, r1) {
            a1 = Add(a0, r) r1 = Identity(a1) }>
    }""",
    """quantised (uint8[1,4,8,8] x) => (uint8[1,16] y) <float scale = {0.5}, uint8 zero = {3},
        uint8[4,4,1,1] w, uint8[256,16] m> {
        shape = Constant<value_ints = [1, 256]>()
        a = QLinearConv(x, scale, zero, w, scale, zero, scale, zero)
        b = com.microsoft.QLinearAdd(a, scale, zero, x, scale, zero, scale, zero)
        c = com.microsoft.QLinearConcat<axis = 1>(scale, zero, b, scale, zero, a, scale, zero)
        d = DequantizeLinear(c, scale, zero)
        p = MaxPool<kernel_shape = [2, 1], strides = [2, 1]>(d)
        q = QuantizeLinear(p, scale, zero)
        f = Reshape(q, shape)
        y = com.microsoft.QGemm(f, scale, zero, m, scale, zero, zero, scale, zero)
    }""",
    """attention (float[1,8,16] x) => (float[1,8,16] y) <float[16,48] w, float[48] b, float[16] g> {
        a = com.microsoft.Attention<num_heads = 4>(x, w, b)
        s = com.microsoft.SkipLayerNormalization(a, x, g, g, g)
        h = com.microsoft.MultiHeadAttention<num_heads = 4>(s, s, s)
        n = com.microsoft.FastGelu(h, g)
        y = com.microsoft.FusedMatMul<transB = 1>(n, s)
    }""",
    """sequences (float[6,4] x, optional(float[4]) o) => (float[6,4] y, float[4] z) {
        s = SplitToSequence<axis = 0>(x)
        one = Constant<value_int = 1>()
        e = SequenceErase(s, one)
        t = SequenceAt(s, one)
        i = SequenceInsert(e, t)
        y = ConcatFromSequence<axis = 0>(i)
        z = OptionalGetElement(o)
    }""",
    """functions (float[1,3,8,8] x) => (float[1,4] y) <float[4,3,3,3] w, float[4,4] m> {
        c = Conv<pads = [1, 1, 1, 1]>(x, w)
        a = own.Swish(c)
        g = GlobalAveragePool(a)
        f = Flatten(g)
        y = MatMul(f, m)
    }
    <domain: "own", opset_import: ["" : 19]>
    Swish (u) => (v) { s = Sigmoid(u) v = Mul(u, s) }""",
    """unknown (float[4,4] x) => (float[4,4] y) <float[4,4] a> {
        a = own.Mystery<alpha = 1.5, modes = ["a", "b"]>(x, external)
        l = Constant<value_float = -1.0>()
        c = Clip(a, l)
        r = Shape(x)
        e = Expand(c, r)
        y = Softmax(e)
    }""",
)


def onnx_bases() -> list[bytes]:
    """Return the small models that ONNX ships, sorted by name, and some of what they lack."""
    paths = sorted(DATA.rglob("*.onnx"))
    small = [path.read_bytes() for path in paths if path.stat().st_size <= LARGEST_BASE]
    own = [_parsed(text) for text in TEXTS]
    # They are few, and lead further than single operators do.
    return small + 4 * own


def _parsed(text: str) -> bytes:
    header = "<ir_version: 9, opset_import: ['' : 19, 'com.microsoft' : 1, 'own' : 1]>"
    model = onnx.parser.parse_model(header.replace("'", '"') + text)
    made = {name for node in model.graph.node for name in node.output}
    for value in model.graph.value_info:
        if value.name not in made:
            kind = value.type.tensor_type
            shape = [dim.dim_value for dim in kind.shape.dim]
            zeros = np.zeros(shape, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
            model.graph.initializer.append(onnx.numpy_helper.from_array(zeros, value.name))
    if "external" in text:
        tensor = model.graph.initializer.add(name="external", data_type=1, dims=[4, 4])
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="weights.bin")
        tensor.external_data.add(key="length", value="64")
    content: bytes = model.SerializeToString()
    return content


def onnx_mutant(bases: Sequence[bytes], number: int) -> bytes:
    """Return a model with some bytes or some fields changed."""
    random = Random(f"onnx {number}")
    content = random.choice(bases)
    if random.random() < 0.4:
        return _scrambled(content, random.choice(bases), random)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        return content
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        _change_field(model, random)
    changed: bytes = model.SerializeToString()
    return changed


def yaml_mutant(bases: Sequence[str], number: int) -> bytes:
    """Return a text with some bytes, lines or values changed."""
    random = Random(f"yaml {number}")
    text = random.choice(bases)
    if random.random() < 0.3:
        return _scrambled(text.encode(), random.choice(bases).encode(), random)
    lines = text.splitlines()
    for _ in range(random.choice((1, 1, 2, 4))):
        _change_line(lines, random)
    return "\n".join(lines).encode(errors="surrogatepass")


def _scrambled(content: bytes, other: bytes, random: Random) -> bytes:
    """Change bytes without regard to what they mean."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        at = random.randrange(len(data) + 1)
        length = random.choice((1, 2, 8, 64, 1024))
        action = random.randrange(7)
        if action == 0 and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif action == 1 and at < len(data):
            data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif action == 2:
            del data[at : at + length]
        elif action == 3:
            data[at:at] = random.randbytes(length)
        elif action == 4:
            data[at:at] = data[at : at + length]
        elif action == 5:
            begin = random.randrange(len(other) + 1)
            data[at:at] = other[begin : begin + length]
        else:
            del data[at:]
    return bytes(data)


def _messages(message: Message) -> list[Message]:
    found, waiting = [], [message]
    while waiting:
        current = waiting.pop()
        found.append(current)
        for field, value in current.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                waiting.extend(value if _is_repeated(value) else [value])
    return found


def _is_repeated(value: object) -> bool:
    return not isinstance(value, Message | str | bytes) and hasattr(value, "__len__")


def _change_field(model: onnx.ModelProto, random: Random) -> None:
    messages = _messages(model)
    message = random.choice(messages)
    field = random.choice(message.DESCRIPTOR.fields)
    value = getattr(message, field.name)
    if _is_repeated(value):
        _change_list(value, field, random)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        if random.random() < 0.5:
            message.ClearField(field.name)
        else:
            value.SetInParent()
    elif random.random() < 0.2:
        message.ClearField(field.name)
    else:
        _try(lambda: setattr(message, field.name, _drawn(field, messages, random)))


def _change_list(
    values: Any,  # noqa: ANN401 - repeated fields have no type in common
    field: FieldDescriptor,
    random: Random,
) -> None:
    items: list[object] = list(values)
    action = random.randrange(4)
    if action == 0 and items:
        del values[random.randrange(len(items))]
    elif action == 1 and len(items) > 1:
        values.extend([items.pop(random.randrange(len(items)))])
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        if items:
            values.extend([random.choice(items)])
        else:
            values.add()
    elif items and action == 2:
        at = random.randrange(len(items))
        _try(lambda: values.__setitem__(at, _drawn(field, [], random)))
    else:
        _try(lambda: values.append(_drawn(field, [], random)))


def _drawn(field: FieldDescriptor, messages: Sequence[Message], random: Random) -> object:
    """Return a value for a field: odd, or one that stands elsewhere in the model."""
    if field.type == FieldDescriptor.TYPE_STRING:
        words = [
            word
            for message in messages
            if isinstance(message, onnx.NodeProto)
            for word in (*message.input, *message.output, message.op_type)
        ]
        operators = [schema.name for schema in onnx.defs.get_all_schemas()]
        return random.choice(random.choice((words or WORDS, WORDS, operators)))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return random.randbytes(random.choice((0, 1, 4, 8, 100)))
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return random.choice(REALS)
    return random.choice((*NUMBERS, random.randrange(30)))


def _try(change: Callable[[], object]) -> None:
    """Leave a field as it is whose type or range does not allow what was drawn."""
    try:
        change()
    except (ValueError, TypeError, UnicodeError):
        return


def _change_line(lines: list[str], random: Random) -> None:
    if not lines:
        lines.append(random.choice(YAML_WORDS))
        return
    at = random.randrange(len(lines))
    line = lines[at]
    key, colon, _ = line.partition(":")
    action = random.randrange(7)
    if action == 0:
        del lines[at]
    elif action == 1:
        lines.insert(random.randrange(len(lines)), line)
    elif action == 2:
        lines[at] = " " * random.randrange(9) + line.lstrip()
    elif action == 3:
        lines[at] = line.replace(line.strip(), random.choice(YAML_WORDS))
    elif action == 4 and line:
        cut = random.randrange(len(line))
        lines[at] = line[:cut] + random.choice(YAML_WORDS) + line[cut:]
    elif action == 5:
        lines[at] = random.choice(lines)
    else:
        lines[at] = f"{key}{colon} {random.choice(YAML_WORDS)}"
