"""The stepper in a real JupyterLab: stepped, run, forked and answered by mouse and keyboard; hostile text, long histories."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.notebook import SECOND, SLOW, Notebook, Stepper, no_scroll_bar, open_notebook, too_faint

pytestmark = pytest.mark.browser

ORDERS = """\
from agentlab import Agent, lab, models, worlds
worlds.orders.desk.reset()
agent = Agent(models.scripted([
    models.calls(("search_orders", {"keyword": "lamp"}), ("find_parcel", {"number": 1})),
    models.call("refund", order_id=1042),
    "It is refunded.",
]), worlds.orders.tools, system="You work at the order desk.")
stepper = lab.step(agent, "The lamp of order 1042 is broken. Refund it.")"""

OWN_LOOP = """\
from agentlab import lab, models
def status(order_id: int) -> str:
    return f"{order_id}: sent"
async def my_loop(question, client):
    messages = [{"role": "user", "content": question}]
    while True:
        answer = await client.chat.completions.create(model="scripted", messages=messages)
        reply = answer.choices[0].message
        messages.append(reply.to_dict())
        if not reply.tool_calls:
            return reply.content
        for call in reply.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": status(1042)})
client = lab.client([models.call("status", order_id=1042), "It is on its way."])
stepper = lab.step(my_loop, "Where is order 1042?", client=client)"""

# A model that never stops, one call a turn: as long a history as one likes.
ENDLESS = """\
from agentlab import Agent, climb, lab, models
def look(n: int) -> str:
    "Look at something."
    return f"This is what number {n} looks like."
def script(request):
    return models.call("look", n=len(request["messages"]))
agent = Agent(models.scripted(script), [look], guards=climb("isolate"))
stepper = lab.step(agent, "Look at everything.")"""

HOSTILE = r"""
from agentlab import Agent, lab, models
def read(file: str) -> str:
    "Read a file."
    image = "<img src='http://127.0.0.1:9/x.png' onerror='window.hit=1'>"
    return "<style>body{display:none}</style>" + image + " $5 and $7, $HOME/a_b " + "x" * 5000 + " ; rm -rf ~"
