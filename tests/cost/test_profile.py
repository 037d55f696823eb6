from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.cost.profile import (
    COLUMNS,
    Measurement,
    Profile,
    read_profile,
    shipped_profiles,
    write_profile,
)
from parapipe.cost.signature import Signature
from parapipe.errors import CostError

RELU = Signature("Relu", "", "", "", "64x56x56", "64x56x56", "float32")
ROW = Measurement(RELU, "elementwise", 0, 1605632, "big", 2.208e9, 0.001, 3, 0.25, "timed")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "board" / "backend.csv"


def write(path, *rows):
    path.parent.mkdir(exist_ok=True)
    write_profile(path, rows)
    return path


def edit(path, old, new):
    path.write_text(path.read_text().replace(old, new, 1))


def complaint(path):
    with pytest.raises(CostError) as caught:
        read_profile(path)
    return str(caught.value)


def test_what_is_written_is_read_again(path):
    gpu = replace(ROW, processor="gpu", frequency_hz=8e8, method="apportioned")
    assert read_profile(write(path, ROW, gpu)) == Profile("board/backend", (ROW, gpu))


@given(nanoseconds=st.integers(1, 10**12), rows=st.integers(1, 99), macs=st.integers(0, 10**12))
def test_times_survive_to_the_nanosecond(tmp_path_factory, nanoseconds, rows, macs):
    path = tmp_path_factory.mktemp("folder") / "profile.csv"
    row = replace(ROW, time_s=nanoseconds * 1e-9, rows=rows, macs=macs)
    write(path, row)
    (read,) = read_profile(path).measurements
    assert round(read.time_s * 1e9) == nanoseconds
    assert (read.rows, read.macs) == (rows, macs)


def test_a_measurement_is_found_by_signature_and_processor_only():
    profile = Profile("mine", (ROW,))
    assert profile.lookup(RELU, "big") == ROW
    assert profile.lookup(RELU, "little") is None
    assert profile.lookup(replace(RELU, dtype="int8"), "big") is None
    assert profile.processors == ("big",)


def test_the_columns_may_stand_in_any_order(path):
    write(path, ROW)
    lines = [line.split(",") for line in path.read_text().splitlines()]
    path.write_text("\n".join(",".join(reversed(line)) for line in lines))
    assert read_profile(path).measurements == (ROW,)


def test_all_mistakes_are_told_at_once_with_file_and_line(path):
    write(path, *(replace(ROW, processor=f"p{i}") for i in range(6)))
    edit(path, "p1,2208000000,0.001000000", "p1,2208000000,-0.001")
    edit(path, "p2,2208000000,0.001000000", "p2,2208000000,inf")
    edit(path, "p3,2208000000,0.001000000,3", "p3,2208000000,soon,2.5")
    edit(path, "elementwise,0,1605632,p4", "gadget,-1,1605632,")
    edit(path, "p5,2208000000,", "p5,")
    message = complaint(path)
    assert message.startswith(f"profile '{path}' must be corrected: ")
    assert message.endswith(" and 3 more")
    for told in (
        f"{path}:3: time_s is '-0.001' but must be a positive finite number",
        f"{path}:4: time_s is 'inf' but must be a positive finite number",
        f"{path}:5: time_s is 'soon' but must be a positive finite number",
        f"{path}:5: rows is '2.5' but must be a positive whole number",
        f"{path}:6: class is 'gadget' but must be one of conv1x1, conv3x3",
    ):
        assert told in message


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (",0.001000000,", ",1e308,", "time_s is '1e308' but must be from 1e-12 to 1e+06"),
        (",0.001000000,", ",1e-320,", "time_s is '1e-320' but must be from 1e-12 to 1e+06"),
        (",2208000000,", ",2208,", "frequency_hz is '2208' but must be from 1e+06 to 1e+12"),
        (",2208000000,", ",1e300,", "frequency_hz is '1e300' but must be from 1e+06 to 1e+12"),
        (",1605632,", ",1e308,", "size_bytes is '1e308' but must be from 1e-12 to 1e+18"),
        (",0,1605632,", ",-1,1605632,", "macs is '-1' but must be a non-negative whole number"),
        (",0.001000000,", f",{'9' * 20_000},", "but must be a positive finite number"),
    ],
)
def test_figures_of_no_hardware_get_one_short_sentence(path, old, new, told):
    write(path, ROW)
    edit(path, old, new)
    message = complaint(path)
    assert told in message
    assert len(message) < 400


def test_a_time_of_zero_is_a_mistake(path):
    write(path, replace(ROW, time_s=1e-12))
    assert ":2: time_s is '0.000000000' but must be a positive finite number" in complaint(path)


def test_a_signature_twice_on_one_processor_is_a_mistake(path):
    assert (
        f"{path}:4: Relu: 64x56x56 -> 64x56x56 float32 on 'big' is already in line 2"
        in complaint(write(path, ROW, replace(ROW, processor="gpu"), ROW))
    )
    with pytest.raises(ValueError, match="twice on one processor"):
        Profile("mine", (ROW, ROW))


def test_unknown_missing_and_double_columns_are_told(path):
    write(path, ROW)
    edit(path, "kernel,strides,", "kernal,type,")
    message = complaint(path)
    assert f"{path}:1: unknown column 'kernal'" in message
    assert f"{path}:1: column 'type' is there 2 times" in message
    assert f"{path}:1: column 'kernel' is missing" in message
    assert f"{path}:1: column 'strides' is missing" in message


def test_an_empty_file_says_which_columns_it_lacks(path):
    path.parent.mkdir()
    path.write_text("")
    assert ", ".join(COLUMNS) in complaint(path)


def test_a_file_that_is_missing_or_no_text_is_told_in_one_line(path):
    assert complaint(path) == f"profile '{path}' cannot be read: No such file or directory"
    path.parent.mkdir()
    path.write_bytes(b"type,kernel\n\xff\xfe\x00")
    assert complaint(path).startswith(f"profile '{path}' is no CSV text in UTF-8: ")


def test_a_profile_without_rows_is_empty_not_wrong(path):
    assert read_profile(write(path)).measurements == ()


def test_the_shipped_platform_has_one_profile_and_its_intermediate_table_is_none():
    (profile,) = shipped_profiles("amlogic-a311d")
    assert profile.name == "amlogic-a311d/armcl-f32"
    assert set(profile.processors) == {"big", "little", "gpu"}
    assert len(profile.measurements) == 3 * len({m.signature for m in profile.measurements})


def test_a_platform_without_profiles_has_none():
    assert shipped_profiles("no-such-board") == ()
