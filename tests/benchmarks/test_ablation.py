"""The benchmark of the exact mapper's devices, on problems that take no time."""

from __future__ import annotations

from functools import cache
from math import inf

import pytest
from click.testing import CliRunner

from benchmarks import ablation, ablation_cases
from benchmarks.ablation_cases import Case, busy_senders
from benchmarks.ablation_devices import ENERGY, FEW, LOADS, MAKESPAN, OCCUPIED, Device, devices
from benchmarks.instances import inception_like
from parapipe.solvers.energy import trade_offs
from parapipe.solvers.fine import mapper

# two jobs; the first operation of the second may run on either machine
SHOP = "2 2\n2 1 0 3 1 1 2\n2 2 0 4 1 1 1 1 5\n"
SMALL = inception_like(8, processors=2)
CASES = (
    Case("zoo", "inception", SMALL),
    Case("occupied", "inception", busy_senders(SMALL)),
    Case("energy", "inception", SMALL, tuple((3e-3 + t[0], 2e-3) for t in SMALL.time_s)),
)
WHOLE = Device(ablation.WHOLE, (), [])


def test_a_flexible_job_shop_becomes_a_problem_of_one_chain_for_each_job():
    problem = ablation_cases.flexible_job_shop(SHOP)
    unit = ablation_cases.UNIT_S
    assert problem.time_s == (
        (3 * unit, inf),
        (inf, 2 * unit),
        (4 * unit, 1 * unit),
        (inf, 5 * unit),
    )
    assert [(flow.producer, flow.consumers) for flow in problem.flows] == [(0, (1,)), (2, (3,))]


@pytest.fixture
def only_searched(monkeypatch):
    """Leave no problem to enumeration, which would solve those here before any device acts."""
    monkeypatch.setattr(mapper, "enumerated", lambda *_: None)
    monkeypatch.setattr(trade_offs, "enumerated_set", lambda *_, **__: None)


@cache
def whole_objective(group):
    case = next(case for case in CASES if case.group == group)
    return ablation.measured(WHOLE, case, 10.0).objective


@pytest.mark.parametrize("device", [*devices()], ids=lambda device: device.name)
@pytest.mark.usefixtures("only_searched")
def test_without_any_device_the_optimum_is_the_same(device):
    for case in CASES:
        if case.group in device.groups:
            found = ablation.measured(device, case, 10.0)
            assert found.proven
            assert found.objective == pytest.approx(whole_objective(case.group), abs=8e-6)


@pytest.mark.parametrize("name", [ablation.PLAIN, ablation.BIG_M])
def test_baselines_find_the_optimum(name):
    found = ablation.measured(Device(name, (), []), CASES[0], 60.0)
    assert found.proven
    assert found.objective == pytest.approx(whole_objective("zoo"), abs=8e-6)


def test_every_group_has_its_devices():
    assert {group for device in devices() for group in device.groups} == {
        *MAKESPAN,
        *FEW,
        *LOADS,
        *OCCUPIED,
        *ENERGY,
    }
    names = [device.name for device in devices()]
    assert len(names) == len(set(names))


def test_a_device_is_compared_with_the_whole_mapper():
    whole = ablation.Row(ablation.WHOLE, "zoo", "a", 2.0, 2.0, 0.5, 1.0, 1.0, proven=True)
    other = ablation.Row("hints", "zoo", "a", 3.0, 2.0, 1.0, 1.1, 0.99, proven=False)
    lines = ablation.table([whole, other], ["zoo", "petr"]).splitlines()
    assert lines[-1] == "| hints | 1.50, 2.00, 1 / 0, 1, 0.100 | - |"


def test_cells_that_are_measured_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(ablation, "cases", lambda public: CASES)
    arguments = ["--only", "nothing", "--out", str(tmp_path)]
    first = CliRunner().invoke(ablation.main, arguments, catch_exceptions=False)
    written = (tmp_path / "ablation.csv").read_text(encoding="utf-8")
    second = CliRunner().invoke(ablation.main, arguments, catch_exceptions=False)
    assert len(ablation.kept(tmp_path / "ablation.csv")) == 2 * len(CASES)
    assert (tmp_path / "ablation.csv").read_text(encoding="utf-8") == written
    assert first.stdout == second.stdout
