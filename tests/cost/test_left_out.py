from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

from parapipe.cost.left_out import (
    errors_of,
    fit_rows,
    leave_networks_out,
    leave_operators_out,
    with_apportioned_times,
)
from parapipe.cost.measured_rows import profile_of_rows, rows_behind, rows_path
from parapipe.cost.measured_source import record_fit, record_path, stored_record, text_of_record
from parapipe.cost.profile import (
    Measurement,
    Profile,
    read_profile,
    shipped_profiles,
    write_profile,
)
from parapipe.cost.signature import Signature
from parapipe.errors import CostError

TARGETS = {"big": 0.10, "little": 0.10, "gpu": 0.18}


@pytest.fixture(scope="module")
def shipped():
    (profile,) = shipped_profiles("amlogic-a311d")
    return profile


def relu(size, time_s, processor="cpu", method="timed"):
    signature = Signature("Relu", "", "", "", f"{size}", f"{size}", "float32")
    return Measurement(signature, "elementwise", 0, 8 * size, processor, 1e9, time_s, 1, 0, method)


@pytest.fixture
def linear(tmp_path):
    """Write a profile of 10 µs and 1 ns a byte, with rows of three networks of two blocks."""
    sizes = [1000 * i for i in range(1, 31)]
    path = tmp_path / "mine.csv"
    write_profile(path, [relu(size, 1e-5 + 8e-9 * size) for size in sizes])
    header = "model,block,index,layer,type,kernel,strides,attributes,inputs,output,dtype,cpu_s"
    lines = [
        f"net{i % 3},{i % 2},{i},relu{i},Relu,,,,{s},{s},float32,{1e-5 + 8e-9 * s:.9f}"
        for i, s in enumerate(sizes)
    ]
    path.with_suffix(".rows.csv").write_text("\n".join([header, *lines]))
    return read_profile(path)


def test_the_record_beside_the_shipped_profile_is_what_the_fit_gives(shipped):
    stored, made = stored_record(shipped), record_fit(shipped)
    assert stored.left_out == made.left_out == "network"
    assert [(e.processor, e.predicted) for e in made.errors] == [(p, 141) for p in TARGETS]
    for old, new in zip(stored.errors, made.errors, strict=True):
        assert new.median == pytest.approx(old.median, abs=0.002)
        assert new.groups == pytest.approx(old.groups, abs=0.01)
        assert new.median <= TARGETS[new.processor]
    assert [(k.processor, k.kind) for k in stored.kinds] == [
        (k.processor, k.kind) for k in made.kinds
    ]


def test_nothing_of_a_network_left_out_reaches_its_prediction(linear):
    rows = rows_behind(linear)
    slower = [
        replace(row, times_s={"cpu": 5 * row.times_s["cpu"]}) if row.network == "net1" else row
        for row in rows
    ]
    before = [p for p in leave_networks_out(linear, rows) if p.group == "net1"]
    after = [p for p in leave_networks_out(linear, slower) if p.group == "net1"]
    assert [p.fitted_s for p in after] == [p.fitted_s for p in before]
    assert [p.measured_s for p in after] == pytest.approx([5 * p.measured_s for p in before])


def test_blocks_of_a_linear_machine_are_predicted_exactly(linear):
    predictions = list(leave_networks_out(linear, rows_behind(linear)))
    assert len(predictions) == 6
    (errors,) = errors_of(predictions)
    assert errors.largest < 1e-4
    assert set(errors.groups) == {"net0", "net1", "net2"}


def test_without_rows_a_tenth_of_the_operators_is_left_out_at_a_time(linear, tmp_path):
    (tmp_path / "mine.rows.csv").unlink()
    record = record_fit(linear)
    assert record.left_out == "tenth of the operators"
    assert record.errors[0].predicted == len(list(leave_operators_out(linear))) == 30
    assert record.errors[0].largest < 1e-4


