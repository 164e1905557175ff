"""What is broken here, and the one command that mends it.

Only the standard library is imported at the top: a doctor must still speak when everything else is missing.
What another interpreter holds is found by asking that interpreter. Keys are never read into a finding.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

OURS = "jupyter-agentlab"
STATIC = Path(__file__).resolve().parent / "widgets" / "static"
FRONT_ENDS = ("approve.css", "approve.js", "stepper.css", "stepper.js")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `mend` is one command for a shell, or empty."""

    name: str
    state: Literal["ok", "note", "broken"]
    says: str
    mend: str = ""


@dataclass(frozen=True)
class Need:
    """One requirement of ours: `name>=floor`, perhaps only for an extra."""

    name: str
    floor: str
    extra: str = ""

    @property
    def spec(self) -> str:
        return f"{self.name}>={self.floor}"


def examine(environ: Mapping[str, str] = os.environ) -> list[Finding]:
    """Look at everything; the order is the order in which to mend."""
    return [
        python(),
        foreign(),
        *packages(),
        widgets(),
        hidden(Path.cwd()),
        *kernels(),
        front_end(environ),
        *model_settings(environ),
        browser(),
    ]


# -- this Python and what it holds -------------------------------------------------------------------------------------


def python() -> Finding:
    here = f"Python {'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}"
    if not (3, 11) <= sys.version_info[:2] < (3, 15):
        return Finding("python", "broken", f"{here}; agentlab needs 3.11 to 3.14.", "python3.12 -m venv .venv")
    if util.find_spec("_sqlite3") is None:
        says = f"{here} was built without SQLite, on which the lessons' worlds stand. Use another Python."
        return Finding("python", "broken", says, "python3.12 -m venv .venv")
    return Finding("python", "ok", here)


def install(specs: Iterable[str], *options: str) -> str:
    """The command that installs something beside this Python, whether it has pip or not."""
    words = " ".join([*options, *(f'"{s}"' if re.search(r"[<>\[\s]", s) else s for s in specs)])
    me = shlex.quote(sys.executable)
    if util.find_spec("pip") is not None:
        return f"{me} -m pip install {words}"
    if shutil.which("uv"):
        return f"uv pip install --python {me} {words}"
    return f"{me} -m ensurepip && {me} -m pip install {words}"


def origin() -> str:
    """What to install to get this agentlab again: the checkout that it came from, or its name."""
    try:
        record = metadata.distribution(OURS).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        record = None
    url = json.loads(record).get("url", "") if record else ""
    return str(Path(urlsplit(url).path)) if url.startswith("file:") else OURS


def foreign() -> Finding:
    """On PyPI, `agentlab` is somebody else's, with our import name: whichever came last has overwritten the other."""
    names = {(d.metadata["Name"] or "").lower() for d in metadata.distributions()}
    if "agentlab" not in names:
        return Finding("other agentlab", "ok", "no other distribution uses the name agentlab")
    says = "Another package called agentlab is installed here, with the same import name: one has overwritten the other."
    again = install([origin()], "--force-reinstall", "--no-deps")
    return Finding("other agentlab", "broken", says, f"{shlex.quote(sys.executable)} -m pip uninstall -y agentlab && {again}")


def needs() -> list[Need]:
    """Our own requirements, from the installed metadata; the extra `test` is nobody's business here."""
    found = []
    for line in metadata.requires(OURS) or []:
        text, _, marker = (part.strip() for part in line.partition(";"))
        match = re.fullmatch(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9.]+)", text)
        extra = re.search(r"extra == ['\"](\w+)['\"]", marker)
        elsewhere = "emscripten" in marker and sys.platform == "emscripten"
        if match and not elsewhere and (extra is None or extra[1] == "lab"):
            found.append(Need(match[1], match[2], extra[1] if extra else ""))
    return found


def older(version: str, floor: str) -> bool:
    """Whether a version is below a floor, by the numbers at its beginning."""

    def numbers(text: str) -> list[int]:
        return [int(n) for n in re.match(r"[0-9.]*", text)[0].split(".") if n]  # type: ignore[index]  # always matches

    have, want = numbers(version), numbers(floor)
    width = max(len(have), len(want))
    return have + [0] * (width - len(have)) < want + [0] * (width - len(want))


def packages() -> list[Finding]:
    try:
        wanted = needs()
    except metadata.PackageNotFoundError:
        checkout = Path(__file__).resolve().parent.parent
        says = "agentlab runs from a checkout without being installed, so what it needs may be missing."
        return [Finding("packages", "broken", says, install(["-e", f"{checkout}[lab]"]))]
    faults: list[str] = []
    mend: list[str] = []
    options = ["--upgrade"]
    for need in wanted:
        try:
            have = metadata.version(need.name)
        except metadata.PackageNotFoundError:
            faults.append(f"{need.name} is missing")
            mend.append(need.spec)
            continue
        if older(have, need.floor):
            faults.append(f"{need.name} is {have}, wanted {need.floor} or newer")
            mend.append(need.spec)
        elif need.extra == "" and (why := unimportable(need.name)):
            faults.append(f"{need.name} {have} is installed but does not load ({why})")
            mend.append(need.spec)
            options = ["--upgrade", "--force-reinstall"]
    if faults:
        return [Finding("packages", "broken", "; ".join(faults) + ".", install(mend, *options))]
    versions = ", ".join(f"{n.name} {metadata.version(n.name)}" for n in wanted)
    return [Finding("packages", "ok", versions)]


