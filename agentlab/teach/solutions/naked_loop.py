"""Lesson 01: the loop that everybody writes first, and one reply that kills it."""

# mypy: disable-error-code="no-untyped-def"

import json

from agentlab import models

MODEL = "scripted"


async def my_loop(client, tools, question):
    messages = [{"role": "user", "content": question}]
    schemas = [tool.schema for tool in tools.values()]
    while True:
        completion = await client.chat.completions.create(model=MODEL, messages=messages, tools=schemas)
        reply = completion.choices[0].message
        messages.append(reply.to_dict())
        if not reply.tool_calls:
            return reply.content
        for call in reply.tool_calls:
            arguments = json.loads(call.function.arguments)
            result = tools[call.function.name](**arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})


def attack():
    # The tool exists. Its parameter is called order_id.
    return models.call("order_status", number=1042)
