"""The kernel half of the protocol, against a front end without a browser: nothing lost, nothing twice, nothing that grows."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import agentlab.clicks
from agentlab import Agent, Isolate, lint, models
from agentlab.records import Ruling
from agentlab.stepper import Stepper
from agentlab.tools import Tool
from agentlab.twin import twins
from agentlab.widgets.stepper import BETWEEN, QUIET, StepperView, Wire, picture_of

from .conftest import Till, View, stepper_of, until

LOOK = [models.call("look"), models.say("There are 100 cents.")]
PAY = [models.call("pay", cents=30), models.say("Done.")]
Link = Callable[..., tuple[Stepper, Wire]]


@pytest.fixture
async def link(tools: list[Tool], view: View) -> AsyncIterator[Link]:
    made: list[Wire] = []

    def link(script: Any, **options: Any) -> tuple[Stepper, Wire]:
        stepper = stepper_of(Agent(models.scripted(script), tools, **options))
        loop = asyncio.get_running_loop()
        stepper.clicks.bind(loop)
        wire = Wire(stepper, view.hear, loop)
        made.append(wire)
        wire.receive(view.hello())
        return stepper, wire

    yield link
    for wire in made:
        wire.close()


async def test_hello_is_answered_with_all_there_is(link: Link, view: View) -> None:
    link(LOOK)
    await until(lambda: view.state)
    assert [row["text"] for row in view.here] == ["How much is there?"]
    assert view.state["phase"] == "request"
    assert len(view.bars[0]) == 1


async def test_clicks_step_and_go_back(link: Link, view: View) -> None:
    stepper, wire = link(LOOK)
    await until(lambda: view.state)
    for phase in ("reply", "call", "result", "request", "reply", "end"):
        wire.receive(view.click("step"))
        await until(lambda phase=phase: view.state["phase"] == phase and not view.state["running"])  # type: ignore[misc]
    assert view.state["answer"] == "There are 100 cents."
    assert [row["i"] for row in view.here] == [0, 1, 2, 3]
    wire.receive(view.click("back"))
    await until(lambda: view.state["at"] == 5)
    wire.receive(view.click("goto", to=0))
    await until(lambda: view.state["at"] == 0)
    assert view.state["rows"] == 1
    wire.receive(view.click("forward"))
    await until(lambda: view.state["at"] == 1)
    wire.receive({**view.click("goto"), "at": 6})  # the other form of it
    await until(lambda: view.state["at"] == 6)
    assert stepper.is_over


async def test_a_second_click_does_nothing_and_is_answered(link: Link, view: View, till: Till) -> None:
    stepper, wire = link(PAY, guards=[Isolate()])
    await until(lambda: view.state)
    click = view.click("step")
    for _ in range(5):
        wire.receive(click)
    await until(lambda: view.state["at"] == 1 and not view.state["running"])
    before = len(view.messages)
    wire.receive(click)  # meant for the moment before
    await until(lambda: len(view.messages) > before)
    assert stepper.branch.at == 1
    for _ in range(3):
        for _ in range(2):
            wire.receive(view.click("step"))
        at = view.state["at"]
        await until(lambda at=at: view.state["at"] == at + 1 and not view.state["running"])  # type: ignore[misc]
    assert till.log == ["pay 30"]


@pytest.mark.parametrize("stale", [{"at": 7}, {"epoch": 9}, {"branch": 5}, {"branch": None}])
async def test_a_click_meant_for_something_else_is_ignored(link: Link, view: View, stale: dict[str, Any]) -> None:
    stepper, wire = link(LOOK)
    await until(lambda: view.state)
    wire.receive({**view.click("step"), **stale})
    await asyncio.sleep(0.1)
    assert (stepper.branch.at, stepper.branch.last) == (0, 0)


async def test_a_ruling_carries_call_and_digest(link: Link, view: View, till: Till) -> None:
    stepper, wire = link(PAY)
    await until(lambda: view.state)
    wire.receive(view.click("run"))
    await until(lambda: view.state["held"] and not view.state["running"])
    (held,) = view.state["held"]
    wire.receive(view.click("rule", call_id=held["call_id"], digest="another", ok=True, why=""))
    await until(lambda: view.said)
    assert "not the one that you were shown" in view.said[0]["text"]
    assert view.said[0]["tone"] == "error"
    wire.receive(view.click("rule", call_id=held["call_id"], digest=held["digest"], ok="yes", why=""))  # only true is a yes
    await until(lambda: stepper.is_over)  # Run was pressed before: it goes on by itself
    assert till.log == []
    assert stepper.answer == "Done."


async def test_run_goes_on_after_a_yes_and_step_does_not(link: Link, view: View, till: Till) -> None:
    stepper, wire = link(PAY)
    await until(lambda: view.state)
    while not view.state["held"]:
        wire.receive(view.click("step"))
        await asyncio.sleep(0.06)
    (held,) = view.state["held"]
    wire.receive(view.click("rule", call_id=held["call_id"], digest=held["digest"], ok=True, why=""))
    await until(lambda: "as you approved" in view.state["next"])
    await asyncio.sleep(0.1)
    assert (till.log, view.state["held"]) == ([], [])
    wire.receive(view.click("run"))
    await until(lambda: stepper.is_over)
    assert till.log == ["pay 30"]


async def test_what_goes_wrong_is_said_and_not_lost(link: Link, view: View) -> None:
    _, wire = link(LOOK)
    await until(lambda: view.state)
    wire.receive(view.click("fork", row=50, what="text", text="x"))
    await until(lambda: view.said)
    assert "no message 51" in view.said[0]["text"]
    wire.receive(view.click("dance"))
    await until(lambda: len(view.said) == 2)
    assert "no command 'dance'" in view.said[1]["text"]
    wire.receive(view.click("fork"))
    await until(lambda: len(view.said) == 3)
    wire.receive(view.click("step"))
    await until(lambda: view.state["at"] == 1)


async def test_a_fork_comes_as_what_is_new(link: Link, view: View) -> None:
    _, wire = link(LOOK)
    await until(lambda: view.state)
    wire.receive(view.click("run"))
    await until(lambda: view.state["phase"] == "end" and not view.state["running"])
    wire.receive(view.click("fork", row=2, what="text", text="5 cents"))
    await until(lambda: view.state["branch"] == 1 and view.said)
    batch = next(m for m in view.messages if m["op"] == "batch" and m["branch"] == 1)
    assert (batch["from_row"], len(batch["rows"])) == (2, 1)
    assert [row["text"] for row in view.here] == ["How much is there?", "", "5 cents"]
    assert view.said[0]["tone"] == "info"
    wire.receive(view.click("branch", id=0))
    await until(lambda: view.state["branch"] == 0)
    assert [row["text"] for row in view.here][2:] == ["100 cents", "There are 100 cents."]


async def test_reset_is_another_epoch(link: Link, view: View) -> None:
    _, wire = link(LOOK)
    await until(lambda: view.state)
    wire.receive(view.click("run"))
    await until(lambda: view.state["phase"] == "end" and not view.state["running"])
    old = view.click("step")
    wire.receive(view.click("reset"))
    await until(lambda: view.epoch == 1 and not view.state["running"])
    assert (len(view.here), view.state["at"]) == (1, 0)
    wire.receive({**old, "at": 0})
    await asyncio.sleep(0.06)
    assert view.state["at"] == 0


async def test_a_lost_message_is_asked_for_again(link: Link, view: View) -> None:
    stepper, wire = link(lambda request: models.call("look"), guards=[Isolate()])
    await until(lambda: view.state)
    lost = iter([True, True, False])
    view.lose = lambda message: next(lost, False)
    for _ in range(12):
        await stepper.step()
        await asyncio.sleep(0.03)
    view.lose = lambda message: False
    await until(lambda: view.gap)
    wire.receive(view.hello())
    await until(lambda: len(view.here) == len(stepper.branch.rows))
    assert [row["i"] for row in view.here] == list(range(len(stepper.branch.rows)))
    assert view.bars[0] == stepper.branch.bars


async def test_a_second_view_gets_everything(link: Link, view: View) -> None:
    stepper, wire = link(LOOK)
    await until(lambda: view.state)
    await stepper.go()
    await until(lambda: view.state["phase"] == "end")
    other = View()
    wire._send = lambda message: (view.hear(message), other.hear(message))  # type: ignore[func-returns-value]
    wire.receive(other.hello())
    await until(lambda: other.state)
    assert other.here == view.here == stepper.branch.rows


# ---- sizes and rates ----
async def test_at_most_one_message_in_fifty_milliseconds_and_none_lost(link: Link, view: View) -> None:
    stepper, _ = link(lambda request: models.call("look"), guards=[Isolate()])
    await until(lambda: view.state)
    going = asyncio.create_task(stepper.go())
    for k in range(20):
        stepper.say(f"sentence {k}")
    await until(lambda: len(stepper.run) > 1_000, seconds=30)
    stepper.pause()
    await going
    await until(lambda: view.here and len(view.here) == len(stepper.branch.rows) and len(view.said) == 20)
    between = [late - early for early, late in zip(view.times, view.times[1:], strict=False)]
    assert min(between) > BETWEEN - 0.002
    assert [row["i"] for row in view.here] == list(range(len(stepper.branch.rows)))
    assert not view.gap


async def test_the_bytes_of_a_step_do_not_depend_on_the_history(link: Link, view: View) -> None:
    stepper, _ = link(lambda request: models.call("look"), guards=[Isolate()])
    await until(lambda: view.state)

    async def turn() -> int:
        sent = 0
        for _ in range(4):
            before = len(view.messages)
            await stepper.step()
            await until(lambda before=before: len(view.messages) > before and not view.state["running"])  # type: ignore[misc]
            sent += sum(len(json.dumps(message)) for message in view.messages[before:])
        return sent

    early = [await turn() for _ in range(3)][-1]
    going = asyncio.create_task(stepper.go())
    await until(lambda: len(stepper.run) > 2_000, seconds=30)
    stepper.pause()
    await going
    while stepper.state()["phase"] != "request":
        await stepper.step()
    await until(lambda: not view.state["running"] and len(view.here) == len(stepper.branch.rows))
    late = await turn()
    assert late < 1.1 * early, f"{early} bytes a turn early, {late} late"


async def test_long_texts_travel_in_short_and_whole_on_demand(tools: list[Tool], view: View) -> None:
    long = "ü" * 5_000
    agent = Agent(models.scripted([models.call("look", note="n" * 900), models.say(long)]), tools)
    stepper = stepper_of(agent)
    stepper.clicks.bind(asyncio.get_running_loop())
    wire = Wire(stepper, view.hear, asyncio.get_running_loop())
    await stepper.go()
    wire.receive(view.hello())
    await until(lambda: view.state and view.state["phase"] == "end")
    reply, answer = view.here[1], view.here[-1]
    assert (len(answer["text"]), answer["more"]) == (600, 4_400)
    assert (len(reply["calls"][0]["arguments"]), reply["calls"][0]["more"]) == (600, len('{"note": ""}') + 300)
    wire.receive(view.click("full", row=answer["i"]))
    wire.receive(view.click("full", row=1))
    wire.receive(view.click("full", row=77))
    await until(lambda: len(view.texts) == 2)
    assert view.texts[answer["i"]]["text"] == long
    assert len(view.texts[1]["calls"][0]["arguments"]) == 900 + len('{"note": ""}')
    wire.close()


async def test_a_cut_result_can_be_read_whole(tools: list[Tool], view: View) -> None:
    from agentlab import Truncate, tool

    @tool
    def flood() -> str:
        """A lot."""
        return "word " * 2_000

    stepper = stepper_of(Agent(models.scripted([models.call("flood"), models.say("ok")]), [flood], guards=[Truncate(300)]))
    wire = Wire(stepper, view.hear, asyncio.get_running_loop())
    await stepper.go()
    wire.receive(view.hello())
    await until(lambda: view.state and view.state["phase"] == "end")
    row = view.here[2]
    assert row["full_chars"] == 10_000
    assert len(row["text"]) <= 300
    wire.receive(view.click("full", row=2))
    await until(lambda: view.texts)
    assert len(view.texts[2]["text"]) <= 300
    assert view.texts[2]["whole"] == "word " * 2_000
    wire.close()


# ---- the widget ----
async def test_clicks_hop_from_any_thread_and_callbacks_never_block(tools: list[Tool]) -> None:
    stepper = stepper_of(Agent(models.scripted(LOOK), tools))
    loop = asyncio.get_running_loop()
    stepper.clicks.bind(loop)
    widget = StepperView(stepper, loop)
    click = {"op": "step", "branch": 0, "at": 0, "epoch": 0}
    thread = threading.Thread(target=lambda: [widget._handle_custom_msg(click, []) for _ in range(20)])
    thread.start()
    thread.join()
    await until(lambda: stepper.branch.last == 1 and not stepper.running)
    await asyncio.sleep(0.02)
    assert stepper.branch.at == 1
    widget._handle_custom_msg("no mapping", [])
    widget.put_away()


async def test_no_secret_and_little_else_stands_in_the_traits(tools: list[Tool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2-hunter2")
    stepper = stepper_of(Agent(models.scripted(lambda request: models.call("look")), tools, guards=[Isolate()]))
    while len(stepper.run) < 600:
        await stepper.step()
    widget = StepperView(stepper, asyncio.get_running_loop())
    kept = json.dumps({key: value for key, value in widget.get_state().items() if key not in ("_esm", "_css")})
    assert "hunter2" not in kept
    assert len(kept) < 60_000
    assert len(widget.picture["rows"]) == 40
    assert "rows in the middle are left out" in widget.picture["note"]
    widget.put_away()


async def test_the_picture_is_kept_where_it_waits_and_where_it_ends(tools: list[Tool]) -> None:
    stepper = stepper_of(Agent(models.scripted(PAY), tools))
    widget = StepperView(stepper, asyncio.get_running_loop())
    assert widget.picture["state"]["phase"] == "request"
    await stepper.go()
    assert widget.picture["state"]["held"][0]["name"] == "pay"
    await stepper.run_to_end()
    assert widget.picture["state"]["answer"] == "Done."
    assert widget.picture == json.loads(json.dumps(picture_of(stepper)))
    widget.put_away()


async def test_the_twins_stand_in_the_same_output(tools: list[Tool]) -> None:
    hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    script = models.scripted([models.call(hostile, x=hostile), models.say(hostile)])
    stepper = stepper_of(Agent(script, tools, system=hostile), hostile)
    await stepper.go()
    widget = StepperView(stepper, asyncio.get_running_loop())
    bundle = widget.bundle()
    assert {"text/html", "text/plain", "application/vnd.jupyter.widget-view+json"} <= set(bundle)
    html = bundle["text/html"]
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;script&gt;" in html
    assert "color:" not in html.replace("background:#5b8def", "")  # colours are the page's own, light or dark
    assert hostile[:30] in bundle["text/plain"]
    assert len(html) < 40_000
    widget.put_away()


# ---- anything goes ----
@pytest.mark.parametrize("seed", range(6))
async def test_any_clicks_leave_a_history_that_holds_together(link: Link, view: View, till: Till, seed: int) -> None:
    """Clicks at random, fast, some stale: the view ends with what the kernel has, and every history could be sent."""
    dice = random.Random(seed)

    def script(request: Any) -> Any:
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        options = [models.call("look"), models.call("pay", cents=1), models.calls(("look", {}), ("pay", {"cents": 2})), "done"]
        return options[(turn * 7 + seed) % 4] if request["tools"] else "best"

    stepper, wire = link(script)
    await until(lambda: view.state)
    for _ in range(60):
        op = dice.choice(["step"] * 5 + ["back", "forward", "run", "pause", "stop", "reset", "fork", "goto", "rule", "branch"])
        row = dice.randrange(max(len(stepper.branch.rows), 1))
        extra: dict[str, Any] = {
            "fork": {"row": row, "what": "text", "text": f"edited {dice.random()}"},
            "goto": {"to": dice.randrange(12)},
            "branch": {"id": dice.choice(list(stepper.branches))},
        }.get(op, {})
        if op == "rule":
            held = dice.choice(view.state["held"] or [{"call_id": "x", "digest": "y"}])
            extra = {"call_id": held["call_id"], "digest": held["digest"], "ok": dice.random() < 0.5, "why": ""}
        click = {**view.click(op, **extra), **({"at": 99} if dice.random() < 0.1 else {})}
        for _ in range(dice.choice([1, 1, 2])):
            wire.receive(click)
        await asyncio.sleep(dice.choice([0, 0, 0.01, 0.06]))
    stepper.pause()
    await until(lambda: not stepper.running)
    wire.receive(view.hello())
    await until(lambda: not wire._dirty and wire._timer is None)
    assert view.here == stepper.branch.rows
    assert view.bars[view.state["branch"]] == stepper.branch.bars
    for branch in stepper.branches.values():
        assert [row["i"] for row in branch.rows] == list(range(len(branch.rows)))
        for moment in branch.moments:
            if moment.place == "request" or (moment.place == "end" and not moment.run.todo and not moment.run.held):
                assert lint(moment.run.messages) == []
            assert moment.rows >= len(moment.run)
    said_yes = [e for branch in stepper.branches.values() for e in branch.entries if isinstance(e, Ruling) and e.ok]
    assert sum(line.startswith("pay") for line in till.log) <= len(said_yes) or stepper.epoch > 0


async def test_stop_between_two_steps_ends_the_run(link: Link, view: View, till: Till) -> None:
    stepper, wire = link(lambda request: models.call("look"), guards=[Isolate()])
    await until(lambda: view.state)
    wire.receive(view.click("run"))
    wire.receive(view.click("stop"))  # before the task of the first click has begun
    await until(lambda: not stepper.running)
    assert (stepper.status, till.log) == ("interrupted", [])
    assert stepper.left is True
    wire.receive({**view.click("step"), "at": stepper.branch.at})
    await until(lambda: not stepper.running and stepper.state()["phase"] == "request")
    wire.receive({**view.click("step"), "at": stepper.branch.at})
    await until(lambda: not stepper.running and stepper.state()["phase"] == "reply")
    assert stepper.left is False  # taken up again: whoever waits for the end waits on


async def test_a_quick_step_is_one_message(link: Link, view: View) -> None:
    """A state that only says "running" waits: it would take the place of the one that comes right after it."""
    _, wire = link(LOOK)
    await until(lambda: view.state)
    await asyncio.sleep(2 * BETWEEN)
    before = len(view.messages)
    wire.receive(view.click("step"))
    await until(lambda: view.state["at"] == 1)
    assert [message["state"]["running"] for message in view.messages[before:]] == [False]


async def test_a_slow_step_is_said_to_run(view: View) -> None:
    stand = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        await stand.wait()
        return "waited"

    stepper = stepper_of(Agent(models.scripted([models.call("wait"), "Done."]), [wait]))
    loop = asyncio.get_running_loop()
    stepper.clicks.bind(loop)
    wire = Wire(stepper, view.hear, loop)
    await stepper.step()
    await stepper.step()
    await until(lambda: view.state and view.state["phase"] == "call" and not view.state["running"])
    began = loop.time()
    wire.receive(view.click("step"))
    await until(lambda: view.state["running"])
    assert QUIET * 0.9 <= loop.time() - began < QUIET * 5
    stand.set()
    await until(lambda: view.state["phase"] == "result" and not view.state["running"])
    wire.close()


async def test_half_a_character_stops_no_message(tools: list[Tool], view: View) -> None:
    """A lone surrogate cannot be sent: the whole stepper would be missing from the page."""
    script = [{"role": "assistant", "content": "a\ud800b", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "lo\udfffok", "arguments": '{"x": "\ud801"}'}},
    ]}, "\ud802"]  # fmt: skip
    stepper = stepper_of(Agent(models.scripted(script), tools), "What is \ud83d?")
    wire = Wire(stepper, view.hear, asyncio.get_running_loop())
    wire.receive(view.hello())
    await stepper.go()
    await until(lambda: view.state and view.state["phase"] == "end")
    for sent in (view.messages, picture_of(stepper), twins(stepper)):
        json.dumps(sent, ensure_ascii=False).encode()
    assert view.here[0]["text"] == "What is \\ud83d?"
    assert view.here[1]["text"] == "a\\ud800b"
    wire.close()


async def test_run_pauses_where_nothing_ends_it(link: Link, view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agentlab.clicks, "RUN_AT_MOST", 40)
    stepper, wire = link(lambda request: models.call("look"), guards=[Isolate()])
    await until(lambda: view.state)
    wire.receive(view.click("run"))
    await until(lambda: view.said)
    assert "Run has taken 40 steps and pauses here" in view.said[0]["text"]
    assert (stepper.branch.at, stepper.running, stepper.state()["can"]["run"]) == (40, False, True)


async def test_an_answer_that_comes_after_the_ruling_is_told_what_was_decided(link: Link, view: View, till: Till) -> None:
    stepper, wire = link(PAY)
    await until(lambda: view.state)
    wire.receive(view.click("run"))
    await until(lambda: view.state["held"] and not view.state["running"])
    (held,) = view.state["held"]
    yes = view.click("rule", call_id=held["call_id"], digest=held["digest"], ok=True, why="")
    wire.receive(yes)
    wire.receive({**yes, "ok": False})  # from another view, which still showed the card
    await until(lambda: view.said)
    assert view.said[0]["text"] == "This call was approved already. A second answer changes nothing."
    await until(lambda: stepper.is_over)
    assert till.log == ["pay 30"]


async def test_a_stepper_that_no_page_shows_holds_no_cell(link: Link, view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cell is run again while another waits in finish(): the new run would wait behind the old for ever."""
    monkeypatch.setattr("agentlab.stepper.COMES_BACK_WITHIN", 0.05)
    monkeypatch.setattr("agentlab.stepper.place", lambda: "notebook")
    stepper, wire = link(LOOK)
    stepper.view = wire
    await until(lambda: view.state)
    waits = asyncio.create_task(stepper.finish())
    wire.receive(view.click("gone"))
    wire.receive(view.hello())  # its cell was only moved
    done, _ = await asyncio.wait({waits}, timeout=0.4)
    assert not done
    wire.receive(view.click("gone"))
    run = await asyncio.wait_for(waits, 2)
    assert run.status == "running"


async def test_flipping_to_a_branch_shows_where_they_part(link: Link, view: View) -> None:
    stepper, wire = link(LOOK)
    await stepper.go()
    stepper.goto(0)
    first = stepper.branch
    stepper.goto(first.last)
    await stepper.fork(2, "text", "0 cents")
    stepper.switch(0)
    stepper.goto(0)
    stepper.switch(1)
    await until(lambda: view.state and view.state["branch"] == 1)
    wire.receive(view.click("branch", id=0, row=2))
    await until(lambda: view.state["branch"] == 0)
    assert view.state["rows"] == 3  # it stood at the first moment, where that message had not come in
