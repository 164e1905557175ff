"""The command line from outside: copies that never overwrite, a JupyterLab that opens, and a doctor that is right."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import agentlab
from agentlab import cli, doctor

ROOT = Path(__file__).resolve().parent.parent
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two published notebooks; the tests of the real ones are elsewhere."""
    place = tmp_path / "shelf"
    for name in ("00_start_here", "01_naked_loop"):
        file = place / "en" / f"{name}.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'{{"published": "{name}"}}')
    monkeypatch.setattr(cli, "shelf", lambda: place)
    return place


# -- notebooks ---------------------------------------------------------------------------------------------------------


def test_the_published_notebooks_are_found() -> None:
    assert [p.name[:2] for p in cli.published()][:4] == ["00", "01", "02", "03"]


def test_copies_what_is_not_there(shelf: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "deep"
    assert cli.main(["notebooks", str(folder)]) == 0
    assert sorted(p.name for p in folder.iterdir()) == ["00_start_here.ipynb", "01_naked_loop.ipynb"]
    assert (folder / "00_start_here.ipynb").read_bytes() == (shelf / "en" / "00_start_here.ipynb").read_bytes()


def test_never_overwrites_and_brings_back_what_was_deleted(shelf: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "mine"
    cli.main(["notebooks", str(folder)])
    (folder / "00_start_here.ipynb").write_text("my work")
    (folder / "01_naked_loop.ipynb").unlink()
    capsys.readouterr()
    assert cli.main(["notebooks", str(folder)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert (folder / "00_start_here.ipynb").read_text() == "my work"
    assert (folder / "01_naked_loop.ipynb").exists()
    assert "your work" in said[0]
    assert "copied" in said[1]


def test_fresh_writes_beside_what_was_changed_and_only_there(shelf: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    cli.main(["notebooks", str(folder)])
    work = folder / "00_start_here.ipynb"
    work.write_text("my work")
    for _ in range(2):
        assert cli.main(["notebooks", str(folder), "--fresh"]) == 0
    assert work.read_text() == "my work"
    clean = sorted(p.name for p in folder.glob("*_fresh*"))
    assert clean == ["00_start_here_fresh.ipynb", "00_start_here_fresh2.ipynb"]
    assert (folder / clean[0]).read_bytes() == (shelf / "en" / "00_start_here.ipynb").read_bytes()


def test_one_lesson_by_its_number(shelf: Path, tmp_path: Path) -> None:
    assert cli.main(["notebooks", str(tmp_path / "mine"), "--lesson", "01"]) == 0
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["01_naked_loop.ipynb"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["notebooks", "mine", "--lesson", "9"], "No lesson begins with '9'. There are: 00_start_here, 01_naked_loop."),
        (["notebooks", "mine", "--lesson", "0"], "More than one lesson begins with '0'."),
        (["notebooks", "mine", "--lang", "fr"], "There are no notebooks in 'fr'. There are: en."),
        (["notebooks", "a_file"], "a_file is a file. Name a folder"),
    ],
)
def test_bad_input_gets_a_sentence(
    words: list[str], sentence: str, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a_file").touch()
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said


def test_a_folder_that_cannot_be_written_gets_a_sentence(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def full(path: Path, content: bytes) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli, "_write_new", full)
    assert cli.main(["notebooks", str(tmp_path / "mine")]) == 2
    assert "No space left on device. Name another folder." in capsys.readouterr().err


# -- lab ---------------------------------------------------------------------------------------------------------------


class Started(Exception):
    """Stands in for the process that would have been replaced."""


def started(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[list[str], dict[str, str]]:
    def execve(path: str, command: list[str], env: dict[str, str]) -> None:
        raise Started(command, env)

    monkeypatch.setattr(cli.os, "execve", execve)
    with pytest.raises(Started) as caught:
        cli.main(["lab", *words])
    command, env = caught.value.args
    return command, env


def test_lab_opens_the_first_lesson_with_this_python(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    command, env = started(monkeypatch, "--no-browser", "--", "--port", "9000")
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert f"--ServerApp.root_dir={tmp_path / 'my-agentlab'}" in command
    assert "--LabApp.default_url=/lab/tree/00_start_here.ipynb" in command
    assert "--no-browser" in command
    assert command[-2:] == ["--port", "9000"]
    assert env["JUPYTER_PREFER_ENV_PATH"] == "1"
    assert (tmp_path / "my-agentlab" / "01_naked_loop.ipynb").exists()
    assert "Opening: 00_start_here.ipynb" in capsys.readouterr().out


def test_lab_opens_another_lesson_or_a_clean_copy(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mine"
    command, _ = started(monkeypatch, str(folder), "--lesson", "01")
    assert "--LabApp.default_url=/lab/tree/01_naked_loop.ipynb" in command
    (folder / "01_naked_loop.ipynb").write_text("my work")
    command, _ = started(monkeypatch, str(folder), "--lesson", "01", "--fresh")
    assert "--LabApp.default_url=/lab/tree/01_naked_loop_fresh.ipynb" in command
    assert (folder / "01_naked_loop.ipynb").read_text() == "my work"


def test_lab_without_jupyterlab_says_what_to_install(shelf: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(cli.util, "find_spec", lambda name: None if name == "jupyterlab" else object())
    assert cli.main(["lab"]) == 2
    assert '-m pip install "jupyterlab>=4.6"' in capsys.readouterr().err


def test_the_floors_named_are_those_of_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(cli.LAB) == set(project["optional-dependencies"]["lab"])


def test_only_lab_passes_words_on(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        cli.main(["doctor", "--", "--port", "9000"])
    assert "only `agentlab lab`" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], ["lab", "--help"], ["notebooks", "--help"], ["doctor", "--help"]])
def test_help_helps(words: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    assert end.value.code == 0
    assert "usage: agentlab" in capsys.readouterr().out


def test_installed_command_and_module_agree() -> None:
    for command in ([str(Path(sys.executable).with_name("agentlab"))], [sys.executable, "-m", "agentlab"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == f"agentlab {agentlab.__version__}"


# -- doctor ------------------------------------------------------------------------------------------------------------


def test_doctor_is_content_here(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["doctor"]) == 0, capsys.readouterr().out
    assert "Nothing is broken." in capsys.readouterr().out
    assert cli.main(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is True
    assert {"python", "other agentlab", "packages", "kernel python3", "front end", "model"} <= {
        f["name"] for f in told["findings"]
    }


def test_every_requirement_of_ours_is_understood() -> None:
    """The doctor reads our own lines with a small parser; a line that it cannot read would be left unwatched."""
    lines = [x for x in metadata.requires("jupyter-agentlab") or [] if "extra ==" not in x or "'lab'" in x.replace('"', "'")]
    assert len(doctor.needs()) == len(lines)


@pytest.mark.parametrize(
    ("version", "floor", "below"),
    [("4.4.9", "4.6", True), ("4.6", "4.6.0", False), ("7.10.1", "7.4", False), ("3.0rc1", "3", False), ("2.9", "2.12", True)],
)
def test_versions_are_compared_by_number(version: str, floor: str, below: bool) -> None:
    assert doctor.older(version, floor) is below


def test_doctor_names_old_and_missing_packages_and_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Binder's base has them: JupyterLab too old, and no anywidget."""
    real = metadata.version

    def version(name: str) -> str:
        if name == "anywidget":
            raise metadata.PackageNotFoundError(name)
        return "4.4.9" if name == "jupyterlab" else real(name)

    monkeypatch.setattr(doctor.metadata, "version", version)
    (finding,) = doctor.packages()
    assert finding.state == "broken"
    assert "jupyterlab is 4.4.9, wanted 4.6 or newer" in finding.says
    assert "anywidget is missing" in finding.says
    assert '"jupyterlab>=4.6"' in finding.mend
    assert '"anywidget>=' in finding.mend
    assert finding.mend.count("pip install") == 1


def test_doctor_notices_a_package_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        if name == "regex":
            raise ImportError("wrong architecture")

    monkeypatch.setattr(doctor.importlib, "import_module", load)
    (finding,) = doctor.packages()
    assert finding.state == "broken"
    assert "regex" in finding.says
    assert "wrong architecture" in finding.says
    assert "--force-reinstall" in finding.mend


def test_doctor_notices_the_other_agentlab(tmp_path: Path) -> None:
    info = tmp_path / "agentlab-0.4.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agentlab\nVersion: 0.4.2\n")
    done = subprocess.run(
        [sys.executable, "-m", "agentlab", "doctor"],
        capture_output=True,
        text=True,
        env={**doctor.os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 1
    assert "Another package called agentlab" in done.stdout
    assert "uninstall -y agentlab" in done.stdout


def kernel_spec(*argv: str, place: str = "somewhere") -> dict[str, object]:
    return {"resource_dir": place, "spec": {"argv": [*argv, "-m", "ipykernel_launcher"], "language": "python"}}


def test_doctor_notices_a_kernel_that_is_not_there() -> None:
    finding = doctor.kernel("python3", kernel_spec("/nowhere/bin/python"))
    assert finding is not None
    assert finding.state == "broken"
    assert "-m ipykernel install --user --name python3" in finding.mend


def test_doctor_notices_a_kernel_of_another_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"prefix": "/elsewhere", "held": {"ipykernel": "6.29"}}
    monkeypatch.setattr(doctor, "ask_interpreter", lambda *_: told)
    finding = doctor.kernel("python3", kernel_spec("/elsewhere/bin/python", place=sys.prefix + "/share"))
    assert finding is not None
    assert (finding.state, "agentlab is not installed" in finding.says) == ("broken", True)
    assert "--sys-prefix" in finding.mend
    other = doctor.kernel("my-course", kernel_spec("/elsewhere/bin/python"))
    assert other is not None
    assert other.state == "note"
    told["held"]["jupyter-agentlab"] = "0.1.0"  # type: ignore[index]
    same = doctor.kernel("python3", kernel_spec("/elsewhere/bin/python"))
    assert same is not None
    assert same.state == "note"


@pytest.mark.parametrize("argv", ["python", "python3", sys.executable])
def test_doctor_is_content_with_our_own_kernel(argv: str) -> None:
    finding = doctor.kernel("python3", kernel_spec(argv))
    assert finding is not None
    assert finding.state == "ok"


def test_doctor_notices_a_jupyter_of_another_environment(tmp_path: Path) -> None:
    script = tmp_path / "jupyter-lab"
    script.write_text(f"#!{sys.base_prefix}/bin/python3\n")
    script.chmod(0o755)
    finding = doctor.front_end({"PATH": str(tmp_path)})
    assert finding.state == "note"
    assert str(script) in finding.says
    assert finding.mend.endswith("-m agentlab lab")


def test_doctor_does_not_praise_a_jupyterlab_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.util, "find_spec", lambda name: None)
    finding = doctor.front_end({"PATH": ""})
    assert finding.state == "note"
    assert "JupyterLab is not beside this Python" in finding.says


@pytest.mark.parametrize("checkout", [True, False])
def test_doctor_notices_that_a_built_front_end_is_missing(tmp_path: Path, checkout: bool) -> None:
    """As when a build was cleaned away: every widget stays blank, and the browser says nothing."""
    static = tmp_path / "agentlab" / "widgets" / "static"
    static.mkdir(parents=True)
    if checkout:
        (tmp_path / ".git").mkdir()
    for name in doctor.FRONT_ENDS:
        (static / name).write_text("x")
    assert doctor.widgets(static).state == "ok"
    (static / "stepper.js").write_text("")
    finding = doctor.widgets(static)
    assert finding.state == "broken"
    assert "stepper.js is missing or empty" in finding.says
    assert ("git -C" in finding.mend) == checkout
    assert ("--force-reinstall" in finding.mend) != checkout


def test_doctor_knows_all_front_ends() -> None:
    assert set(doctor.FRONT_ENDS) == {p.name for p in doctor.STATIC.iterdir() if p.suffix in (".js", ".css")}
    assert doctor.widgets() in doctor.examine({})


def test_doctor_notices_a_file_that_hides_a_package(tmp_path: Path) -> None:
    assert doctor.hidden(tmp_path).state == "ok"
    (tmp_path / "openai.py").touch()
    finding = doctor.hidden(tmp_path)
    assert finding.state == "broken"
    assert "openai.py" in finding.says


def test_doctor_takes_a_checkout_for_what_it_is(tmp_path: Path) -> None:
    """As on Binder: the checkout is the folder that one stands in, and agentlab is installed from it."""
    (tmp_path / "agentlab").mkdir()
    (tmp_path / "agentlab" / "__init__.py").touch()
    assert doctor.hidden(tmp_path).state == "broken"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "jupyter-agentlab"\n')
    assert doctor.hidden(tmp_path).state == "ok"


def test_doctor_wants_a_model_name_and_never_prints_a_key(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    key = "sk-secret-0123456789"
    (finding,) = doctor.model_settings({"OPENAI_API_KEY": key})
    assert (finding.state, "OPENAI_MODEL" in finding.mend) == ("note", True)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:{key}@localhost:11434/v1?key={key}")
    monkeypatch.setenv("OPENAI_MODEL", "small")
    cli.main(["doctor"])
    cli.main(["doctor", "--json"])
    assert key not in capsys.readouterr().out


def test_doctor_notices_a_proxy_before_a_local_model() -> None:
    settings = {"OPENAI_BASE_URL": "http://localhost:11434/v1", "OPENAI_MODEL": "small", "HTTP_PROXY": "http://proxy:3128"}
    assert [f.name for f in doctor.model_settings(settings)] == ["model", "proxy"]
    assert len(doctor.model_settings({**settings, "NO_PROXY": "localhost, 127.0.0.1"})) == 1


def test_doctor_mends_without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.util, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert "ensurepip" in doctor.install(["anywidget"])
    monkeypatch.setattr(doctor.shutil, "which", lambda name: "uv")
    assert doctor.install(["anywidget"]).startswith("uv pip install --python")
