"""Lesson 03: a hard cap, and where its number comes from."""

# mypy: disable-error-code="no-untyped-def"

import math

from agentlab import Ask, Stop

LIMIT = 5


async def cap(run, action, act):
    if isinstance(action, Ask) and not action.last and run.requests >= LIMIT:
        return Stop("capped", f"{LIMIT} requests were used")
    return await act(run, action)


def pick_cap(turns):
    in_order = sorted(turns)
    p99 = in_order[int(0.99 * (len(in_order) - 1))]
    return math.ceil(1.5 * p99)
