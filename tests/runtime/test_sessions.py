"""Which provider runs a processor, and what is said where it is another than the plan's."""

import os
from dataclasses import replace

import numpy as np

from parapipe.runtime.executor import Executor
from parapipe.runtime.sessions import ProviderUse
from tests.cases.hand_made import hybrid

ONE = min(os.sched_getaffinity(0))
CPU, OTHER = "CPUExecutionProvider", "RknpuExecutionProvider"


def with_provider(folder, name, provider):
    def changed(processor):
        options = {"device": "0"}
        return replace(processor, provider=provider, options=options, threads_option="threads")

    processors = (changed(p) if p.name == name else p for p in folder.processors)
    return replace(folder, processors=tuple(processors))


def test_the_cpu_runs_what_is_meant_for_a_provider_that_is_not_offered_and_it_is_told(tmp_path):
    folder = hybrid(tmp_path, cores={name: [ONE] for name in "abc"})
    executor = Executor(with_provider(folder, "b", OTHER))
    (result,) = executor.run([{"x": np.zeros((2, 3), np.float32)}])
    assert (result["y"] == 11).all()
    why = f"this ONNX Runtime does not offer {OTHER}"
    assert executor.used == (
        ProviderUse("a", CPU, {}, {CPU: 1}, None, {}),
        ProviderUse("b", CPU, {}, {CPU: 2}, why, {}),
        ProviderUse("c", CPU, {}, {CPU: 2}, None, {}),
    )
    said = [sentence for each in executor.used for sentence in each.sentences()]
    assert said == [f"'b' is run by {CPU}, since {why}"]


def test_nodes_that_a_provider_leaves_to_the_cpu_are_told():
    used = ProviderUse("npu", OTHER, {}, {OTHER: 7, CPU: 2}, None, {})
    assert used.sentences() == (f"{OTHER} leaves 2 of 9 nodes of 'npu' to the CPU",)
    assert ProviderUse("npu", OTHER, {}, {OTHER: 7}, None, {}).sentences() == ()
    assert ProviderUse("npu", OTHER, {}, None, None, {}).sentences() == ()


def test_other_cores_keep_a_cpus_provider_and_make_a_cpu_of_anything_else(tmp_path):
    folder = with_provider(hybrid(tmp_path), "a", OTHER)
    gpu = tuple(replace(p, kind="gpu") if p.name == "b" else p for p in folder.processors)
    folder = with_provider(replace(folder, processors=gpu), "b", OTHER)
    a, b, _ = folder.on_cores({"a": [ONE], "b": [ONE]}).processors
    assert (a.provider, a.options, a.threads_option) == (OTHER, {"device": "0"}, "threads")
    assert (b.provider, b.options, b.threads_option) == (CPU, {}, None)
