"""Who is asked before a dangerous call, and that no answer is not a yes (I1, I2)."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from agentlab import Agent, Call, Result, Ruling, Run, asking, models, tool
from agentlab.asking import NOBODY, answered, place, prompt, visible

CALL = Call("a", "refund", '{"eur": 20}')
RUN = Run.start("q")


def typed(said: str | BaseException, shown: list[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        shown.append(text)
        if isinstance(said, BaseException):
            raise said
        return said

    return read


@pytest.mark.parametrize(
    ("said", "ok", "why"),
    [
        ("y", True, ""),
        ("YES ", True, ""),
        ("", False, ""),
        ("n", False, ""),
        ("no", False, ""),
        ("yes please", False, "yes please"),
        ("too much", False, "too much"),
        (EOFError(), False, ""),
        (KeyboardInterrupt(), False, ""),
    ],
)
def test_on_a_terminal_anything_but_a_yes_is_a_no(said: Any, ok: bool, why: str) -> None:
    shown: list[str] = []
    ruling = prompt(CALL, typed(said, shown))
    assert (ruling.ok, ruling.why, ruling.call_id, ruling.digest) == (ok, why, "a", CALL.digest)
    assert 'refund with\n  {"eur": 20}\n' in shown[0]


def test_what_is_shown_is_what_would_run() -> None:
    """Line breaks and direction marks could paint another question over the real one."""
    shown: list[str] = []
    prompt(Call("a", "refund", '{"eur": 900,\n"note": "\u202e02 :rue\x1b[2K"}'), typed("n", shown))
    assert r'{"eur": 900,\u000a"note": "\u202e02 :rue\u001b[2K"}' in shown[0]
    assert visible("é 👩") == "é 👩"


@pytest.mark.parametrize("said", [True, False, None, CALL.ruled(True, "fine")])
@pytest.mark.parametrize("is_async", [True, False])
async def test_any_form_of_an_answer(said: Any, is_async: bool) -> None:
    async def later(run: Run, call: Call) -> Any:
        await asyncio.sleep(0)
        return said

    ruling = await answered(later if is_async else lambda run, call: said, RUN, CALL, None)
    if said is None or isinstance(said, Ruling):
        assert ruling is said
    else:
        assert ruling is not None
        assert (ruling.ok, ruling.digest) == (said, CALL.digest)


@pytest.mark.parametrize("said", ["yes", 1, {"ok": True}, [True]])
async def test_an_answer_that_is_neither_yes_nor_no_is_an_error(said: Any) -> None:
    with pytest.raises(TypeError, match="Return True or False, a Ruling"):
        await answered(lambda run, call: said, RUN, CALL, None)


@tool(dangerous=True)
def refund(eur: int) -> str:
    return f"{eur} paid"


async def test_where_nobody_is_a_dangerous_call_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    run = await Agent(models.scripted([models.call("refund", eur=1), "done"]), [refund]).run("q")
    assert NOBODY in run.of(Result)[0].text
    assert run.answer == "done"


async def test_in_a_terminal_the_person_is_asked_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "place", lambda: "terminal")
    monkeypatch.setattr(asking, "prompt", lambda call: call.ruled(True))
    run = await Agent(models.scripted([models.call("refund", eur=1), "done"]), [refund]).run("q")
    assert run.of(Result)[0].text == "1 paid"


def test_the_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def shell(kernel: Any) -> Any:
        return SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=kernel) if kernel is not False else None)

    monkeypatch.setitem(sys.modules, "IPython", shell(False))
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stdout", Terminal())
    found = [place()]
    monkeypatch.setattr(sys, "stdin", None)
    found.append(place())
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdin", closed)
    found.append(place())
    for allowed in (True, False):
        monkeypatch.setitem(sys.modules, "IPython", shell(SimpleNamespace(_allow_stdin=allowed)))
        found.append(place())
    monkeypatch.undo()
    assert found == ["terminal", "nowhere", "nowhere", "notebook", "nowhere"]
