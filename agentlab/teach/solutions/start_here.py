"""Lesson 00: the fork that makes a circle out of a line. Written as a learner would: plain Python, no annotations."""

# mypy: disable-error-code="no-untyped-def"


def next_move(message):
    # An empty list of calls is no call, and a call written into the text is only text.
    return "call" if message.get("tool_calls") else "answer"
