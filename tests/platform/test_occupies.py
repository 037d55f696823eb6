"""What a transfer keeps busy, as a platform file says it."""

import pytest

from parapipe.platform.describe import describe
from parapipe.platform.load import read_platform
from tests.cases.soc_texts import SOC, line_of, mistakes, spoil

THERE, BACK = "to: gpu, latency_s: 1e-3,", "to: cpu, latency_s: 5e-4,"


def platform(there, back):
    text = spoil((THERE, f"{THERE} occupies: {there},"), (BACK, f"{BACK} occupies: {back},"))
    return read_platform(text, "soc.yaml")


def test_left_out_a_transfer_is_a_pure_delay():
    plain = read_platform(SOC, "soc.yaml")
    assert plain.transfer_resource == platform("nothing", "nothing").transfer_resource == ()
    assert plain.resources == ("cpu", "gpu")


@pytest.mark.parametrize(
    ("there", "back", "carrier"),
    [
        ("sender", "sender", ((None, 0), (1, None))),
        ("receiver", "receiver", ((None, 1), (0, None))),
        ("sender", "receiver", ((None, 0), (0, None))),
        ("nothing", "receiver", ((None, None), (0, None))),
        ("bus", "bus", ((None, 2), (2, None))),
        ("up", "down", ((None, 2), (3, None))),
    ],
)
def test_ends_and_shared_links_are_numbered_as_resources(there, back, carrier):
    assert platform(there, back).transfer_resource == carrier


def test_shared_links_stand_behind_the_processors_in_the_files_order():
    assert platform("up", "down").resources == ("cpu", "gpu", "up", "down")
    assert platform("bus", "bus").resources == ("cpu", "gpu", "bus")


def test_both_ways_each_direction_has_its_own_sender():
    text = spoil(
        ("from: cpu, to: gpu", "both_ways: true, occupies: sender, from: cpu, to: gpu"),
        ("  - {from: gpu, to: cpu, latency_s: 5e-4, source: guess}\n", ""),
    )
    assert read_platform(text, "soc.yaml").transfer_resource == ((None, 0), (1, None))


def test_what_is_occupied_stands_in_the_table_of_links():
    assert [row.occupies for row in describe(platform("sender", "bus")).links] == ["sender", "bus"]


def test_a_processors_name_is_no_link():
    text = spoil((THERE, f"{THERE} occupies: gpu,"))
    (only,) = mistakes(text)
    assert only == (
        f"soc.yaml:{line_of('from: cpu')}: links[0].occupies: 'gpu' is a processor; write sender "
        "or receiver, whichever it is"
    )


def test_a_misspelt_word_is_not_taken_for_a_link():
    text = spoil((THERE, f"{THERE} occupies: sendr,"))
    (only,) = mistakes(text)
    assert only == (
        f"soc.yaml:{line_of('from: cpu')}: links[0].occupies: 'sendr' would be the name of a "
        "shared link; did you mean 'sender'? If not, choose a name that is less like it"
    )


def test_a_word_misspelt_in_all_links_is_not_taken_for_a_link_either():
    for word in ("sendr", "reciever"):
        text = spoil((THERE, f"{THERE} occupies: {word},"), (BACK, f"{BACK} occupies: {word},"))
        assert [f"'{word}' would be the name" in mistake for mistake in mistakes(text)] == [
            True
        ] * 2
    assert platform("server", "server").resources == ("cpu", "gpu", "server")
