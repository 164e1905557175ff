"""The ladder is data: the order taught, the order nested, and what breaks without each rung."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

from agentlab import Agent, Approve, Budget, Cap, Isolate, Repeats, Timeout, Truncate, Validate, climb, guards, models
from agentlab.ladder import LADDER, NESTING, nested

ORDER = ["isolate", "cap", "repeats", "width", "truncate", "validate", "timeout", "approve", "budget"]


def test_the_rungs_in_the_order_taught() -> None:
    assert [rung.name for rung in LADDER] == ORDER
    assert [type(rung.guard) for rung in LADDER if rung.guard] == [
        Isolate,
        Cap,
        Repeats,
        Truncate,
        Validate,
        Timeout,
        Approve,
        Budget,
    ]
    assert all(rung.breaks and rung.lessons for rung in LADDER)


@pytest.mark.parametrize("n", range(1, len(ORDER) + 1))
def test_rung_n_is_a_prefix(n: int) -> None:
    reached = {type(guard).__name__.lower() for guard in climb(ORDER[n - 1])}
    assert reached == set(ORDER[:n]) - {"width"}


def test_all_of_them_nest_in_the_order_of_the_design() -> None:
    assert [type(guard).__name__.lower() for guard in climb()] == list(NESTING)
    assert climb() == climb("budget")
    assert [type(guard) for guard in nested([Isolate(), Approve(), Truncate()])] == [Truncate, Approve, Isolate]


def test_an_agent_puts_them_in_order_and_leaves_yours_where_they_stand() -> None:
    async def mine(run: Any, action: Any, act: Any) -> Any:
        return await act(run, action)

    agent = Agent(models.scripted([]), [], [Isolate(), mine, Truncate()])
    assert agent.guards == [Truncate(), mine, Isolate()]


def test_a_rung_can_be_replaced() -> None:
    assert Cap(3) in climb("cap", cap=Cap(3))
    assert len(climb(cap=Cap(3))) == len(climb())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: climb("caps"), "There is no rung 'caps'. The rungs are: isolate, cap"),
        (lambda: climb(retry=Cap()), "There is no rung 'retry'"),
        (lambda: climb("cap", approve=Approve()), "lies above 'cap'"),
        (lambda: climb(width=4), r"Agent\(…, width=8\)"),
    ],
)
def test_a_wrong_rung_is_named(make: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_each_guard_is_a_small_frozen_value_with_a_docstring_of_one_line() -> None:
    for rung in LADDER:
        if rung.guard is None:
            continue
        kind = type(rung.guard)
        assert kind() == rung.guard
        assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
        assert kind.__doc__
        assert "\n" not in kind.__doc__
        assert len(inspect.getsource(kind).splitlines()) <= 70
    tree = ast.parse(inspect.getsource(guards))
    assert not any(isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(tree)), "guards have no memory"
