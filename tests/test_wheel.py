"""What an installation brings: built without network and without Node, and tried from an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOOK = "import sys; from hatchling.build import {0} as build; print(build(sys.argv[1]))"


def build(hook: str, folder: Path) -> Path:
    """Run a build hook as an installer does, in a process of its own; nothing is downloaded."""
    done = subprocess.run(
        [sys.executable, "-c", HOOK.format(hook), str(folder)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return folder / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("build_wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def tracked(pattern: str) -> set[str]:
    """Files of the checkout; what an editor or a run leaves behind is not among them."""
    return {
        p.relative_to(ROOT).as_posix()
        for p in ROOT.glob(pattern)
        if not {"__pycache__", ".ipynb_checkpoints", "node_modules"} & set(p.parts)
    }


def test_holds_every_module_and_says_that_it_is_typed(names: set[str]) -> None:
    assert tracked("agentlab/**/*.py") <= names
    assert "agentlab/py.typed" in names
    assert "agentlab/teach/solutions/__init__.py" in names


def test_holds_the_notebooks_as_published(wheel: Path, names: set[str]) -> None:
    published = tracked("notebooks/*/*.ipynb")
    assert published
    assert {f"agentlab/{p}" for p in published} == {n for n in names if n.endswith(".ipynb")}
    with zipfile.ZipFile(wheel) as archive:
        for path in published:
            assert archive.read(f"agentlab/{path}") == (ROOT / path).read_bytes()


def test_holds_the_built_front_ends(names: set[str]) -> None:
    built = tracked("agentlab/widgets/static/*")
    assert any(b.endswith((".js", ".mjs")) for b in built)
    assert any(b.endswith(".css") for b in built)
    assert built <= names


def test_holds_the_setting_that_keeps_the_first_start_quiet(names: set[str]) -> None:
    assert "agentlab/quiet/labconfig/page_config.json" in names


def test_holds_nothing_else(names: set[str]) -> None:
    own = {n for n in names if n.startswith("agentlab/")}
    rest = {n.split("/")[0] for n in names - own}
    assert len(rest) == 1, rest
    assert rest.pop().endswith(".dist-info")
    endings = {Path(n).suffix for n in own}
    assert endings <= {".py", ".typed", ".ipynb", ".js", ".mjs", ".css", ".json", ".svg", ".sql", ".txt"}, endings
    assert not [n for n in own if "test" in n or "checkpoint" in n or "__pycache__" in n]


def test_metadata_says_what_we_mean(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        place = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        told = Parser().parsestr(archive.read(place).decode())
        assert any(n.endswith("licenses/LICENSE") for n in archive.namelist())
    assert told["Name"] == "jupyter-agentlab"
    assert told["License-Expression"] == "BSD-3-Clause"
    assert told["Requires-Python"] == "<3.15,>=3.11"
    assert set(told.get_all("Provides-Extra", [])) == {"lab", "test"}


def test_works_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    """The wheel, first on the path and outside the checkout: the notebooks come from inside it."""
    place = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(place)
    code = "import agentlab, runpy; print(agentlab.__file__); runpy.run_module('agentlab', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, "notebooks", "mine"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(place))
    copied = sorted(p.name for p in (tmp_path / "mine").iterdir())
    assert copied == sorted(p.name for p in (ROOT / "notebooks" / "en").glob("*.ipynb"))


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    with tarfile.open(build("build_sdist", tmp_path_factory.mktemp("sdist"))) as archive:
        return {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}


def test_a_source_archive_holds_what_a_build_needs(archived: set[str]) -> None:
    needed = {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "agentlab/py.typed"}
    assert needed | tracked("notebooks/*/*.ipynb") | tracked("agentlab/widgets/static/*") <= archived
    assert not [n for n in archived if "node_modules" in n or n.startswith(".venv")]


def test_a_source_archive_holds_all_that_git_tracks(archived: set[str]) -> None:
    """So the README's pictures are seen there, and the tests run there."""
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if told.returncode:
        pytest.skip("not a git checkout: which files are tracked is not known")
    assert {name for name in told.stdout.split("\0") if name and (ROOT / name).is_file()} - archived == set()
