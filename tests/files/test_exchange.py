"""Two folders change places in one step."""

from __future__ import annotations

from parapipe.files.atomic import exchange
from tests.cases.full_disk import tree


def test_two_folders_change_places(tmp_path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(f"of {name}")
    assert exchange(tmp_path / "a", tmp_path / "b")
    assert tree(tmp_path) == {"a": None, "b": None, "a/file": b"of b", "b/file": b"of a"}


def test_a_folder_does_not_change_places_with_what_is_not_there(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    assert not exchange(tmp_path / "a", tmp_path / "b")
    assert tree(tmp_path) == {"a": None}
