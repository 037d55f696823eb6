"""Shipped data is found in a checkout and in an installed package alike."""

from pathlib import Path

import pytest

from parapipe.errors import ParapipeError
from parapipe.files import shipped
from parapipe.files.shipped import data_folder


def installed_package(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = root / "site-packages" / "parapipe"
    package.mkdir(parents=True)
    monkeypatch.setattr(shipped, "__file__", str(package / "files" / "shipped.py"))
    return package


def test_in_a_checkout_the_folder_lies_beside_the_package():
    assert (data_folder("platforms") / "amlogic-a311d.yaml").is_file()
    assert data_folder("profiles").is_dir()


def test_in_an_installed_package_the_folder_lies_inside_it(tmp_path, monkeypatch):
    package = installed_package(tmp_path, monkeypatch)
    (package / "_data" / "platforms").mkdir(parents=True)
    assert data_folder("platforms") == package / "_data" / "platforms"


def test_a_folder_beside_an_installed_package_is_not_taken_for_ours(tmp_path, monkeypatch):
    package = installed_package(tmp_path, monkeypatch)
    (package.parent / "platforms").mkdir()
    with pytest.raises(ParapipeError, match=r"'platforms' is missing .* install parapipe again"):
        data_folder("platforms")
