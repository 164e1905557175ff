"""The front ends: the committed build is what the sources give. Without Node this is skipped with the reason; in CI it fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "widgets"
STATIC = ROOT / "agentlab" / "widgets" / "static"
FORBIDDEN = (
    "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "fetch(", "XMLHttpRequest",
)  # fmt: skip
BUILT = {"stepper.js", "stepper.css", "approve.js", "approve.css"}


def without(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason} CI must have it.")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        without("Node is not here (20 or newer is needed to rebuild the front ends).")
    if not (SOURCES / "node_modules" / "esbuild").is_dir():
        without("The front end's tools are not installed: run `npm ci` in widgets/.")
    return str(found)


def test_the_committed_build_is_what_the_sources_give(node: str, tmp_path: Path) -> None:
    subprocess.run([node, "build.mjs", "--out", str(tmp_path)], cwd=SOURCES, check=True, timeout=120)
    assert {path.name for path in tmp_path.iterdir()} == BUILT
    for name in sorted(BUILT):
        committed, fresh = (STATIC / name).read_text("utf-8"), (tmp_path / name).read_text("utf-8")
        assert committed == fresh, f"{name} is stale: run `npm run build` in widgets/ and commit what it writes."


def test_nothing_else_is_shipped() -> None:
    assert {path.name for path in STATIC.iterdir()} == BUILT


@pytest.mark.parametrize("name", sorted(n for n in BUILT if n.endswith(".css")))
def test_every_style_rule_stays_inside_our_own_root(name: str) -> None:
    """No rule of ours may reach the host's interface or another output."""
    css = re.sub(r"/\*.*?\*/", "", (STATIC / name).read_text("utf-8"), flags=re.S)
    frames = re.compile(r"@keyframes[^{]*\{(?:[^{}]*\{[^{}]*\})*\s*\}")
    assert all(found.startswith("@keyframes al-") for found in frames.findall(css))
    for selectors in re.findall(r"([^{}]+)\{", frames.sub("", css)):
        text = selectors.strip()
        if text.startswith("@"):
            continue
        # Commas inside :is(...) separate nothing here.
        for selector in re.split(r",(?![^(]*\))", text):
            assert selector.strip().startswith(".agentlab"), f"{selector.strip()!r} is not inside .agentlab"


@pytest.mark.parametrize("name", sorted(n for n in BUILT if n.endswith(".js")))
def test_text_is_never_read_as_markup_and_nothing_is_fetched(name: str) -> None:
    script = (STATIC / name).read_text("utf-8")
    for word in FORBIDDEN:
        assert word not in script, f"{name} uses {word}"
    assert set(re.findall(r"https?://[^\"'\s]+", script)) <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("name", sorted(BUILT))
def test_a_bundle_is_small_and_readable(name: str) -> None:
    text = (STATIC / name).read_text("utf-8")
    assert len(text) < 120_000
    assert max(len(line) for line in text.splitlines()) < 1_000
