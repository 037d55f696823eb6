"""Nominal times: a roofline from the numbers of the platform file."""

from __future__ import annotations

from parapipe.errors import CostError
from parapipe.graph.operator_graph import Work
from parapipe.platform.expression import Expression, known, largest, stated
from parapipe.platform.processor import Processor


def nominal_time(processor: Processor, work: Work, dtype: str) -> Expression:
    """Return launch overhead + max(macs / peak, bytes / bandwidth) in seconds.

    An operator whose multiply-accumulates are not known (`work.modelled` is false) has none here:
    it is priced by its bytes.

    Raises
    ------
    CostError
        If the platform lacks the peak of the data type; the message names both.
    """
    launch = stated("launch", "s", processor, "launch", "overhead_s")
    bandwidth = stated("bandwidth", "B/s", processor, "memory", "bandwidth_bytes_per_s")
    moved = known("bytes", work.read_bytes + work.written_bytes, "B") / bandwidth
    if not work.macs:
        return launch + moved
    if dtype not in processor.peak.macs_per_s:
        raise CostError(f"processor '{processor.name}' states no peak_macs_per_s for {dtype}")
    macs = known("MACs", work.macs, note=f"work by rules {work.rule}" if work.rule else "")
    peak = stated("peak", "/s", processor, "peak", "macs_per_s", dtype)
    return launch + largest(macs / peak, moved)
