"""Models: scripted ones that need no key and no network, any OpenAI-compatible endpoint, and a zoo that misbehaves on purpose."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..wire import ModelError
from .scripted import call, calls, say, scripted

if TYPE_CHECKING:
    from . import zoo
    from .endpoint import openai
    from .faults import faulty
    from .offline import transport
    from .tape import recorded

__all__ = ["ModelError", "call", "calls", "faulty", "openai", "recorded", "say", "scripted", "transport", "zoo"]
_LATER = {"faulty": "faults", "openai": "endpoint", "recorded": "tape", "transport": "offline"}


def __getattr__(name: str) -> Any:
    if name == "zoo":
        return import_module(".zoo", __name__)
    if name in _LATER:
        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"agentlab.models has no {name!r}. It has: {', '.join(__all__)}.")
