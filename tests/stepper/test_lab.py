"""What notebooks import: clients and models by name, the stepper in a kernel, the lessons' helpers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

import agentlab
from agentlab import Agent, lab, models, teach
from agentlab.door import Door
from agentlab.models import tape
from agentlab.tools import Tool

LOOK = [models.call("look"), models.say("There are 100 cents.")]
KEY = "sk-canary-0123456789abcdef"
ENVIRONMENT = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


async def ask(client: Any, **options: Any) -> str:
    done = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}], **options)
    return str(done.choices[0].message.content)


# ---- clients and models ----
async def test_a_client_answers_from_its_script() -> None:
    assert await ask(lab.client([models.say("hi")])) == "hi"
    assert await ask(lab.client(lambda request: models.say("from a function"), "scripted")) == "from a function"
    assert await ask(lab.client())  # a model that behaves, where nothing is configured


async def test_a_model_goes_the_same_way(tools: list[Tool]) -> None:
    run = await Agent(lab.model(LOOK), tools).run("How much is there?")
    assert run.answer == "There are 100 cents."
    assert (await Agent(lab.model(LOOK, "scripted"), tools).run("How much?")).answer == run.answer


def test_a_name_needs_an_endpoint_and_says_so() -> None:
    for make in (lambda: lab.client("gpt-x"), lambda: lab.client(LOOK, "gpt-x"), lambda: lab.model(LOOK, "gpt-x")):
        with pytest.raises(ValueError, match="No endpoint for the model 'gpt-x'"):
            make()


async def test_the_environment_is_read_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:9/v1")
    monkeypatch.setenv("OPENAI_MODEL", "from-the-environment")
    client = lab.client()
    assert (str(client.base_url), client.api_key) == ("http://localhost:9/v1/", KEY)
    assert lab.model().name == "from-the-environment"
    assert lab.client(LOOK, "named").api_key == KEY
    assert lab.client(LOOK).api_key == "offline"  # a script is a script, whatever is configured
    assert KEY not in repr(lab.model()) + repr(client)
    monkeypatch.delenv("OPENAI_API_KEY")
    assert lab.client("local").api_key == "none"


async def test_the_network_is_reached_through_an_ordinary_client(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def endpoint(request: httpx2.Request) -> httpx2.Response:
        seen.append((str(request.url), request.headers["authorization"]))
        completion = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "from afar"}}
        return httpx2.Response(200, json={**completion, "choices": [choice]})

    network = tape.network()
    network._client = httpx2.AsyncClient(transport=httpx2.MockTransport(endpoint))
    import openai

    client = openai.AsyncOpenAI(
        api_key=KEY, base_url="http://far.invalid/v1", http_client=httpx2.AsyncClient(transport=Door(network))
    )
    assert await ask(client) == "from afar"

    async def my_loop(question: str) -> str:
        return await ask(client)

    stepper = lab.step(my_loop, "Hi")
    assert (await stepper.finish()).answer == stepper.answer == "from afar"
    assert seen == [("http://far.invalid/v1/chat/completions", f"Bearer {KEY}")] * 2
    assert KEY not in stepper.text()
    await client.close()


# ---- the rest of lab ----
def test_lab_has_what_lessons_use() -> None:
    for name in teach.__all__:
        assert getattr(lab, name) is getattr(teach, name)
        assert name in dir(lab)
    with pytest.raises(AttributeError, match="no 'nothing'"):
        _ = lab.nothing
    assert agentlab.lab is lab


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = "('openai', 'httpx2', 'anywidget', 'IPython')"
    code = f"import sys; from agentlab import lab; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_in_a_script_nothing_is_shown_and_it_finishes(tools: list[Tool], capsys: pytest.CaptureFixture[str]) -> None:
    stepper = lab.step(Agent(lab.model(LOOK), tools), "How much is there?")
    run = asyncio.run(stepper.finish())
    assert run.answer == "There are 100 cents."
    assert capsys.readouterr().out == ""
    assert "answered" in repr(stepper)
    with pytest.raises(RuntimeError, match=r"await stepper.finish\(\)"):
        stepper.clicks.launch(stepper.step())
    with pytest.raises(NotImplementedError):
        stepper._ipython_display_()


# ---- in a kernel ----
class Display:
    """What IPython's display does, without IPython."""

    def __init__(self) -> None:
        self.shown: list[dict[str, Any]] = []
        self.updates: list[dict[str, Any]] = []

    def __call__(self, bundle: dict[str, Any], raw: bool, display_id: bool = False) -> Any:
        self.shown.append(bundle)
        return SimpleNamespace(update=lambda later, raw: self.updates.append(later))


