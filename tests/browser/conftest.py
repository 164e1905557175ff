"""A real JupyterLab in a real Chromium. Where Chromium is missing the tests are skipped and say so; in CI they fail."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

# Chromium is the system's; without a sandbox, since in containers people are root; offline, since nothing here needs more.
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
START_SECONDS = 60

# What is expected is waited for, however slow the machine: Playwright's 5 seconds ran out where others used the cores.
expect.set_options(timeout=20_000)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if os.environ.get("CI") == "true":
        pytest.fail("Chromium is not here, and CI must have it (on Debian: apt-get install chromium).")
    pytest.skip("Chromium is not here (on Debian: apt-get install chromium)")


@dataclass
class Server:
    """A running JupyterLab."""

    folder: Path
    url: str
    token: str

    def lab(self, notebook: str) -> str:
        return f"{self.url}lab/tree/{notebook}?token={self.token}"


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Start JupyterLab as a person does, by `agentlab lab`, with a home of its own. Ended when the tests are."""
    running: list[subprocess.Popen[str]] = []

    def go(folder: Path, *words: str, home: Path | None = None) -> Server:
        home = home or tmp_path_factory.mktemp("home")
        log = home / "log"
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "IPYTHON", "OPENAI_"))}
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "agentlab", "lab", str(folder), "--no-browser", *words, "--", "--port=0"],
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**inherited, "HOME": str(home)},
                cwd=home,
                text=True,
                start_new_session=True,
            )
        running.append(process)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            if found := re.search(r"(http://127\.0\.0\.1:\d+/)\S*token=(\w+)", log.read_text()):
                return Server(folder, found[1], found[2])
            time.sleep(0.1)
        raise AssertionError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")

    yield go
    for process in running:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)


@pytest.fixture(scope="session")
def lab(start: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> Server:
    """One JupyterLab for all tests, with the published notebooks in its folder; tests may add their own."""
    return start(tmp_path_factory.mktemp("my-agentlab"))


@pytest.fixture
async def page(chromium: str, tmp_path: Path) -> AsyncIterator[Page]:
    """A page at 1280x800."""
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=chromium,
            headless=True,
            args=ARGS,
            viewport={"width": 1280, "height": 800},
        )
        try:
            yield await context.new_page()
        finally:
            await context.close()
