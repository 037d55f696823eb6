"""Nominal times: a roofline from the numbers of the platform file."""

from __future__ import annotations

from parapipe.errors import CostError
from parapipe.graph.operator_graph import Work
from parapipe.platform.processor import Processor


def nominal_time_s(processor: Processor, work: Work, dtype: str) -> float:
    """Return launch overhead + max(macs / peak, bytes / bandwidth) in seconds.

    An operator whose multiply-accumulates are not known (`work.modelled` is false) has none here:
    it is priced by its bytes.

    Raises
    ------
    CostError
        If the platform lacks the peak of the data type; the message names both.
    """
    peak = processor.peak_macs_per_s.get(dtype)
    if work.macs and peak is None:
        raise CostError(f"processor '{processor.name}' states no peak_macs_per_s for {dtype}")
    compute_s = work.macs / peak if peak else 0.0
    moved_s = (work.read_bytes + work.written_bytes) / processor.bandwidth_bytes_per_s
    return processor.launch_overhead_s + max(compute_s, moved_s)
