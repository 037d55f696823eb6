"""Several plans as one: their work is in one pool, and a frame is a frame of each.

What belongs to a plan has its number before its name: `2/data` is the input `data` of the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from parapipe.runtime.document import Channel, Prediction, Processor, Segment
from parapipe.runtime.folder import Folder
from parapipe.runtime.record import Frame as FramePassed
from parapipe.runtime.record import Record, Span
from parapipe.strategies.work import Order, Tensor, Work


class JoinedFolder(Folder):
    """The folders of several plans; files of sessions do not know the numbers of plans."""


def prefix(number: int) -> str:
    """Return what stands before names of a plan, given its number from 0."""
    return f"{number + 1}/"


def joined_folder(folders: Sequence[Folder]) -> Folder:
    """Return several folders as one; a processor of the same name is the same."""
    processors: dict[str, Processor] = {}
    for each in folders:
        processors |= {p.name: p for p in each.processors if p.name not in processors}
    named = [_with_prefix(prefix(number), each) for number, each in enumerate(folders)]
    predicted = [each.predicted for each in folders]
    return JoinedFolder(
        **{
            **vars(folders[0]),
            "processors": tuple(processors.values()),
            "inputs": tuple(name for each in named for name in each.inputs),
            "outputs": tuple(result for each in named for result in each.outputs),
            "tensors": {name: t for each in named for name, t in each.tensors.items()},
            "segments": tuple(segment for each in named for segment in each.segments),
            "channels": tuple(channel for each in named for channel in each.channels),
            "views": tuple(view for each in named for view in each.views),
            "denormals": tuple(weight for each in named for weight in each.denormals),
            "predicted": Prediction(
                latency_s=sum(each.latency_s for each in predicted),
                period_s=sum(each.period_s for each in predicted),
                sustained_period_s=sum(each.sustained_period_s for each in predicted),
                input_s=sum(each.input_s for each in predicted),
                output_s=sum(each.output_s for each in predicted),
            ),
        }
    )


def _with_prefix(before: str, folder: Folder) -> Folder:
    """Return a folder with a plan's number before all names but those of processors."""

    def named(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(before + name for name in names)

    def segment(each: Segment) -> Segment:
        return replace(
            each,
            id=before + each.id,
            file=str(folder.path / each.file),
            inputs=named(each.inputs),
            outputs=named(each.outputs),
        )

    def channel(each: Channel) -> Channel:
        return replace(
            each,
            tensor=before + each.tensor,
            producer=None if each.producer is None else before + each.producer,
            consumers=named(each.consumers),
        )

    return replace(
        folder,
        inputs=named(folder.inputs),
        outputs=tuple(
            replace(e, tensor=before + e.tensor, segment=e.segment and before + e.segment)
            for e in folder.outputs
        ),
        tensors={before + name: each for name, each in folder.tensors.items()},
        segments=tuple(map(segment, folder.segments)),
        channels=tuple(map(channel, folder.channels)),
        views=tuple(
            replace(e, tensor=before + e.tensor, whole=before + e.whole) for e in folder.views
        ),
        denormals=tuple(replace(e, tensor=before + e.tensor) for e in folder.denormals),
    )


class Unprefixed:
    """A session of a segment of one of several plans, which knows its tensors by their own names.

    Parameters
    ----------
    session
        Of ONNX Runtime.
    segment
        With the plan's number before its name.
    """

    def __init__(self, session: Any, segment: str) -> None:  # noqa: ANN401 - untyped
        self._session, self._skip = session, segment.index("/") + 1

    def run(self, outputs: Sequence[str], inputs: Mapping[str, Any], options: Any) -> Any:  # noqa: ANN401
        """Run it as `InferenceSession.run` does."""
        skip = self._skip
        own_inputs = {name[skip:]: array for name, array in inputs.items()}
        return self._session.run([name[skip:] for name in outputs], own_inputs, options)

    def io_binding(self) -> _Binding:
        """Return what inputs and outputs are bound to."""
        return _Binding(self._session.io_binding(), self._skip)

    def run_with_iobinding(self, binding: _Binding, options: Any) -> None:  # noqa: ANN401
        """Run it with what is bound."""
        self._session.run_with_iobinding(binding.bound, options)


class _Binding:
    def __init__(self, bound: Any, skip: int) -> None:  # noqa: ANN401 - untyped
        self.bound, self._skip = bound, skip

    def bind_cpu_input(self, name: str, array: Any) -> None:  # noqa: ANN401
        self.bound.bind_cpu_input(name[self._skip :], array)

    def bind_output(self, name: str, *where: Any) -> None:  # noqa: ANN401
        self.bound.bind_output(name[self._skip :], *where)

    def get_outputs(self) -> Any:  # noqa: ANN401
        return self.bound.get_outputs()


def part_of_plan(
    spans: Iterable[Span], frames: Iterable[FramePassed], number: int
) -> tuple[tuple[Span, ...], tuple[FramePassed, ...]]:
    """Return what one of several plans did in a run, given its number from 0."""
    before = prefix(number)
    own = tuple(
        replace(each, name=each.name.removeprefix(before))
        for each in spans
        if each.name.startswith(before)
    )
    done_s: dict[int, float] = {}
    for each in own:
        done_s[each.frame] = max(done_s.get(each.frame, 0.0), each.end_s)
    return own, tuple(FramePassed(f.index, f.admitted_s, done_s[f.index]) for f in frames)


def record_of_plan(record: Record, number: int) -> Record:
    """Return the record of one of several plans in a run, given its number from 0."""
    before = prefix(number)
    spans, frames = part_of_plan(record.spans, record.frames, number)
    arrows = tuple(
        replace(
            each,
            tensor=each.tensor.removeprefix(before),
            producer=each.producer.removeprefix(before),
            consumer=each.consumer.removeprefix(before),
        )
        for each in record.arrows
        if each.producer.startswith(before)
    )
    return replace(record, spans=spans, arrows=arrows, frames=frames)


def joined_work(separate: Sequence[Work]) -> Work:
    """Return the work of several plans as one.

    Parameters
    ----------
    separate
        Of the same processors.
    """
    tasks, tensors = [0], [0]
    for each in separate:
        tasks.append(tasks[-1] + len(each.tasks))
        tensors.append(tensors[-1] + len(each.tensors))
    numbered = list(zip(separate, tasks, tensors, strict=False))
    return Work(
        processors=separate[0].processors,
        tasks=tuple(prefix(n) + name for n, each in enumerate(separate) for name in each.tasks),
        time_s=tuple(row for each in separate for row in each.time_s),
        tensors=tuple(
            Tensor(tensor.producer + at, tensor.moved_s, tensor.shape)
            for each, at, _ in numbered
            for tensor in each.tensors
        ),
        reads=tuple(
            tuple(t + first for t in read) for each, _, first in numbered for read in each.reads
        ),
        room=tuple((u + at, v + at, k) for each, at, _ in numbered for u, v, k in each.room),
        orders=tuple(
            Order(tuple(task + at for task in order.tasks), order.processors)
            for each, at, _ in numbered
            for order in each.orders
        ),
        lag=tuple(lag for each in separate for lag in each.lag),
        first=frozenset(task + at for each, at, _ in numbered for task in each.first),
        results=tuple((u + at, k) for each, at, _ in numbered for u, k in each.results),
    )
