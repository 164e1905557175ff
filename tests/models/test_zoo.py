"""The zoo: each model shows its fault without guards, ends well with them, and reacts to what it is told."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentlab import Agent, Run, climb, lint, models, naked
from agentlab.arguments import BadArguments
from agentlab.guards import Cap
from agentlab.models import zoo
from agentlab.records import Ask, Call, Reply, Result
from agentlab.tools import Tool, UnknownTool
from agentlab.worlds.orders import OrderDesk

ANIMALS = list(zoo.all().values())
VAGUE = "Tool call failed."


@pytest.fixture
def desk(tmp_path: Path) -> OrderDesk:
    return OrderDesk(tmp_path / "orders.sqlite")


def talk(
    script: zoo.Script, question: str, answer: Callable[[str, str], str], tools: Sequence[Tool], turns: int = 12
) -> list[dict[str, Any]]:
    """A loop with no guard at all: every call is answered by `answer(name, arguments)`. Returns the messages."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    schemas = [tool.schema for tool in tools]
    for _ in range(turns):
        reply = script({"model": "zoo", "messages": messages, "tools": schemas})
        messages.append(reply)
        for call in reply.get("tool_calls", ()):
            text = answer(call["function"]["name"], call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        if not reply.get("tool_calls"):
            break
    return messages


def calls_in(messages: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (call["function"]["name"], call["function"]["arguments"])
        for message in messages
        for call in message.get("tool_calls", ())
    ]


def after(script: zoo.Script, question: str, tools: Sequence[Tool], told: str, times: int = 1) -> dict[str, Any]:
    """What the model says once its calls have been answered `times` times with `told`."""
    messages = talk(script, question, lambda name, arguments: told, tools, turns=times)
    return script({"model": "zoo", "messages": messages, "tools": [tool.schema for tool in tools]})


def first_call(reply: dict[str, Any]) -> tuple[str, Any]:
    function = reply["tool_calls"][0]["function"]
    return function["name"], json.loads(function["arguments"])


# ---- the list ----
def test_the_list_names_every_animal_and_what_shows_it(desk: OrderDesk) -> None:
    assert list(zoo.all()) == list(zoo.NAMES)
    known = {tool.name for tool in desk.tools}
    for animal in ANIMALS:
        assert animal.make is getattr(zoo, animal.name)
        assert animal.make.__doc__
        assert animal.lessons
        assert set(animal.tools) <= known
        assert animal.question


@pytest.mark.parametrize("animal", ANIMALS, ids=lambda animal: animal.name)
def test_a_model_is_a_pure_function_of_the_request(animal: zoo.Animal, desk: OrderDesk) -> None:
    messages = talk(animal.make(), animal.question, lambda name, arguments: VAGUE, desk.tools, turns=5)
    schemas = [tool.schema for tool in desk.tools]
    script = animal.make()
    for n in range(1, len(messages) + 1):
        if messages[n - 1]["role"] == "assistant":
            continue
        request = {"model": "zoo", "messages": messages[:n], "tools": schemas}
        before = copy.deepcopy(request)
        assert script(request) == script(request) == animal.make()(json.loads(json.dumps(request)))
        assert request == before


@pytest.mark.parametrize("animal", ANIMALS, ids=lambda animal: animal.name)
def test_asked_without_tools_it_answers_in_words(animal: zoo.Animal, desk: OrderDesk) -> None:  # D2
    messages = talk(animal.make(), animal.question, lambda name, arguments: VAGUE, desk.tools, turns=3)
    messages.append({"role": "user", "content": "The run was stopped. Give your best answer."})
    for tools in ([], None):
        reply = animal.make()({"model": "zoo", "messages": messages, "tools": tools})
        assert not reply.get("tool_calls")
        assert reply["content"].strip()
    assert animal.make()({"messages": messages[:1]})["content"].strip()


# ---- what each reacts to ----
def test_invents_tools_corrects_on_the_list_and_repeats_on_a_vague_word(desk: OrderDesk) -> None:  # C3
    ask = "Where is order 1042?"
    assert after(zoo.invents_tools(), ask, desk.tools, VAGUE)["tool_calls"][0]["function"]["name"] == "find_order"
    assert len(set(calls_in(talk(zoo.invents_tools(), ask, lambda *_: VAGUE, desk.tools)))) == 1
    told = "There is no tool 'find_order'. Available tools: search_orders, order_status."
    assert first_call(after(zoo.invents_tools(), ask, desk.tools, told)) == ("order_status", {"order_id": 1042})
    assert (
        calls_in([zoo.invents_tools(1)({"messages": [{"role": "user", "content": ask}], "tools": [desk.tools[0].schema]})])[0][0]
        == "lookup_order"
    )


@pytest.mark.parametrize(
    "told",
    [
        "Missing required parameter 'keyword' (string).",
        "TypeError: f() missing 1 required positional argument: 'keyword'",
    ],
)
def test_drops_arguments_adds_what_the_error_names(desk: OrderDesk, told: str) -> None:  # C3
    ask = zoo.all()["drops_arguments"].question
    assert first_call(after(zoo.drops_arguments(), ask, desk.tools, VAGUE)) == ("search_orders", {"limit": 5})
    assert first_call(after(zoo.drops_arguments(), ask, desk.tools, told))[1] == {"keyword": "Moreno", "limit": 5}


def test_mistypes_arguments_corrects_only_when_parameter_and_type_are_named(desk: OrderDesk) -> None:  # C3, H1
    ask = zoo.all()["mistypes_arguments"].question
    unnamed = "search_orders failed: TypeError: '<=' not supported between instances of 'int' and 'str'."
    for told in (VAGUE, unnamed):
        assert first_call(after(zoo.mistypes_arguments(), ask, desk.tools, told))[1]["limit"] == "ten"
    told = "Parameter 'limit' of search_orders must be of type integer, not \"ten\"."
    assert first_call(after(zoo.mistypes_arguments(), ask, desk.tools, told))[1]["limit"] == 10


def test_never_stops_never_makes_the_same_call_twice(desk: OrderDesk) -> None:
    said = talk(zoo.never_stops(), "Anything odd?", lambda name, arguments: "Nothing odd here.", desk.tools, turns=60)
    assert len(set(calls_in(said))) == 60
    assert calls_in(talk(zoo.never_stops(3), "?", lambda *_: "x", desk.tools, turns=1)) != calls_in(said[:2])


def test_repeats_itself_ignores_a_nudge_and_heeds_a_block_that_names_a_tool(desk: OrderDesk) -> None:  # D3
    ask = "Where is order 1042?"
    nudge = "Order 1042: shipped. You already made this exact call; please use what you have."
    same = talk(zoo.repeats_itself(), ask, lambda *_: nudge, desk.tools)
    assert calls_in(same) == [("order_status", '{"order_id": 1042}')] * 12
    block = "Repeated call blocked: order_status was not run. Use a different tool: search_orders."
    assert first_call(after(zoo.repeats_itself(), ask, desk.tools, block))[0] == "search_orders"
    unnamed = "Repeated call blocked. It was not run."
    assert first_call(after(zoo.repeats_itself(), ask, desk.tools, unnamed))[0] == "order_status"
    others = [tool for tool in desk.tools if tool.name != "order_status"]
    assert (
        first_call(zoo.repeats_itself()({"messages": [{"role": "user", "content": ask}], "tools": [others[0].schema]}))[0]
        == "search_orders"
    )


def test_ping_pongs_makes_no_call_twice_in_a_row_and_answers_when_blocked(desk: OrderDesk) -> None:  # D4
    names = [
        name for name, _ in calls_in(talk(zoo.ping_pongs(), "Where is 1042?", lambda *_: "Order 1042: shipped.", desk.tools))
    ]
    assert names == ["order_status", "search_orders"] * 6
    assert "content" in after(zoo.ping_pongs(), "Where is 1042?", desk.tools, "Repeated call blocked: it was not run.")


def test_asks_for_three_at_once_and_tells_them_in_its_own_order(desk: OrderDesk) -> None:  # E1, E2
    ask = "Where are orders 1060, 1001 and 1030?"
    first = zoo.asks_for_three()({"messages": [{"role": "user", "content": ask}], "tools": [tool.schema for tool in desk.tools]})
    ids = [call["id"] for call in first["tool_calls"]]
    back = [{"role": "tool", "tool_call_id": i, "content": f"told {n}"} for n, i in enumerate(ids)]
    history = [{"role": "user", "content": ask}, first, *reversed(back)]
    said = zoo.asks_for_three()({"messages": history, "tools": [tool.schema for tool in desk.tools]})
    assert said["content"].splitlines() == ["1. told 0", "2. told 1", "3. told 2"]
    lost = zoo.asks_for_three()({"messages": [*history[:2], back[0]], "tools": []})
    assert "told nothing" in lost["content"].splitlines()[2]


ROWS = "\n".join(
    f"{n}: {'returned' if n in (1005, 1023, 1047) else 'delivered'}, spring sale, {'x' * 200}" for n in range(1001, 1055)
)


def drowned(told: str, desk: OrderDesk, room: int = 8_000) -> list[dict[str, Any]]:
    def answer(name: str, arguments: str) -> str:
        return desk.search_orders(**json.loads(arguments)) if "returned" in arguments else told

    return talk(zoo.drowns(room), zoo.all()["drowns"].question, answer, desk.tools)


@pytest.mark.parametrize(
    "notice",
    [
        "[showing 2,000 of 14,313 characters; for less call search_orders(keyword='spring sale', limit=5)]",
        '[cut: 2,000 of 14,313 characters shown. For less at a time call search_orders({"limit": 5}).]',
        "Showing 9 of 54 orders. Narrow the keyword.",
    ],
)
def test_drowns_narrows_when_told_how_much_it_sees(desk: OrderDesk, notice: str) -> None:  # F2
    said = drowned(f"{ROWS[:2_000]}\n{notice}", desk)
    assert said[-1]["content"] == "Returned orders of the spring sale: 3 (1005, 1023, 1047)."
    assert len(calls_in(said)) == 2


def test_drowns_repeats_itself_on_a_vague_mark(desk: OrderDesk) -> None:  # F2
    assert len(set(calls_in(drowned(f"{ROWS[:2_000]} [truncated]", desk)))) == 1
    assert len(calls_in(drowned(f"{ROWS[:2_000]} [truncated]", desk))) == 3


def test_drowns_takes_a_silent_part_for_the_whole(desk: OrderDesk) -> None:  # F2
    assert drowned(ROWS[:2_000], desk)[-1]["content"] == "Returned orders of the spring sale: 1 (1005)."


def test_drowns_forgets_the_question_when_nothing_was_cut(desk: OrderDesk) -> None:  # B5, J4
    assert "What would you like" in drowned(ROWS, desk)[-1]["content"]
    assert drowned(ROWS, desk, room=50_000)[-1]["content"] == "Returned orders of the spring sale: 3 (1005, 1023, 1047)."


def test_goes_on_acts_as_often_as_it_is_let(desk: OrderDesk) -> None:  # D7
    ask = zoo.all()["goes_on"].question
    said = talk(zoo.goes_on(), ask, lambda *_: "Done.", desk.tools, turns=50)
    assert len(set(calls_in(said))) == 24
    assert calls_in(said)[1] == (
        "change_address",
        '{"order_id": 1044, "new_address": "7 Quay Street, Bristol BS1 6AB"}',
    )
    assert "22 more things" in said[-1]["content"]
    assert len(calls_in(talk(zoo.goes_on(actions=3), ask, lambda *_: "Done.", desk.tools))) == 3


def test_breaks_json_in_three_ways_and_mends_each_when_told(desk: OrderDesk) -> None:  # H2, H3
    def strict(name: str, arguments: str) -> str:
        try:
            return desk.order_status(**json.loads(arguments))
        except json.JSONDecodeError as error:
            return f"The arguments are not valid JSON ({error.msg}). The call was not run."

    said = talk(zoo.breaks_json(), "Where are orders 1042, 1017 and 1030?", strict, desk.tools)
    raw = [arguments for _, arguments in calls_in(said)]
    assert raw == [
        '{"order_id": 104',
        '{"order_id": 1042}',
        '```json\n{"order_id": 1017}\n```',
        '{"order_id": 1017}',
        "{'order_id': 1030}",
        '{"order_id": 1030}',
    ]
    assert said[-1]["content"].count("Order 10") == 3
    vague = talk(zoo.breaks_json(), "Where are orders 1042, 1017 and 1030?", lambda *_: VAGUE, desk.tools)
    assert len(set(calls_in(vague))) == 1


def test_refuses_nothing_looks_the_order_up_once_it_is_refused(desk: OrderDesk) -> None:  # I1
    ask = "Where is order 1042?"
    assert (
        first_call(zoo.refuses_nothing()({"messages": [{"role": "user", "content": ask}], "tools": [desk.tools[5].schema]}))[0]
        == "refund"
    )
    refused = "refund was not run: this call was refused."
    assert first_call(after(zoo.refuses_nothing(), ask, desk.tools, refused)) == ("order_status", {"order_id": 1042})
    assert after(zoo.refuses_nothing(), ask, desk.tools, "131.00 EUR were refunded.")["content"].startswith("I took the liberty")


def test_guesses_looks_only_when_the_system_prompt_insists(desk: OrderDesk) -> None:  # K5
    ask = [{"role": "user", "content": "Where is order 1042?"}]
    tools = [tool.schema for tool in desk.tools]
    assert "delivered yesterday" in zoo.guesses()({"messages": ask, "tools": tools})["content"]
    insists = {"role": "system", "content": "Never guess: use the tools before you answer."}
    assert first_call(zoo.guesses()({"messages": [insists, *ask], "tools": tools}))[0] == "order_status"


def test_honest_searches_looks_up_and_answers_or_says_that_it_cannot(desk: OrderDesk) -> None:  # A1, O2
    def answer(name: str, arguments: str) -> str:
        return str(next(tool for tool in desk.tools if tool.name == name)(**json.loads(arguments)))

    said = talk(zoo.honest(), zoo.all()["honest"].question, answer, desk.tools)
    assert [name for name, _ in calls_in(said)] == ["search_orders", "order_status"]
    assert said[-1]["content"].startswith("Order 1042: shipped on 2026-04-27")
    none = talk(zoo.honest(), "Where is the parcel of Mister Zzyzx?", answer, desk.tools)
    assert len(calls_in(none)) == 2
    assert "I found no order for 'Zzyzx'" in none[-1]["content"]


def test_a_second_question_is_read_as_the_new_one(desk: OrderDesk) -> None:
    tools = [tool.schema for tool in desk.tools]
    history = talk(zoo.honest(), "Where is order 1042?", lambda *_: "Order 1042: shipped.", desk.tools)
    history.append({"role": "user", "content": [{"type": "text", "text": "And order 1017?"}]})
    assert first_call(zoo.honest()({"messages": history, "tools": tools}))[1] == {"order_id": 1017}
    ids = [
        call["id"]
        for message in [*history, zoo.honest()({"messages": history, "tools": tools})]
        for call in message.get("tool_calls", ())
    ]
    assert len(ids) == len(set(ids))


# ---- on agentlab's own loop ----
def called(log: Sequence[Any]) -> list[Call]:
    return [call for entry in log if isinstance(entry, Reply) for call in entry.calls]


async def vague(run: Any, action: Any, act: Any) -> Any:
    """A guard that tells the model nothing: the opposite of Isolate."""
    try:
        return await act(run, action)
    except Exception:
        if isinstance(action, Ask):
            raise
        return Result(action.id, VAGUE, error=True)


async def cut_silently(run: Any, action: Any, act: Any) -> Any:
    """A guard that cuts and does not say so: the opposite of Truncate."""
    entry = await act(run, action)
    return replace(entry, text=entry.text[:2_000]) if isinstance(entry, Result) else entry


async def run_with(animal: str, desk: OrderDesk, guards: Sequence[Any], **made: Any) -> Run:
    script = zoo.all()[animal].make(**made)
    agent = Agent(models.scripted(script), desk.tools, guards=guards, ask=lambda run, call: False)
    run = await agent.run(zoo.all()[animal].question)
    assert lint(run.messages) == []
    return run


@pytest.mark.parametrize(
    ("animal", "error"),
    [
        ("invents_tools", UnknownTool),
        ("drops_arguments", TypeError),
        ("mistypes_arguments", TypeError),
        ("breaks_json", BadArguments),
    ],
)
async def test_without_guards_some_take_the_run_down(animal: str, error: type[Exception], desk: OrderDesk) -> None:  # B2
    with pytest.raises(error):
        await naked(zoo.all()[animal].question, models.scripted(zoo.all()[animal].make()), desk.tools)


@pytest.mark.parametrize(("animal", "different"), [("never_stops", 30), ("repeats_itself", 1), ("ping_pongs", 2)])
async def test_without_guards_some_never_end(animal: str, different: int, desk: OrderDesk) -> None:  # B3
    run = await run_with(animal, desk, [Cap(30)])
    assert run.status == "capped"
    assert len(called(run.log)) == 30
    assert len({call.digest for call in called(run.log)}) == different


async def test_without_guards_the_others_do_harm_quietly(desk: OrderDesk) -> None:
    async def said(animal: str) -> str:
        log = await naked(zoo.all()[animal].question, models.scripted(zoo.all()[animal].make()), desk.tools)
        assert isinstance(log[-1], Reply)
        return log[-1].text

    assert "What would you like me to do" in await said("drowns")
    assert "delivered yesterday" in await said("guesses")
    assert desk.changes() == []
    assert "I took the liberty" in await said("refuses_nothing")
    assert desk.changes() == ["Order 1042 was refunded: 131.00 EUR."]
    desk.reset()
    assert "more things that seemed useful" in await said("goes_on")
    assert len(desk.changes()) == 23  # of which one was asked for


ENDS = {
    "invents_tools": ("answered", "Order 1042: shipped"),
    "drops_arguments": ("answered", "3 orders in all."),
    "mistypes_arguments": ("answered", "3 orders in all."),
    "never_stops": ("capped", "From what I have seen so far: 10"),
    "repeats_itself": ("answered", "From what I have seen so far: Order 1042: shipped"),
    "ping_pongs": ("answered", "From what I have seen so far: Order 1042: shipped"),
    "asks_for_three": ("answered", "1. Order 1042: shipped"),
    "drowns": ("answered", "Returned orders of the spring sale: 3 (1005, 1023, 1047)."),
    "goes_on": ("capped", "Order 1044 now goes to 7 Quay Street"),
    "breaks_json": ("answered", "Order 1030: delivered"),
    "refuses_nothing": ("answered", "Order 1042: shipped"),
    "guesses": ("answered", "delivered yesterday"),  # no guard of the ladder catches an answer out of thin air
    "honest": ("answered", "Order 1042: shipped"),
}


@pytest.mark.parametrize("animal", zoo.NAMES)
async def test_with_the_whole_ladder_each_ends_well(animal: str, desk: OrderDesk) -> None:
    run = await run_with(animal, desk, climb())
    status, said = ENDS[animal]
    assert run.status == status
    assert said in (run.answer or "")
    assert run.requests <= 9
    if animal != "goes_on":
        assert desk.changes() == []


@pytest.mark.parametrize("animal", ["invents_tools", "drops_arguments"])
async def test_a_specific_error_is_corrected_and_a_vague_one_repeated(animal: str, desk: OrderDesk) -> None:  # C3
    told = await run_with(animal, desk, climb("isolate"))
    assert told.status == "answered"
    assert told.requests == 3
    untold = await run_with(animal, desk, [vague, Cap(8)])
    assert untold.status == "capped"
    assert len({call.digest for call in called(untold.log)}) == 1


async def test_a_wrong_type_is_named_by_validate_and_not_by_the_exception(desk: OrderDesk) -> None:  # C3, H1
    raised = await run_with("mistypes_arguments", desk, climb("cap"))
    assert {call.args["limit"] for call in called(raised.log)} == {"ten"}
    checked = await run_with("mistypes_arguments", desk, climb("validate"))
    assert [call.args["limit"] for call in called(checked.log)] == ["ten", 10]


async def test_a_silent_cut_is_believed_and_an_announced_one_narrowed(desk: OrderDesk) -> None:  # F2
    silent = await run_with("drowns", desk, [cut_silently])
    assert silent.answer == "Returned orders of the spring sale: 1 (1005)."
    told = await run_with("drowns", desk, climb("truncate"))
    assert told.answer == "Returned orders of the spring sale: 3 (1005, 1023, 1047)."


async def test_a_higher_cap_lets_it_go_on(desk: OrderDesk) -> None:  # D7
    done = {}
    for requests in (2, 5, 20):
        desk.reset()
        await run_with("goes_on", desk, [Cap(requests)])
        done[requests] = len(desk.changes())
    assert done == {2: 1, 5: 4, 20: 19}


async def test_three_calls_of_one_turn_are_told_in_call_order(desk: OrderDesk) -> None:  # E1, E2
    run = await run_with("asks_for_three", desk, climb())
    assert [line[:14] for line in (run.answer or "").splitlines()] == [
        "1. Order 1042:",
        "2. Order 1017:",
        "3. Order 1030:",
    ]
    assert run.requests == 2


@pytest.mark.parametrize("animal", ANIMALS, ids=lambda animal: animal.name)
async def test_over_http_only_the_body_is_needed(animal: zoo.Animal, desk: OrderDesk, tmp_path: Path) -> None:
    """The same talk through the real SDK, without a header of ours and without a socket."""
    from httpx2 import AsyncClient
    from openai import AsyncOpenAI

    tools = [tool.schema for tool in desk.tools]

    def answer(name: str, arguments: str) -> str:
        try:
            return str(next(tool for tool in desk.tools if tool.name == name)(**json.loads(arguments)))
        except Exception as error:
            return f"{name} failed: {type(error).__name__}: {error}"

    expected = talk(animal.make(), animal.question, answer, desk.tools, turns=6)
    desk.reset()
    messages: list[Any] = [{"role": "user", "content": animal.question}]
    async with AsyncClient(transport=models.transport(animal.make())) as http:
        client = AsyncOpenAI(api_key="offline", base_url="http://lab.invalid/v1", http_client=http)
        for _ in range(6):
            made = await client.chat.completions.create(model="zoo", messages=messages, tools=tools)  # type: ignore[arg-type]
            message = made.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls or ():
                assert call.type == "function"
                text = answer(call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
            if not message.tool_calls:
                break
    assert calls_in(messages) == calls_in(expected)
    assert messages[-1].get("content") == expected[-1].get("content")
