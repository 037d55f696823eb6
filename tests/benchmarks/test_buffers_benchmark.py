"""Arenas of published instances: the example of MiniMalloc's README, and files that are wrong."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from benchmarks.buffers import main

# As in the README of google/minimalloc, where 12 is known to suffice.
EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"


def test_the_page_has_a_line_for_each_instance(tmp_path):
    (tmp_path / "input.12.csv").write_text(EXAMPLE)
    (tmp_path / "tight.11.csv").write_text(EXAMPLE)
    out = tmp_path / "page.md"
    done = CliRunner().invoke(main, [str(tmp_path), "--out", str(out)])
    assert done.exit_code == 0, done.output
    written = out.read_text()
    assert "1 of 2 arenas keep the capacity, 2 are proven to be the least." in written
    assert "| input | 5 | 12 | 12 | 12 | 12 | 0.00% | yes | yes |" in written
    assert "| tight | 5 | 11 | 12 | 12 | 12 | 0.00% | no | yes |" in written


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("input.csv", EXAMPLE, "name it NAME.CAPACITY.csv"),
        ("a.12.csv", "id,lower,size\n", "its columns have to be id,lower,upper,size"),
        ("a.12.csv", "id,lower,upper,size\nb,0,x,1\n", "line 2: invalid literal"),
        ("a.12.csv", "id,lower,upper,size\nb,3,3,1\n", "line 2: buffer 'b': size, alignment"),
        ("a.12.csv", "id,lower,upper,size\n", "it has no buffers"),
        ("a.txt", EXAMPLE, "has no file NAME.CAPACITY.csv"),
    ],
)
def test_a_wrong_file_is_named_and_what_is_wrong_with_it(tmp_path, name, text, told):
    (tmp_path / name).write_text(text)
    done = CliRunner().invoke(main, [str(tmp_path), "--out", str(tmp_path / "page.md")])
    assert done.exit_code == 1
    assert told in done.output
