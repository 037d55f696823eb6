"""Where the numbers of a detected platform come from, as its file says it."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

SOURCES: Mapping[str, Mapping[str, str]] = yaml.safe_load("""\
kernel:
  provenance: measured
  title: Cores, caches and frequencies as this machine's kernel tells them
  reasoning: Read from /sys/devices/system/cpu and /proc/cpuinfo; one hardware thread of each core
    is listed. Processors of which it tells the same have the median of what was measured of each,
    where that differs by at most 20 %.
matrix-product:
  provenance: measured
  title: The quickest of some matrix products in ONNX Runtime, pinned, a thread per core
  reasoning: "768 x 768 in float32, 256 x 256 in other types. Nothing multiplies booleans; their
    figure is that of int32, since the format wants one."
session:
  provenance: measured
  title: What one more operator on one number adds to a run of an ONNX Runtime session
copy:
  provenance: measured
  title: "Copying 64 MiB by one core, bytes read plus bytes written: a lower bound"
hand-over:
  provenance: measured
  title: What hand-overs add to the latency of small networks that fork and join
  reasoning: CPUs share memory and pass a reference, so all that a hand-over takes is overhead. Rows
    of eight forks and joins are run as plans are, by a thread and sessions for each processor, and
    by one processor in one session. Half of what each module takes longer is one hand-over. To wake
    a thread, to run one more session at both ends, to change the layout of tensors where a session
    begins and ends, and caches that hold other data are all in it. Overhead and bandwidth fit
    tensors of 7 x 7 to 28 x 28 of 256 channels. Where processors work for at least half of that
    time, a hand-over keeps the receiver busy; else nobody.
co-runs:
  provenance: measured
  title: Kernels of stated intensity on each processor, alone and beside others that run such
  reasoning: The compute-bound kernel is a product of 128 x 128 matrices, the memory-bound one reads
    and writes four times what the last cache holds, or 64 MiB if that is more. Factors are medians
    of rounds in which time alone and time beside others follow each other. draw_bytes_per_s is what
    the memory-bound kernel moves alone; cache_bytes are the caches of a processor, its share of
    those that others use too.
spread:
  provenance: measured
  title: How far short tests lay apart
frame:
  provenance: nominal
  title: A frame is in memory already and is copied once; the result is read where it is
nominal-power:
  provenance: nominal
  title: "Power is not known here: one watt for each core or accelerator at work"
  reasoning: "Nothing on this machine tells power by processor. With these figures energy counts
    core-seconds (a tenth of it static, for a processor that is in use but waits): it ranks
    configurations of equal cores and is no number of joules. Of the board at rest nothing is
    known, so nothing is counted. Voltages are not told either, 1 V stands for them. Measure power
    and run parapipe fit power to replace all of it."
""")
ACCELERATOR_SOURCES: Mapping[str, Mapping[str, str]] = yaml.safe_load("""\
provider:
  provenance: measured
  title: Execution providers that this ONNX Runtime offers
  reasoning: Their cores are not told.
provider-clock:
  provenance: nominal
  title: Clocks of accelerators are not told; 1 GHz stands for the clock as it is
provider-run:
  provenance: measured
  title: A run of a session with one operator on one number, both ways of the copy in it
  reasoning: Half of it for each way; the bandwidth is that of one CPU core's copy.
""")
