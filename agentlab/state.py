"""What a view of the stepper shows besides the rows and the bars: one small dict, as it travels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .rows import notes_wire

if TYPE_CHECKING:
    from .stepper import Stepper

CONTROLS = ("step", "back", "forward", "run", "stop", "reset", "fork")


def can(stepper: Stepper, command: str) -> str | bool:
    """True, or why `command` cannot be given now."""
    moments = stepper.branch.moments
    if not moments:
        return True
    moment, at = moments[-1], stepper.branch.at
    match command:
        case "back":
            return at > 0 or "This is the first moment."
        case "forward":
            return not stepper.branch.is_at_last or "Nothing further has happened yet. Step goes on."
        case "step" | "run":
            if not stepper.branch.is_at_last or moment.again:
                return True
            if moment.place == "end":
                return "The run is over. Go back and fork, or reset."
            if moment.held and moment.status == "waiting":
                names = ", ".join(held["name"] for held in moment.held)
                return f"{names} waits for your yes or no."
            return True
        case "stop":
            return stepper.running or not stepper.is_over or "The run is over."
        case "fork":
            return stepper.cannot_fork or True
    return True


def state_of(stepper: Stepper) -> dict[str, Any]:
    """What a view shows besides rows and bars. Its size does not depend on the history."""
    branch, moment = stepper.branch, stepper.moment
    known = moment is not None and not branch.is_at_last
    says = moment.says if moment else "Step begins."
    state: dict[str, Any] = {
        "branch": branch.id,
        "at": branch.at,
        "last": max(branch.last, 0),
        "rows": moment.rows if moment else 0,
        "bars": moment.bars if moment else 0,
        "phase": moment.place if moment else "request",
        "turn": moment.turn if moment else 1,
        "lamps": dict(moment.lamps) if moment else {},
        "next": "Step shows what came next. It is known, so nothing runs." if known else says,
        "status": moment.status if moment else "running",
        "answer": (moment.answer if moment else "")[:4_000],
        "running": stepper.running,
        "notes": notes_wire(moment.notes) if moment else [],
        "held": [dict(held) for held in moment.held] if moment else [],
        "can": {command: can(stepper, command) for command in CONTROLS},
        "branches": [
            {
                "id": one.id, "name": one.name, "parent": one.parent, "row": one.row,
                "rows": len(one.rows), "current": one is branch,
            }
            for one in {**stepper.branches, branch.id: branch}.values()
        ],
        "title": stepper.title,
        "door": stepper.door,
    }  # fmt: skip
    if moment and moment.line is not None:
        state["line"] = moment.line.wire()
    return state
