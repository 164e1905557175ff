"""Where a stepper has been: a branch is a list of moments, and a moment is a place in the loop with the world as it was there.

Moments are only added. Going back moves a cursor; another way is another branch, which begins with the moments that it
shares. So nothing that was seen is lost, and nothing that is known runs twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from .door import Line
from .records import Entry, Note, Reply
from .rows import ROLES, Bar, Row, bar_of, note_row, row_of, weights, whole
from .run import Run

Place = Literal["request", "reply", "call", "result", "end"]
LAMPS = ("N1", "N2", "N3", "N4", "N5", "N6", "N7")
Snapshot = tuple[bytes, ...]


class NotPossible(ValueError):
    """What was asked of the stepper cannot be done here; the message says why."""


class Busy(RuntimeError):
    """Something is running; the stepper does one thing at a time."""


class World(Protocol):
    """Something that tools change, and that can be put back as it was."""

    def snapshot(self) -> bytes: ...
    def restore(self, state: bytes) -> None: ...


def is_world(thing: object) -> bool:
    return not isinstance(thing, type) and all(callable(getattr(thing, name, None)) for name in ("snapshot", "restore"))


class Worlds:
    """The worlds of one run, kept and put back together."""

    def __init__(self, worlds: Iterable[World] = ()) -> None:
        self.worlds: tuple[World, ...] = tuple({id(world): world for world in worlds}.values())
        self.standing: Snapshot | None = None  # the snapshot that the worlds stand at, as far as this stepper knows

    def keep(self) -> Snapshot:
        """The state now. Bytes that did not change are the same object as before: they are not stored again."""
        before = self.standing or (b"",) * len(self.worlds)
        now = tuple(world.snapshot() for world in self.worlds)
        same = tuple(old if old == new else new for old, new in zip(before, now, strict=True))
        self.standing = before if all(a is b for a, b in zip(before, same, strict=True)) else same
        return self.standing

    def put_back(self, snapshot: Snapshot) -> None:
        """Restore the worlds, unless they stand there already."""
        if snapshot is self.standing:
            return
        for world, state in zip(self.worlds, snapshot, strict=True):
            world.restore(state)
        self.standing = snapshot


@dataclass(frozen=True)
class Moment:
    """One place where the loop stood still, and what could be seen there."""

    place: Place
    turn: int
    rows: int
    bars: int
    run: Run
    status: str = "running"
    answer: str = ""
    says: str = ""  # what Step does from here when nothing further is known
    notes: tuple[Note, ...] = ()
    lamps: Mapping[str, str] = field(default_factory=lambda: dict.fromkeys(LAMPS, ""))
    held: tuple[dict[str, Any], ...] = ()
    line: Line | None = None
    world: Snapshot = ()
    again: bool = False  # an end from which Step can go on all the same: the run was interrupted


class Branch:
    """One way that the run took: its moments, its rows and bars, and where its cursor stands."""

    def __init__(self, id: int, name: str, parent: Branch | None = None, row: int = 0) -> None:
        self.id, self.name, self.row = id, name, row
        self.parent = parent.id if parent else None
        self.moments: list[Moment] = []
        self.at = 0
        self.rows: list[Row] = []
        self.entries: list[Entry | str] = []  # what each row is made of; a str is a note of the stepper's own
        self.bars: list[Bar] = []
        self.sums: dict[str, int] = dict.fromkeys(ROLES, 0)
        self.names: dict[str, str] = {}
        self.changed_bar = 0  # the first bar that the view has not seen as it now is

    def add(self, *entries: Entry | str, edited: bool = False) -> None:
        """One row more for each entry."""
        for entry in entries:
            i = len(self.rows)
            if isinstance(entry, str):
                self.rows.append(note_row(i, entry))
            else:
                if isinstance(entry, Reply):
                    self.names.update((call.id, call.name) for call in entry.calls)
                self.rows.append(row_of(i, entry, self.names, edited))
                for role, count in weights(entry):
                    self.sums[role] += count
            self.entries.append(entry)

    def add_bar(self, sums: Mapping[str, int] | None, tool_tokens: int) -> None:
        """One bar more: what the next request carries. None: everything so far."""
        self.bars.append(bar_of(len(self.bars) + 1, self.sums if sums is None else sums, tool_tokens))

    def change_bar(self, at: int, **parts: Any) -> None:
        self.bars[at] = {**self.bars[at], **parts}
        self.changed_bar = min(self.changed_bar, at)

    def share(self, parent: Branch, rows: int, bars: int, moments: Sequence[Moment], edits: Mapping[int, Entry]) -> None:
        """Begin with what the parent has up to there, with `edits` in place of some of its entries."""
        self.moments = list(moments)
        for i, entry in enumerate(parent.entries[:rows]):
            edit = edits.get(i)
            self.add(entry if edit is None else edit, edited=edit is not None or bool(parent.rows[i].get("edited")))
        self.bars = list(parent.bars[:bars])

    def full(self, row: int) -> dict[str, Any] | None:
        """Everything of one row, or None where there is no such row."""
        if not 0 <= row < len(self.entries):
            return None
        entry = self.entries[row]
        return {"text": entry} if isinstance(entry, str) else whole(entry, self.names)

    @property
    def moment(self) -> Moment:
        return self.moments[self.at]

    @property
    def last(self) -> int:
        return len(self.moments) - 1

    @property
    def is_at_last(self) -> bool:
        return self.at == self.last

    def reach(self, moment: Moment) -> None:
        """Stand at a new moment."""
        self.moments.append(moment)
        self.at = self.last
