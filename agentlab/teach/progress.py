"""What the learner has done so far: in memory, and in one small file beside the notebooks.

The file is written only when a person sits at the kernel and the folder can be written: a headless run leaves nothing
behind, and importing reads and writes nothing.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

FILE = "agentlab-progress.json"
MARKS = {"correct": "[x]", "incorrect": "[ ]", "crashed": "[ ]", "not attempted": "[ ]"}


def person_here() -> bool:
    """True when somebody can click and type: a live notebook or console, not papermill, nbconvert or a plain script."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return False
    kernel = getattr(get_ipython(), "kernel", None)
    return bool(getattr(kernel, "_allow_stdin", False))


def in_notebook() -> bool:
    """True inside an IPython kernel, with or without a person."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None


@dataclass
class Text:
    """A few lines for the learner: shown as they are in a notebook, printed as they are everywhere else."""

    text: str
    tone: str = "plain"
    columns: bool = False  # keep what stands under each other there

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        colour = {
            "good": "var(--jp-success-color1, #1b7f3b)",
            "bad": "var(--jp-error-color1, #c62828)",
            "warn": "var(--jp-warn-color1, #b26a00)",
            "code": "var(--jp-brand-color1, #1976d2)",
        }.get(self.tone, "var(--jp-border-color1, #8a8a8a)")
        face = "monospace" if self.columns or self.tone == "code" else "inherit"
        return (
            f'<div style="border-left:4px solid {colour};padding:.35em .9em;margin:.2em 0;white-space:pre-wrap;'
            f'font-family:{face};overflow-wrap:anywhere">{escape(self.text)}</div>'
        )


@dataclass
class Progress:
    """Checks, hints and guesses by id; `folder` says where the file may stand."""

    folder: Path | None = None
    checks: dict[str, str] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)
    guesses: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    loaded: bool = False

    def load(self) -> None:
        """Read the file once. A damaged file is worth less than the lesson: it is ignored."""
        if self.loaded:
            return
        self.loaded = True
        path = self.path()
        if path is None or not path.exists():
            return
        try:
            kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            for name in ("checks", "guesses", "facts"):
                getattr(self, name).update({str(k): str(v) for k, v in kept.get(name, {}).items()})
        except (OSError, ValueError, AttributeError):
            return

    def save(self) -> None:
        """Write the file, if a person is here and the folder lets us."""
        path = self.path()
        if path is None:
            return
        kept = {"checks": self.checks, "guesses": self.guesses, "facts": self.facts}
        try:
            path.write_text(json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
        except OSError:
            return

    def path(self) -> Path | None:
        """Where the file stands; None when nothing may be written."""
        if self.folder is not None:
            return self.folder / FILE if os.access(self.folder, os.W_OK) else None
        if not person_here():
            return None
        here = Path.cwd()
        return here / FILE if os.access(here, os.W_OK) else None

    def checked(self, task: str, state: str) -> None:
        self.load()
        self.checks[task] = state
        self.save()

    def guessed(self, question: str, answer: str) -> None:
        self.load()
        self.guesses[question] = answer
        self.save()

    def revealed(self, question: str, fact: str) -> None:
        self.load()
        self.facts[question] = fact
        self.save()


book = Progress()


def progress(lesson: str | None = None) -> Text:
    """What is done and what is open: `lab.progress("02")` for one lesson, `lab.progress()` for all."""
    from agentlab.teach.tasks import TASKS

    book.load()
    tasks = [task for task in TASKS.values() if lesson is None or task.id.startswith(lesson[:2])]
    if not tasks:
        known = ", ".join(sorted({name[:2] for name in TASKS}))
        return Text(f"There is no lesson {lesson!r}. Lessons with tasks: {known}.", "warn")
    lines = []
    for task in tasks:
        state = book.checks.get(task.id, "not attempted")
        lines.append(f"{MARKS.get(state, '[ ]')} {task.id:<12} {state:<14} {task.aim}")
    open_tasks = [task.id for task in tasks if book.checks.get(task.id) != "correct"]
    guesses = {key: guess for key, guess in book.guesses.items() if lesson is None or key.startswith(lesson[:2])}
    if guesses:
        right = sum(book.facts.get(key) == guess for key, guess in guesses.items())
        lines.append(f"Guesses: {len(guesses)} made, {right} of them came true. Wrong guesses teach most.")
    lines.append(f"Still open: {', '.join(open_tasks)}." if open_tasks else "Nothing is open.")
    return Text("\n".join(lines), "warn" if open_tasks else "good", columns=True)
