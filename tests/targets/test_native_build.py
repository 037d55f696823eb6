"""How far a build of the native runner has come is handed on; a tool stands in for CMake."""

import pytest

from parapipe.errors import RuntimeMissingError
from parapipe.files.progress import Progress
from parapipe.targets.native.runner import built_runner

CMAKE = """#!/bin/sh
if [ "$1" = -S ]; then mkdir -p "$4"; exit 0; fi
echo "[  7%] Building CXX object plan.o"
echo "[100%] Linking CXX executable parapipe-native"
{end}
"""
PROGRAM = (
    """printf '#!/bin/sh\\necho plain' > "$2/parapipe-native"; chmod +x "$2/parapipe-native\""""
)


@pytest.fixture
def cmake(tmp_path, monkeypatch):
    def write(end):
        tool = tmp_path / "cmake"
        tool.write_text(CMAKE.format(end=end))
        tool.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("CXX", "true")
    monkeypatch.setenv("PARAPIPE_CACHE", str(tmp_path / "cache"))
    return write


def test_percents_are_told_while_it_is_built_and_nothing_afterwards(cmake):
    cmake(PROGRAM)
    told: list[Progress] = []
    program = built_runner("plain", progress=told.append)
    assert program.is_file()
    assert [(each.phase, each.done, each.total) for each in told] == [
        ("building", 7, 100), ("building", 100, 100),
    ]  # fmt: skip
    assert built_runner("plain") == program


def test_a_build_that_fails_says_its_first_error(cmake):
    cmake("echo 'plan.cpp:3: error: no such thing' >&2; exit 2")
    with pytest.raises(RuntimeMissingError, match=r"built: plan\.cpp:3: error: no such thing; ins"):
        built_runner("plain")
