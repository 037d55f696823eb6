"""How long something takes to move: a latency, and a time that grows with its size."""

from __future__ import annotations

from parapipe.files.yaml_file import Strict
from parapipe.platform.expression import Expression, known, stated, value_at
from parapipe.platform.fields import BytesPerSecond, Seconds


class Travel(Strict):
    """Seconds = latency + bytes / bandwidth; without a bandwidth, the size does not matter."""

    latency_s: Seconds
    bandwidth_bytes_per_s: BytesPerSecond | None = None


def travel_time(section: Strict, size_bytes: float, *key: str | int) -> Expression:
    """Return the seconds for that many bytes by the `Travel` at a key of a section, or by itself.

    What is called a conversion says so.
    """
    of = "conversion " if "conversion" in key else ""
    time = stated(f"{of}latency", "s", section, *key, "latency_s")
    rate = (*key, "bandwidth_bytes_per_s")
    if value_at(section, *rate) is None:
        return time
    return time + known("bytes", size_bytes, "B") / stated(f"{of}bandwidth", "B/s", section, *rate)
