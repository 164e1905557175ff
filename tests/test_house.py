"""What the house promises about itself: the README says what the code says, and no file holds what must not be published."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import agentlab
from agentlab.ladder import LADDER, WIDTH

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def published() -> list[Path]:
    """Files that git tracks, and new ones that it does not ignore."""
    told = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        pytest.skip("not a git checkout: which files are published is not known")
    return [path for name in told.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def texts() -> list[tuple[Path, str]]:
    return [(path, path.read_text(encoding="utf-8")) for path in published() if path.suffix not in {".png", ".sqlite"}]


def ladder_rows() -> dict[str, tuple[str, str]]:
    """The rows of the README's ladder table: rung -> (what breaks without it, what it does)."""
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", README, re.M)
    return {rung: (breaks, does) for rung, breaks, does in rows}


def test_the_readme_table_is_the_ladder() -> None:
    wanted = {
        rung.name: (rung.breaks, WIDTH if rung.guard is None else inspect.getdoc(type(rung.guard)) or "") for rung in LADDER
    }
    assert ladder_rows() == wanted
    assert list(ladder_rows()) == list(wanted)


@pytest.mark.parametrize("rung", [r for r in LADDER if r.guard is not None], ids=lambda r: r.name)
def test_a_guard_is_described_in_one_line(rung: agentlab.ladder.Rung) -> None:  # type: ignore[name-defined]
    line = inspect.getdoc(type(rung.guard)) or ""
    assert line
    assert "\n" not in line
    assert "|" not in line


def test_the_readme_names_the_two_commands_and_so_does_ci() -> None:
    assert "make lab" in README
    assert "make test" in README
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_readme_points_at_what_is_there() -> None:
    for target in re.findall(r"\]\(([^)#\s]+)\)|src=\"([^\"]+)\"", README):
        place = target[0] or target[1]
        if "://" not in place:
            assert (ROOT / place).exists(), place


def test_the_map_in_the_readme_names_what_is_there() -> None:
    for name in re.findall(r"^\| `([\w./-]+/)` \|", README, re.M):
        assert (ROOT / name).is_dir(), name


def test_the_changelog_has_this_version() -> None:
    assert f"## {agentlab.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_binder_has_a_python_of_ours_and_our_set_of_jupyter() -> None:
    python = (ROOT / "binder" / "runtime.txt").read_text().strip()
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert f"Programming Language :: Python :: {python.removeprefix('python-')}" in told
    lines = (ROOT / "binder" / "requirements.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [".[lab]"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="Binder's build needs bash")
def test_binder_opens_a_lesson_that_is_there(tmp_path: Path) -> None:
    """Its build step, run for real: on a checkout, with the settings going to an environment in a temporary folder."""
    checkout, prefix, commands = tmp_path / "checkout", tmp_path / "prefix", tmp_path / "bin"
    for folder in (checkout, commands):
        folder.mkdir()
    for name in ("agentlab", "pyproject.toml"):
        (checkout / name).symlink_to(ROOT / name)
    for name, does in (("python", f"echo '{prefix}'"), ("agentlab", f"exec '{sys.executable}' -m agentlab \"$@\"")):
        (commands / name).write_text(f"#!/bin/sh\n{does}\n")
        (commands / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    built = subprocess.run(
        ["bash", str(ROOT / "binder" / "postBuild")], cwd=checkout, env=env, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    settings = sorted((prefix / "etc" / "jupyter").glob("jupyter_*_config.json"))
    assert [path.name.split("_")[1] for path in settings] == ["lab", "notebook", "server"]
    for path in settings:
        ((setting,),) = [app.values() for app in json.loads(path.read_text()).values()]
        assert (checkout / setting.removeprefix("/lab/tree/")).is_file(), f"{path.name} opens {setting}"
    quiet = json.loads((prefix / "etc" / "jupyter" / "labconfig" / "page_config.json").read_text())
    assert quiet == json.loads((ROOT / "agentlab" / "quiet" / "labconfig" / "page_config.json").read_text())


def test_no_file_names_this_machine_or_a_registry() -> None:
    # Written in pieces, so that this file does not name them either.
    machine = re.compile(r"(^|[^\w.$~/])/(" + "|".join(["wo" + "rk", "ro" + "ot", "fa" + "rm"]) + r")/")
    hosts = re.compile(
        "|".join([r"py" + r"pi\.org", r"python" + r"hosted", r"npm" + r"js\.", r"deb\." + "debian", r"npm" + "mirror"])
    )
    for path, text in texts():
        for number, line in enumerate(text.splitlines(), 1):
            assert not machine.search(line), f"{path.relative_to(ROOT)}:{number} holds a path of this machine"
            assert not hosts.search(line), f"{path.relative_to(ROOT)}:{number} names a registry's host"


def test_no_file_holds_a_key() -> None:
    key = re.compile(r"\bsk-(?!canary|secret|abcdef|test|wrong|none|offline|lab)[A-Za-z0-9_-]{16,}")
    for path, text in texts():
        assert not key.search(text), path


def test_pictures_stay_small() -> None:
    sizes = [p.stat().st_size for p in published() if p.suffix == ".png"]
    assert sum(sizes) < 300_000


def readme_blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)


@pytest.mark.parametrize("block", readme_blocks(), ids=lambda b: b.splitlines()[0])
async def test_the_code_in_the_readme_runs(block: str) -> None:
    code = compile(block, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    scope: dict[str, object] = {}
    result = eval(code, scope)  # our own text; a block with a top-level await gives a coroutine
    if inspect.isawaitable(result):
        await result
    if "stepper" in scope:
        await scope["stepper"].finish()  # type: ignore[attr-defined]
