"""Every notebook runs from top to bottom, as published and solved: fast, small, without a network, and never asking."""

from __future__ import annotations

from pathlib import Path

import nbformat
import papermill
import pytest
from nbformat import NotebookNode

from agentlab import Agent, Reply, Result, Stop, lab, worlds
from agentlab.models import zoo
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


def cell(notebook: str, holds: str) -> str:
    """The source of the one code cell that holds a text."""
    (path,) = (p for p in PUBLISHED if p.stem.startswith(notebook))
    (found,) = (c.source for c in nbformat.read(path, 4).cells if c.cell_type == "code" and holds in c.source)
    return str(found)


async def test_lesson_00_bears_a_run_that_was_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    """A learner who presses Stop halfway still runs the next cells; a Stop has no text."""
    agent = Agent(lab.model(zoo.honest()), worlds.orders.tools)
    run = [run async for run in agent.steps("Where is the parcel that Nadia Haddad waits for?")][1]
    exec(cell("00", "for entry in run.log"), {"run": run.plus(Stop("interrupted", "stopped"))})
    assert capsys.readouterr().out.splitlines()[-1].strip() == "Stop"


async def test_lesson_00_bears_a_call_that_still_waits(capsys: pytest.CaptureFixture[str]) -> None:
    """Where a card cannot be answered in time the run comes back as waiting, with no result to look at."""
    agent = Agent(lab.model(zoo.refuses_nothing()), worlds.orders.tools)
    run = [run async for run in agent.steps("Where is order 1042?")][-1]
    assert run.status == "waiting"
    source = cell("00", "Changed in the shop").replace("lab.reveal(", "print(lab.reveal(") + ")"
    exec(source, {"run": run, "desk": worlds.orders.desk, "lab": lab, "Reply": Reply, "Result": Result})
    told = capsys.readouterr().out
    assert "nothing" in told
    assert "not known yet" in told
    assert "still waits" in told
