"""What a run is made of: small frozen values. A run is a log of them, oldest first; nothing in it is ever changed.

The model decides (`Reply`, `Call`), the program executes (`Result`), a person rules (`Ruling`), a guard may end it (`Stop`).
Fields that only describe how an entry came about do not count when entries are compared.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .arguments import digest, parse, written

if TYPE_CHECKING:
    from .tools import Tool


DECLINED = {"content_filter", "refusal", "safety", "SAFETY"}


@dataclass(frozen=True)
class Note:
    """Which guard acted, and why."""

    guard: str
    why: str


@dataclass(frozen=True)
class System:
    """The standing instruction."""

    text: str


@dataclass(frozen=True)
class User:
    """A question of the person."""

    text: str


@dataclass(frozen=True)
class Call:
    """The model wants this tool run. `arguments` is its raw text, kept as it came; a mapping is written out as JSON."""

    id: str
    name: str
    arguments: str = "{}"
    cut: bool = field(default=False, compare=False)  # the reply broke off: never run, even where the JSON looks whole
    tools: Mapping[str, Tool] | None = field(default=None, compare=False, repr=False)  # given to guards, never logged
    unseen: bool = field(default=False, compare=False, repr=False)  # Approve could not see whether its tool is dangerous

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", written(self.arguments))

    @property
    def args(self) -> dict[str, Any]:
        """The arguments, read afresh each time: a tool that changes its copy changes nothing here."""
        return parse(self.arguments)

    @property
    def digest(self) -> str:
        """A fingerprint of tool and arguments."""
        return digest(self.name, self.arguments)

    @property
    def tool(self) -> Tool | None:
        """The tool, where a guard looks at a call that is about to run."""
        return self.tools.get(self.name) if self.tools is not None else None

    def ruled(self, ok: bool, why: str = "", arguments: Mapping[str, Any] | str | None = None) -> Ruling:
        """A person's ruling on exactly this call; `arguments` are those that the person put in their place."""
        return Ruling(self.id, ok, why, None if arguments is None else written(arguments), self.digest)


@dataclass(frozen=True)
class Reply:
    """What the model said. `usage` is the provider's own count, where it gave one.

    `fault` is what the model is told where this is no answer though it holds no call: it then has another try. `reasoning` is the
    model's thinking: never run and never an answer; it goes back with the calls of its turn where the endpoint has a field.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: str = field(default="", compare=False)
    usage: Mapping[str, int] | None = field(default=None, compare=False)
    sent: Ask | None = field(default=None, compare=False, repr=False)
    seconds: float = field(default=0.0, compare=False)
    notes: tuple[Note, ...] = field(default=(), compare=False)
    fault: str = ""
    reasoning: str = field(default="", compare=False, repr=False)
    replays: bool = field(default=False, compare=False, repr=False)  # the endpoint wants its reasoning back (RS04)

    @property
    def final(self) -> bool:
        """Whether this is an answer: text, no calls, and nothing wrong with it. An empty reply is none (AT08)."""
        return not self.calls and not self.fault and bool(self.text.strip())

    @property
    def declined(self) -> bool:
        """Whether a filter ended the reply, or a gateway calls it refused: its calls are not meant to run (MS08)."""
        return self.finish in DECLINED


@dataclass(frozen=True)
class Result:
    """What a call came to. `text` is what the model is told; `full` is the whole where that was cut (F5)."""

    call_id: str
    text: str
    error: bool = False
    full: str | None = field(default=None, compare=False, repr=False)
    seconds: float = field(default=0.0, compare=False)
    notes: tuple[Note, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Held:
    """The call waits for a person. `why` says what is wrong where it was held before. `call` is what would run, where a guard
    made it another than the model wrote: the person is shown that one."""

    call_id: str
    digest: str = ""
    why: str = ""
    notes: tuple[Note, ...] = field(default=(), compare=False)
    call: Call | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Ruling:
    """What the person said about one call: yes, no with a reason, or other arguments. An empty digest means the call as held.

    `expired` is not a refusal: nobody answered. Each ruling has an `id` of its own and is spent once.
    """

    call_id: str
    ok: bool
    why: str = ""
    arguments: str | None = None
    digest: str = ""
    expired: bool = False
    id: str = field(default_factory=lambda: os.urandom(16).hex(), compare=False, repr=False)


@dataclass(frozen=True)
class Stop:
    """The run was ended. `kind` is the status: capped, stuck, over_budget, failed or interrupted."""

    kind: str
    why: str = ""
    notes: tuple[Note, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Ask:
    """The action "ask the model": the request that guards may shape. The other action is a `Call`.

    `tools` None means all that there are. `last` is the request after a stop: no tools, and its calls are dropped (D2).
    `turn` counts the replies before it.
    """

    messages: Sequence[dict[str, Any]] = ()
    tools: tuple[dict[str, Any], ...] | None = None
    last: bool = False
    turn: int = 0


Entry = System | User | Reply | Result | Held | Ruling | Stop
Action = Ask | Call
