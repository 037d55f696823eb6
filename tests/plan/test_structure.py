"""Rules on operators and tensors: each is broken once, and named."""

from tests.cases.plan_changes import DRAWN, found_after, operators, place


def test_an_id_must_be_unique() -> None:
    found = found_after(lambda d: d["operators"].append(operators(d)["e"]))
    assert found == ["two operators have the id 'e'", "tensor 'e' is made twice"]


def test_an_id_must_be_the_first_output() -> None:
    def change(d):
        operators(d)["e"]["id"] = place(d, "e")["operator"] = "end"

    assert found_after(change) == ["operator 'end' should have its first output, 'e', for an id"]


def test_a_processor_must_be_listed_once() -> None:
    found = found_after(lambda d: d["processors"].append(d["processors"][2]))
    assert found == ["two processors have the name 'gpu'"]


def test_a_tensor_must_be_made_once() -> None:
    found = found_after(lambda d: operators(d)["d"]["outputs"].append("b"))
    assert found == ["tensor 'b' is made twice"]


def test_an_input_must_be_declared() -> None:
    found = found_after(lambda d: operators(d)["d"]["inputs"].append("ghost"))
    assert found == [
        (
            "operator 'd' reads 'ghost', which is neither a tensor of the plan nor a constant "
            "that it declares"
        )
    ]


def test_an_output_must_be_declared() -> None:
    found = found_after(lambda d: operators(d)["d"]["outputs"].append("ghost"))
    assert found == ["operator 'd' makes 'ghost', which is no tensor of the plan"]


def test_a_constant_must_be_declared() -> None:
    found = found_after(lambda d: operators(d)["a"]["constants"].clear())
    assert found == [
        (
            "operator 'a' reads 'w', which is neither a tensor of the plan nor a constant that "
            "it declares"
        )
    ]


def test_a_constant_that_is_not_read_is_superfluous() -> None:
    found = found_after(
        lambda d: operators(d)["b"]["constants"].extend(operators(d)["a"]["constants"])
    )
    assert found == ["operator 'b' declares constant 'w' and does not read it"]


def test_a_constant_must_be_declared_once() -> None:
    def change(d):
        operators(d)["a"]["constants"] *= 2

    assert found_after(change) == ["operator 'a' declares constant 'w' twice"]


def test_a_constant_must_be_the_same_everywhere() -> None:
    def change(d):
        operators(d)["a"]["parts"][0]["constants"][0]["dtype"] = "float16"

    assert found_after(change) == ["constant 'w' of operator 'a' is declared differently elsewhere"]


def test_a_name_is_a_tensor_or_a_constant_not_both() -> None:
    def change(d):
        constant = {**operators(d)["a"]["constants"][0], "name": "x"}
        operators(d)["a"]["constants"].append(constant)

    assert found_after(change) == [
        "operator 'a' declares constant 'x', which is a tensor of the plan"
    ]


def test_a_tensor_must_have_the_bytes_of_its_shape() -> None:
    found = found_after(lambda d: d["tensors"]["e"].update(shape=[1, 2, 4]))
    assert found == ["tensor 'e' has 32 bytes by its shape and type, and the plan says 24"]


def test_a_size_beyond_all_bounds_is_only_wrong() -> None:
    found = found_after(lambda d: d["tensors"]["e"].update(shape=[2**62] * 20, dtype="int4"))
    assert len(found) == 1
    assert found[0].startswith(f"tensor 'e' has {2 ** (62 * 20 - 1)} bytes")


def test_a_tensor_must_be_of_a_known_type() -> None:
    found = found_after(lambda d: d["tensors"]["e"].update(dtype="float33"))
    assert found == ["tensor 'e' is of the unknown type 'float33'"]


def test_operators_must_stand_behind_those_they_read_from() -> None:
    assert found_after(lambda d: d["operators"].reverse()) == [
        "operator 'e' reads 'd', which only 'd' makes",
        "operator 'e' reads 'a', which only 'a' makes",
        "operator 'd' reads 'b', which only 'b' makes",
        "operator 'd' reads 'c', which only 'c' makes",
        "operator 'c' reads 'a', which only 'a' makes",
        "operator 'b' reads 'a', which only 'a' makes",
    ]


def test_what_is_read_must_be_made() -> None:
    assert found_after(lambda d: d["inputs"].clear()) == [
        "operator 'a' reads 'x', which nothing makes"
    ]


def test_graph_inputs_must_be_declared_and_made_by_nobody() -> None:
    assert found_after(lambda d: d["inputs"].extend(["ghost", "b"])) == [
        "graph input 'ghost' is no tensor of the plan",
        "graph input 'b' is made by operator 'b'",
    ]


def test_graph_outputs_must_be_declared_and_made() -> None:
    def change(d):
        d["tensors"]["free"] = d["tensors"]["e"]
        d["outputs"] += ["ghost", "free"]

    assert found_after(change) == [
        "graph output 'ghost' is no tensor of the plan",
        "graph output 'free' is made by no operator",
    ]


def test_a_graph_input_may_leave_as_it_came() -> None:
    def change(d):
        d["outputs"].append("x")
        del d["memory"], d["buffers"]  # x now lives longer

    assert found_after(change) == []


def test_the_parts_of_a_fused_operator_must_make_its_outputs() -> None:
    assert found_after(lambda d: operators(d)["a"]["parts"].pop()) == [
        "operator 'a' makes 'a', which none of its parts makes"
    ]


def test_parts_may_read_what_the_whole_reads_and_parts_before_make() -> None:
    assert found_after(lambda d: operators(d)["a"]["parts"].reverse()) == [
        (
            "operator 'a' within 'a' reads 'inner', which is neither made by a part before it "
            "nor read by the whole"
        )
    ]


def test_a_part_declares_constants_of_its_own() -> None:
    assert found_after(lambda d: operators(d)["a"]["parts"][0]["constants"].clear()) == [
        (
            "operator 'inner' within 'a' reads 'w', which is neither a tensor of the plan nor a "
            "constant that it declares"
        )
    ]


def test_what_is_folded_needs_constants() -> None:
    def change(d):
        operators(d)["a"]["parts"][0]["folded"][0]["constants"].clear()

    assert found_after(change) == [
        (
            "operator 'before', folded into 'a', reads 'raw', 'scale': all but one must be "
            "constants that it declares"
        )
    ]


def test_two_processors_must_not_share_a_core() -> None:
    def change(d):
        for processor in d["processors"][:2]:
            processor["cores"] = [2, 3]

    names = [processor["name"] for processor in DRAWN["processors"][:2]]
    assert found_after(change) == [f"processors '{names[0]}' and '{names[1]}' both have core 2, 3"]
