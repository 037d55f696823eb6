"""The table of clusters on strategies.md is what its script writes."""

import pytest

from docs import stream_clusters


@pytest.mark.parametrize("model", ["alexnet", "googlenet", "squeezenet"])
def test_rows_are_those_of_the_script(model):
    assert stream_clusters.row(model) in stream_clusters.PAGE.read_text(encoding="utf-8")
