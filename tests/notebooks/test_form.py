"""The published notebooks are in their one form and within the limits; the tool that says so is itself tried."""

from __future__ import annotations

import ast
import sys
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from tools import notebooks as tool

PUBLISHED = tool.published()
NAMES = [p.stem for p in PUBLISHED]


def test_there_are_lessons() -> None:
    assert [n[:2] for n in NAMES[:4]] == ["00", "01", "02", "03"]


@pytest.mark.parametrize("path", PUBLISHED, ids=NAMES)
def test_make_notebooks_would_change_nothing(path: Path) -> None:
    assert tool.written(tool.normal(tool.load(path))) == path.read_text(encoding="utf-8"), "run `make notebooks`"


@pytest.mark.parametrize("path", PUBLISHED, ids=NAMES)
def test_lesson_is_within_the_limits(path: Path) -> None:
    assert list(tool.faults(tool.load(path), path)) == []


@pytest.mark.parametrize("path", PUBLISHED, ids=NAMES)
def test_stubs_are_stubs(path: Path) -> None:
    stubs = [c for c in tool.load(path).cells if "task" in c.metadata.get("agentlab", {})]
    assert stubs, "a lesson has tasks"
    for cell in stubs:
        assert "raise NotImplementedError" in cell.source, cell.id


@pytest.mark.parametrize("path", PUBLISHED, ids=NAMES)
def test_every_import_is_of_a_package_that_is_installed_with_ours(path: Path) -> None:
    required = {line.split(">")[0].split(";")[0].strip() for line in metadata.requires("jupyter-agentlab") or []}
    owners = metadata.packages_distributions()
    for cell in tool.load(path).cells:
        if cell.cell_type != "code":
            continue
        tree = compile(cell.source, path.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in {n.split(".")[0] for n in names} - {"agentlab"} - set(sys.stdlib_module_names):
                assert required & set(owners.get(name, [])), f"{name} is not among our requirements"


def lesson(*cells: NotebookNode) -> NotebookNode:
    parameters = nbformat.v4.new_code_cell('MODEL = "scripted"\nLANG = "en"\nSEED = 7', metadata={"tags": ["parameters"]})
    rest = [nbformat.v4.new_markdown_cell(f"Line {n}.") for n in range(24)]
    return tool.normal(nbformat.v4.new_notebook(cells=[parameters, *cells, *rest]))


def faults_of(*cells: NotebookNode) -> list[str]:
    return list(tool.faults(lesson(*cells), Path("05_try_things.ipynb")))


def code(source: str, **more: object) -> NotebookNode:
    return nbformat.v4.new_code_cell(source, **more)


def markdown(source: str) -> NotebookNode:
    return nbformat.v4.new_markdown_cell(source)


def test_a_good_lesson_has_no_faults() -> None:
    assert faults_of(code("await lab.step(agent, 'Where is order 1042?')"), markdown("Read [this](https://example.org/x).")) == []


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        (code("\n".join("x = 1" for _ in range(16))), "has 16 lines"),
        (markdown("word " * 81), "has 81 words"),
        (code("!pip install openai"), "%pip"),
        (code("!python -m pip install openai"), "%pip"),
        (code("open('/home/ada/notes.txt')"), "absolute path: /home/ada"),
        (code(r"open('C:\notes.txt')"), "absolute path: C:"),
        (code("key = 'sk-abcdefghijklmnopqrstuvwxyz'"), "looks like a key"),
        (code("def broken(:"), "does not parse"),
        (markdown("Go to [the next](99_go_on.ipynb)."), "not there"),
        (code("x = 1", metadata={"tags": ["parameters"]}), "2 cells tagged"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_limit_is_noticed(cell: NotebookNode, fault: str) -> None:
    found = faults_of(cell)
    assert len(found) == 1, found
    assert fault in found[0]


def test_too_many_and_too_few_cells_are_noticed() -> None:
    assert any("has 41 cells" in f for f in faults_of(*(code(f"x = {n}") for n in range(16))))
    few = lesson()
    del few.cells[10:]
    assert any("has 10 cells" in f for f in tool.faults(few, Path("05_try_things.ipynb")))


def test_one_form_drops_what_a_run_leaves_and_keeps_what_the_author_wrote() -> None:
    output = nbformat.v4.new_output("stream", text="hello")
    messy = nbformat.v4.new_notebook(
        cells=[
            code(
                "x = 1  \n\n",
                id="mine",
                outputs=[output],
                execution_count=3,
                metadata={"scrolled": True, "tags": ["t"]},
            ),
            code("y = 2", id="copied"),
            code(""),
        ],
        metadata={"widgets": {"x": {}}, "kernelspec": {"name": "my-course-env", "display_name": "mine"}},
    )
    messy.cells[1].id = "mine"
    tidy = tool.normal(messy)
    first, second = tidy.cells
    assert (first.id, first.source, first.outputs, first.execution_count) == ("mine", "x = 1", [], None)
    assert first.metadata == {"tags": ["t"]}
    assert second.id != "mine"
    assert tidy.metadata.kernelspec.name == "python3"
    assert "widgets" not in tidy.metadata
    assert tool.written(tool.normal(tidy)) == tool.written(tidy)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "00_start_here.ipynb"
    broken.write_text('{"cells": [],}')
    with pytest.raises(SystemExit, match="00_start_here"):
        tool.load(broken)


def test_check_changes_nothing_and_the_tool_mends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "05_try_things.ipynb"
    notebook = lesson()
    notebook.cells[0].outputs = [nbformat.v4.new_output("stream", text="hello")]
    nbformat.write(notebook, path)
    before = path.read_bytes()
    assert tool.main(["--check", str(path)]) == 1
    assert path.read_bytes() == before
    assert tool.main([str(path)]) == 0
    assert tool.main(["--check", str(path)]) == 0
    assert "rewritten" in capsys.readouterr().out
