"""The kernel half of the stepper's view: it says what is new, takes clicks, and keeps a picture for a reopened notebook.

What is new goes out as batches, at most one message in 50 ms: sent one by one, a server drops them above 1,000 a second. A
batch holds only the rows and bars that the view has not seen; a view that finds a gap says hello with what it has, and gets
the rest. Clicks arrive on whatever thread the kernel uses and hop to the loop that the stepper lives on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ..rows import sendable
from ..stepper import Stepper
from ..twin import Output, picked, short, twins

BETWEEN = 0.05  # seconds from one message to the next
TOGETHER = 0.008  # what comes at once goes as one message
QUIET = 0.1  # a batch that only says "running" waits: most steps are over by then, and one message does for both
STATIC = Path(__file__).parent / "static"
WIDGET = "application/vnd.jupyter.widget-view+json"
NOTE = "The kernel does not answer: this is a picture of the last state. Run the cell again to step."


class Wire:
    """One stepper's line to its views, without a widget: it is given a way to send."""

    def __init__(self, stepper: Stepper, send: Callable[[dict[str, Any]], None], loop: asyncio.AbstractEventLoop) -> None:
        self.stepper, self._send, self._loop = stepper, send, loop
        self._seen_rows: dict[tuple[int, int], int] = {}  # (epoch, branch) -> rows that the view has
        self._seen_bars: dict[tuple[int, int], int] = {}
        self._others: list[dict[str, Any]] = []  # sentences and whole texts that wait for their turn
        self._dirty = False
        self._timer: asyncio.TimerHandle | None = None
        self._last = -BETWEEN
        self._ran = False  # the views were told that it runs
        stepper.on_change = self.changed
        stepper.on_say = self.say

    # ---- out ----
    def changed(self) -> None:
        """The state is another: say so soon, and at once where it came to rest."""
        self._dirty = True
        self._schedule()

    def say(self, text: str, tone: str) -> None:
        self._others.append({"op": "said", "text": text, "tone": tone})
        self._schedule()

    def _schedule(self) -> None:
        now = self._loop.time()
        due = max(now + self._patience(), self._last + BETWEEN)
        if self._timer is None or self._timer.when() > due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(due, self._push)

    def _patience(self) -> float:
        """How long what is to be said can wait for more."""
        if self._others or not self.stepper.running:
            return 0.0
        return TOGETHER if self._ran or self._has_news() else QUIET

    def _has_news(self) -> bool:
        """Whether there is a row or a bar that the views do not have."""
        branch = self.stepper.branch
        key = (self.stepper.epoch, branch.id)
        return (self._seen_rows.get(key), self._seen_bars.get(key)) != (len(branch.rows), len(branch.bars))

    def _push(self) -> None:
        self._timer = None
        if self._dirty:
            self._dirty = False
            self._ran = self.stepper.running
            self._send(sendable(self.batch()))
        elif self._others:
            self._send(sendable(self._others.pop(0)))
        self._last = self._loop.time()  # after it was sent: making a batch takes time too
        if self._dirty or self._others:
            self._schedule()

    def batch(self) -> dict[str, Any]:
        """What the view of this branch has not seen, and the state."""
        stepper, branch = self.stepper, self.stepper.branch
        key = (stepper.epoch, branch.id)
        rows = self._seen_rows.get(key, self._inherited())
        bars = min(self._seen_bars.get(key, 0), branch.changed_bar, len(branch.bars))
        self._seen_rows[key], self._seen_bars[key] = len(branch.rows), len(branch.bars)
        branch.changed_bar = len(branch.bars)
        return {
            "op": "batch", "epoch": stepper.epoch, "branch": branch.id,
            "from_row": rows, "rows": branch.rows[rows:], "from_bar": bars, "bars": branch.bars[bars:],
            "state": stepper.state(), "total_rows": len(branch.rows), "total_bars": len(branch.bars),
        }  # fmt: skip

    def _inherited(self) -> int:
        """How much of a new branch the view knows from its parent."""
        branch = self.stepper.branch
        if branch.parent is None or self.stepper.state()["door"]:  # at the door a fork builds all its rows anew
            return 0
        known = self._seen_rows.get((self.stepper.epoch, branch.parent), 0)
        return branch.row if branch.row <= known else 0

    # ---- in ----
    def receive(self, message: Mapping[str, Any]) -> None:
        """One message of a view, on the stepper's own loop."""
        self.stepper.seen(message.get("op") != "gone")
        match message.get("op"):
            case "gone":
                pass
            case "hello":
                self._hello(message)
            case "full":
                self._full(message)
            case _:
                self.stepper.receive(message)
                self.changed()  # a stale click is answered too: with what is true now

    def _hello(self, message: Mapping[str, Any]) -> None:
        key = (self.stepper.epoch, self.stepper.branch.id)
        same = (message.get("epoch"), message.get("branch")) == key
        for seen, has in ((self._seen_rows, "rows"), (self._seen_bars, "bars")):
            seen[key] = min(seen.get(key, 0), int(message.get(has) or 0)) if same else 0
        self.changed()

    def _full(self, message: Mapping[str, Any]) -> None:
        branch = self.stepper.branches.get(message.get("branch"))  # type: ignore[arg-type]  # any key may be asked for
        row = message.get("row")
        whole = branch.full(row) if branch is not None and isinstance(row, int) else None
        if branch is not None and whole is not None and message.get("epoch") == self.stepper.epoch:
            self._others.append({"op": "full", "branch": branch.id, "row": row, **whole})
            self._schedule()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.stepper.on_change = lambda: None
        self.stepper.on_say = lambda text, tone: None
        self.stepper.on_rest = lambda: None


