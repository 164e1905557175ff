"""Guesses, crashes shown as text, hints, progress, and the way to go on without an answer of one's own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agentlab import Cap, Result
from agentlab.teach import beside, check, crashes, hint, predict, progress, reveal, solution, use
from agentlab.teach.progress import FILE, Progress, Text
from agentlab.teach.tasks import TASKS


def test_a_guess_is_asked_recorded_and_compared(memory: Progress) -> None:
    shown = str(predict("q1", "How many requests?", [1, 2, 3]))
    assert shown.splitlines()[0] == "How many requests?"
    assert "  b) 2" in shown
    assert 'lab.predict("q1", answer="a")' in shown
    assert "b) 2" in str(predict("q1", answer="b"))
    assert memory.guesses == {"q1": "b"}
    assert str(reveal("q1", fact=3, why="Look at the log.")) == "You said b) 2. It was: c) 3.\nLook at the log."
    predict("q1", answer="c")
    assert "So it was" in str(reveal("q1", fact="c"))


@pytest.mark.parametrize("answer", ["b", "B", " b ", "two"])
def test_a_guess_may_be_a_letter_or_the_text(memory: Progress, answer: str) -> None:
    predict("q", "?", {"a": "one", "b": "two"})
    predict("q", answer=answer)
    assert memory.guesses["q"] == "b"


def test_a_guess_that_is_no_option_says_which_there_are(memory: Progress) -> None:
    predict("q", "?", ["one", "two"])
    assert "a, b" in str(predict("q", answer="z"))
    assert memory.guesses == {}


def test_a_fact_that_is_no_option_is_told_as_it_is() -> None:
    predict("q", "How many?", ["1", "2"])
    predict("q", answer="a")
    assert str(reveal("q", fact=7)) == "You said a) 1. It was: 7."


def test_without_a_guess_the_fact_is_told_and_guessing_is_asked_for() -> None:
    predict("q", "How many?", ["1", "2"])
    assert str(reveal("q", fact="2")).startswith("It was: b) 2.\nYou made no guess.")


def test_a_question_that_was_not_asked_says_what_to_run() -> None:
    assert "Run the cell that asks it" in str(predict("never"))
    assert "lab.predict" not in str(reveal("never", fact=1))


def test_the_buttons_have_their_twins_in_the_same_output(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, **_: shown.append(bundle))
    monkeypatch.setattr(sys.modules["agentlab.teach.predict"], "person_here", lambda: True)
    assert predict("q", "How <many>?", ["1", "2"]) is None
    (bundle,) = shown
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "a) 1" in bundle["text/plain"]
    assert "How &lt;many&gt;?" in bundle["text/html"]


def test_a_crash_is_shown_as_text_and_the_notebook_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with crashes(KeyError):
        {}["find_order"]
    out = capsys.readouterr().out
    assert out.startswith("CRASH  KeyError: 'find_order'\n")
    assert '{}["find_order"]' in out
    assert "expected" not in out


def test_nothing_crashed_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with crashes(KeyError, TypeError):
        pass
    assert capsys.readouterr().out == "Nothing crashed: no KeyError or TypeError came out of this cell.\n"
    with crashes():  # a learner whose code held did nothing wrong: nothing was "expected"
        pass
    assert capsys.readouterr().out == "Nothing crashed.\n"


def test_another_crash_than_expected_is_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    with crashes(KeyError):
        missing  # type: ignore[name-defined]  # noqa: B018, F821
    out = capsys.readouterr().out
    assert "NameError" in out
    assert "expected KeyError" in out


def test_exit_is_shown_and_an_interrupt_is_not_swallowed(capsys: pytest.CaptureFixture[str]) -> None:
    with crashes():
        raise SystemExit(3)
    assert "SystemExit: 3" in capsys.readouterr().out
    with pytest.raises(KeyboardInterrupt), crashes():
        raise KeyboardInterrupt


def test_a_long_message_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    with crashes():
        raise ValueError("x" * 100_000)
    assert len(capsys.readouterr().out) < 1_000


@pytest.mark.parametrize("task", TASKS)
def test_hints_come_one_by_one_and_end_at_the_solution(task: str) -> None:
    first, second, third, again = (str(hint(task)) for _ in range(4))
    assert len({first, second, third}) == 3
    assert third == again
    assert f"lab.solution({task!r})" in third
    assert TASKS[task].name in str(solution(task))


def test_unknown_tasks_get_a_sentence() -> None:
    for told in (hint("x"), solution("x"), progress("77")):
        assert "There is no" in str(told)


def test_progress_lists_what_is_open() -> None:
    check("03-cap", Cap(5))
    told = str(progress("03"))
    assert "[x] 03-cap" in told
    assert "Still open: 03-number." in told
    assert "02-isolate" not in told
    assert "02-isolate" in str(progress())
    predict("03-q", "?", ["1", "2"])
    predict("03-q", answer="a")
    reveal("03-q", fact="2")
    assert "Guesses: 1 made, 0 of them came true" in str(progress("03"))


def test_nothing_is_written_without_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    predict("q", "?", ["1"])
    predict("q", answer="a")
    check("03-cap", Cap(5))
    assert list(tmp_path.iterdir()) == []


def test_progress_is_kept_beside_the_notebooks_and_read_again(tmp_path: Path, memory: Progress) -> None:
    memory.folder = tmp_path
    check("03-cap", Cap(5))
    predict("q", "?", ["1", "2"])
    predict("q", answer="b")
    kept = json.loads((tmp_path / FILE).read_text())
    assert kept == {"checks": {"03-cap": "correct"}, "facts": {}, "guesses": {"q": "b"}}
    later = Progress(folder=tmp_path)
    later.load()
    assert later.checks == {"03-cap": "correct"}
    assert later.guesses == {"q": "b"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"checks": 3}', "\x00"])
def test_a_damaged_file_does_not_stop_the_lesson(tmp_path: Path, memory: Progress, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    memory.folder = tmp_path
    check("03-cap", Cap(5))
    assert "[x] 03-cap" in str(progress("03"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_left_alone(tmp_path: Path, memory: Progress) -> None:
    tmp_path.chmod(0o500)
    memory.folder = tmp_path
    check("03-cap", Cap(5))
    assert list(tmp_path.iterdir()) == []


def test_the_lesson_goes_on_with_the_solution_until_the_learners_own_passes(capsys: pytest.CaptureFixture[str]) -> None:
    async def isolate(run: Any, action: Any, act: Any) -> Any:
        raise NotImplementedError

    used = use("02-isolate", isolate)
    assert used is not isolate
    assert check("02-isolate", used).state == "correct"  # type: ignore[union-attr]
    assert "not attempted" in capsys.readouterr().out
    assert use("02-isolate", used) is used
    assert "yours passes" in capsys.readouterr().out
    assert callable(use("02-isolate", None))


def test_the_solution_sees_the_notebooks_names() -> None:
    names: dict[str, Any] = {"Ask": None, "Stop": None, "LIMIT": 17}
    exec("async def cap(run, action, act):\n    raise NotImplementedError", names)
    used = use("03-cap", names["cap"])
    assert used.__globals__["LIMIT"] == 17
    assert "run.requests >= LIMIT" in repr(beside(used, Cap))
    assert "# ---- the solution, until yours passes ----" in repr(beside(used, Cap))


def test_two_sources_stand_beside_each_other_and_are_escaped() -> None:
    def mine(a: int) -> bool:
        return a < 3

    shown = beside(mine, Cap)
    assert repr(shown).startswith("# ---- yours ----\ndef mine")
    assert "class Cap" in repr(shown)
    assert "a &lt; 3" in shown._repr_html_()
    assert "cannot be read" in repr(beside(eval("lambda: 1"), Result))


def test_text_for_the_learner_is_escaped() -> None:
    assert "<script>" not in Text("<script>")._repr_html_()
