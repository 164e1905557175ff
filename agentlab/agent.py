"""An agent: a model, tools, and guards around a loop. Everything that it does is a run, and a run is a value."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from . import loop
from .asking import Ask as AskPerson
from .asking import answered, ask_person, takes
from .ladder import climb, nested
from .loop import Act, Guard, Model, at_least_one, guarded
from .perform import OF_THIS_PROCESS, perform
from .records import Action, Ask, Entry, Reply, Stop
from .run import Run
from .tools import Toolbox

TRIES = 3  # how often a person is asked about one call, where what they said does not fit; then the run waits
BEAT = 0.25  # seconds. While a kernel's loop sleeps it does not notice the Stop button; this wakes it


class Agent:
    """`Agent(model, tools)` has every guard of the ladder; `guards=climb("cap")` has the first two.

    Args:
        model: what `models.scripted` or `models.openai` return, or any `async (ask) -> Reply`.
        tools: typed functions, or what `tool` made of them.
        guards: policy around each action; those of the ladder are put into nesting order.
        width: how many calls of one turn run at a time (1 for a cleaner trace: E4).
        ask: who rules on a held call: `(run, call) -> Ruling | bool | None`, sync or async. By default a card in a notebook,
            a prompt in an interactive terminal, and a refusal where nobody is.
        system: a standing instruction, sent first.

    Raises TypeError or ValueError, with what to write instead, when one of them is of the wrong kind.
    """

    def __init__(
        self,
        model: Model,
        tools: Iterable[Any] | Mapping[str, Any] = (),
        guards: Sequence[Guard] | None = None,
        width: int = 8,
        ask: AskPerson | None = None,
        system: str = "",
    ) -> None:
        if ask is not None:
            takes(ask)
        at_least_one(f"width={width!r}", width)
        self.model, self.width, self.ask, self.system = model, width, ask or ask_person, system
        self.tools = tools if isinstance(tools, Toolbox) else Toolbox(tools)
        self.guards = nested(climb() if guards is None else guards)
        self.ledger = OF_THIS_PROCESS
        self.last: Run | None = None
        perform(model, self.tools)  # says what is wrong with the model now, and not when it is asked

    def __repr__(self) -> str:
        names = ", ".join(type(guard).__name__ for guard in self.guards) or "none"
        return f"<Agent: tools {', '.join(self.tools) or 'none'}; guards {names}; width {self.width}>"

    @property
    def act(self) -> Act:
        """What carries out one action, guards and all."""
        return guarded(perform(self.model, self.tools, self.ledger), self.guards)

    def begin(self, question_or_run: str | Run) -> Run:
        """The run to go on with: a new one for a question, the same for a run."""
        return question_or_run if isinstance(question_or_run, Run) else Run.start(question_or_run, self.system)

    async def steps(self, question_or_run: str | Run) -> AsyncIterator[Run]:
        """Yield the run after every step. Ends when the run is finished, or waits for a person.

        A step is one request to the model, or all calls of one turn together. Interrupted, the run stands at `last`."""
        run = self.last = self.begin(question_or_run)
        alone = {name for name, tool in self.tools.items() if tool.alone}
        async with _beating():
            async for later in loop.steps(run, self.act, self.width, alone, self._keep):
                yield later

    def _keep(self, run: Run) -> None:
        self.last = run

    async def run(self, question_or_run: str | Run) -> Run:
        """Run to the end, asking a person where a call is held. Comes back as `waiting` when nobody could be asked yet:
        `await agent.run(agent.last)` goes on from there."""
        run = self.last = self.begin(question_or_run)
        asked: Counter[str] = Counter()
        while True:
            async for later in self.steps(run):
                run = later
            held = [call for call in run.held if asked[call.id] < TRIES]
            async with _beating():
                for call in held:
                    asked[call.id] += 1
                    ruling = await answered(self.ask, run, call, self.tools.get(call.name))
                    run = self.last = run if ruling is None else run.plus(ruling)
            if not run.todo:
                return run

    def run_sync(self, question_or_run: str | Run) -> Run:
        """`run` for scripts. Inside a running event loop (a notebook) it raises RuntimeError and says what to write."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._run_alone(question_or_run))
        raise RuntimeError("An event loop is running already, as it does in a notebook. Write: run = await agent.run(…)")

    async def _run_alone(self, question_or_run: str | Run) -> Run:
        """`run` in an event loop that ends with it. The model's connections must end with it, too: no other loop can use them."""
        try:
            return await self.run(question_or_run)
        finally:
            if close := getattr(self.model, "aclose", None):
                await close()

    def shaped(self, run: Run) -> Ask | Entry:
        """What the guards make of the run's next request: the `Ask` as it would be sent, or the entry that one of them answers
        in its place. Where they cannot be followed (one raises, or waits), the request as it stands. Nothing is sent."""
        equip = perform(self.model, self.tools).equip
        seen: list[Ask] = []

        async def look(run: Run, action: Action) -> Entry:
            seen.append(cast(Ask, equip(action)))
            return Reply("(not sent)")

        asked = cast(Ask, equip(run.todo[0]))
        shaped: Ask | Entry = asked
        following = guarded(look, self.guards)(run, asked)
        try:
            following.send(None)  # an act is a coroutine function
        except StopIteration as ended:
            shaped = ended.value
        except Exception:
            pass  # the guard raises again when it is run
        finally:
            following.close()
        return seen[0] if seen else shaped

    def request(self, question_or_run: str | Run) -> dict[str, Any] | None:
        """What would be sent to the model next, as the guards shape it: `{"messages": […], "tools": […]}`. None when nothing
        would (calls are open, the run waits for a person, or it is finished). Nothing is sent."""
        run = self.begin(question_or_run)
        while (todo := run.todo) and isinstance(todo[0], Ask):
            shaped = self.shaped(run)
            if isinstance(shaped, Ask):
                return {"messages": list(shaped.messages), "tools": copy.deepcopy(list(shaped.tools or ()))}
            if not isinstance(shaped, Stop):
                return None
            run = run.plus(shaped)
        return None


@asynccontextmanager
async def _beating() -> AsyncIterator[None]:
    """Keep the event loop waking up, so that an interrupt is noticed at once and not after ten seconds."""
    running = asyncio.get_running_loop()
    handle: asyncio.TimerHandle | None = None

    def beat() -> None:
        nonlocal handle
        handle = running.call_later(BEAT, beat)

    beat()
    try:
        yield
    finally:
        if handle is not None:
            handle.cancel()