def picture_of(stepper: Stepper) -> dict[str, Any]:
    """What a reopened notebook must show, and no more: the beginning and the end of the history, in short."""
    rows, left_out = picked(stepper)
    state = stepper.state()
    state["held"] = [{**held, "arguments": short(held["arguments"], 600)} for held in state["held"]]
    note = NOTE + (f" {left_out:,} rows in the middle are left out of it." if left_out else "")
    brief = [
        {
            **row,
            "text": short(row["text"]),
            "more": row["more"] + max(0, len(row["text"]) - 200),
            **({"calls": [{**c, "arguments": short(c["arguments"])} for c in row["calls"]]} if "calls" in row else {}),
        }
        for row in rows
    ]
    whole = {"rows": brief, "bars": stepper.branch.bars[: state["bars"]][-200:], "state": state, "note": note}
    return dict(sendable(whole))


class StepperView(anywidget.AnyWidget):
    """The widget that `lab.step` shows."""

    _esm = STATIC / "stepper.js"
    _css = STATIC / "stepper.css"
    picture = traitlets.Dict().tag(sync=True)
    lang = traitlets.Unicode("en").tag(sync=True)

    def __init__(self, stepper: Stepper, loop: asyncio.AbstractEventLoop, shown_in: str = "", **traits: Any) -> None:
        super().__init__(picture=picture_of(stepper), **traits)
        self.stepper = stepper
        self.wire = Wire(stepper, self.send, loop)
        self._loop = loop
        self.output = Output(self.bundle, shown_in)
        stepper.on_rest = self._rest
        self.on_msg(self._heard)

    def _heard(self, _: Any, content: Any, __: Any) -> None:
        """A message of a view, on whatever thread the kernel takes it: hop to the stepper's loop, and do nothing here."""
        if isinstance(content, Mapping):
            self._loop.call_soon_threadsafe(self.wire.receive, content)

    def _rest(self) -> None:
        self.picture = picture_of(self.stepper)
        if self.stepper.is_over:
            self.output.update()

    def bundle(self) -> dict[str, Any]:
        """The widget with its still twins beside it, for whatever cannot show a widget."""
        live = self._repr_mimebundle_()
        data = live[0] if isinstance(live, tuple) else live
        return {**(data or {}), **twins(self.stepper)}

    def put_away(self) -> None:
        """Close it for good: its cell is run again."""
        self.on_msg(self._heard, remove=True)
        self.wire.close()
        self.layout.close()  # a model of its own, which would otherwise stay with every run of the cell
        self.close()
