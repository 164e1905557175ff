"""The ladder: the guards in the order in which they are taught, and what breaks without each. Rung N is a prefix of it.

The order of nesting is another one: what stands outside sees what the inner ones made. Truncate is outermost, so that even a
raised error of a million characters is cut; Isolate is innermost, so that the others only ever see results.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .budget import Budget
from .guards import Approve, Cap, Isolate, Repeats, Timeout, Truncate, Validate
from .loop import Guard, all_guards


class Rung(NamedTuple):
    """One step of the course. `guard` is None for concurrency: that is the loop's width, not a guard."""

    name: str
    guard: Guard | None
    breaks: str
    lessons: str


WIDTH = "The calls of one turn run together, and their results come back in call order."
LADDER = (
    Rung("isolate", Isolate(), "an invented tool name takes the whole run down", "C1 C2 C3 C4 C5"),
    Rung("cap", Cap(), "a model that never answers is paid for until you notice", "D1 D2 D7"),
    Rung("repeats", Repeats(), "the same call is made again and again", "D3 D4"),
    Rung("width", None, "three calls of two seconds take six", "E1 E2 E3 E4"),
    Rung("truncate", Truncate(), "one huge result fills the context and is paid for in every later request", "F1 F2 F5"),
    Rung("validate", Validate(), "a tool runs with arguments of the wrong kind", "H1 H2"),
    Rung("timeout", Timeout(), "one tool that hangs holds the run for ever", "C6"),
    Rung("approve", Approve(), "a refund goes out on the model's word alone", "I1 I2"),
    Rung("budget", Budget(), "one reply asks for a hundred calls, and a dear run goes on while everything fails", "D5 D6"),
)
NESTING = ("budget", "truncate", "repeats", "validate", "approve", "timeout", "isolate", "cap")  # outermost first
KINDS = {type(rung.guard): rung.name for rung in LADDER if rung.guard is not None}


def climb(upto: str | None = None, **replacements: Guard) -> list[Guard]:
    """The guards up to and including the rung `upto` (all of them by default), in nesting order.

    `climb("cap", cap=Cap(3))` puts another guard on a rung. Raises ValueError for a rung that does not exist, or that lies
    above `upto`.
    """
    names = [rung.name for rung in LADDER]
    for name in (*replacements, *([upto] if upto is not None else [])):
        if name not in names:
            raise ValueError(f"There is no rung {name!r}. The rungs are: {', '.join(names)}.")
    reached = names[: names.index(upto) + 1] if upto is not None else names
    if above := [name for name in replacements if name not in reached]:
        raise ValueError(f"Rung {above[0]!r} lies above {upto!r}: climb({above[0]!r}, …) reaches it.")
    if "width" in replacements:
        raise ValueError("The rung 'width' is no guard but the loop's width: Agent(…, width=8).")
    guards = {rung.name: replacements.get(rung.name, rung.guard) for rung in LADDER if rung.name in reached}
    return [guard for name in NESTING if (guard := guards.get(name)) is not None]


def nested(guards: Iterable[Guard]) -> list[Guard]:
    """`guards` with those of the ladder put into nesting order among the places that they hold; yours stay where they stand."""
    guards = all_guards(guards)
    ordered = iter(sorted((g for g in guards if type(g) in KINDS), key=lambda g: NESTING.index(KINDS[type(g)])))
    return [next(ordered) if type(g) in KINDS else g for g in guards]
