"""Every notebook runs from top to bottom, as published and solved: fast, small, without a network, and never asking."""

from __future__ import annotations

from pathlib import Path

import nbformat
import papermill
import pytest
from nbformat import NotebookNode

from agentlab.teach import solutions
from tests.notebooks.conftest import CANARY, Executed, Run
from tools import notebooks as tool

PUBLISHED = tool.published()
NAMES = [p.stem for p in PUBLISHED]
SECONDS, BYTES = 20, 200_000
WIDGET = "application/vnd.jupyter.widget-view+json"


def tasks(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """The cells that the learner fills, by task."""
    return {c.metadata.agentlab["task"]: c for c in notebook.cells if "task" in c.metadata.get("agentlab", {})}


def hold(done: Executed) -> None:
    """What is true of every run of a lesson."""
    assert done.seconds < SECONDS
    assert len(done.raw.encode()) < BYTES
    assert CANARY not in done.raw
    assert [o for o in done.outputs if o.output_type == "error"] == []
    assert [o.text for o in done.outputs if o.get("name") == "stderr"] == []
    for output in done.outputs:
        shown = output.get("data", {})
        if WIDGET in shown:
            # A reader without a kernel (GitHub, nbconvert, a dead session) sees these instead of the widget.
            assert len(shown.get("text/html", "")) > 100
            assert len(shown.get("text/plain", "")) > 20


@pytest.mark.parametrize("path", PUBLISHED, ids=NAMES)
def test_runs_as_published(path: Path, run: Run) -> None:
    notebook = tool.load(path)
    done = run(notebook)
    hold(done)
    assert {t: done.verdicts().get(t) for t in tasks(notebook)} == dict.fromkeys(tasks(notebook), "not attempted")


@pytest.mark.parametrize("path", PUBLISHED, ids=NAMES)
def test_runs_solved(path: Path, run: Run) -> None:
    notebook = tool.load(path)
    for task, cell in tasks(notebook).items():
        cell.source = solutions.source(task)
    done = run(notebook)
    hold(done)
    assert {t: done.verdicts().get(t) for t in tasks(notebook)} == dict.fromkeys(tasks(notebook), "correct")


@pytest.mark.parametrize(
    "attempt",
    [
        "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)",
        "import socket; socket.socket().connect(('192.0.2.1', 80))",
        "import socket; socket.getaddrinfo('example.org', 443)",
        "import httpx2; httpx2.get('http://192.0.2.1/', timeout=1)",
    ],
)
def test_the_network_really_is_shut(attempt: str, run: Run) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(attempt)])
    with pytest.raises(papermill.PapermillExecutionError, match="without a network"):
        run(notebook)
