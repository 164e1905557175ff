"""Lesson 02: a failed call is a result, and an empty result is a sentence."""

# mypy: disable-error-code="no-untyped-def"

from dataclasses import replace

from agentlab import Ask, Result


async def isolate(run, action, act):
    try:
        return await act(run, action)
    except Exception as error:
        if isinstance(action, Ask):
            raise  # the model could not be reached: there is no call to answer
        return Result(action.id, f"{type(error).__name__}: {error}", error=True)


async def never_empty(run, action, act):
    entry = await act(run, action)
    if isinstance(entry, Result) and entry.text in ("[]", "{}", "None"):
        return replace(entry, text="Nothing was found. Try a broader or a shorter search term.")
    return entry
