"""The stepper as plain text and as still HTML: what papermill, nbconvert, a code host and a dead kernel show.

Nothing in it moves, runs or is fetched. Colours come from the page, so it reads in light and in dark.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from .rows import sendable

if TYPE_CHECKING:
    from .stepper import Stepper

FIRST, LAST = 4, 36  # rows shown of a long history: its beginning, and its end
CHARS = 200
ROLE_MARKS = {"system": "S", "user": "U", "assistant": "A", "tool": "T", "note": "·"}
PARAGRAPH = "<p style='margin:4px 8px'>"
TABLE = "<table style='border-collapse:collapse;width:100%;table-layout:auto'>"  # Jupyter's own tables have equal columns
BAR = "background:#5b8def;height:.7em"
LINE = "border-top:1px solid rgba(128,128,128,.35)"
CELL = f"padding:3px 8px;text-align:left;vertical-align:top;{LINE}"


def picked(stepper: Stepper) -> tuple[list[dict[str, Any]], int]:
    """The rows to show, and how many in the middle are left out."""
    count = stepper.moment.rows if stepper.moment else 0
    rows = stepper.branch.rows
    if count <= FIRST + LAST:
        return rows[:count], 0
    return [*rows[:FIRST], *rows[count - LAST : count]], count - FIRST - LAST


def short(text: str, chars: int = CHARS) -> str:
    return text if len(text) <= chars else f"{text[:chars]}…"


def calls_in(row: dict[str, Any]) -> list[str]:
    return [f"{call['name']}({short(call['arguments'])})" for call in row.get("calls", [])]


def headline(stepper: Stepper) -> str:
    state = stepper.state()
    if state["phase"] == "end":
        status: str = state["status"]
        return f"{stepper.title} · {status if status.startswith('crashed') else status.replace('_', ' ')}"
    where = "waiting for a person" if state["status"] == "waiting" else f"standing still at the {state['phase']}"
    return f"{stepper.title} · turn {state['turn']}, {where}"


def text_of_stepper(stepper: Stepper) -> str:
    """The stepper as text, for a terminal and for text/plain."""
    state = stepper.state()
    rows, left_out = picked(stepper)
    lines = [headline(stepper)]
    for k, row in enumerate(rows):
        if left_out and k == FIRST:
            lines.append(f"      … {left_out:,} rows left out …")
        said = " ".join([row["text"].replace("\n", " "), *(f"→ {call}" for call in calls_in(row))]).strip()
        name = f"{row['role']} {row['name']}" if row.get("name") else row["role"]
        marks = (" (error)" if row.get("error") else "") + (" (edited by you)" if row.get("edited") else "")
        lines.append(f"{row['i'] + 1:>4}  {name}{marks}: {short(said, 150)}")
        lines += [f"      guard {note['guard']}: {short(note['why'], 120)}" for note in row.get("notes", [])]
    bars = stepper.branch.bars[: state["bars"]]
    if bars:
        lines.append("tokens sent: " + ", ".join(_tokens(bar) for bar in bars[-12:]) + (" (latest 12)" if len(bars) > 12 else ""))
    if "line" in state:
        lines.append(f"at line {state['line']['lineno']} ({state['line']['file']}): {state['line']['text']}")
    if state["answer"] and (not rows or rows[-1]["text"] != state["answer"]):
        lines.append(f"answer: {short(state['answer'], 300)}")
    lines.append(state["next"])
    if len(state["branches"]) > 1:
        lines.append("branches: " + ", ".join(b["name"] + (" (this one)" if b["current"] else "") for b in state["branches"]))
    return "\n".join(lines)


def html_of_stepper(stepper: Stepper) -> str:
    """The stepper as HTML without scripts. Everything that a tool or a model wrote is escaped."""
    state = stepper.state()
    rows, left_out = picked(stepper)
    parts = [f"{PARAGRAPH}<strong>{escape(headline(stepper))}</strong></p>", TABLE]
    heads = "".join(f"<th scope='col' style='{CELL}'>{head}</th>" for head in ("#", "who", "message", "tokens"))
    parts.append(f"<thead><tr>{heads}</tr></thead><tbody>")
    for k, row in enumerate(rows):
        if left_out and k == FIRST:
            parts.append(f"<tr><td style='{CELL}' colspan='4'>… {left_out:,} rows left out …</td></tr>")
        parts.append(_row(row))
    parts.append("</tbody></table>")
    bars = stepper.branch.bars[: state["bars"]]
    if bars:
        parts.append(_bars(bars))
    if "line" in state:
        line = state["line"]
        where = f"At line {line['lineno']} ({escape(line['file'])})"
        parts.append(f"{PARAGRAPH}{where}: <code>{escape(line['text'])}</code></p>")
    if state["answer"]:
        parts.append(f"{PARAGRAPH}<strong>Answer:</strong> {escape(short(state['answer'], 600))}</p>")
    parts.append(f"{PARAGRAPH}<em>{escape(state['next'])} This is a still picture: run the cell to step.</em></p>")
    inside = "".join(parts)
    return f"<div style='border:1px solid rgba(128,128,128,.45);border-radius:4px;max-width:60em;overflow-x:auto'>{inside}</div>"


def _row(row: dict[str, Any]) -> str:
    who = escape(row["role"]) + (f" <code>{escape(row['name'])}</code>" if row.get("name") else "")
    if row.get("error"):
        who += " (error)"
    if row.get("edited"):
        who += " (edited by you)"
    lines = [escape(short(row["text"]))] if row["text"] else []
    lines += [f"→ <code>{escape(call)}</code>" for call in calls_in(row)]
    lines += [f"guard <strong>{escape(n['guard'])}</strong>: {escape(short(n['why']))}" for n in row.get("notes", [])]
    said = "<br>".join(lines)
    count = "" if row["role"] == "note" else f"{'' if row['exact'] else '~'}{row['tokens']:,}"
    cells = (str(row["i"] + 1), who, f"<span style='white-space:pre-wrap;overflow-wrap:anywhere'>{said}</span>", count)
    return "<tr>" + "".join(f"<td style='{CELL}'>{cell}</td>" for cell in cells) + "</tr>"


def _bars(bars: list[dict[str, Any]]) -> str:
    """The tokens of each request as bars: the curve of J1 without a script."""
    shown = bars[-24:]
    most = max(max(map(_total, shown)), 1)
    lines = "".join(
        f"<tr><td style='padding:0 8px'>request {bar['request']}</td>"
        f"<td style='padding:0 8px;width:60%'><div style='{BAR};width:{100 * _total(bar) / most:.1f}%'></div></td>"
        f"<td style='padding:0 8px;text-align:right'>{_tokens(bar)}</td></tr>"
        for bar in shown
    )
    what = "Tokens that each request carries" + (f" (the latest {len(shown)} of {len(bars)})" if len(shown) < len(bars) else "")
    return f"{PARAGRAPH}{what}</p>{TABLE}{lines}</table>"


def _total(bar: dict[str, Any]) -> int:
    return int(bar.get("reported") or sum(bar[part] for part in ("system", "user", "assistant", "tool", "tools")))


def _tokens(bar: dict[str, Any]) -> str:
    return f"{'' if bar.get('reported') or bar['exact'] else '~'}{_total(bar):,}"


# ---- in an output ----
def twins(stepper: Stepper) -> dict[str, str]:
    """Both twins, as one output holds them."""
    return {"text/html": sendable(html_of_stepper(stepper)), "text/plain": sendable(text_of_stepper(stepper))}


class Output:
    """The output of the cell that shows a stepper: shown once, then updated where it stands."""

    def __init__(self, bundle: Callable[[], dict[str, Any]], shown_in: str) -> None:
        self._bundle, self._shown_in = bundle, shown_in
        self._handle: Any = None

    def show(self) -> None:
        """Show it in the cell that runs now, which is its own."""
        from IPython.display import display

        self._handle = display(self._bundle(), raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def update(self) -> None:
        """Put what is true now in its place."""
        if self._handle is not None:
            self._handle.update(self._bundle(), raw=True)

    def show_here(self) -> None:
        """Show it in the cell that runs now, unless that is the one that shows it."""
        from IPython import get_ipython
        from IPython.display import display

        parent = get_ipython().kernel.get_parent()
        if parent.get("header", {}).get("msg_id") != self._shown_in:
            display(self._bundle(), raw=True)  # type: ignore[no-untyped-call]


class Still:
    """The view of a stepper where nobody can click: its twins alone. A widget there would be saved with its whole front end,
    and would hide the twins from whoever reads the saved file without a kernel."""

    def __init__(self, stepper: Stepper, shown_in: str) -> None:
        self.stepper = stepper
        self.output = Output(lambda: dict(twins(stepper)), shown_in)
        stepper.on_rest = self.output.update

    def put_away(self) -> None:
        self.stepper.on_rest = lambda: None
