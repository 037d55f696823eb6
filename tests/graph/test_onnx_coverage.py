"""All that the ONNX project tests its backends with is imported, or refused for a known cause."""

import re

import onnx
import pytest

from benchmarks.onnx_coverage import PAGE, survey


@pytest.fixture(scope="module")
def found():
    return survey()


def test_every_case_ends_well_and_with_the_shapes_of_the_test(found):
    assert found.mistakes == ()
    assert found.compared > 1500
    assert sum(found.endings.values()) > 1500


def test_the_page_of_the_documentation_says_what_was_found(found):
    page = PAGE.read_text(encoding="utf-8")
    written = re.search(r"with onnx (\S+);", page)
    assert written
    # Other releases of ONNX have other cases.
    assert written[1] != onnx.__version__ or page == found.page()