def unimportable(distribution: str) -> str:
    """Why a package does not load, or nothing. (toktok-rs is imported as toktok: the metadata knows.)"""
    names = [name for name, owners in metadata.packages_distributions().items() if distribution in owners]
    try:
        for name in names:
            importlib.import_module(name)
    except Exception as error:  # a broken package may raise anything at import
        return f"{type(error).__name__}: {str(error)[:120]}"
    return ""


def widgets(folder: Path = STATIC) -> Finding:
    """The built front ends of our widgets: without them every stepper and card stays blank, and nothing else says why."""
    absent = [name for name in FRONT_ENDS if not (folder / name).is_file() or not (folder / name).stat().st_size]
    if not absent:
        return Finding("widgets", "ok", "their built front ends are in the package")
    says = f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} missing or empty in {folder}: widgets stay blank."
    root = folder.parents[2]
    if (root / ".git").exists():  # a checkout: installing it again would bring nothing back
        mend = f"git -C {shlex.quote(str(root))} checkout -- agentlab/widgets/static"
    else:
        mend = install([origin()], "--force-reinstall", "--no-deps")
    return Finding("widgets", "broken", says, mend)


def hidden(folder: Path) -> Finding:
    """A kernel puts its notebook's folder first: a file `openai.py` there hides the package for every lesson."""
    names = {"openai", "httpx2", "pydantic", "jsonschema", "regex", "anywidget", "ipywidgets", "plotly"}
    project = folder / "pyproject.toml"
    if not (project.is_file() and OURS in project.read_text(encoding="utf-8", errors="replace")):
        names.add("agentlab")  # in a checkout of ours the folder agentlab is the package itself
    culprits = [
        p.name
        for p in sorted(folder.iterdir())
        if (p.stem in names and p.suffix == ".py") or (p.name in names and (p / "__init__.py").exists())
    ]
    if not culprits:
        return Finding("this folder", "ok", "no file here hides a package")
    first = folder / culprits[0]
    says = f"{', '.join(culprits)} in {folder} hides the package of that name from notebooks in this folder."
    return Finding("this folder", "broken", says, f"mv {shlex.quote(str(first))} {shlex.quote(str(first) + '.renamed')}")


# -- kernels and front ends --------------------------------------------------------------------------------------------

ASK = """
import json, sys
from importlib import metadata
held = {}
for name in sys.argv[1:]:
    try:
        held[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps({"prefix": sys.prefix, "held": held}))
"""


def ask_interpreter(path: str, *names: str) -> dict[str, Any] | None:
    """The prefix of another Python and the versions it holds of some packages; None if it does not start."""
    try:
        done = subprocess.run([path, "-c", ASK, *names], capture_output=True, text=True, timeout=20, check=True)
        told: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return told


