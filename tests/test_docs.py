"""What the documents say is tried: the README's kernel and commands, and that every operation is described."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_tree import files

from triton_porting_kit.cli import main

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(document: str, language: str) -> list[str]:
    """The fenced blocks of a document in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    """The README's first kernel as a program."""
    (kernel,) = blocks("README.md", "python")
    path = tmp_path / "scale.py"
    path.write_text(kernel)
    return path


def test_first_kernel_runs(scale: Path) -> None:
    subprocess.run([sys.executable, scale], check=True)


@pytest.mark.parametrize(
    ("stage", "text"), [("structured", "tpk.load"), ("amdgcn", ".amdhsa_kernel scale_kernel")]
)
def test_readme_command_prints_the_stage(scale: Path, stage: str, text: str) -> None:
    (command,) = (
        block
        for block in blocks("README.md", "sh")
        if block.startswith("tpk compile") and block.strip().endswith(f"--emit {stage}")
    )
    done = subprocess.run(
        command.replace("tpk", f"{sys.executable} -m triton_porting_kit.cli", 1),
        shell=True,
        cwd=scale.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert text in done.stdout


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#\S*)?\)", document.read_text()):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_tables_of_the_structured_form_are_those_of_the_dialect() -> None:
    from triton_porting_kit.compiler.dialect.document import updated

    text = (ROOT / "docs" / "architecture.md").read_text()
    assert updated(text) == text, "run `make docs`"


def test_the_glossary_is_kept() -> None:
    """The words that docs/contributing.md replaces stand nowhere else."""
    page = (ROOT / "docs" / "contributing.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| (`.+`) \|$", page.partition("## Words")[2], re.M)
    words = [word for row in rows for word in re.findall(r"`([^`]+)`", row)]
    assert len(words) > 10
    replaced = re.compile(rf"\b({'|'.join(map(re.escape, words))})\b", re.I)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[1]}"
        for path in _texts()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := replaced.search(line))
    ]
    assert found == []


def _texts() -> Iterator[Path]:
    """Sources and docs, but for the page that lists the words."""
    beside = (path for folder in ("docs", "tests", "benchmarks") for path in (ROOT / folder).rglob("*"))
    for path in (*ROOT.glob("*.md"), *files(), *beside):
        if path.suffix in (".py", ".md", ".h", ".cpp", ".jinja") and path.name != "contributing.md":
            yield path


def test_every_error_is_described() -> None:
    import triton_porting_kit.errors as errors

    text = (ROOT / "docs" / "debugging.md").read_text()
    own = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == errors.__name__
    ]
    assert [name for name in own if f"`{name}`" not in text and f".{name}`" not in text] == []


def test_every_variable_is_described() -> None:
    packages = ("compiler", "launcher", "driver", "src")
    sources = [
        path
        for package in packages
        for path in (ROOT / package).rglob("*")
        if path.suffix in (".py", ".cpp", ".h")
    ]
    used = {name for path in sources for name in re.findall(r'"(TPK_[A-Z_]+)"', path.read_text())}
    assert "TPK_NUM_THREADS" in used
    text = (ROOT / "docs" / "debugging.md").read_text()
    assert {name for name in used if f"`{name}`" not in text} == set()


def test_readme_commands_exist(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the kit that a block of README names knows its options."""
    monkeypatch.setenv("COLUMNS", "200")
    lines = [line.partition("#")[0] for block in blocks("README.md", "sh") for line in block.splitlines()]
    named = {line.split()[1] for line in lines if line.startswith("tpk ")}
    assert {"conform", "fuzz", "verify", "compile"} <= named
    helps = {}
    for command in named:
        with pytest.raises(SystemExit, match=r"^0$"):
            main([command, "--help"])
        helps[command] = capsys.readouterr().out
    for line in (line for line in lines if line.startswith("tpk ")):
        words = line.split()
        for option in (word for word in words if word.startswith("--")):
            assert option in helps[words[1]], line
