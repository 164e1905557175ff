"""Put the published notebooks into their one form, and hold them to the limits of a lesson.

    python tools/notebooks.py           rewrite notebooks/*/*.ipynb where needed, then list what is outside the limits
    python tools/notebooks.py --check   change nothing; exit 1 if something would change or is outside the limits

One form: no outputs, no execution counts, ids that stay, only the metadata that means something, sorted keys.
So a diff of a notebook is a diff of what its author wrote.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent

CELLS = range(25, 36)  # the usual size of a lesson
MOST_CELLS = 40
CODE_LINES = 15
WORDS = 80
PARAMETERS = ("MODEL", "LANG", "SEED")

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"}
KEPT = {
    "agentlab",
    "deletable",
    "editable",
    "jupyter",
    "slideshow",
    "tags",
}  # of a cell's metadata; the rest is a tool's


def published() -> list[Path]:
    return sorted(ROOT.glob("notebooks/*/*.ipynb"))


def load(path: Path) -> NotebookNode:
    """Read a notebook without repairing it; what is wrong is said with the name of the file."""
    try:
        return nbformat.reads(path.read_text(encoding="utf-8"), as_version=nbformat.NO_CONVERT)
    except (ValueError, KeyError, AttributeError) as error:
        raise SystemExit(f"{path}: not a notebook ({error})") from error


def normal(notebook: NotebookNode) -> NotebookNode:
    """The notebook in its one form. Doing it twice changes nothing more."""
    cells, taken = [], set[str]()
    for cell in notebook.cells:
        source = "\n".join(cell.source.rstrip().splitlines())
        if cell.cell_type == "code":
            source = "\n".join(line.rstrip() for line in source.split("\n"))
        if not source:
            continue  # an empty cell at the end is what an editor leaves behind
        metadata = {key: value for key, value in sorted(cell.metadata.items()) if key in KEPT and value not in ({}, [])}
        kept: dict[str, Any] = {"cell_type": cell.cell_type, "metadata": metadata, "source": source}
        kept["id"] = stable_id(cell.get("id"), source, taken)
        if cell.cell_type == "code":
            kept |= {"execution_count": None, "outputs": []}
        elif cell.get("attachments"):
            kept["attachments"] = cell.attachments
        cells.append(kept)
    metadata = {"kernelspec": dict(KERNEL), "language_info": dict(LANGUAGE)}
    return nbformat.from_dict({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def stable_id(own: str | None, source: str, taken: set[str]) -> str:
    """The cell's own id. Where it has none, or a copied cell repeats one: a new one, made from what the cell says."""
    chosen, number = own or "", 0
    while chosen in taken or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", chosen):
        chosen = hashlib.sha256(f"{number}\n{source}".encode()).hexdigest()[:8]
        number += 1
    taken.add(chosen)
    return chosen


def written(notebook: NotebookNode) -> str:
    return str(nbformat.writes(notebook, version=nbformat.NO_CONVERT)).rstrip("\n") + "\n"


def words(markdown: str) -> int:
    """Words that a person reads: no code blocks, tags or addresses of links."""
    text = re.sub(r"```.*?```", " ", markdown, flags=re.S)
    text = re.sub(r"<[^>]+>", " ", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return len(re.findall(r"\w[\w'’.-]*", text))


def faults(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """What is outside the limits of a lesson, one sentence each."""
    try:
        nbformat.validate(notebook)
    except (nbformat.ValidationError, ValueError) as error:
        yield f"is not valid: {str(error).splitlines()[0]}"
    if not re.fullmatch(r"\d\d_[a-z]+(_[a-z]+)+\.ipynb", path.name):
        yield "is not named NN_verb_noun.ipynb"
    count = len(notebook.cells)
    if count > MOST_CELLS or count < CELLS.start:
        yield f"has {count} cells; a lesson has {CELLS.start} to {CELLS.stop - 1}, never over {MOST_CELLS}"
    spec = notebook.metadata.get("kernelspec", {}).get("name")
    if spec != "python3":
        yield f"asks for the kernel {spec!r}; every reader has python3"
    tagged = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    if len(tagged) != 1:
        yield f"has {len(tagged)} cells tagged `parameters`; papermill needs exactly one"
    else:
        absent = [name for name in PARAMETERS if not re.search(rf"^{name}\s*=", tagged[0].source, re.M)]
        if absent:
            yield f"does not set {', '.join(absent)} in its `parameters` cell"
    for number, cell in enumerate(notebook.cells):
        for fault in cell_faults(cell, path):
            yield f"cell {number} ({cell.get('id', 'no id')}) {fault}"


def cell_faults(cell: NotebookNode, path: Path) -> Iterator[str]:
    source: str = cell.source
    # A path of somebody's machine, not a route such as /v1 or a fraction.
    if found := re.search(r"(?<![\w.:/~])/(home|Users|root|tmp|work|mnt|opt|usr|var|content)/\S*|\b[A-Z]:\\\w\S*", source):
        yield f"holds an absolute path: {found[0]}"
    if re.search(r"\bsk-[A-Za-z0-9_-]{16,}", source):
        yield "holds what looks like a key"
    if cell.cell_type == "markdown":
        if (count := words(source)) > WORDS:
            yield f"has {count} words; at most {WORDS}"
        for target in re.findall(r"\]\(([^)#\s]+)", source):
            if "://" not in target and not target.startswith(("mailto:", "attachment:")) and not (path.parent / target).exists():
                yield f"links to {target}, which is not there"
        return
    if cell.cell_type != "code":
        return
    if cell.get("outputs") or cell.get("execution_count") is not None:
        yield "has outputs"
    if (lines := len(source.splitlines())) > CODE_LINES:
        yield f"has {lines} lines; at most {CODE_LINES}"
    if re.search(r"^\s*!\s*(\S+\s+-m\s+)?pip\b", source, re.M):
        yield "calls !pip, which may install into another Python than the kernel's; write %pip"
    code = re.sub(r"^\s*[%!].*$", "pass", source, flags=re.M)
    try:
        compile(code, path.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)
    except SyntaxError as error:
        yield f"does not parse: {error.msg} in line {error.lineno}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, only say what would change")
    parser.add_argument("files", nargs="*", type=Path, help="notebooks (default: all that are published)")
    args = parser.parse_args(argv)
    wrong = 0
    for path in args.files or published():
        notebook = normal(load(path))
        text = written(notebook)
        name = path.relative_to(ROOT) if path.is_absolute() and path.is_relative_to(ROOT) else path
        if text != path.read_text(encoding="utf-8"):
            if args.check:
                wrong += 1
                print(f"{name} is not in its one form: run `make notebooks`")
            else:
                path.write_text(text, encoding="utf-8", newline="\n")
                print(f"{name}: rewritten")
        for fault in faults(notebook, path):
            wrong += 1
            print(f"{name} {fault}")
        if len(notebook.cells) in range(CELLS.stop, MOST_CELLS + 1):
            print(f"{name}: {len(notebook.cells)} cells, more than the usual {CELLS.stop - 1} (allowed)")
    print(f"{len(args.files or published())} notebooks, {wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
