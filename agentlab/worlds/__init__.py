"""The toolkits that the lessons play with: each a module with `tools`, and a state to look at and to put back."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

NAMES = ("orders",)

orders: ModuleType


def __getattr__(name: str) -> ModuleType:
    """Import a world when it is first named, so that `import agentlab` stays quick."""
    if name in NAMES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"There is no world {name!r}. Worlds: {', '.join(NAMES)}.")


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES})
