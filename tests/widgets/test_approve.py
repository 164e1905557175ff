"""The approval card's Python half: it waits for exactly one answer to exactly one call, and never hangs where nobody is heard."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentlab import Agent, models, tool
from agentlab.records import Call, Held, Ruling
from agentlab.run import Run
from agentlab.widgets import approve
from agentlab.widgets.approve import ApprovalCard, facts

paid: list[int] = []


@tool(dangerous=True)
def refund(order_id: int) -> str:
    """Pay the customer back."""
    paid.append(order_id)
    return f"refunded {order_id}"


class Page:
    """Stands in for the notebook page: it sees each card that is shown and may speak for it."""

    def __init__(self) -> None:
        self.shown: list[ApprovalCard] = []
        self.updates = 0
        self.speak: Callable[[ApprovalCard], None] = lambda card: None

    def display(self, card: ApprovalCard, display_id: bool = False) -> Page:
        self.shown.append(card)
        self.speak(card)
        return self

    def update(self, card: ApprovalCard) -> None:
        self.updates += 1


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    page = Page()
    monkeypatch.setattr(approve, "display", page.display)
    monkeypatch.setattr(approve, "place", lambda: "notebook")
    monkeypatch.setattr(approve, "READY_WITHIN", 0.05)
    approve._kept.clear()
    paid.clear()
    yield page
    approve._kept.clear()


def says(card: ApprovalCard, **content: Any) -> None:
    card._hear(card, content, None)


def rules(card: ApprovalCard, ok: bool, **more: Any) -> None:
    says(card, op="rule", call_id=card.call["call_id"], digest=card.call["digest"], ok=ok, **more)


def soon(act: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(0.01, act)


def answers(ok: bool, **more: Any) -> Callable[[ApprovalCard], None]:
    """A page that is heard, and a person who answers a little later."""

    def speak(card: ApprovalCard) -> None:
        says(card, op="ready")
        soon(lambda: rules(card, ok, **more))

    return speak


CALL = Call("call_1", "refund", '{"order_id": 1042}')


def held(call: Call = CALL) -> Run:
    return Run().plus(Held(call.id, call.digest))


async def test_a_yes_is_bound_to_this_call(page: Page) -> None:
    page.speak = answers(True)
    ruling = await approve.ask(held(), CALL, refund)
    assert ruling == Ruling(CALL.id, True, digest=CALL.digest)
    card = page.shown[0]
    assert (card.state, card.ack) == ("approved", True)
    assert page.updates == 1, "its twins say how it ended"


async def test_a_no_carries_its_reason(page: Page) -> None:
    page.speak = answers(False, why="already paid", arguments='{"order_id": 1}')
    ruling = await approve.ask(held(), CALL, refund)
    assert ruling is not None
    assert (ruling.ok, ruling.why, ruling.arguments) == (False, "already paid", None)
    assert page.shown[0].state == "refused"


async def test_edited_arguments_come_along(page: Page) -> None:
    page.speak = answers(True, arguments='{"order_id": 7}')
    ruling = await approve.ask(held(), CALL, refund)
    assert ruling is not None
    assert (ruling.arguments, ruling.digest) == ('{"order_id": 7}', CALL.digest)
    assert '{"order_id": 7}' in page.shown[0].text()


async def test_the_first_answer_counts(page: Page) -> None:
    def twice(card: ApprovalCard) -> None:
        rules(card, False, why="first")
        rules(card, True)

    page.speak = lambda card: soon(lambda: twice(card))
    ruling = await approve.ask(held(), CALL, refund)
    assert ruling is not None
    assert (ruling.ok, ruling.why) == (False, "first")


@pytest.mark.parametrize("wrong", [{"digest": "another"}, {"call_id": "call_2"}, {"ok": "yes"}])
async def test_what_was_meant_for_another_call_is_no_yes(page: Page, wrong: dict[str, Any]) -> None:
    card = ApprovalCard(CALL, refund)
    says(card, **{"op": "rule", "call_id": CALL.id, "digest": CALL.digest, "ok": True, "why": "", **wrong})
    assert card.ruling is None or not card.ruling.ok


async def test_nobody_to_be_heard_is_not_a_no(page: Page) -> None:
    assert await approve.ask(held(), CALL, refund) is None
    assert page.shown[0].state == "later"
    assert "await agent.run(agent.last)" in page.shown[0].text()


async def test_a_late_answer_counts_in_the_next_cell_and_once(page: Page) -> None:
    run = held()
    assert await approve.ask(run, CALL, refund) is None
    rules(page.shown[0], True)
    ruling = await approve.ask(run, CALL, refund)
    assert ruling is not None
    assert ruling.ok
    assert len(page.shown) == 1, "it was answered: it is not asked again"
    assert await approve.ask(run, CALL, refund) is None, "an answer is spent once"
    assert len(page.shown) == 2


async def test_a_late_answer_is_not_for_a_run_that_only_looks_alike(page: Page) -> None:
    assert await approve.ask(held(), CALL, refund) is None
    rules(page.shown[0], True)
    assert await approve.ask(held(), CALL, refund) is None
    assert len(page.shown) == 2


async def test_the_same_card_is_shown_again_while_it_is_open(page: Page) -> None:
    run = held()
    assert await approve.ask(run, CALL, refund) is None
    page.speak = answers(True)
    ruling = await approve.ask(run, CALL, refund)
    assert ruling is not None
    assert ruling.ok
    assert page.shown[0] is page.shown[1]


async def test_an_answer_from_another_thread_wakes_the_cell(page: Page) -> None:
    def speak(card: ApprovalCard) -> None:
        def other() -> None:
            says(card, op="ready")
            rules(card, True)

        threading.Thread(target=other).start()

    page.speak = speak
    ruling = await asyncio.wait_for(approve.ask(held(), CALL, refund), 5)
    assert ruling is not None
    assert ruling.ok


async def test_an_interrupted_cell_leaves_no_live_buttons(page: Page) -> None:
    page.speak = lambda card: says(card, op="ready")
    waiting = asyncio.create_task(approve.ask(held(), CALL, refund))
    await asyncio.sleep(0.02)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    card = page.shown[0]
    assert card.state == "cancelled"
    rules(card, True)
    assert card.ruling is None


async def test_headless_is_refused_at_once_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approve, "place", lambda: "nowhere")
    ruling = await approve.ask(held(), CALL, refund)
    assert ruling is not None
    assert not ruling.ok
    assert "nobody is here" in ruling.why


async def test_an_agent_that_waits_and_goes_on(page: Page) -> None:
    """The whole way: unheard, the run comes back as waiting; answered in the card, the next cell runs it once."""
    agent = Agent(models.scripted([models.call("refund", order_id=1042), "done"]), [refund], ask=approve_with_tool)
    run = await agent.run("Refund 1042")
    assert run.status == "waiting"
    rules(page.shown[0], True)
    run = await agent.run(agent.last)  # type: ignore[arg-type]
    assert (run.status, run.answer, paid) == ("answered", "done", [1042])


async def approve_with_tool(run: Run, call: Call) -> Ruling | None:
    return await approve.ask(run, call, refund)


def test_the_card_shows_everything_that_would_run() -> None:
    evil = Call("c", "refund", '{"file": "report\u202efdp.exe", "long": "' + "x" * 5000 + ' ; rm -rf ~"}')
    shown = facts(evil, refund)
    assert shown["arguments"] == evil.arguments
    assert shown["digest"] == evil.digest
    assert "really runs" in shown["effect"]
    text = ApprovalCard(evil, refund).text()
    assert "\\u202e" in text
    assert "\u202e" not in text
    assert "rm -rf ~" in text


def test_what_was_wrong_before_is_said() -> None:
    shown = facts(CALL, refund, Held(CALL.id, CALL.digest, "the edited arguments do not fit: order_id is missing"))
    assert "The edited arguments do not fit: order_id is missing." in shown["effect"]


def test_a_saved_notebook_says_how_it_stands() -> None:
    card = ApprovalCard(Call("c", "refund", '{"note": "<b>bold</b>"}'), refund)
    bundle = card._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "waits for a person" in data["text/plain"]
    assert "&lt;b&gt;bold" in data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in data


async def test_half_a_character_is_shown_and_stops_no_card(page: Page) -> None:
    shown = facts(Call("1", "refund", '{"why": "\ud800"}'), refund)
    assert shown["arguments"] == '{"why": "\\ud800"}'
    json.dumps(shown, ensure_ascii=False).encode()


async def test_a_late_answer_is_told_that_another_counted(page: Page) -> None:
    sent: list[Any] = []
    call = Call("1", "refund", '{"order_id": 7}')
    card = ApprovalCard(call, refund)
    card.send = lambda content, buffers=None: sent.append(content)  # type: ignore[method-assign]
    for ok in (True, False):
        says(card, op="rule", call_id="1", digest=call.digest, ok=ok, why="")
    assert (card.state, sent) == ("approved", [{"op": "decided"}])


async def test_a_card_that_no_page_shows_holds_no_cell(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cell is run again while it waits: its card is off the page, and the new run would wait behind it for ever."""
    monkeypatch.setattr(approve, "COMES_BACK_WITHIN", 0.05)
    page.speak = lambda card: says(card, op="ready", view="a")
    card = ApprovalCard(Call("1", "refund", '{"order_id": 7}'), refund)
    waits = asyncio.create_task(card.answer())
    await asyncio.sleep(0.02)
    says(card, op="ready", view="b")
    says(card, op="gone", view="a")  # the other view is still there
    says(card, op="gone", view="b")
    says(card, op="ready", view="c")  # the cell was only moved
    done, _ = await asyncio.wait({waits}, timeout=0.4)
    assert not done
    says(card, op="gone", view="c")
    assert await asyncio.wait_for(waits, 2) is None
    assert (card.state, paid) == ("later", [])
