"""States are recognised by their names and shapes, or stated; what does not fit is refused."""

import pytest

from parapipe.errors import ModelError
from parapipe.graph.operator_graph import State, Tensor
from parapipe.graph.states import longest_loop_path, states_of, with_states
from tests.cases import hand_built

CACHE = (1, 8, 100, 64)
GROWN = (1, 8, 101, 64)


def tensors(**shapes):
    return [Tensor(name, shape, "float32") for name, shape in shapes.items()]


def pairs(inputs, outputs, stated=()):
    return {
        each.input: (each.output, each.kind)
        for each in states_of("a model", inputs, outputs, dict(stated))
    }


@pytest.mark.parametrize(
    ("read", "made"),
    [
        ("past_key_values.0.key", "present.0.key"),
        ("past_key_values.11.decoder.value", "present.11.decoder.value"),
        ("past_key_values_key_0", "present_key_values_key_0"),
        ("past_0", "present_0"),
        ("past_conv.3", "present_conv.3"),
        ("cached_len_1", "new_cached_len_1"),
        ("state", "stateN"),
        ("h0", "hn"),
        ("lstm.c_0", "lstm.c_n"),
        ("r1i", "r1o"),
        ("hidden_in", "hidden_out"),
        ("prev_state", "state"),
        ("initial_h", "h"),
    ],
)
def test_names_of_exporters_are_recognised(read, made):
    found = pairs(tensors(x=(1, 4), **{read: CACHE}), tensors(y=(1, 4), **{made: CACHE}))
    assert found == {read: (made, "state")}


@pytest.mark.parametrize(
    ("read", "made"), [("image_in", "image_out"), ("x", "new_x"), ("input", "output"), ("a", "a_n")]
)
def test_an_image_that_becomes_an_image_is_no_state(read, made):
    assert not pairs(tensors(**{read: CACHE}), tensors(**{made: CACHE}))


def test_a_cache_may_grow_along_one_axis_and_only_grow():
    read = tensors(past_0=CACHE)
    assert pairs(read, tensors(present_0=GROWN)) == {"past_0": ("present_0", "state")}
    assert not pairs(read, tensors(present_0=(1, 9, 101, 64)))
    assert not pairs(tensors(past_0=GROWN), tensors(present_0=CACHE))
    assert not pairs(read, [Tensor("present_0", CACHE, "float16")])


def test_the_next_token_is_chosen_of_the_logits_where_there_is_a_cache_and_one_token_is_read():
    outputs = tensors(logits=(1, 1, 99), present_0=CACHE)
    ids = Tensor("input_ids", (1, 1), "int64")
    cache = tensors(past_0=CACHE)
    assert pairs([ids, *cache], outputs)["input_ids"] == ("logits", "token")
    assert "input_ids" not in pairs([ids], outputs)
    prompt = Tensor("input_ids", (1, 7), "int64")
    assert "input_ids" not in pairs([prompt, *cache], outputs)
    stated = {"input_ids": "none", "past_0": "none"}
    assert not pairs([ids, *cache], outputs, stated)


def test_what_the_user_states_counts_before_what_is_recognised():
    inputs, outputs = tensors(h0=CACHE, x=CACHE), tensors(hn=CACHE, y=CACHE)
    assert pairs(inputs, outputs, {"x": "hn"}) == {"x": ("hn", "state")}
    assert pairs(inputs, outputs, {"h0": "y"}) == {"h0": ("y", "state")}
    assert pairs(inputs, tensors(y=(1, 2)), {"x": "y"}) == {"x": ("y", "token")}


def test_names_that_the_model_does_not_have_are_refused_all_at_once():
    with pytest.raises(ModelError, match=r"no input 'a'.*no output 'b'.*inputs are x.*outputs y"):
        states_of("m", tensors(x=CACHE), tensors(y=CACHE), {"a": "y", "x": "b"})


def test_an_output_cannot_be_two_states():
    with pytest.raises(ModelError, match="'y' is fed back to x, z"):
        states_of("m", tensors(x=CACHE, z=CACHE), tensors(y=CACHE), {"x": "y", "z": "y"})


def test_sequences_without_a_state_are_refused():
    graph = hand_built.GraphBuilder(x=(1, 4))
    graph.add("Relu", ["x"], (1, 4))
    with pytest.raises(ModelError, match=r"no state that is recognised.*--state INPUT=OUTPUT"):
        with_states(graph.graph(), {}, 2)


def test_states_are_neither_loaded_nor_read_as_results():
    builder = hand_built.GraphBuilder(x=(1, 4), h0=(1, 4))
    builder.add("Add", ["x", "h0"], (1, 4))
    builder.add("Relu", ["add_2"], (1, 4))
    graph = with_states(builder.graph("add_2", "relu_3"), {"h0": "add_2"}, 1)
    assert graph.states == (State("h0", "add_2"),)
    assert graph.loaded == ("x",)
    assert graph.results == ("relu_3",)


def test_the_longest_loop_goes_from_its_first_reader_to_its_writer():
    builder = hand_built.GraphBuilder(x=(1, 4), h=(1, 4))
    builder.add("Relu", ["x"], (1, 4))  # 0
    builder.add("Add", ["relu_2", "h"], (1, 4))  # 1
    builder.add("Relu", ["add_3"], (1, 4))  # 2
    builder.add("Sigmoid", ["add_3"], (1, 4))  # 3
    builder.add("Add", ["relu_4", "sigmoid_5"], (1, 4))  # 4
    builder.add("Relu", ["add_6"], (1, 4))  # 5
    graph = with_states(builder.graph("add_6", "relu_7"), {"h": "add_6"}, 1)
    assert longest_loop_path(graph, [9.0, 1.0, 2.0, 3.0, 4.0, 9.0]) == (1, 3, 4)
    assert longest_loop_path(graph, [9.0, 1.0, 3.0, 2.0, 4.0, 9.0]) == (1, 2, 4)
