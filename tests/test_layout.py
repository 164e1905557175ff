"""Who may import whom, and what `import agentlab` costs. A new module has to be given its place here."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "agentlab"

# The core, lowest first: a module imports only what stands before it.
CORE = [
    "arguments", "written", "records", "results", "schema", "tools", "wire", "tokens", "truncation", "validation",
    "run", "loop", "perform", "naked", "guards", "budget", "ladder", "asking", "agent", "lint", "streams",
]  # fmt: skip
# Above the core: they read runs. `lab` is what notebooks import.
VIEWS = [
    "door", "rows", "branches", "own_loop", "their_loop", "state", "twin", "clicks", "stepper",
    "lab", "models", "serve", "worlds", "trace", "widgets",
]  # fmt: skip
TOP = ["teach", "cli", "doctor", "__main__"]
# Loaded when used, never by `import agentlab`.
HEAVY = {
    "openai", "httpx2", "pydantic", "jsonschema", "regex", "toktok",
    "plotly", "ipywidgets", "anywidget", "traitlets", "IPython", "nbformat", "numpy",
}  # fmt: skip
# The one way up from the core, taken when a person must be asked: the default of Agent(ask=...).
WAYS_UP = {("asking", "widgets")}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    """The part of the package that a file belongs to: `loop`, `models`, ..."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """(what is imported, whether at import time). Imports for type checkers only are left out."""
    here = ("agentlab", *path.relative_to(PACKAGE).parent.parts)

    def walk(node: ast.AST, at_import: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield alias.name, at_import
            elif isinstance(child, ast.ImportFrom):
                base = ".".join(here[: len(here) - child.level + 1]) if child.level else ""
                module = ".".join(filter(None, [base, child.module or ""]))
                if module in ("agentlab", base):
                    for alias in child.names:
                        yield f"{module}.{alias.name}", at_import
                else:
                    yield module, at_import
            yield from walk(child, at_import and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), True)


def ours(name: str) -> str | None:
    """The part of our package that an import names, if it does."""
    words = name.split(".")
    known = {*CORE, *VIEWS, *TOP}
    return words[1] if words[0] == "agentlab" and len(words) > 1 and words[1] in known else None


def test_every_module_has_a_place() -> None:
    assert {part(p) for p in modules()} - {*CORE, *VIEWS, *TOP, "__init__"} == set()


@pytest.mark.parametrize("name", CORE)
def test_the_core_imports_downwards(name: str) -> None:
    for target, at_import in imports(PACKAGE / f"{name}.py"):
        other = ours(target)
        if other in CORE and at_import:
            assert CORE.index(other) < CORE.index(name), f"{name} imports {other}, which stands above it"
        elif other not in (*CORE, None):
            assert (name, other) in WAYS_UP, f"the core's {name} reaches up to {other}"
            assert not at_import


@pytest.mark.parametrize("path", [p for p in modules() if part(p) in CORE], ids=lambda p: p.stem)
def test_the_core_loads_nothing_heavy(path: Path) -> None:
    assert {t.split(".")[0] for t, at_import in imports(path) if at_import} & HEAVY == set()


def test_models_and_worlds_know_the_core_only() -> None:
    for path in modules():
        if part(path) in ("models", "worlds"):
            reached = {ours(target) for target, _ in imports(path)} - {None, part(path)}
            assert reached <= set(CORE), path.name


def test_teach_and_the_command_line_stand_on_top() -> None:
    for path in modules():
        reached = {ours(target) for target, _ in imports(path)}
        if part(path) not in TOP:
            assert reached & {"cli", "doctor", "__main__"} == set(), path.name
            # `lab` hands the lessons' helpers on; it loads them when they are asked for.
            assert "teach" not in reached or part(path) == "lab", path.name


def fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_import_agentlab_loads_nothing_heavy_and_replaces_nothing() -> None:
    code = """
import sys, json, threading, warnings, asyncio
before = [sys.excepthook, sys.displayhook, threading.excepthook, warnings.showwarning, asyncio.get_event_loop_policy]
import agentlab
core = [getattr(agentlab, name) for name in agentlab.__all__ if name not in ("lab", "models", "worlds")]
after = [sys.excepthook, sys.displayhook, threading.excepthook, warnings.showwarning, asyncio.get_event_loop_policy]
print(json.dumps([sorted({m.split('.')[0] for m in sys.modules}), before == after]))
"""
    loaded, untouched = json.loads(fresh(code))
    assert set(loaded) & HEAVY == set()
    assert untouched


@pytest.mark.timing
@pytest.mark.parametrize(("before", "then"), [("pass", "import agentlab"), ("import asyncio", "from agentlab import Agent")])
def test_loading_takes_a_tenth_of_a_second_at_most(before: str, then: str) -> None:
    """The package against an empty interpreter, and the core against one with asyncio, which every kernel has loaded. In turns;
    other work on the machine only ever adds, so the best of several counts."""

    def seconds(code: str) -> float:
        began = time.perf_counter()
        fresh(code)
        return time.perf_counter() - began

    own, bare = [], []
    for _ in range(25):
        bare.append(seconds(before))
        own.append(seconds(f"{before}; {then}"))
        if len(own) >= 5 and min(own) - min(bare) < 0.1:
            break
    assert min(own) - min(bare) < 0.1


def test_every_public_name_is_what_it_is_called_whatever_was_imported_before() -> None:
    """`agentlab.lint` is a function and the module that holds it: the function is meant."""
    code = """
import json
import agentlab.lint, agentlab.naked, agentlab.perform, agentlab.worlds
import agentlab
kinds = {name: type(getattr(agentlab, name)).__name__ for name in agentlab.__all__}
from agentlab import *
assert lint is agentlab.lint is __import__("sys").modules["agentlab.lint"].lint
print(json.dumps(kinds))
"""
    kinds = json.loads(fresh(code))
    assert {name for name, kind in kinds.items() if kind == "module"} == {"lab", "models", "worlds"}
    assert (kinds["Agent"], kinds["lint"], kinds["climb"]) == ("type", "function", "function")
