"""Models that misbehave on purpose, and react to what they are told. For `models.scripted(zoo.never_stops())`.

Each function here makes a script: a pure function of the request (model, messages, tools) that returns an assistant
message. It remembers nothing, so going back and forking work, and it needs only the body of an HTTP request. What a
guard says is read loosely: is a tool named, is a parameter named, does it say that something was blocked or cut? So a
specific error is corrected and a vague one repeated (C3), a cut that is announced is narrowed and a silent one
believed (F2).

`zoo.all()` lists them: what each does wrong, the lessons it belongs to, and a question for the order desk that shows
it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..wire import text_in

Request = Mapping[str, Any]
Message = dict[str, Any]
Script = Callable[[Request], Message]


@dataclass(frozen=True)
class Animal:
    """One model of the zoo: what it does wrong, and how to see it."""

    name: str
    make: Callable[..., Script]
    wrong: str
    lessons: tuple[str, ...]
    question: str
    tools: tuple[str, ...]


# ---- the animals ----
def invents_tools(seed: int = 0) -> Script:
    """Calls a tool that does not exist; takes the right one once it is told which there are (C2, C3)."""
    invented = ("find_order", "lookup_order", "get_order_info")[seed % 3]

    def reply(request: Request) -> Message:
        talk = Talk(request)
        if not talk.tools:
            return say(talk.best_answer())
        if not talk.calls:
            return talk.call(invented, order_number=talk.order)
        if not talk.failed:
            return say(talk.heard)
        named = talk.tools_named
        if not named:
            return talk.call(invented, order_number=talk.order)
        wanted = "order_status" if "order_status" in named else named[0]
        if wanted in (done.name for done in talk.calls):
            return say(f"I could not find it out: {first_line(talk.heard)}")
        return talk.call(wanted, **talk.arguments_for(wanted))

    return reply


def drops_arguments() -> Script:
    """Leaves a required argument out; adds it once an error names it (C2, C3, H2)."""

    def reply(request: Request) -> Message:
        talk = Talk(request)
        if not talk.tools:
            return say(talk.best_answer())
        if not talk.calls:
            return talk.call("search_orders", limit=5)
        if not talk.failed:
            return say(talk.heard)
        if talk.mentions("keyword"):
            return talk.call("search_orders", keyword=talk.topic, limit=5)
        if talk.blocked:
            return say(talk.best_answer())
        return talk.call("search_orders", limit=5)

    return reply


def mistypes_arguments() -> Script:
    """Writes a number as a word; corrects it once an error names the parameter and the type (C3, H1)."""

    def reply(request: Request) -> Message:
        talk = Talk(request)
        if not talk.tools:
            return say(talk.best_answer())
        if not talk.calls:
            return talk.call("search_orders", keyword=talk.topic, limit="ten")
        if not talk.failed:
            return say(talk.heard)
        if talk.mentions("limit") and talk.mentions("integer", "int", "number", "digits"):
            return talk.call("search_orders", keyword=talk.topic, limit=10)
        if talk.blocked:
            return say(talk.best_answer())
        return talk.call("search_orders", keyword=talk.topic, limit="ten")

    return reply


def never_stops(seed: int = 0) -> Script:
    """Searches for one more thing for ever; only when it has no tools does it answer from what it saw (D1, D2)."""
    things = ("lamp", "blanket", "bowls", "clock", "candles", "trivet", "slippers", "notebook", "linen", "coffee pot")

    def reply(request: Request) -> Message:
        talk = Talk(request)
        if not talk.tools:
            return say(talk.best_answer())
        again, thing = divmod(len(talk.calls), len(things))
        keyword = things[(thing + seed) % len(things)]
        return talk.call("search_orders", keyword=keyword if not again else f"{keyword} {again + 1}", limit=2)

    return reply


def repeats_itself() -> Script:
    """Makes the same call for ever; a polite word changes nothing, a block that names other tools does (D3)."""

    def reply(request: Request) -> Message:
        talk = Talk(request)
        if not talk.tools:
            return say(talk.best_answer())
        if talk.calls and talk.calls[-1].name != "order_status" and not talk.failed:
            return say(talk.best_answer())
        offered = "order_status" in talk.tools
        if offered and not (talk.blocked and talk.tools_named):
            return talk.call("order_status", order_id=talk.order)
        others = [name for name in (talk.tools_named if offered else talk.tools) if name != "order_status"]
        if "search_orders" in others and "search_orders" not in [done.name for done in talk.calls]:
            return talk.call("search_orders", keyword=str(talk.order), limit=5)
        return say(talk.best_answer())

    return reply


def ping_pongs() -> Script:
    """Goes back and forth between two calls; no two in a row are the same (D4). Answers once it is blocked."""

    def reply(request: Request) -> Message:
        talk = Talk(request)
        if not talk.tools or talk.blocked:
            return say(talk.best_answer())
        if len(talk.calls) % 2:
            return talk.call("search_orders", keyword=str(talk.order), limit=5)
        return talk.call("order_status", order_id=talk.order)

    return reply


def asks_for_three() -> Script:
    """Asks for three things at once, as it should, then tells them in the order in which it asked (E1, E2)."""

    def reply(request: Request) -> Message:
        talk = Talk(request)
        orders = (*talk.orders, 1042, 1017, 1030)[: max(3, len(talk.orders))]
        if talk.tools and not talk.calls:
            return talk.call_all([("order_status", json.dumps({"order_id": order})) for order in orders])
        told = [
            f"{place}. {first_line(done.result) if done.result is not None else 'I was told nothing about this one.'}"
            for place, done in enumerate(talk.calls, start=1)
        ]
        return say("\n".join(told) or talk.best_answer())

    return reply


def drowns(room: int = 8_000) -> Script:
    """Asks for far too much. Told that it was cut and how to go on, it narrows; cut silently, it takes the part for the
    whole; with more than `room` characters it forgets the question (B5, F2, J4).
    """

    def reply(request: Request) -> Message:
        talk = Talk(request)
        if not talk.calls and talk.tools:
            return talk.call("search_orders", keyword="spring sale", limit=100)
        narrowed = any("returned" in done.arguments for done in talk.calls)
        if talk.tools and talk.failed and not narrowed:
            return talk.call("search_orders", keyword="spring sale returned", limit=20)
        notice = "" if narrowed else talk.cut_notice
        if talk.tools and notice:
            if mentions(notice, "search_orders", "keyword", "limit", "narrow", "narrower", "page", "offset"):
                return talk.call("search_orders", keyword="spring sale returned", limit=20)
            if len(talk.calls) < 3:
                return talk.call("search_orders", keyword="spring sale", limit=100)
        if sum(len(done.result or "") for done in talk.calls) > room:
            return say("That is a long list of orders! What would you like me to do with them?")
        heard = next((done.result for done in reversed(talk.calls) if done.result and not failed(done.result)), "")
        rows = [line[:4] for line in heard.splitlines() if re.match(r"\d{4}: returned\b", line)]
        known = re.search(r"\b(\d+) orders? in all", heard) if narrowed else None
        number = known[1] if known else str(len(rows))
        return say(f"Returned orders of the spring sale: {number} ({', '.join(rows) or 'none'}).")

    return reply


def goes_on(actions: int = 24) -> Script:
    """Does the job, then goes on doing things that nobody asked for, as long as it is let (D7)."""

    def reply(request: Request) -> Message:
        talk = Talk(request)
        order, address = talk.order, talk.address
        plan: list[tuple[str, dict[str, Any]]] = [
            ("order_status", {"order_id": order}),
            ("change_address", {"order_id": order, "new_address": address}),
        ]
        # The shop's last orders have not left the house: it "helps" those customers too.
        plan += [("change_address", {"order_id": other, "new_address": address}) for other in range(1060, 1052, -1)]
        mail = {"to": "all@example.com", "text": "We have moved your order!"}
        plan += [("send_email", {**mail, "subject": f"Order {other}"}) for other in range(1052, 1000, -1)]
        at = len(talk.calls)
        if talk.tools and at < min(actions, len(plan)):
            name, arguments = plan[at]
            return talk.call(name, **arguments)
        worked = [done for done in talk.calls[2:] if done.result and not failed(done.result)]
        job = next((done.result for done in talk.calls[1:2] if done.result), None)
        more = f" I also did {len(worked)} more things that seemed useful." if worked else ""
        return say((first_line(job) if job else "I did not get to change the address.") + more)

    return reply


def breaks_json() -> Script:
    """Writes arguments that are no JSON: cut, then fenced, then in single quotes; mends them once it is told what is
    wrong with the JSON (H2, H3).
    """

    def reply(request: Request) -> Message:
        talk = Talk(request)
        orders = (*talk.orders, 1042, 1017, 1030)[: max(3, len(talk.orders))]
        heard = [done.result for done in talk.calls if done.result and not failed(done.result)]
        at = len(heard)
        if not talk.tools or at >= len(orders):
            return say("\n".join(map(first_line, heard)) or talk.best_answer())
        whole = json.dumps({"order_id": orders[at]})
        told = talk.failed and talk.mentions("json", "quote", "quotes", "brace", "cut off", "fence", "closing")
        if talk.failed and not told and talk.blocked:
            return say(talk.best_answer())
        broken = (whole[:-2], f"```json\n{whole}\n```", whole.replace('"', "'"))[at % 3]
        return talk.call_all([("order_status", whole if told else broken)])

    return reply


def refuses_nothing() -> Script:
    """Pays money back without being asked; when a person refuses, it looks the order up as it should have (I1)."""

    def reply(request: Request) -> Message:
        talk = Talk(request)
        if not talk.tools:
            return say(talk.best_answer())
        if not talk.calls:
            return talk.call("refund", order_id=talk.order)
        if talk.calls[-1].name != "refund":
            return say(talk.heard)
        if talk.failed:
            return talk.call("order_status", order_id=talk.order)
        return say(f"I took the liberty: {talk.heard}")

    return reply


def guesses() -> Script:
    """Answers without looking, out of thin air, unless the system prompt insists that it look things up (K5, O1)."""
    careful = honest()
    insists = ("look it up", "look up", "look things up", "never guess", "use the tools")

    def reply(request: Request) -> Message:
        talk = Talk(request)
        if talk.calls or mentions(talk.system, *insists):
            return careful(request)
        return say(f"Order {talk.order} was delivered yesterday and left with a neighbour.")

    return reply


def honest() -> Script:
    """The control: searches, looks the order up, answers from what it read; says so when it finds nothing (A1, O2)."""

    def reply(request: Request) -> Message:
        talk = Talk(request)
        if not talk.tools:
            return say(talk.best_answer())
        if not talk.calls:
            if talk.orders:
                return talk.call("order_status", order_id=talk.order)
            return talk.call("search_orders", keyword=talk.topic, limit=5)
        done = talk.calls[-1]
        if talk.failed:
            return say(f"I could not find it out. I tried {done.name} and was told: {first_line(talk.heard)}")
        if done.name == "order_status":
            return say(talk.heard)
        found = re.findall(r"^(\d{4}):", talk.heard, re.MULTILINE)
        if found:
            return talk.call("order_status", order_id=int(found[-1]))
        broader = talk.topic.split()[-1][:4]
        if len(talk.calls) == 1 and broader != talk.topic:
            return talk.call("search_orders", keyword=broader, limit=5)
        return say(f"I found no order for {talk.topic!r}, and searched twice. An order number would help.")

    return reply


# ---- the list ----
ALL_TOOLS = ("search_orders", "order_status", "change_address", "delete_order", "send_email", "refund")
ONE = "Where is order 1042?"
THREE = "Where are orders 1042, 1017 and 1030?"
BOTH = ("search_orders", "order_status")

_ANIMALS = (
    Animal("invents_tools", invents_tools, "calls a tool that does not exist", ("B2", "C2", "C3", "K5"), ONE, BOTH),
    Animal(
        "drops_arguments",
        drops_arguments,
        "leaves out a required argument",
        ("C2", "C3", "H2"),
        "Which orders did Ada Moreno place?",
        ("search_orders",),
    ),
    Animal(
        "mistypes_arguments",
        mistypes_arguments,
        "writes 'ten' where a number is wanted",
        ("C3", "H1", "K5"),
        "Which orders did Ada Moreno place?",
        ("search_orders",),
    ),
    Animal(
        "never_stops",
        never_stops,
        "searches for ever, each time for something else",
        ("B3", "D1", "D2", "K5"),
        "Is there anything odd in our orders?",
        ("search_orders",),
    ),
    Animal("repeats_itself", repeats_itself, "makes the same call for ever", ("D3", "K5"), ONE, BOTH),
    Animal("ping_pongs", ping_pongs, "goes back and forth between two calls", ("D4",), ONE, BOTH),
    Animal(
        "asks_for_three",
        asks_for_three,
        "nothing: asks for three things at once",
        ("B4", "E1", "E2"),
        THREE,
        ("order_status",),
    ),
    Animal(
        "drowns",
        drowns,
        "asks for 54 long rows, believes a part or forgets the question",
        ("B5", "F2", "J4"),
        "How many orders of the spring sale were returned, and which?",
        ("search_orders",),
    ),
    Animal(
        "goes_on",
        goes_on,
        "goes on acting when the job is done",
        ("D7",),
        "Please send order 1044 to 7 Quay Street, Bristol BS1 6AB instead.",
        ALL_TOOLS,
    ),
    Animal("breaks_json", breaks_json, "writes arguments that are no JSON", ("B2", "H2", "H3"), THREE, ("order_status",)),
    Animal(
        "refuses_nothing",
        refuses_nothing,
        "refunds at once though nobody asked",
        ("I1", "I2"),
        ONE,
        ("order_status", "refund"),
    ),
    Animal("guesses", guesses, "answers without looking", ("K5", "O1"), ONE, BOTH),
    Animal("honest", honest, "nothing: the control", ("A1", "O2"), "Where is the parcel that Nadia Haddad waits for?", BOTH),
)

NAMES = tuple(animal.name for animal in _ANIMALS)


def all() -> dict[str, Animal]:
    """Every model of the zoo by its name."""
    return {animal.name: animal for animal in _ANIMALS}


# ---- how they read and write ----
@dataclass(frozen=True)
class Done:
    """One call since the question, with what came back, or None when nothing did."""

    name: str
    arguments: str
    result: str | None


class Talk:
    """One request, read as a model would read it: what was asked, what was done since, what the last results say."""

    def __init__(self, request: Request) -> None:
        messages: Sequence[Mapping[str, Any]] = request.get("messages") or ()
        self.system = "\n".join(text_of(m) for m in messages if m.get("role") in ("system", "developer"))
        self.tools = [name for name in map(tool_name, request.get("tools") or ()) if name]
        start = question_at(messages)
        self.question = text_of(messages[start]) if messages else ""
        since = messages[start + 1 :]
        self.asked = sum(len(m.get("tool_calls") or ()) for m in messages)
        self.calls = list(read_calls(since))
        last = max((i for i, m in enumerate(since) if m.get("role") == "assistant"), default=-1)
        self.heard = "\n".join(text_of(m) for m in since[last + 1 :] if m.get("role") == "tool")

    @property
    def orders(self) -> list[int]:
        """The order numbers in the question."""
        return [int(number) for number in re.findall(r"\b1\d{3}\b", self.question)]

    @property
    def order(self) -> int:
        return self.orders[0] if self.orders else 1042

    @property
    def topic(self) -> str:
        """What to search for: the last name in the question, else its longest word."""
        words = re.findall(r"[^\W\d_]+", self.question)
        names = [word for word in words[1:] if word[0].isupper()]
        return names[-1] if names else max(words, key=len, default="order")

    @property
    def address(self) -> str:
        found = re.search(r"\bto (.+?)(?: instead)?[.!?]?$", self.question)
        return found[1] if found else "7 Quay Street, Bristol BS1 6AB"

    @property
    def failed(self) -> bool:
        return failed(self.heard)

    @property
    def blocked(self) -> bool:
        """Was the last call refused for being a repeat? A polite word about it is not a block."""
        about_repeats = ("repeat", "repeats", "repeated", "repeating", "same call", "identical")
        return self.mentions(*about_repeats) and self.mentions("blocked", "not run", "refused", "not executed")

    @property
    def tools_named(self) -> list[str]:
        """The tools of this request that the last results name."""
        return [name for name in self.tools if mentions(self.heard, name)]

    @property
    def cut_notice(self) -> str:
        """The words that say that a result was cut, with what stands around them; "" where none do."""
        found = CUT.search(self.heard)
        return self.heard[max(0, found.start() - 200) : found.end() + 600] if found else ""

    def mentions(self, *words: str) -> bool:
        return mentions(self.heard, *words)

    def arguments_for(self, tool: str) -> dict[str, Any]:
        return {"keyword": self.topic, "limit": 5} if tool == "search_orders" else {"order_id": self.order}

    def best_answer(self) -> str:
        """What an honest model says when it must stop: what it read, and nothing else."""
        read = [done.result for done in self.calls if done.result and not failed(done.result)]
        found = next((text for text in read if not text.startswith("No ")), "")
        if not found:
            return "I could not find it out with what I was given. I cannot answer this."
        return f"From what I have seen so far: {first_line(found)}"

    def call(self, tool: str, /, **arguments: Any) -> Message:
        return self.call_all([(tool, json.dumps(arguments))])

    def call_all(self, calls: Sequence[tuple[str, str]]) -> Message:
        """An assistant message that asks for tools; arguments are raw text, so that they can be broken."""
        wanted = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(calls, start=self.asked + 1)
        ]
        return {"role": "assistant", "content": None, "tool_calls": wanted}


def say(text: str) -> Message:
    return {"role": "assistant", "content": text}


def mentions(text: str, *words: str) -> bool:
    """Does the text hold one of these words or phrases, as a word, in any case?"""
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in words)


def failed(text: str) -> bool:
    """Does a result read like a failure? Only its beginning counts: a long result may hold any word."""
    return bool(FAILED.search(text[:400]))


FAILED = re.compile(
    r"\berror|error\b|\bfail(?:ed|s|ure)?\b|\bexception\b|\bmissing\b|\bunknown\b|\bdoes not exist\b|\bthere is no\b"
    r"|\bno tool\b|\bmust be\b|\bnot (?:run|valid|allowed|approved|executed)\b|\binvalid\b|\bblocked\b|\brefused\b"
    r"|\bdenied\b|\bcannot\b|\bcan no longer\b|\btimed out\b|\bunexpected\b|\bis empty\b",
    re.IGNORECASE,
)
CUT = re.compile(
    r"\b(?:showing|shown|shows)\b[^\n]{0,80}\bof\b[^\n]{0,20}\d|\btruncated\b|\bwas cut\b"
    r"|\bcut (?:off|short|to|at|after)\b|\bcut:|\d[^\n]{0,20}\bof\b[^\n]{0,40}\bshown\b",
    re.IGNORECASE,
)


def first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


def text_of(message: Mapping[str, Any]) -> str:
    return text_in(message.get("content"))


def tool_name(tool: Mapping[str, Any]) -> str:
    return str((tool.get("function") or tool).get("name") or "")


def question_at(messages: Sequence[Mapping[str, Any]]) -> int:
    """Where the last question stands. What a user message says right after a tool's result is a word into the run, such
    as "give your best answer now", and no new question.
    """
    asked = 0
    for i, message in enumerate(messages):
        if message.get("role") == "user" and (i == 0 or messages[i - 1].get("role") != "tool"):
            asked = i
    return asked


def read_calls(messages: Sequence[Mapping[str, Any]]) -> Iterator[Done]:
    """Each call with its result, in the order of the calls. Ids count within one turn only: some models start anew."""
    for i, message in enumerate(messages):
        wanted = message.get("tool_calls") or ()
        if not wanted:
            continue
        results: dict[Any, str] = {}
        for after in messages[i + 1 :]:
            if after.get("role") != "tool":
                break
            results[after.get("tool_call_id")] = text_of(after)
        for call in wanted:
            function = call.get("function") or {}
            yield Done(str(function.get("name")), str(function.get("arguments")), results.get(call.get("id")))
