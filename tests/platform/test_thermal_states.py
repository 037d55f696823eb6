"""A platform that is cold, and the same one in long runs."""

import pytest

from parapipe.cost.operating_points import considered_points
from parapipe.cost.profile import Measurement, Profile, profile_text, read_profile
from parapipe.cost.signature import Signature
from parapipe.errors import CostError, PlatformError
from parapipe.platform.load import read_platform
from parapipe.platform.states import in_state, unknown_clocks
from tests.cases.soc_texts import SOC, spoil

FALLS = "default_frequency_hz: 2e9\n      sustained_frequency_hz: 1e9"
SCALING = (
    "      scaling: {compute_share: {default: 1}, source: guess}\n      source: guess\n    launch"
)


def hot(*changes):
    text = spoil(("default_frequency_hz: 2e9", FALLS), *changes)
    return read_platform(text, "soc.yaml")


def clocks_hz(platform):
    return [each.point.frequency_hz for each in platform.processors]


def test_in_long_runs_processors_are_at_their_sustained_clocks():
    assert clocks_hz(in_state(hot(), "sustained")) == [1e9, 8e8]
    assert clocks_hz(in_state(hot(), "cold")) == [2e9, 8e8]
    assert clocks_hz(in_state(hot())) == [2e9, 8e8]


def test_a_platform_says_which_state_counts_where_nobody_does():
    platform = hot(("links:\n", "state: sustained\nlinks:\n"))
    assert clocks_hz(in_state(platform)) == [1e9, 8e8]
    assert clocks_hz(in_state(platform, "cold")) == [2e9, 8e8]


def test_what_says_nothing_of_long_runs_is_refused():
    with pytest.raises(PlatformError, match="'toy' says nothing of long runs: give processors"):
        in_state(read_platform(SOC, "soc.yaml"), "sustained")


def test_no_point_above_the_sustained_one_is_considered():
    platform = hot(("      source: guess\n    launch", SCALING))
    cold, sustained = (in_state(platform, state).processors[0] for state in ("cold", "sustained"))
    assert [each.frequency_hz for each in considered_points(cold, 3)] == [2e9, 1e9]
    assert [each.frequency_hz for each in considered_points(sustained, 3)] == [1e9]
    assert cold.is_default
    assert sustained.is_default
    assert not cold.at(1e9).is_default


def test_a_sustained_clock_without_scaling_is_noted():
    (sentence,) = unknown_clocks(hot())
    assert sentence.startswith("'cpu' states a sustained_frequency_hz and no clock.scaling")
    assert len(sentence) < 200
    assert not [*unknown_clocks(hot(("      source: guess\n    launch", SCALING)))]
    stays = FALLS.replace("_hz: 1e9", "_hz: 2e9")
    assert not [*unknown_clocks(hot((FALLS, stays)))]
    assert not [*unknown_clocks(read_platform(SOC, "soc.yaml"))]


def timed(time_s, state="", frequency_hz=2e9):
    signature = Signature("Relu", "", "", "", "1x8", "1x8", "float32")
    times = {"time_s": time_s, "rows": 5, "spread": 0.0, "method": "timed", "state": state}
    return Measurement(signature, "elementwise", 0, 64, "cpu", frequency_hz, **times)


def test_times_of_a_state_go_before_those_of_any():
    profile = Profile("p", (timed(1e-3), timed(2e-3, "sustained"), timed(3e-3, frequency_hz=1e9)))
    times_s = {
        state: sorted(m.time_s for m in profile.in_state(state).measurements)
        for state in ("cold", "sustained")
    }
    assert times_s == {"cold": [1e-3, 3e-3], "sustained": [2e-3, 3e-3]}


def test_a_profile_without_states_is_the_same_one_in_each():
    profile = Profile("p", (timed(1e-3),))
    assert profile.in_state("sustained") is profile
    assert "state" not in profile_text(profile.measurements)


def test_a_file_keeps_the_states_of_its_times(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text(profile_text([timed(1e-3), timed(2e-3, "sustained")]))
    assert [m.state for m in read_profile(file).measurements] == ["", "sustained"]
    file.write_text(file.read_text().replace("sustained\n", "warm\n"))
    with pytest.raises(CostError, match="state is 'warm' but must be one of cold, sustained"):
        read_profile(file)
