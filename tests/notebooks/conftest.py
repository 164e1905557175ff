"""How a notebook is run here: by papermill, in a kernel of this Python, without the person's home and without a network."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill
import pytest
from nbformat import NotebookNode

OFFLINE = Path(__file__).parent / "offline"
CANARY = "sk-canary-0123456789abcdef"  # a key that is set while lessons run must not turn up in what they write


@dataclass
class Executed:
    """A notebook after its run."""

    notebook: NotebookNode
    seconds: float
    raw: str

    @property
    def outputs(self) -> list[NotebookNode]:
        return [output for cell in self.notebook.cells for output in cell.get("outputs", [])]

    @property
    def text(self) -> str:
        """All that was printed or shown as plain text."""
        return "\n".join(o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in self.outputs)

    def verdicts(self) -> dict[str, str]:
        """What each check said last, by task."""
        words = "correct|incorrect|not attempted|crashed"
        return dict(re.findall(rf"([\w.-]+): ({words})\. ", self.text))


Run = Callable[[NotebookNode], Executed]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(OFFLINE), os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    for name in ("OPENAI_BASE_URL", "OPENAI_MODEL", "PYTHONWARNINGS"):
        monkeypatch.delenv(name, raising=False)

    def execute(notebook: NotebookNode) -> Executed:
        source, target = tmp_path / "in.ipynb", tmp_path / "out.ipynb"
        nbformat.write(notebook, source)
        began = time.perf_counter()
        papermill.execute_notebook(
            source,
            target,
            kernel_name="python3",
            cwd=tmp_path,
            progress_bar=False,
            log_output=False,
            start_timeout=120,
            execution_timeout=60,
        )
        seconds = time.perf_counter() - began
        return Executed(nbformat.read(target, as_version=4), seconds, target.read_text(encoding="utf-8"))

    return execute