class Kernel:
    def __init__(self, attended: bool) -> None:
        self._allow_stdin = attended
        self.parent: dict[str, Any] = {"header": {"msg_id": "one"}, "metadata": {"cellId": "cell-1"}}

    def get_parent(self) -> dict[str, Any]:
        return self.parent


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    import IPython
    import IPython.display

    kernel = Kernel(attended=True)
    display = Display()
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=kernel))
    monkeypatch.setattr(IPython.display, "display", display)
    monkeypatch.setattr(lab, "_shown", {})
    kernel.display = display  # type: ignore[attr-defined]
    return kernel


async def test_it_shows_itself_once_and_updates_its_output_at_the_end(kernel: Any, tools: list[Tool]) -> None:
    stepper = lab.step(Agent(lab.model(LOOK), tools), "How much is there?")
    assert len(kernel.display.shown) == 1
    stepper._ipython_display_()  # the last line of the same cell: it is shown already
    assert len(kernel.display.shown) == 1
    kernel.parent = {"header": {"msg_id": "two"}, "metadata": {"cellId": "cell-2"}}
    stepper._ipython_display_()
    assert len(kernel.display.shown) == 2
    kernel._allow_stdin = False
    await stepper.finish()
    assert "There are 100 cents." in kernel.display.updates[-1]["text/html"]
    stepper.view.put_away()


async def test_where_nobody_can_click_there_is_no_widget(kernel: Any, tools: list[Tool]) -> None:
    kernel._allow_stdin = False
    stepper = lab.step(Agent(lab.model(LOOK), tools), "How much is there?")
    assert set(kernel.display.shown[0]) == {"text/html", "text/plain"}
    await stepper.finish()
    assert "There are 100 cents." in kernel.display.updates[-1]["text/plain"]
    stepper._ipython_display_()
    assert len(kernel.display.shown) == 1
    kernel.parent = {"header": {"msg_id": "two"}, "metadata": {"cellId": "cell-1"}}
    again = lab.step(Agent(lab.model(LOOK), tools), "And now?")
    assert again.view is not stepper.view


async def test_with_a_person_finish_waits_for_them(kernel: Any, tools: list[Tool]) -> None:
    stepper = lab.step(Agent(lab.model(LOOK), tools), "How much is there?")
    waiting = asyncio.create_task(stepper.finish())
    await asyncio.sleep(0.3)
    assert not waiting.done()
    assert stepper.branch.last == 0
    stepper.receive({"op": "run", "branch": 0, "at": 0, "epoch": 0})
    assert (await waiting).answer == "There are 100 cents."
    stopped = lab.step(Agent(lab.model(LOOK), tools), "And now?")
    waiting = asyncio.create_task(stopped.finish())
    await asyncio.sleep(0.05)
    stopped.receive({"op": "stop", "branch": 0, "at": 0, "epoch": 0})
    assert (await waiting).status == "interrupted"


async def test_a_kernel_that_takes_no_clicks_meanwhile_is_not_waited_for(
    kernel: Any, tools: list[Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace(version_info=(6, 31)))  # type: ignore[arg-type]
    stepper = lab.step(Agent(lab.model(LOOK), tools), "How much is there?")
    run = await asyncio.wait_for(stepper.finish(), 1)
    assert run.status == "running"


async def test_a_cell_that_runs_again_puts_the_old_one_away(kernel: Any, tools: list[Tool]) -> None:
    first = lab.step(Agent(lab.model(LOOK), tools), "How much is there?")
    beside = lab.step(Agent(lab.model(LOOK), tools), "And here?")
    assert first.view.comm is not None
    kernel.parent = {"header": {"msg_id": "again"}, "metadata": {"cellId": "cell-1"}}
    again = lab.step(Agent(lab.model(LOOK), tools), "How much is there?")
    assert first.view.comm is None
    assert beside.view.comm is None
    assert again.view.comm is not None
    from ipywidgets.widgets.widget import _instances

    assert not [model for model in _instances.values() if model in (first.view, first.view.layout, beside.view.layout)]
    again.view.put_away()


async def test_a_loop_of_ones_own_starts_by_itself_when_shown(kernel: Any) -> None:
    client = lab.client([models.say("hi")])

    async def my_loop(question: str) -> str:
        return await ask(client)

    stepper = lab.step(my_loop, "Hi")
    await stepper.clicks.done()
    assert stepper.state()["phase"] == "request"
    kernel._allow_stdin = False
    assert (await stepper.finish()).answer == "hi"
    stepper.view.put_away()
