"""The command line: open the lessons, copy them, find out what is broken.

Notebooks are copied to a folder of the person's and never written to again: what they typed is theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib import util
from pathlib import Path

from agentlab import __version__

FOLDER = "my-agentlab"

LAB = ("jupyterlab>=4.6", "notebook>=7.6", "ipykernel>=7.4")  # as in the extra `lab`, a test compares

EXAMPLES = """\
examples:
  agentlab lab                       copy the lessons to ./my-agentlab and open the first in JupyterLab
  agentlab lab ~/course --lesson 02  the same in another folder, opened on lesson 02
  agentlab lab -- --port 9000        what follows -- goes to JupyterLab
  agentlab notebooks ~/course        copy the lessons, open nothing
  agentlab notebooks ~/course --fresh --lesson 01
                                     a clean copy of lesson 01 under a new name; yours stays as it is
  agentlab serve --zoo never_stops   a model that misbehaves on purpose, at an address for any framework
  agentlab serve --upstream https://api.openai.com/v1 --tape run.jsonl
                                     pass requests on, record the answers, and replay them
  agentlab doctor                    what is installed, what is broken, and the command that mends it
"""


class Refused(Exception):
    """Something that was asked for cannot be done; the message says why, and what can."""


def shelf() -> Path:
    """The folder of the notebooks as published: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent
    for place in (package / "notebooks", package.parent / "notebooks"):
        if place.is_dir():
            return place
    raise Refused(f"The notebooks are missing from this installation (looked in {package}). Install jupyter-agentlab again.")


def published(lang: str = "en") -> list[Path]:
    """The published notebooks of one language, in the order of the lessons."""
    languages = sorted(p.name for p in shelf().iterdir() if any(p.glob("*.ipynb")))
    if lang not in languages:
        raise Refused(f"There are no notebooks in {lang!r}. There are: {', '.join(languages) or 'none'}.")
    return sorted((shelf() / lang).glob("*.ipynb"))


def chosen(notebooks: Sequence[Path], lesson: str | None) -> list[Path]:
    """All notebooks, or the one whose name begins with `lesson`: "02", "02_isolate_failures"."""
    if lesson is None:
        return list(notebooks)
    found = [n for n in notebooks if n.name.startswith(lesson)]
    if len(found) != 1:
        what = "No lesson begins" if not found else "More than one lesson begins"
        raise Refused(f"{what} with {lesson!r}. There are: {', '.join(n.stem for n in notebooks)}.")
    return found


def copy(notebooks: Sequence[Path], folder: Path, *, fresh: bool = False) -> list[tuple[Path, str]]:
    """Copy notebooks into a folder. For each: where it is, and "new", "same" (as published), "yours" or "fresh"."""
    if folder.exists() and not folder.is_dir():
        raise Refused(f"{folder} is a file. Name a folder for the notebooks.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_copy_one(notebook, folder, fresh) for notebook in notebooks]
    except OSError as error:
        raise Refused(f"Cannot write to {folder}: {error.strerror or error}. Name another folder.") from error


def _copy_one(notebook: Path, folder: Path, fresh: bool) -> tuple[Path, str]:
    content = notebook.read_bytes()
    target = folder / notebook.name
    if _write_new(target, content):
        return target, "new"
    if target.read_bytes() == content:
        return target, "same"
    if not fresh:
        return target, "yours"
    for number in ("", *range(2, 1000)):
        clean = folder / f"{notebook.stem}_fresh{number}.ipynb"
        if _write_new(clean, content):
            return clean, "fresh"
    raise Refused(f"{folder} holds a thousand clean copies of {notebook.name}. Delete some.")


def _write_new(path: Path, content: bytes) -> bool:
    """Write a file that is not there yet. What exists is never opened for writing."""
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True


def lab_command(folder: Path, first: str, *, browser: bool, rest: Sequence[str]) -> list[str]:
    """The command that opens JupyterLab on one notebook, with the Python that runs this."""
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/tree/{first}",
    ]
    if not browser:
        command.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in rest:
        # In containers people are root, and Jupyter refuses. It listens on this machine only, behind a token.
        command.append("--allow-root")
    return [*command, *rest]


