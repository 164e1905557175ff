"""The approval card under a running cell: the run waits for the person, and what the person says is what happens, once."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.notebook import Notebook, open_notebook, too_faint

pytestmark = pytest.mark.browser

AGENT = """\
from agentlab import Agent, models, tool
paid = []
@tool(dangerous=True)
def refund(order_id: int, note: str = "") -> str:
    "Pay the whole price of an order back to the customer."
    paid.append(order_id)
    return f"refunded {order_id}"
agent = Agent(models.scripted([models.call("refund", order_id=1042, note="a\\u202eb"), "done"]), [refund])"""
RUN = """\
run = await agent.run("Refund order 1042.")
print(run.status, paid, [entry.text for entry in run.log if hasattr(entry, "call_id") and hasattr(entry, "text")])"""


async def waiting(page: Page, lab: Server, name: str) -> Notebook:
    notebook = await open_notebook(page, lab, name, [AGENT, RUN, "print('the next cell runs')"])
    await notebook.run(0)
    await notebook.run(1)
    await expect(notebook.cell(1).locator(".agentlab-approve")).to_be_visible()
    return notebook


async def test_a_yes_runs_the_call_once(page: Page, lab: Server) -> None:
    notebook = await waiting(page, lab, "yes")
    card = notebook.cell(1).locator(".al-card")
    await expect(card).to_contain_text("The run waits for your answer. No answer means no.")
    await expect(card.locator(".al-arguments .al-hidden-mark, .al-warning").first).to_be_visible()
    for theme in ("Dark", "Light"):
        await notebook.theme(theme)
        await page.wait_for_timeout(300)
        await notebook.picture(f"card-{theme.lower()}-1280")
        assert await too_faint(notebook.cell(1).locator(".agentlab-approve")) == [], theme
    await card.get_by_role("button", name="Approve refund(").dblclick()
    assert "answered [1042] ['refunded 1042']" in await notebook.printed(1)
    await expect(notebook.cell(1).locator(".al-card")).to_contain_text("You approved refund")
    await expect(notebook.cell(1).get_by_role("button", name="Approve")).to_have_count(0)


async def test_a_no_tells_the_model_why(page: Page, lab: Server) -> None:
    notebook = await waiting(page, lab, "no")
    card = notebook.cell(1).locator(".al-card")
    await card.get_by_role("button", name="with a reason").click()
    await page.keyboard.type("abxdd it is paid already")
    await page.keyboard.press("Enter")
    printed = await notebook.printed(1)
    assert "answered []" in printed
    assert "abxdd it is paid already" in printed
    await expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(3)
    await expect(notebook.cell(1).locator(".al-card")).to_contain_text("You refused refund")
    await expect(notebook.cell(1).locator(".al-card-state")).to_be_focused()  # the keyboard goes on from where it was


async def test_edited_arguments_are_what_runs(page: Page, lab: Server) -> None:
    notebook = await waiting(page, lab, "edit")
    card = notebook.cell(1).locator(".al-card")
    await card.get_by_role("button", name="Edit the arguments").click()
    await card.locator("textarea").fill('{"order_id": 7}')
    await card.get_by_role("button", name="with these arguments").click()
    assert "answered [7]" in await notebook.printed(1)


async def test_stop_ends_the_wait_and_leaves_no_live_buttons(page: Page, lab: Server) -> None:
    notebook = await waiting(page, lab, "stop")
    await page.get_by_role("button", name="Interrupt the kernel").first.click()
    await expect(notebook.cell(1).locator(".al-card")).to_contain_text("The cell was interrupted")
    await expect(notebook.cell(1).get_by_role("button", name="Approve")).to_have_count(0)
    await expect(notebook.cell(1).locator(".jp-InputPrompt")).not_to_contain_text("*")
    await notebook.run(2)
    await expect(notebook.cell(2).locator(".jp-OutputArea-output")).to_contain_text("the next cell runs")
