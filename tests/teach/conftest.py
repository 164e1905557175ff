"""Each test has a learner's memory of its own, and nothing is written to disk unless the test asks for it."""

from __future__ import annotations

import sys

import pytest

import agentlab.teach
from agentlab.teach.progress import Progress, book

predicting = sys.modules[f"{agentlab.teach.__name__}.predict"]  # the package shows the function of that name


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Progress:
    for name, value in vars(Progress()).items():
        monkeypatch.setattr(book, name, value)
    monkeypatch.setattr(predicting, "asked", {})
    return book