def kernels() -> list[Finding]:
    """Which Python each kernel starts. The lessons say `python3`; it must be the one that holds agentlab."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager
    except ImportError:
        return []  # said already: JupyterLab is missing
    # As `agentlab lab` starts it: the kernels beside this Python come before those in the person's home.
    before = os.environ.get("JUPYTER_PREFER_ENV_PATH")
    os.environ["JUPYTER_PREFER_ENV_PATH"] = before or "1"
    try:
        specs = KernelSpecManager().get_all_specs()
    finally:
        if before is None:
            del os.environ["JUPYTER_PREFER_ENV_PATH"]
    if "python3" not in specs:
        mend = f"{shlex.quote(sys.executable)} -m ipykernel install --sys-prefix"
        return [Finding("kernel python3", "broken", "There is no kernel called python3, which the lessons ask for.", mend)]
    found = [kernel(name, specs[name]) for name in sorted(specs, key=lambda n: (n != "python3", n))]
    return [f for f in found if f]


def kernel(name: str, found: Mapping[str, Any]) -> Finding | None:
    argv = found["spec"].get("argv") or [""]
    if name != "python3" and found["spec"].get("language") != "python":
        return None
    title = f"kernel {name}"
    main = name == "python3"
    if re.fullmatch(r"python(3(\.\d+)?)?(\.exe)?", argv[0]):
        return Finding(title, "ok", "starts the Python that runs JupyterLab")  # Jupyter puts its own in for a bare name
    place = str(found.get("resource_dir", ""))
    where = "--sys-prefix" if place.startswith(sys.prefix) else "--user"
    mend = f"{shlex.quote(sys.executable)} -m ipykernel install {where} --name {name}" if main else ""
    told = ask_interpreter(argv[0], OURS, "ipykernel", "anywidget")
    if told is None:
        says = f"starts {argv[0]}, which does not run (the kernel is described in {place})."
        return Finding(title, "broken" if main else "note", says, mend)
    if Path(told["prefix"]).resolve() == Path(sys.prefix).resolve():
        return Finding(title, "ok", "starts this Python")
    held = told["held"]
    if OURS not in held:
        says = f"starts {argv[0]}, another environment, in which agentlab is not installed."
        return Finding(title, "broken" if main else "note", says, mend)
    says = f"starts {argv[0]}, another environment, with agentlab {held[OURS]}: what you install here is not seen there."
    return Finding(title, "note", says, mend)


def front_end(environ: Mapping[str, str]) -> Finding:
    """`jupyter lab` typed by hand may be another environment's: its pages then lack what our widgets need."""
    if util.find_spec("jupyterlab") is None:
        return Finding("front end", "note", "JupyterLab is not beside this Python; Agent and scripts work without it.")
    script = shutil.which("jupyter-lab", path=environ.get("PATH", ""))
    mine = "agentlab lab starts the JupyterLab of this Python"
    if script is None or Path(script).resolve().parent == Path(sys.executable).parent.resolve():
        return Finding("front end", "ok", mine)
    start = f"{shlex.quote(sys.executable)} -m agentlab lab"
    with open(script, "rb") as file:
        shebang = file.readline(400).decode("utf-8", "replace")
    interpreter = shebang[2:].strip().strip('"') if shebang.startswith("#!") else ""
    told = ask_interpreter(interpreter, "jupyterlab", "jupyterlab-widgets", "anywidget") if interpreter else None
    if told is None:
        return Finding("front end", "note", f"jupyter lab on your PATH is {script}, of another environment; {mine}.", start)
    if Path(told["prefix"]).resolve() == Path(sys.prefix).resolve():
        return Finding("front end", "ok", mine)
    absent = [n for n in ("jupyterlab-widgets", "anywidget") if n not in told["held"]]
    blank = f" It has no {' and no '.join(absent)}: widgets stay blank in it." if absent else ""
    says = f"jupyter lab on your PATH is {script}, of another environment ({told['prefix']}).{blank} {mine}."
    return Finding("front end", "note", says, start)


# -- settings ----------------------------------------------------------------------------------------------------------


def model_settings(environ: Mapping[str, str]) -> list[Finding]:
    key, url, model = (bool(environ.get(f"OPENAI_{n}")) for n in ("API_KEY", "BASE_URL", "MODEL"))
    if not key and not url:
        return [Finding("model", "ok", "scripted, offline (no OPENAI_API_KEY and no OPENAI_BASE_URL is set)")]
    names = " and ".join(n for n, there in (("OPENAI_API_KEY", key), ("OPENAI_BASE_URL", url)) if there)
    if not model:
        says = f"{names} is set, but no model is named: lessons stay with the scripted model."
        return [Finding("model", "note", says, "export OPENAI_MODEL=<the name of a model that your endpoint has>")]
    found = [Finding("model", "ok", f"{names} and OPENAI_MODEL ({environ['OPENAI_MODEL']}) are set")]
    host = urlsplit(environ.get("OPENAI_BASE_URL", "")).hostname or ""
    proxies = [n for n in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") if environ.get(n) or environ.get(n.lower())]
    direct = (environ.get("NO_PROXY") or environ.get("no_proxy") or "").replace(" ", "").split(",")
    if host in LOOPBACK and proxies and host not in direct and "*" not in direct:
        says = f"{proxies[0]} is set, so requests to the model at {host} may go to the proxy."
        found.append(Finding("proxy", "note", says, f"export NO_PROXY={','.join(LOOPBACK)}"))
    return found


def browser() -> Finding:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return Finding(
        "chromium",
        "ok",
        f"{found} (only the project's own browser tests need it)"
        if found
        else "not here; only the project's own browser tests need it",
    )


# -- telling -----------------------------------------------------------------------------------------------------------


def as_dict(findings: Sequence[Finding], version: str) -> dict[str, Any]:
    broken = [f for f in findings if f.state == "broken"]
    return {
        "version": version,
        "ok": not broken,
        "mend": broken[0].mend if broken else "",
        "findings": [asdict(f) for f in findings],
    }


def as_text(findings: Sequence[Finding], version: str) -> str:
    lines = [f"agentlab {version}", ""]
    for f in findings:
        lines.append(f"  {f.state:<7} {f.name}: {f.says}")
        if f.mend:
            lines.append(f"          -> {f.mend}")
    broken = [f for f in findings if f.state == "broken"]
    lines.append("")
    if not broken:
        return "\n".join([*lines, "Nothing is broken."])
    first = broken[0].mend
    more = (
        f" Then run agentlab doctor again: {len(broken) - 1} more below it may be mended by that too." if len(broken) > 1 else ""
    )
    return "\n".join(
        [
            *lines,
            f"{len(broken)} broken. Run this:" if first else f"{len(broken)} broken.",
            "",
            f"  {first}",
            *([more.strip()] if more else []),
        ]
    )
