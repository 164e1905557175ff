"""Lesson 01: judged by the requests that the loop sends, as they go over the wire."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from agentlab.teach.task import Task, Wrong, named, plainly, shown


def order_status(order_id: int) -> str:
    """Tell where an order is."""
    return f"Order {order_id}: shipped."


def count_orders(keyword: str) -> int:
    """Count the orders that contain the keyword."""
    return 3


async def talk(learner: Callable[..., Any], script: list[Any]) -> tuple[Any, list[list[dict[str, Any]]]]:
    """Run the learner's loop on a script; give back what it returned and the messages of each request."""
    import httpx2
    import openai

    from agentlab import models, tool

    sent: list[list[dict[str, Any]]] = []

    def next_reply(request: dict[str, Any]) -> Any:
        sent.append(deepcopy(list(request["messages"])))
        return script[len(sent) - 1]

    http = httpx2.AsyncClient(transport=models.transport(next_reply))
    async with openai.AsyncOpenAI(api_key="offline", base_url="http://lab/v1", http_client=http, max_retries=0) as client:
        tools = {made.name: made for made in (tool(order_status), tool(count_orders))}
        value = learner(client, tools, "Where is order 1042?")
        if not inspect.isawaitable(value):
            raise Wrong("calling my_loop", named(value), "a coroutine: begin it with `async def`")
        try:
            return await value, sent
        except Exception:
            # The script ran out: to the loop it looks like an error of the endpoint.
            if len(sent) > len(script):
                why = "that the loop returns the answer and ends"
                raise Wrong("a model that has given its answer", "one more request", why) from None
            raise


async def judge_loop(learner: Callable[..., Any]) -> str:
    from agentlab import models

    answer, sent = await talk(learner, ["Hello!"])
    expect("a model that answers at once", answer, "Hello!", len(sent), 1)

    one = models.call("order_status", order_id=1042)
    answer, sent = await talk(learner, [one, "It was shipped."])
    history("a model that calls one tool, then answers", sent, ["Order 1042: shipped."])
    expect("a model that calls one tool, then answers", answer, "It was shipped.", len(sent), 2)

    two = models.calls(("order_status", {"order_id": 7}), ("count_orders", {"keyword": "lamp"}))
    answer, sent = await talk(learner, [two, "One shipped, three lamps."])
    history("a model that calls two tools in one reply", sent, ["Order 7: shipped.", "3"])
    expect("a model that calls two tools in one reply", answer, "One shipped, three lamps.", len(sent), 2)

    again = models.call("count_orders", keyword="clock")
    answer, sent = await talk(learner, [one, again, "Done."])
    history("a model that goes round twice", sent, ["Order 1042: shipped.", "3"])
    expect("a model that goes round twice", answer, "Done.", len(sent), 3)
    return "Four conversations, each request whole and in order. You have written an agent."


def expect(tried: str, answer: Any, text: str, requests: int, wanted: int) -> None:
    if requests != wanted:
        raise Wrong(tried, f"{requests} requests", f"{wanted}")
    if answer != text:
        raise Wrong(tried, f"my_loop returned {named(answer)}", f"the text of the last reply, {text!r}")


def history(tried: str, sent: list[list[dict[str, Any]]], results: list[str]) -> None:
    """Each request carries all that went before; each call has its result, in order."""
    if len(sent) < 2:
        raise Wrong(tried, "no second request", "that the results are sent back to the model")
    last = sent[-1]
    roles = [message["role"] for message in last]
    if "assistant" not in roles:
        raise Wrong(tried, f"messages {roles}", "that the model's own reply is appended before the results")
    calls = [call["id"] for message in last for call in message.get("tool_calls") or []]
    tools = [message for message in last if message["role"] == "tool"]
    if len(tools) != len(results):
        raise Wrong(tried, f"{len(tools)} tool messages (roles: {roles})", f"{len(results)}, one for each call")
    ids = [message.get("tool_call_id") for message in tools]
    if ids != calls:
        raise Wrong(tried, f"tool_call_id {ids}", f"the ids of the calls, in their order: {calls}")
    texts = [message["content"] for message in tools]
    if texts != results:
        raise Wrong(tried, f"tool messages with {shown(json.dumps(texts))}", f"what the tools returned, as text: {results}")
    if roles[0] != "user" or len(last) <= len(sent[0]):
        raise Wrong(tried, f"messages {roles}", "the question first, and all that came after it")


async def judge_attack(learner: Callable[..., Any]) -> str:
    from agentlab import models, naked, worlds

    reply = plainly(learner)
    if not isinstance(reply, dict):
        raise Wrong("calling attack", named(reply), "a reply, as `models.call(...)` makes it")
    desk = worlds.orders.OrderDesk()
    known = [tool.name for tool in desk.tools]
    calls = asked(reply)
    if not calls:
        raise Wrong("your reply", "it calls no tool", f"a call of one of {', '.join(known)}")
    unknown = [name for name in calls if name not in known]
    if unknown:
        raise Wrong("your reply", f"it calls {unknown[0]!r}, which does not exist", f"a tool that exists: {', '.join(known)}")
    try:
        await naked("Where is order 1042?", models.scripted([reply, "Done."]), desk.tools)
    except (Exception, SystemExit) as error:
        return f"The naked loop died of {type(error).__name__} ({shown(str(error), 90)}). One reply was enough."
    raise Wrong("the naked loop on your reply", "it lived and answered", "that it dies, though the tool exists")


def asked(reply: dict[str, Any]) -> list[str]:
    """The names of the tools that a completion or a bare message calls."""
    message = reply["choices"][0]["message"] if reply.get("choices") else reply
    return [call["function"]["name"] for call in message.get("tool_calls") or []]


TASKS = [
    Task(
        "01-loop",
        "my_loop",
        "write the half of the loop that acts and observes",
        (
            "After a reply: keep it, and if it asks for no tool, you have the answer. Else run each call and keep its result.",
            "For each call: json.loads(call.function.arguments), then tools[call.function.name](**arguments). "
            'The result goes back as {"role": "tool", "tool_call_id": ..., "content": ...}.',
            "In order: messages.append(reply.to_dict()); return reply.content when there are no tool_calls; a for loop over "
            "reply.tool_calls that appends one tool message each, with str(result).",
        ),
        judge_loop,
        loads=("openai.resources.chat.completions",),
    ),
    Task(
        "01-attack",
        "attack",
        "one reply that kills the loop though its tool exists",
        (
            "The loop believes that names exist and that arguments fit. The name must exist here. What is left?",
            "order_status takes order_id. Call it without that, or with something else.",
            'return models.call("order_status", ...) with a parameter that order_status does not have.',
        ),
        judge_attack,
    ),
]
