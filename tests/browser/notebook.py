"""Driving a notebook in JupyterLab: write it, open it, run its cells, look at a widget, switch the theme, take a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import Server

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
SECOND = 1000  # Playwright counts milliseconds
SLOW = 60 * SECOND

# Where pictures go that a person wants to look at: AGENTLAB_PICTURES=folder make browser
PICTURES = os.environ.get("AGENTLAB_PICTURES")


@dataclass
class Notebook:
    """One open notebook."""

    page: Page
    path: Path

    def cell(self, number: int) -> Locator:
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell").nth(number)

    async def run(self, number: int) -> None:
        """Run one cell, by the keys that a person uses; does not wait for it."""
        await self.cell(number).locator(".cm-content").click()
        await self.page.keyboard.press("Control+Enter")

    async def idle(self) -> None:
        """Wait until the kernel has nothing to do."""
        await expect(self.page.locator("#jp-main-statusbar").get_by_text("| Idle").first).to_be_visible(timeout=SLOW)

    async def printed(self, number: int) -> str:
        """What a cell printed, once it has."""
        await expect(self.cell(number).locator(".jp-InputPrompt")).not_to_contain_text("*", timeout=SLOW)
        return "\n".join(await self.cell(number).locator(".jp-OutputArea-output").all_inner_texts())

    async def theme(self, name: str) -> None:
        """Switch to the "Light" or "Dark" theme, through the menu."""
        await self.page.locator(".lm-MenuBar-item").get_by_text("Settings", exact=True).click()
        await self.page.locator(".lm-Menu-item").get_by_text("Theme", exact=True).hover()
        await self.page.locator(".lm-Menu-item").get_by_text(f"JupyterLab {name}", exact=True).click()
        await self.page.wait_for_function(
            "light => document.body.dataset.jpThemeLight === light", arg=str(name == "Light").lower()
        )

    async def save(self) -> None:
        """Save, and wait until it is saved."""
        await self.page.locator(
            '.jp-NotebookPanel-toolbar [data-jp-item-name="save"] button, [data-jp-item-name="save"]'
        ).first.click()
        await expect(self.page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)

    async def close_file_browser(self) -> None:
        """It leaves little room at 800 pixels; a person with a projector closes it too."""
        tab = self.page.locator(".jp-SideBar.jp-mod-left .lm-TabBar-tab.lm-mod-current")
        if await tab.count():
            await tab.click()

    async def picture(self, name: str, of: Locator | None = None) -> None:
        """Keep a picture where somebody asked for pictures."""
        if PICTURES:
            await (of or self.page).screenshot(path=Path(PICTURES) / f"{name}.png", animations="disabled")


async def open_notebook(page: Page, lab: Server, name: str, cells: Sequence[str]) -> Notebook:
    """Write a notebook of code cells into JupyterLab's folder and open it, with its kernel ready."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells], metadata={"kernelspec": KERNEL})
    path = lab.folder / f"{name}.ipynb"
    nbformat.write(made, path)
    notebook = Notebook(page, path)
    await page.goto(f"{lab.url}lab/tree/{path.name}?token={lab.token}&reset")
    await expect(notebook.cell(0)).to_be_visible(timeout=SLOW)
    await notebook.idle()
    return notebook


class Stepper:
    """The stepper in a cell's output."""

    def __init__(self, notebook: Notebook, cell: int) -> None:
        self.notebook, self.page = notebook, notebook.page
        self.root = notebook.cell(cell).locator(".agentlab-stepper")

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("group", name="Step controls").get_by_role("button", name=name)

    @property
    def rows(self) -> Locator:
        return self.root.locator(".al-row")

    @property
    def pill(self) -> Locator:
        return self.root.locator(".al-pill")

    @property
    def position(self) -> Locator:
        return self.root.locator(".al-position")

    @property
    def said(self) -> Locator:
        return self.root.locator(".al-said")

    async def alive(self) -> None:
        await expect(self.root).to_have_attribute("data-health", "live", timeout=SLOW)
        await expect(self.button("Step")).not_to_have_attribute("aria-disabled", "true", timeout=SLOW)

    async def step(self, times: int = 1) -> None:
        """Press Step, and wait for the next stop each time."""
        for _ in range(times):
            before = await self.position.inner_text()
            await self.button("Step").click()
            await expect(self.position).not_to_have_text(before, timeout=10 * SECOND)
            await self.settled()

    async def settled(self) -> None:
        """Nothing runs, and no click is on its way."""
        await expect(self.root.locator(".al-control.al-reset")).not_to_have_attribute("aria-disabled", "true", timeout=SLOW)


async def no_scroll_bar(root: Locator) -> bool:
    """Whether everything fits in the width."""
    fits: Any = await root.evaluate("root => root.scrollWidth <= root.clientWidth + 1")
    return bool(fits)


TOO_FAINT = """root => {
  const dot = Object.assign(document.createElement('canvas'), {width: 1, height: 1});
  const canvas = dot.getContext('2d', {willReadFrequently: true});
  const rgb = (colour, under) => {
    canvas.globalCompositeOperation = 'copy'; canvas.fillStyle = `rgb(${under.join(' ')})`; canvas.fillRect(0, 0, 1, 1);
    canvas.globalCompositeOperation = 'source-over'; canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = colour => {
    const [r, g, b] = colour.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = node => node ? rgb(getComputedStyle(node).backgroundColor, behind(node.parentElement)) : [255, 255, 255];
  const found = new Set();
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    const text = walk.currentNode.textContent.trim().slice(0, 40);
    if (!text || !node.checkVisibility() || node.closest('[aria-disabled=true], .al-only-spoken')) continue;
    const style = getComputedStyle(node), under = behind(node);
    const ink = rgb(node instanceof SVGElement ? style.fill : style.color, under);
    const [low, high] = [light(ink), light(under)].sort((a, b) => a - b);
    const ratio = (high + .05) / (low + .05);
    if (ratio < 4.5) found.add(`${ratio.toFixed(2)} ${node.getAttribute('class')}: ${text}`);
  }
  return [...found];
}"""


async def too_faint(root: Locator) -> list[str]:
    """Every text whose contrast with what is behind it is under 4.5 to 1."""
    found: list[str] = await root.evaluate(TOO_FAINT)
    return found
