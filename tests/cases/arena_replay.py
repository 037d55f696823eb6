"""Frames that are run one behind the other in the arenas of a plan, byte by byte.

Each element has a number of its own for each frame. What joins, cuts and reshapes moves numbers,
all other operators make new ones. An operator's results are written when it starts, and it reads
until it ends: then its inputs have to be there still, or overwritten by itself in place.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np

from parapipe.graph.operator_graph import size_in_bytes
from tests.cases.memory_oracle import Run

ELEMENTWISE = ("Relu", "Add", "Cast")


class Replay:
    """Raises AssertionError if an operator does not find what it reads."""

    def __init__(self, plan, mapping, storage):
        self.plan, self.mapping, self.storage = plan, mapping, storage
        self.graph = storage.graph
        self.run = Run(
            mapping,
            self.graph,
            plan.predicted.period_s,
            memory_of=storage.memory_of,
            copies=storage.copies,
            size_bytes=storage.tensor_bytes,
        )
        self.bytes = [np.full(each.size_bytes, -1) for each in plan.memory.arenas]
        self.buffers = {(b.tensor, p): b for b in plan.buffers for p in b.processors}
        self.count = 0
        self.value = cache(self._value)

    def frames(self, count):
        """Run so many frames."""
        events = sorted(self.run.events(count), key=lambda each: each[:5])
        left = Counter(frame for *_, frame, _ in events)
        entered = set()
        for *_, frame, (begins, at, moved) in events:
            if frame not in entered:
                entered.add(frame)
                self.load(frame)
            if at is not None:
                (self.start if begins else self.end)(at, frame)
            else:
                self.move(moved, frame, begins)
            left[frame] -= 1
            if not left[frame]:
                for name in self.graph.outputs:
                    maker = self.mapping.at[self.graph.producer[name]]
                    self.check(name, maker.processor, frame)

    def load(self, frame):
        for buffer in self.plan.buffers:
            if buffer.tensor in self.graph.inputs:
                p = self.storage.processors.index(buffer.processors[0])
                self.write(buffer.tensor, p, frame)

    def start(self, at, frame):
        operator = self.graph.operators[at.operator]
        for name in self.graph.reads(operator):
            self.check(name, at.processor, frame)
        for name in operator.outputs:
            self.write(name, at.processor, frame)

    def end(self, at, frame):
        operator = self.graph.operators[at.operator]
        in_place = operator.type in ELEMENTWISE
        made = [self.value(name, frame) for name in operator.outputs]
        for name in self.graph.reads(operator):
            there, value = self.there(name, at.processor, frame), self.value(name, frame)
            kept = there == value
            if in_place and made[0].shape == value.shape:
                kept |= there == made[0]
            assert kept.all(), f"{operator.id} does not find {name} of frame {frame}"
        for name in operator.outputs:
            self.check(name, at.processor, frame)

    def move(self, moved, frame, begins):
        self.check(moved.tensor, moved.source, frame)
        if begins:
            self.write(moved.tensor, moved.target, frame)

    def write(self, name, p, frame):
        at, width = self.place(name, p, frame)
        at[:] = np.repeat(self.value(name, frame), width)

    def check(self, name, p, frame):
        assert (self.there(name, p, frame) == self.value(name, frame)).all(), f"{name}, {frame}"

    def there(self, name, p, frame):
        """The numbers that stand where a tensor should; -2 where its bytes differ."""
        at, width = self.place(name, p, frame)
        each = at.reshape(-1, width)
        return np.where((each == each[:, :1]).all(axis=1), each[:, 0], -2)

    def place(self, name, p, frame):
        buffer = self.buffers[name, self.storage.processors[p]]
        offset = buffer.offset_bytes[frame % len(buffer.offset_bytes)]
        size = len(self.value(name, frame))
        width = size_in_bytes((1,), self.storage.type_of(name, p))
        m = self.storage.memory_of(p)
        assert offset % self.plan.memory.arenas[m].alignment_bytes == 0
        assert offset + size * width <= len(self.bytes[m])
        return self.bytes[m][offset : offset + size * width], width

    def _value(self, name, frame):
        """The numbers of a tensor's elements, as it is laid out."""
        shape = self.graph.tensors[name].shape
        producer = self.graph.producer.get(name)
        operator = None if producer is None else self.graph.operators[producer]
        if operator is not None and operator.type in ("Concat", "Slice", "Reshape"):
            return self.moved(operator, frame).reshape(-1)
        self.count += int(np.prod(shape))
        return np.arange(self.count - np.prod(shape), self.count)

    def moved(self, operator, frame):
        read = [
            self.value(each, frame).reshape(self.graph.tensors[each].shape)
            for each in operator.inputs
        ]
        if operator.type == "Concat":
            return np.concatenate(read, axis=operator.attributes["axis"])
        if operator.type == "Slice":
            (start,), (end,) = operator.attributes["starts"], operator.attributes["ends"]
            (axis,) = operator.attributes["axes"]
            return np.take(read[0], range(start, end), axis=axis)
        return read[0]
