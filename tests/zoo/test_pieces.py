"""Files of zoo models whose weights are made one at a time, and their digests."""

import csv
from hashlib import sha256

import pytest

import parapipe
from parapipe.zoo import emitter
from parapipe.zoo.emitter import digest, pieces
from parapipe.zoo.registry import DIGESTS, build, examples, model_and_digest, serialize


@pytest.fixture
def no_weights(monkeypatch):
    """Whoever makes the numbers of a weight fails."""

    def refused(*_what):
        raise AssertionError("weights are made")

    monkeypatch.setattr(emitter, "_weight_values", refused)


@pytest.mark.parametrize("name", ["squeezenet", "mobilenet-v2", "bevformer"])
def test_the_pieces_together_are_the_file(name):
    with emitter.without_weights() as left_out:
        model = build(name)
    file = serialize(build(name))
    assert b"".join(pieces(model, left_out)) == file
    assert digest(model, left_out) == sha256(file).hexdigest()
    assert len(serialize(model)) < len(file) / 20


@pytest.mark.parametrize("name", examples())
def test_kept_digests_are_those_of_the_files(name):
    """Update with `python -m tools.zoo_digests`."""
    with emitter.without_weights() as left_out:
        model = build(name)
    with DIGESTS.open(encoding="utf-8") as file:
        kept = {row["model"]: row for row in csv.DictReader(file)}[name]
    assert kept["without_numbers"] == sha256(serialize(model)).hexdigest()
    assert kept["file"] == digest(model, left_out)


@pytest.mark.usefixtures("no_weights")
@pytest.mark.parametrize("name", examples())
def test_a_model_to_be_mapped_gets_no_weights(name):
    graph = parapipe.load_model(f"zoo:{name}", note=lambda _: None)
    assert graph.source.sha256 == model_and_digest(name)[1]


def test_a_digest_that_is_not_kept_is_found_by_making_the_weights(monkeypatch, tmp_path):
    known = model_and_digest("squeezenet")[1]
    (tmp_path / "none.csv").write_text("model,without_numbers,file\n")
    monkeypatch.setattr("parapipe.zoo.registry.DIGESTS", tmp_path / "none.csv")
    assert (
        model_and_digest("squeezenet")[1]
        == known
        == sha256(serialize(build("squeezenet"))).hexdigest()
    )
