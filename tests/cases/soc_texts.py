"""A small valid platform file, and ways to spoil it at a known line."""

import pytest

from parapipe.errors import PlatformError
from parapipe.platform.load import read_platform

SOC = """\
schema: parapipe/platform/1
name: toy
description: Two processors
board: {idle_power_w: 2, source: guess}
memory: {bandwidth_bytes_per_s: 10e9, source: guess}
processors:
  - name: cpu
    kind: cpu
    backend: nominal
    source: guess
    cores: [0, 1]
    data_types: [float32]
    clock:
      default_frequency_hz: 2e9
      points: [{frequency_hz: 1e9, voltage_v: 0.8}, {frequency_hz: 2e9, voltage_v: 1.0}]
      source: guess
    launch: {overhead_s: 10e-6, source: guess}
    peak: {macs_per_s: {float32: 16e9}, source: guess}
    memory: {bandwidth_bytes_per_s: 8e9, source: guess}
    power:
      {alpha_w_per_v2_hz: 1e-9, beta_w_per_v: 0.5, source: guess,
       utilisation: {gemm: 1, default: 0.5}}
    input: {latency_s: 1e-3, bandwidth_bytes_per_s: 1e9, source: guess}
    output: {latency_s: 2e-3, source: guess}
  - name: gpu
    kind: gpu
    backend: nominal
    source: guess
    host: cpu
    data_types: [float32, float16]
    operators:
      deny: [{type: Conv, where: {group: {min: 2}}, reason: it has no groups}]
    clock: {default_frequency_hz: 8e8, points: [{frequency_hz: 8e8, voltage_v: 1}], source: guess}
    launch: {overhead_s: 100e-6, source: guess}
    peak: {macs_per_s: {float32: 32e9, float16: 64e9}, source: guess}
    memory: {bandwidth_bytes_per_s: 9e9, source: guess}
    power:
      {alpha_w_per_v2_hz: 2e-9, beta_w_per_v: 0.25, source: guess,
       utilisation: {default: 0.75}}
    input: {latency_s: 0, source: guess}
    output: {latency_s: 0, source: guess}
links:
  - {from: cpu, to: gpu, latency_s: 1e-3, bandwidth_bytes_per_s: 1e9, source: guess}
  - {from: gpu, to: cpu, latency_s: 5e-4, source: guess}
sources:
  guess: {provenance: nominal, title: Made up for the tests}
"""


def spoil(*changes: tuple[str, str], text: str = SOC) -> str:
    """Replace the first occurrence of each old text, which must exist."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def line_of(words: str, text: str = SOC) -> int:
    """Return the line (from 1) on which the words first stand."""
    return text[: text.index(words)].count("\n") + 1


def mistakes(text: str) -> tuple[str, ...]:
    """Return the mistakes of a text that must have some."""
    with pytest.raises(PlatformError) as caught:
        read_platform(text, "soc.yaml")
    assert caught.value.mistakes
    return caught.value.mistakes
