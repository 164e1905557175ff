"""The approval card: one dangerous call, whole, and a person's yes or no to exactly this call. No answer means no.

`ask` shows a card and waits for it in the cell that runs. A front end that cannot be heard while a cell runs (older kernels,
some editors) never says "ready": the run then comes back as waiting, the card stays, and what the person answers there counts
in the next cell. An answer belongs to the held entry of one run: the same cell run again asks again.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import pathlib
from collections.abc import Callable
from typing import Any

import anywidget
import traitlets
from IPython.display import display

from ..asking import NOBODY, place, visible
from ..records import Call, Held, Ruling
from ..rows import sendable
from ..run import Run
from ..tools import Tool

STATIC = pathlib.Path(__file__).parent / "static"
READY_WITHIN = 3.0  # seconds in which a card that can be heard says so
COMES_BACK_WITHIN = 1.0  # seconds in which a card that was taken off the page is shown again: a cell that was only moved
BEAT = 0.25  # without it, an interrupt of a cell that waits is not noticed for a long time

STANDING = {
    "asking": "waits for a person. Nothing was run.",
    "later": "waits for a person. Nothing was run. Answer in the card, then run: await agent.run(agent.last)",
    "approved": "was approved",
    "refused": "was refused",
    "cancelled": "was neither approved nor refused: the cell was interrupted. It was not run.",
}


class ApprovalCard(anywidget.AnyWidget):
    """One held call and its two buttons. `state` is a key of STANDING, and is kept in the page."""

    _esm = STATIC / "approve.js"
    _css = STATIC / "approve.css"
    call = traitlets.Dict().tag(sync=True)
    ack = traitlets.Bool(False).tag(sync=True)  # the kernel has heard the card
    state = traitlets.Unicode("asking").tag(sync=True)
    why = traitlets.Unicode("").tag(sync=True)

    def __init__(self, call: Call, tool: Tool | None, held: Held | None = None) -> None:
        self.held = held
        self.ruling: Ruling | None = None
        self.ready = False
        self.views: set[str] = set()  # the views of it in pages, as far as they said
        self.gone = False  # there were views, and all were taken away: the cell was run again, or its output cleared
        self.shown: Any = None
        self._call = call
        self._cell: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        super().__init__(call=facts(call, tool, held))
        self.on_msg(self._hear)

    # ---- the page speaks ----
    def _hear(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        # Some kernels deliver messages in another thread: the cell's own loop takes them, where a cell waits.
        if self._cell is None:
            self._take(content)
        else:
            self._cell.call_soon_threadsafe(self._take, content)

    def _take(self, content: dict[str, Any]) -> None:
        """Take in one message. The first answer counts; one that was meant for another call does not."""
        op, view = content.get("op"), str(content.get("view"))
        if op == "ready":
            self.ready, self.gone = True, False
            self.views.add(view)
        elif op == "gone":
            self.views.discard(view)
            self.gone = not self.views
        elif op == "rule" and self.ruling is None and self.state in ("asking", "later") and self._meant(content):
            ok, arguments = content.get("ok") is True, content.get("arguments")
            why = str(content.get("why") or "")
            self.why = sendable(why)
            self.ruling = self._call.ruled(ok, why, arguments if ok and isinstance(arguments, str) else None)
            self.state = "approved" if ok else "refused"
        elif op == "rule":
            self.send({"op": "decided"})  # the view then shows what was
        self._news.set()

    def _meant(self, content: dict[str, Any]) -> bool:
        return (content.get("call_id"), content.get("digest")) == (self.call["call_id"], self.call["digest"])

    # ---- the cell waits ----
    async def answer(self) -> Ruling | None:
        """Show the card and wait for the person. None when the card cannot be heard while this cell runs."""
        self._cell, self._news = asyncio.get_running_loop(), asyncio.Event()
        try:
            if self.ruling is None:
                self.ready, self.state = False, "asking"
                self.shown = display(self, display_id=True)  # type: ignore[no-untyped-call]  # IPython leaves it untyped
                if not await self._until(lambda: self.ready or self.ruling is not None, READY_WITHIN):
                    self.state = "later"
                    return None
                self.ack = True
                if not await self._answered():
                    self.state = "later"
                    return None
            return self.ruling
        except BaseException:
            if self.ruling is None:
                self.state = "cancelled"  # leave no live buttons behind
            raise
        finally:
            self._cell = None
            if self.shown is not None:
                self.shown.update(self)  # its text and HTML twins say how it ended

    async def _answered(self) -> bool:
        """Wait for the person. False where no page shows the card any more: nobody could answer, and the cell would hang."""
        while self.ruling is None:
            await self._until(lambda: self.ruling is not None or self.gone)
            if self.gone and not await self._until(lambda: self.ruling is not None or not self.gone, COMES_BACK_WITHIN):
                return False
        return True

    async def _until(self, happened: Callable[[], bool], seconds: float | None = None) -> bool:
        loop = asyncio.get_running_loop()
        end = None if seconds is None else loop.time() + seconds
        while not happened():
            left = BEAT if end is None else min(BEAT, end - loop.time())
            if left <= 0:
                return False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), left)
            self._news.clear()
        return True

    # ---- where no front end runs ----
    def text(self) -> str:
        """The card in plain text, with hidden characters written out."""
        edited = self.ruling.arguments if self.ruling is not None else None
        lines = [
            f"{self._call.name} {STANDING[self.state]}" + (f": {visible(self.why)}" if self.why else ""),
            f"  {self.call['effect']}",
            f"  arguments: {visible(self._call.arguments)}",
        ]
        return "\n".join(lines + ([f"  with these instead: {visible(edited)}"] if edited is not None else []))

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            data["text/plain"] = self.text()
            data["text/html"] = f'<pre style="white-space: pre-wrap">{html.escape(self.text())}</pre>'
        return bundle


def facts(call: Call, tool: Tool | None, held: Held | None = None) -> dict[str, Any]:
    """What the card shows of a call: all of its arguments, and what will happen."""
    what = tool.description.strip().partition("\n")[0] if tool is not None else ""
    why = f" {held.why[:1].upper()}{held.why[1:]}." if held is not None and held.why else ""
    shown = {
        "call_id": call.id,
        "digest": call.digest,
        "name": call.name,
        "arguments": call.arguments,
        "effect": f"If you approve, {call.name} really runs with these arguments, once. {what}{why}".strip(),
        "schema": dict(tool.parameters) if tool is not None else None,
    }
    return dict(sendable(shown))


_kept: list[ApprovalCard] = []  # cards that stayed behind unheard: what is answered there counts in the next cell
KEPT_AT_MOST = 32


async def ask(run: Run, call: Call, tool: Tool | None) -> Ruling | None:
    """Ask the person at this notebook about one held call. None: nobody could be heard yet, and the run stays waiting."""
    if place() != "notebook":
        return call.ruled(False, NOBODY)
    held = next((entry for entry in reversed(run.log) if isinstance(entry, Held) and entry.call_id == call.id), None)
    # The very same entry, not an equal one: a run that only looks alike is asked about anew.
    card = next((card for card in _kept if held is not None and card.held is held), None)
    if card is None:
        card = ApprovalCard(call, tool, held)
    else:
        _kept.remove(card)
    ruling = await card.answer()
    if ruling is None:
        _kept.append(card)
        del _kept[:-KEPT_AT_MOST]
    return ruling
