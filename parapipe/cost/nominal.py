"""Nominal times: a roofline from the numbers of the platform file."""

from __future__ import annotations

from parapipe.errors import CostError
from parapipe.graph.operator_graph import ITEM_BYTES, Work
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
    own = processor.computing_type(dtype)
    if own not in processor.peak.macs_per_s:
        raise CostError(f"processor '{processor.name}' states no peak_macs_per_s for {dtype}")
    macs = known("MACs", work.macs, note=f"work by rules {work.rule}" if work.rule else "")
    peak = stated("peak", "/s", processor, "peak", "macs_per_s", own)
    return launch + largest(macs / peak, moved)


def time_ratio(
    processor: Processor, dtype: str, other: str, *, products: bool
) -> Expression | None:
    """Return the nominal time of work in a data type over that in another; None if not known.

    Parameters
    ----------
    products
        Whether the work is that of products, which goes with the peaks; all else goes with the
        bytes of an element.
    """
    if not products:
        sizes = (known(f"bytes of {each}", ITEM_BYTES[each], "B") for each in (dtype, other))
        return next(sizes) / next(sizes)
    own, base = (processor.computing_type(each) for each in (dtype, other))
    peaks = processor.peak.macs_per_s
    if own not in peaks or base not in peaks:
        return None
    rates = (
        stated(f"peak in {each}", "/s", processor, "peak", "macs_per_s", each)
        for each in (str(base), str(own))
    )
    return next(rates) / next(rates)