def lab_environment() -> dict[str, str]:
    """The environment for JupyterLab: this Python's kernel first, and no question about news at the first start."""
    env = dict(os.environ)
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", "")])
    # Else a "python3" kernel left in the person's home by another environment would win over the one beside us.
    env.setdefault("JUPYTER_PREFER_ENV_PATH", "1")
    quiet = str(Path(__file__).resolve().parent / "quiet")
    env["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, [env.get("JUPYTER_CONFIG_PATH", ""), quiet]))
    return env


def run_lab(args: argparse.Namespace, rest: Sequence[str]) -> int:
    if util.find_spec("jupyterlab") is None:
        from agentlab.doctor import install

        raise Refused(f"JupyterLab is not installed beside this Python. Install it:\n  {install(LAB)}")
    lessons = published(args.lang)
    opened = chosen(lessons, args.lesson)[0]
    folder = args.folder.expanduser().resolve()
    copies = copy(lessons, folder)
    place, what = copies[lessons.index(opened)]
    if what == "yours" and args.fresh:
        place, what = copy([opened], folder, fresh=True)[0]
    kept = sum(state == "yours" for _, state in copies)
    print(f"Lessons: {folder}" + (f" ({kept} with your work in them, not touched)" if kept else ""))
    print(f"Opening: {place.name}" + (" (a clean copy; yours stays as it is)" if what == "fresh" else ""), flush=True)
    command = lab_command(folder, place.name, browser=not args.no_browser, rest=rest)
    if "--allow-root" in command and "--allow-root" not in rest:
        print("You are root, which JupyterLab allows only when told: it is started with --allow-root.", flush=True)
    if os.name == "posix":
        # Replacing this process leaves one process to stop, and signals reach JupyterLab itself.
        os.execve(command[0], command, lab_environment())
    try:
        return subprocess.call(command, env=lab_environment())
    except KeyboardInterrupt:
        return 0


def run_notebooks(args: argparse.Namespace) -> int:
    folder = args.folder.expanduser()
    said = {
        "new": "copied",
        "same": "was there, as published",
        "yours": "has your work in it, not touched (--fresh writes a clean copy beside it)",
        "fresh": "a clean copy; yours stays as it is",
    }
    for place, what in copy(chosen(published(args.lang), args.lesson), folder, fresh=args.fresh):
        print(f"{place}: {said[what]}")
    return 0


def run_serve(args: argparse.Namespace) -> int:
    import httpx2

    from agentlab.models import faulty, recorded, transport, zoo
    from agentlab.models.faults import FAULTS
    from agentlab.serve import serving

    if args.list:
        for title, rows in (
            ("models of the zoo, for --zoo", {name: animal.wrong for name, animal in zoo.all().items()}),
            ("faults, for --fault", FAULTS),
        ):
            print(f"{title}:")
            for name, what in rows.items():
                print(f"  {name:<17} {what}")
        return 0
    if args.zoo and (args.upstream or args.tape):
        raise Refused(
            "Give --zoo, or --upstream and --tape, not both: a model of the zoo needs no tape, it always does the same."
        )
    if not (args.zoo or args.upstream or args.tape):
        raise Refused(
            "Say what is to be served: --zoo NAME, --upstream URL or --tape FILE. `agentlab serve --list` names them all."
        )
    animals = zoo.all()
    if args.zoo and args.zoo not in animals:
        raise Refused(f"The zoo has no {args.zoo!r}. It has: {', '.join(animals)}.")
    served: httpx2.AsyncBaseTransport
    try:
        if args.zoo:
            served, what = transport(animals[args.zoo].make()), f"the zoo's {args.zoo}"
        elif args.tape:
            served, what = (
                recorded(args.tape, args.upstream),
                f"the tape {args.tape}" + f", then {args.upstream}" * bool(args.upstream),
            )
        else:
            from agentlab.models.tape import network

            served, what = network(), f"{args.upstream}"
        if args.fault:
            served, what = faulty(args.fault, served), f"{what}, with the fault {args.fault}"
    except (ValueError, OSError) as error:
        raise Refused(str(error)) from None
    try:
        with serving(served, args.port, args.upstream, say=lambda line: print(line, flush=True)) as server:
            print(f"Serving {what}.")
            print("Any program on this machine that speaks the chat completions of OpenAI can talk to it:")
            print(f"  export OPENAI_BASE_URL={server.url}")
            if not args.upstream:
                print("  export OPENAI_API_KEY=offline   # any text will do")
            print("Ctrl-C ends it.", flush=True)
            ended = threading.Event()
            for order in (signal.SIGINT, signal.SIGTERM):  # what a shell starts in the background ignores Ctrl-C from birth
                signal.signal(order, lambda *_: ended.set())
            ended.wait()
            print(f"Ended after {server.count} request{'s' * (server.count != 1)}.")
    except OSError as error:
        raise Refused(f"Port {args.port} cannot be had: {error.strerror or error}. Give another one, or none.") from None
    return 0


def run_doctor(args: argparse.Namespace) -> int:
    from agentlab import doctor

    findings = doctor.examine()
    if args.json:
        print(json.dumps(doctor.as_dict(findings, __version__), indent=2, ensure_ascii=False))
    else:
        print(doctor.as_text(findings, __version__))
    return 1 if any(f.state == "broken" for f in findings) else 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="agentlab",
        description="An LLM agent's loop, standing still. Works offline and without a key.",
        epilog=EXAMPLES,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=30),
    )
    top.add_argument("--version", action="version", version=f"agentlab {__version__}")
    commands = top.add_subparsers(dest="command", metavar="lab | notebooks | serve | doctor", required=True)

    lab = commands.add_parser(
        "lab",
        help="open the lessons in JupyterLab",
        description=(
            "Copy the lessons to a folder of yours, where they are not there yet, and open the first in JupyterLab. "
            "Your own work is never overwritten."
        ),
    )
    lab.add_argument("--no-browser", action="store_true", help="start the server, print its address, open no browser")
    notebooks = commands.add_parser(
        "notebooks",
        help="copy the lessons to a folder",
        description="Copy the lessons to a folder of yours. A file that is there is never overwritten.",
    )
    for command in (lab, notebooks):
        command.add_argument(
            "folder",
            nargs="?",
            type=Path,
            default=Path(FOLDER),
            metavar="DIR",
            help=f"the folder (default: ./{FOLDER})",
        )
        command.add_argument("--lang", default="en", help="language of the lessons (default: en)")
        command.add_argument(
            "--fresh", action="store_true", help="where a lesson is there already, write a clean copy under a new name"
        )
    lab.add_argument("--lesson", metavar="NN", help="open this lesson, by the beginning of its name, such as 02")
    notebooks.add_argument("--lesson", metavar="NN", help="this lesson only, by the beginning of its name, such as 02")
    lab.epilog = "What follows -- goes to JupyterLab: agentlab lab -- --port 9000"

    serve = commands.add_parser(
        "serve",
        help="an endpoint on this machine that misbehaves on purpose, or records",
        description=(
            "Serve a model on this machine's loopback address, for any agent in any framework: one of the zoo that misbehaves "
            "on purpose, or a real endpoint whose answers are recorded and replayed. The key goes through and is not kept."
        ),
    )
    serve.add_argument("--zoo", metavar="NAME", help="a model that misbehaves on purpose (--list names them)")
    serve.add_argument("--upstream", metavar="URL", help="pass requests on to this endpoint, such as https://api.openai.com/v1")
    serve.add_argument(
        "--tape", metavar="FILE", type=Path, help="play this tape; with --upstream, record on it what it does not hold yet"
    )
    serve.add_argument("--fault", metavar="NAME", help="a fault of the endpoint itself, whatever answers (--list names them)")
    serve.add_argument("--port", type=int, default=0, help="the port (default: one that is free)")
    serve.add_argument("--list", action="store_true", help="name the models of the zoo and the faults, and end")

    doctor = commands.add_parser(
        "doctor",
        help="say what is broken and the command that mends it",
        description=(
            "Look at Python, packages, kernels and settings. Exit code 1 when something is broken. Keys are never printed."
        ),
    )
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    split = words.index("--") if "--" in words else len(words)
    words, rest = words[:split], words[split + 1 :]
    top = parser()
    args = top.parse_args(words)
    if rest and args.command != "lab":
        top.error(f"only `agentlab lab` passes words after -- on, not `agentlab {args.command}`")
    try:
        if args.command == "lab":
            return run_lab(args, rest)
        if args.command == "notebooks":
            return run_notebooks(args)
        if args.command == "serve":
            return run_serve(args)
        return run_doctor(args)
    except Refused as reason:
        print(f"agentlab: {reason}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