def test_a_record_counts_for_the_profile_and_rows_it_was_made_from_only(linear, tmp_path):
    assert stored_record(linear) is None
    place = record_path(tmp_path / "mine.csv")
    place.write_text(text_of_record(record_fit(linear)))
    assert stored_record(linear) == record_fit(linear)
    with (tmp_path / "mine.rows.csv").open("a") as file:
        file.write("\n")
    assert stored_record(linear) is None
    place.write_text("{}")
    with pytest.raises(CostError, match=r"mine\.fit\.json' cannot be read: .*parapipe fit times"):
        stored_record(linear)


def test_a_profile_too_small_for_a_fit_is_refused(tmp_path):
    path = tmp_path / "mine.csv"
    write_profile(path, [relu(1000, 1e-5)])
    with pytest.raises(CostError, match="holds too little for a fit"):
        record_fit(read_profile(path))


def test_rows_of_signatures_that_the_profile_lacks_are_told(linear, tmp_path):
    write_profile(tmp_path / "mine.csv", linear.measurements[1:])
    with pytest.raises(CostError, match=r"has 1 signatures that profile .* lacks.*Relu: 1000"):
        rows_behind(read_profile(tmp_path / "mine.csv"))


def test_a_profile_of_some_rows_holds_their_medians(linear):
    rows = [row for row in rows_behind(linear) if row.network == "net0"]
    twice = [*rows, replace(rows[0], times_s={"cpu": 1.0})]
    found = profile_of_rows(linear, twice)
    assert len(found.measurements) == 10
    first = found.lookup(rows[0].signature, "cpu")
    assert (first.time_s, first.rows) == (rows[0].times_s["cpu"], 2)


def test_times_of_blocks_are_shared_out_whole_and_moves_take_as_long_as_the_memory(shipped):
    rows = rows_behind(shipped)
    shared = with_apportioned_times(shipped, rows, "gpu")
    assert sum(r.times_s["gpu"] for r in shared) == pytest.approx(
        sum(r.times_s["gpu"] for r in rows), rel=1e-6
    )
    fit = fit_rows(shipped, rows).fits["gpu", "float32", "Relu"]
    assert 1e-10 < fit.coefficients.size_bytes < 3e-10  # 3 to 10 GB/s
    assert prod(fit.size_bytes) > 0
    assert 1e-5 < fit.launch_s < 1e-4


def test_a_profile_without_blocks_is_fitted_as_it_is():
    rows = [relu(size, 1e-5 + 1e-9 * size, "gpu", "apportioned") for size in range(1000, 9000, 500)]
    model = fit_rows(Profile("mine", tuple(rows)), ())
    assert model.fits["gpu", "float32", "Relu"].mean_error < 1e-6


def test_fits_are_made_to_times_as_they_were_measured_whatever_scales_them(linear, tmp_path):
    """One network of three is scaled by 1.25; the fit and its errors are those without."""
    rows = rows_behind(linear)
    scaled = [
        replace(row, times_s={"cpu": 1.25 * row.times_s["cpu"]}, factors={"cpu": 1.25})
        if row.network == "net1"
        else row
        for row in rows
    ]
    profile = profile_of_rows(linear, scaled)
    assert profile.measurements != linear.measurements
    (plain,), (found,) = (
        errors_of(list(leave_networks_out(*each))) for each in ((linear, rows), (profile, scaled))
    )
    assert found.median == pytest.approx(plain.median, abs=1e-6)
    assert found.largest == pytest.approx(plain.largest, abs=1e-5)
    subject = linear.measurements[4]
    key = (subject.processor, subject.signature, subject.operator_class, subject.macs)
    times = [
        fit_rows(*each).lookup(*key).time(subject.signature, 0, subject.size_bytes).value
        for each in ((linear, rows), (profile, scaled))
    ]
    assert times[0] == pytest.approx(times[1], rel=1e-6)


def test_a_factor_that_is_not_positive_is_refused_with_its_line(linear):
    path = rows_path(Path(linear.path))
    head, first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([f"{head},cpu_factor", f"{first},0", *(f"{x}," for x in rest)]))
    with pytest.raises(CostError) as raised:
        rows_behind(linear)
    assert ":2: " in str(raised.value)
    assert "cpu_factor" in str(raised.value)