agent = Agent(models.scripted([
    models.call("read", file="report\u202Efdp.exe"), "<script>window.hit=1</script> costs $5 now and $7 later. שלום 北京",
]), [read])
stepper = lab.step(agent, "<b onmouseover='window.hit=1'>bold\u202E?</b>" + "A" * 200_000)
"""


async def stepping(page: Page, lab: Server, name: str, first: str, *more: str) -> tuple[Notebook, Stepper]:
    notebook = await open_notebook(page, lab, name, [first, *more])
    await notebook.run(0)
    stepper = Stepper(notebook, 0)
    await stepper.alive()
    return notebook, stepper


async def test_a_run_is_stepped_by_mouse_and_by_keyboard(page: Page, lab: Server) -> None:
    notebook, stepper = await stepping(page, lab, "steps", ORDERS, "print(stepper.branch.last, stepper.branch.at)")
    await expect(stepper.rows).to_have_count(2)
    await stepper.step()
    await expect(stepper.rows).to_have_count(3)
    await expect(stepper.root.locator('.al-place[aria-current="step"]')).to_contain_text("Reply")
    await expect(stepper.root.locator('.al-lamp[data-lit="now"]').first).to_contain_text("now")

    # The button keeps the focus, so the keyboard goes on from where the mouse was.
    await expect(stepper.button("Step")).to_be_focused()
    await page.keyboard.press("ArrowRight")
    await expect(stepper.position).to_contain_text("Stop 3")
    await stepper.settled()
    await page.keyboard.press("ArrowLeft")
    await expect(stepper.position).to_contain_text("Stop 2 of 3")
    await stepper.settled()
    await page.keyboard.press("Home")
    await expect(stepper.position).to_contain_text("Stop 1 of 3")
    await expect(stepper.rows).to_have_count(2)
    await expect(stepper.pill).to_contain_text("looking back")
    await stepper.settled()
    await page.keyboard.press("End")
    await expect(stepper.position).to_contain_text("Stop 3")
    await stepper.settled()

    # JupyterLab's own keys (a, b: new cells; m: Markdown; 0 0: restart; i i: interrupt) do nothing here.
    for key in "abm00ii":
        await page.keyboard.press(key)
    await expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(2)
    await expect(page.locator(".jp-Dialog")).to_have_count(0)

    # Two clicks at once are one step.
    await stepper.button("Step").dblclick()
    await expect(stepper.position).to_contain_text("Stop 4")
    await page.wait_for_timeout(300)
    await expect(stepper.position).to_contain_text("Stop 4")
    await expect(stepper.said).to_be_hidden()  # the second click was none: nothing is left to say
    await expect(stepper.root.locator(".al-row .al-guard").last).to_contain_text("guard Isolate")
    await expect(stepper.root.locator(".al-row[data-error]").last).to_contain_text("error")
    await notebook.picture("guard-light-1280")

    # A whole text is fetched when it is asked for.
    result = stepper.rows.nth(3)
    await result.get_by_role("button", name="Show all").click()
    await expect(result.get_by_role("button", name="Show less")).to_be_visible()
    await expect(result.locator(".al-text").first).not_to_contain_text("…")

    await stepper.button("Run").click()
    await expect(stepper.pill).to_contain_text("waits for you")
    await notebook.run(1)
    assert (await notebook.printed(1)).strip() == "7 7"
    assert await no_scroll_bar(stepper.root)


async def test_a_call_is_approved_once_and_a_fork_takes_another_way(page: Page, lab: Server) -> None:
    ask = "print(worlds.orders.desk.look().count('refunded'), agent.ledger._begun.__len__())"
    notebook, stepper = await stepping(page, lab, "approval", ORDERS, ask)
    await stepper.button("Run").click()
    card = stepper.root.locator(".al-card")
    await expect(card).to_contain_text("refund really runs")
    await expect(card.locator(".al-arguments")).to_contain_text('"order_id": 1042')
    await expect(stepper.button("Step")).to_have_attribute("aria-disabled", "true")
    for theme in ("Dark", "Light"):
        await notebook.theme(theme)
        await expect(stepper.root).to_have_attribute("data-theme", theme.lower())
        await page.wait_for_timeout(300)
        await notebook.picture(f"approval-{theme.lower()}-1280")
        assert await too_faint(stepper.root) == [], theme

    # Typing in the fields types, and nothing else; wrong arguments are not sent.
    await card.get_by_role("button", name="Edit the arguments").click()
    field = card.locator("textarea")
    await field.fill('{"order_id": "many"}')
    await expect(card.locator(".al-check")).to_contain_text("must be of type integer")
    await field.press("Escape")
    await card.get_by_role("button", name="with a reason").click()
    await page.keyboard.type("abxddm00 y")
    await expect(card.locator("input")).to_have_value("abxddm00 y")
    await page.keyboard.press("Escape")
    await expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(2)

    await card.get_by_role("button", name="Approve refund(").dblclick()
    await expect(card).to_have_count(0)
    await expect(stepper.button("Step")).to_be_focused()  # the button that had the keyboard is gone
    # It was running when it had to ask: answered, it goes on by itself.
    await expect(stepper.root.locator(".al-answer")).to_contain_text("It is refunded.")
    await stepper.settled()
    await expect(stepper.pill).to_contain_text("answered")
    refunded = stepper.rows.filter(has_text="were refunded to")
    await expect(refunded).to_have_count(1)

    # Another way from an earlier message; the way that was gone stays.
    before = await stepper.rows.count()
    row = stepper.rows.nth(3)
    await row.get_by_role("button", name="Edit message 4").click()
    await expect(row.locator("textarea")).not_to_have_attribute("readonly", "")
    await row.locator("textarea").fill("No order matches that.")
    await row.get_by_role("button", name="Fork here", exact=True).click()
    await expect(stepper.root.locator(".al-branches .al-leaf")).to_have_count(2)
    await expect(stepper.button("Step")).to_be_focused()
    await expect(stepper.root.locator(".al-parting")).to_contain_text("parts from main here")
    await expect(stepper.rows.nth(3)).to_contain_text("edited")
    await expect(stepper.rows.nth(3)).to_contain_text("No order matches that.")
    await stepper.settled()
    await stepper.root.evaluate("root => root.scrollIntoView()")
    await notebook.picture("fork-light-1280")
    await notebook.close_file_browser()
    await page.set_viewport_size({"width": 800, "height": 800})
    await page.wait_for_timeout(300)
    await notebook.picture("fork-light-800")
    assert await no_scroll_bar(stepper.root)
    await stepper.root.locator(".al-branches").get_by_role("button", name="main").click()
    await expect(stepper.rows).to_have_count(before)

    # The parent points back, and the keyboard flips between the two from the very row where they part.
    flip = stepper.rows.nth(3).locator(".al-flip")
    await expect(stepper.root.locator(".al-parting")).to_contain_text("parts from here")
    await flip.focus()
    await page.keyboard.press("Enter")
    await expect(stepper.rows.nth(3)).to_contain_text("No order matches that.")
    await expect(flip).to_have_text("Show main")
    await expect(flip).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(stepper.rows).to_have_count(before)
    await expect(flip).to_be_focused()


async def test_the_learners_own_loop_shows_the_line_it_waits_at(page: Page, lab: Server) -> None:
    notebook, stepper = await stepping(page, lab, "own", OWN_LOOP)
    code = stepper.root.locator(".al-code")
    await expect(code.locator(".al-source-line[data-here]")).to_contain_text("await client.chat.completions.create(")
    await expect(code.locator(".al-locals")).to_contain_text("messages")
    await stepper.step(2)
    await expect(stepper.root.locator(".al-chart .al-last")).to_be_visible()
    await notebook.theme("Dark")
    await stepper.root.evaluate("root => root.scrollIntoView()")
    await page.wait_for_timeout(300)
    await notebook.picture("own-loop-dark-1280")
    assert await too_faint(stepper.root) == []
    await stepper.button("Run").click()
    await expect(stepper.root.locator(".al-answer")).to_contain_text("It is on its way.")


async def test_a_reloaded_page_and_a_second_view_go_on(page: Page, lab: Server) -> None:
    notebook, stepper = await stepping(page, lab, "reload", ORDERS, "stepper.view")
    await stepper.step(2)
    rows = await stepper.rows.count()
    await notebook.run(1)
    other = Stepper(notebook, 1)
    await expect(other.rows).to_have_count(rows)
    await other.step()
    await expect(stepper.position).to_contain_text("Stop 4")

    await notebook.save()
    await page.reload()
    await expect(stepper.root).to_have_attribute("data-health", "live", timeout=SLOW)
    await expect(stepper.position).to_contain_text("Stop 4")
    await expect(stepper.rows).to_have_count(5)
    await stepper.step()
    await expect(stepper.position).to_contain_text("Stop 5")


async def test_a_kernel_that_is_busy_or_gone_is_named(page: Page, lab: Server) -> None:
    sleepy = "import time; time.sleep(4)"
    notebook, stepper = await stepping(
        page, lab, "gone", ORDERS, sleepy, "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    )
    await notebook.run(1)
    await page.wait_for_timeout(300)
    await stepper.button("Step").click()
    await expect(stepper.said).to_contain_text("Your click is noted (step)")
    await expect(stepper.position).to_contain_text("Stop 2", timeout=10 * SECOND)
    await page.wait_for_timeout(500)
    await expect(stepper.position).to_contain_text("Stop 2")  # noted once, done once
    await expect(stepper.said).to_be_hidden()

    await notebook.run(2)
    await page.wait_for_timeout(300)
    await stepper.button("Step").click()
    await expect(stepper.said).to_contain_text("The kernel does not answer: this is a picture", timeout=10 * SECOND)
    for name in ("Back", "Step", "Run", "Reset"):
        await expect(stepper.button(name)).to_have_attribute("aria-disabled", "true")
    await expect(stepper.rows).to_have_count(3)


async def test_hostile_text_stays_text(page: Page, lab: Server) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    notebook, stepper = await stepping(page, lab, "hostile", HOSTILE)
    await stepper.button("Run").click()
    await expect(stepper.root.locator(".al-answer")).to_contain_text("<script>window.hit=1</script> costs $5 now and $7 later.")
    await expect(stepper.root.locator(".al-title .al-hidden-mark")).to_have_text("U+202E")
    await expect(stepper.pill.get_by_text("answered")).to_be_visible()
    assert await stepper.pill.evaluate("pill => pill.scrollWidth <= pill.clientWidth")  # a long title leaves it its word
    # A line of 200,000 characters is laid out at once: with kerning it took Chromium half a minute.
    question = stepper.rows.nth(0)
    await question.get_by_role("button", name="Show all").click()
    await expect(question.locator(".al-text")).to_contain_text("A" * 200_000)
    await question.scroll_into_view_if_needed()
    await question.get_by_role("button", name="Show less").click()
    await stepper.root.get_by_role("button", name="Show all").nth(1).click()
    await expect(stepper.root.locator(".al-history")).to_contain_text("<style>body{display:none}</style>")
    await expect(stepper.root.locator(".al-call .al-hidden-mark").first).to_have_text("U+202E")
    assert await page.evaluate("window.hit") is None
    assert await stepper.root.locator("img, script, style, iframe, mjx-container, .MathJax").count() == 0
    assert await page.evaluate("getComputedStyle(document.body).display") != "none"
    assert [url for url in asked if not url.startswith((lab.url, "data:", "blob:"))] == []
    await notebook.close_file_browser()
    for width in (1280, 800, 480):
        await page.set_viewport_size({"width": width, "height": 800})
        await page.wait_for_timeout(200)
        assert await no_scroll_bar(stepper.root), width


CLICK_TO_PAINT = """async root => {
  const step = root.querySelector('.al-step'), position = root.querySelector('.al-position'), times = [];
  const frame = () => new Promise(requestAnimationFrame);
  for (let n = 0; n < 12; n += 1) {
    while (step.getAttribute('aria-disabled')) await frame();
    await new Promise(pause => setTimeout(pause, 150));
    const before = position.textContent, began = performance.now();
    step.click();
    while (position.textContent === before) await frame();
    const channel = new MessageChannel(), painted = new Promise(done => { channel.port1.onmessage = done; });
    requestAnimationFrame(() => channel.port2.postMessage(0));
    await painted;
    times.push(performance.now() - began);
  }
  return times;
}"""


@pytest.mark.timing
async def test_long_histories_arrive_whole_and_cost_a_step_no_more(
    page: Page, lab: Server, record_testsuite_property: Callable[[str, object], None]
) -> None:
    """Click to paint under 100 ms at 200 messages; a step's bytes do not grow; 1,000 messages arrive whole."""
    bytes_in: list[int] = []

    def frames(payload: bytes | str) -> None:
        if b'"batch"' in (payload if isinstance(payload, bytes) else payload.encode()):
            bytes_in.append(len(payload))

    page.on("websocket", lambda socket: socket.on("framereceived", frames))
    grow = "while len(stepper.messages) < {}: await stepper.step()\nprint(len(stepper.messages))"
    notebook, stepper = await stepping(page, lab, "long", ENDLESS, grow.format(20), grow.format(200), grow.format(1000))

    async def measured(cell: int) -> tuple[list[float], int]:
        await notebook.run(cell)
        shown = int(await notebook.printed(cell))
        await expect(stepper.rows).to_have_count(shown, timeout=20 * SECOND)
        await page.wait_for_timeout(500)
        bytes_in.clear()
        times: Any = await stepper.root.evaluate(CLICK_TO_PAINT)
        return times, max(bytes_in)

    _, at_20 = await measured(1)
    times, at_200 = await measured(2)
    many, at_1000 = await measured(3)
    figures = {"ms at 200": times, "ms at 1000": many, "bytes at 20, 200, 1000": [at_20, at_200, at_1000]}
    record_testsuite_property("figures", json.dumps(figures))
    assert statistics.median(times) < 100, figures
    assert at_1000 < at_20 * 1.1 + 200, figures
    assert await no_scroll_bar(stepper.root)
