"""What notebooks import: `lab.step`, `lab.client`, `lab.model`, and what `agentlab.teach` has for lessons.

    from agentlab import lab
    stepper = lab.step(agent, "Where is order 1042?")     # or any async function that asks through lab.client()
    run = await stepper.finish()

The model is scripted unless a name says otherwise: the same cells then talk to the endpoint of OPENAI_BASE_URL, with the key
of OPENAI_API_KEY. Both are read when they are needed, and never shown.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .agent import Agent
from .asking import place
from .run import Run
from .stepper import Stepper
from .twin import Still
from .validation import warm_up

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from .models import endpoint
    from .widgets.stepper import StepperView

SCRIPTED = "scripted"
_shown: dict[str, tuple[str, list[StepperView | Still]]] = {}  # cell -> its execution and views: run again, it puts the old away


# ---- models ----
def client(script: Any = None, model: str | None = None) -> AsyncOpenAI:
    """An `AsyncOpenAI` client whose requests a stepper can hold.

    `lab.client(script)` answers from a script (a list, a function of the request, a model of the zoo), without a network.
    `lab.client(script, MODEL)` does so while MODEL is "scripted"; any other name is asked for at the real endpoint, and so is
    `lab.client("name")`. Without arguments: the endpoint where OPENAI_MODEL names a model, else a well-behaved scripted one.
    """
    import httpx2
    import openai

    from .door import Door

    script, name = _which(script, model)
    if name == SCRIPTED:
        from .models.offline import BASE_URL, transport

        http = httpx2.AsyncClient(transport=Door(transport(script)))
        return openai.AsyncOpenAI(api_key="offline", base_url=BASE_URL, http_client=http)
    key, address = os.environ.get("OPENAI_API_KEY"), os.environ.get("OPENAI_BASE_URL")
    if not key and not address:
        raise ValueError(
            f"No endpoint for the model {name!r}. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server, "
            'or keep MODEL = "scripted".'
        )
    from .models.tape import network

    http = httpx2.AsyncClient(transport=Door(network()))
    return openai.AsyncOpenAI(api_key=key or "none", base_url=address, http_client=http)


def model(script: Any = None, name: str | None = None) -> endpoint.openai:
    """A model for `Agent(…)` that goes the way of `lab.client(script, name)`: through the real SDK, without a network."""
    from .models.endpoint import openai

    script, found = _which(script, name)
    return openai(found, client=client(script, found))


def _which(script: Any, name: str | None) -> tuple[Any, str]:
    """The script to play and the model's name, "scripted" when it is played."""
    if isinstance(script, str):  # a name; a script is a list or a function
        script, name = None, script
    if name is None and script is None:
        configured = os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")
        name = (os.environ.get("OPENAI_MODEL") if configured else None) or SCRIPTED
    name = name or SCRIPTED
    if name == SCRIPTED and script is None:
        from .models import zoo

        script = zoo.honest()
    return script, name


# ---- the stepper ----
def step(
    agent: Agent | Callable[..., Any], question: str | Run, *,
    client: AsyncOpenAI | None = None, name: str | None = None, world: object = None,
) -> Stepper:  # fmt: skip
    """Hold a run still and show it: step, go back, fork. Returns at once; clicks move it.

    `agent` is an `Agent`, or your own `async def loop(question)` or `loop(question, client)` that asks its model through a
    client of `lab.client()`. `world` is what its tools change and `fork` puts back (`worlds.orders.desk`; `[]` for nothing).
    `await stepper.finish()` waits until you have reached the end; where nobody can click, it runs there by itself.
    """
    from .own_loop import OwnLoop
    from .their_loop import TheirLoop

    if isinstance(agent, Agent):
        stepper = Stepper(OwnLoop(agent, question), name)
    elif isinstance(question, str):
        stepper = Stepper(TheirLoop(agent, question, client, world), name)
    else:
        raise TypeError("Your own loop is stepped with a question, a text. A Run can only be taken up by an Agent.")
    try:
        home = asyncio.get_running_loop()
    except RuntimeError:  # a script: `asyncio.run(stepper.finish())`, `print(stepper)`
        return stepper
    stepper.clicks.bind(home)
    if _kernel() is not None:
        _show(stepper, home)
    return stepper


def _show(stepper: Stepper, home: asyncio.AbstractEventLoop) -> None:
    cell, execution = _cell()
    before, views = _shown.get(cell, ("", []))
    if before != execution:
        for old in views:
            old.put_away()
            old.stepper.close()
        views = []
    view: StepperView | Still
    if place() == "notebook":
        from .widgets.stepper import StepperView

        view = StepperView(stepper, home, execution)
        _warm_up()
    else:
        view = Still(stepper, execution)
    if cell:
        _shown[cell] = (execution, [*views, view])
    stepper.view = view
    view.output.show()
    if stepper.moment is None and place() == "notebook":  # elsewhere `finish` begins, and what is printed stands with it
        stepper.clicks.launch(stepper.begin())


def _warm_up() -> None:
    """Load what the first call needs (arguments are checked: a third of a second) while the person reads."""
    with suppress(RuntimeError):  # no threads here (Pyodide): then the first call loads it
        threading.Thread(target=warm_up, daemon=True, name="agentlab-warm-up").start()


def _kernel() -> Any:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None)


def _cell() -> tuple[str, str]:
    """The id of the cell that runs, where the front end sends one, and of this execution of it."""
    try:
        parent = _kernel().get_parent()
        return str(parent.get("metadata", {}).get("cellId") or ""), str(parent["header"]["msg_id"])
    except (AttributeError, KeyError, TypeError, LookupError):
        return "", ""


def __getattr__(name: str) -> Any:
    """What lessons use lives in `agentlab.teach` and is imported when it is first named."""
    if not name.startswith("_"):
        teach = import_module(".teach", __package__)
        if name in getattr(teach, "__all__", dir(teach)):
            return getattr(teach, name)
    raise AttributeError(f"agentlab.lab has no {name!r}.")


def __dir__() -> list[str]:
    return sorted({"client", "model", "step", *getattr(import_module(".teach", __package__), "__all__", ())})
