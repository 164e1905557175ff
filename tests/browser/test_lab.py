"""`agentlab lab` as a person meets it: the first lesson is open, nothing stands in the way, and its kernel is ours."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
from playwright.async_api import Page, expect

from tests.browser.conftest import Server

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
SECOND = 1000  # Playwright counts milliseconds


async def opened(page: Page, url: str) -> None:
    await page.goto(url)
    await expect(page.locator(".jp-Notebook .jp-Cell").first).to_be_visible(timeout=60 * SECOND)


async def test_the_first_lesson_is_open_and_nothing_stands_in_the_way(page: Page, lab: Server) -> None:
    """The root of the server leads to the lesson; no dialog about news, no kernel to choose."""
    await opened(page, f"{lab.url}?token={lab.token}")
    assert page.url.endswith("/lab/tree/00_start_here.ipynb")
    await expect(page.locator(".jp-Notebook h1").first).to_be_visible()
    await expect(page.locator(".jp-Toolbar-kernelName, .jp-KernelName").first).to_contain_text("Python 3")
    await page.wait_for_load_state("networkidle")
    assert await page.locator(".jp-Dialog").count() == 0
    assert await page.locator(".Toastify__toast").count() == 0


async def test_the_kernel_is_the_python_that_was_started(page: Page, start: Callable[..., Server], tmp_path: Path) -> None:
    """Even where the person's home holds a `python3` kernel that an older environment left there."""
    folder, home = tmp_path / "mine", tmp_path / "home"
    stale = home / ".local" / "share" / "jupyter" / "kernels" / "python3" / "kernel.json"
    stale.parent.mkdir(parents=True)
    argv = ["/nowhere/bin/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    stale.write_text(json.dumps({"argv": argv, "display_name": "Python 3 (stale)", "language": "python"}))
    lab = start(folder, home=home)
    cell = nbformat.v4.new_code_cell("import sys, agentlab; print(sys.prefix, agentlab.__version__)")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": KERNEL}), folder / "which.ipynb")

    await opened(page, lab.lab("which.ipynb"))
    await expect(page.locator("#jp-bottom-panel, body").get_by_text("| Idle").first).to_be_visible(timeout=60 * SECOND)
    await page.locator(".jp-Notebook .cm-content").first.click()
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(".jp-OutputArea-output").first).to_contain_text(sys.prefix, timeout=60 * SECOND)
