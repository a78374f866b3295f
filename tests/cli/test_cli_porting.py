"""`tpk new` and `tpk update` from outside: what they print, and their exit status."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cli_helpers import Tpk

import triton_porting_kit
from triton_porting_kit.porting.template import ANSWERS


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_new_says_what_it_made_and_what_is_next(tpk: Tpk, tmp_path: Path) -> None:
    done = tpk("new", "Zz-Chip", "--vendor", "Zz & Co.", "--chip", "Z1")
    assert done.status == 0, done.errors
    folder = tmp_path / "triton-zz-chip"
    assert f"Made {folder}, " in done.output
    for said in ("triton_zz_chip", "TRITON_DEFAULT_BACKEND=zz_chip", "ZzChipDevice", "Zz & Co.'s Z1"):
        assert said in done.output
    assert "is a git repository with a first commit" in done.output
    for command in ("cd triton-zz-chip", "pip install", "tpk conform --backend zz_chip", "tpk status"):
        assert f"\n  {command}" in done.output
    assert done.errors == ""
    assert (folder / "docs" / "PORTING.md").is_file()


def test_new_says_what_building_needs(tpk: Tpk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    said = tpk("new", "zz", "--no-git").output
    assert '  pip install "scikit-build-core>=0.11" "pybind11>=3.0,<4" "cmake>=3.20" ninja\n' in said


def test_new_has_a_default_for_everything(tpk: Tpk, tmp_path: Path) -> None:
    tpk("new", "zz-chip", "--dest", "deep er/here", "--no-git")
    folder = tmp_path / "deep er" / "here" / "triton-zz-chip"
    assert "Triton on Zz Chip's NPU" in (folder / "README.md").read_text()
    assert not (folder / ".git").exists()


def test_new_explains_itself(tpk: Tpk) -> None:
    said = tpk("new", "--help").output
    for word in (
        "NAME",
        "--vendor",
        "--chip",
        "--dest",
        "--no-git",
        "tpk new acme",
        "24 ASCII",
        "--shape",
        "npu|cores",
    ):
        assert word in said


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["cpu"], "reference backend"),
        ([""], "empty"),
        (["7"], "'chip-7'"),
        (["a/b"], "--dest"),
        (["--", "-x"], "'x'"),
        (["zz", "--vendor", '"'], "the vendor cannot be called"),
        (["zz", "--chip", "a" * 33], "the chip cannot be called"),
        (["zz", "--chip", " "], "the name of the chip is empty"),
    ],
)
def test_new_refuses_names(arguments: list[str], reason: str, tpk: Tpk, tmp_path: Path) -> None:
    done = tpk("new", *arguments)
    assert done.status == 2
    assert reason in done.errors
    assert "Traceback" not in done.errors
    assert list(tmp_path.iterdir()) == []


def test_new_refuses_what_is_there(tpk: Tpk, tmp_path: Path) -> None:
    (tmp_path / "triton-zz").mkdir()
    done = tpk("new", "zz")
    assert done.status == 1
    assert "already exists" in done.errors


def test_update_of_what_is_current(tpk: Tpk) -> None:
    tpk("new", "zz")
    done = tpk("update", "triton-zz")
    assert (done.status, done.output) == (
        0,
        f"Up to date: the repository matches the template of version {triton_porting_kit.__version__}.\n",
    )


def test_update_where_there_is_nothing(tpk: Tpk, tmp_path: Path) -> None:
    done = tpk("update")
    assert done.status == 1
    assert f"{tmp_path / ANSWERS} cannot be read" in done.errors
    assert "tpk new" in done.errors


def test_update_of_another_version(tpk: Tpk, tmp_path: Path) -> None:
    tpk("new", "zz")
    path = tmp_path / "triton-zz" / ANSWERS
    version = triton_porting_kit.__version__
    path.write_text(path.read_text().replace(version, "0.0.1"))
    done = tpk("update", "triton-zz")
    assert done.status == 1
    assert (
        f"this kit does not have the template of 0.0.1, which the repository was created from; it has {version}"
        in done.errors
    )


def test_update_shows_what_changed_and_conflicts(
    tpk: Tpk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton_porting_kit.porting.template import Template

    own = Template.own()
    kit = tmp_path / "kit"
    own.write(own.version, kit)
    Template(kit, "0.0.1").release()
    readme = kit / "template" / "README.md.jinja"
    readme.write_text(readme.read_text().replace("## License", "## Licence"))
    (kit / "template" / "fresh.txt").write_text("new\n")
    tpk("new", "zz")
    repository = tmp_path / "triton-zz"
    for path in (repository / ANSWERS, repository / "README.md"):
        path.write_text(path.read_text().replace(own.version, "0.0.1").replace("## License", "## Mine"))
    for command in (["add", "-A"], ["-c", "user.name=v", "-c", "user.email=v@x", "commit", "-qm", "old"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    monkeypatch.setattr(Template, "own", classmethod(lambda cls: cls(kit, own.version)))
    done = tpk("update", "triton-zz")
    assert done.status == 1, done.errors
    assert f"the template from version 0.0.1 to {own.version}" in done.output
    assert "  conflict  README.md\n" in done.output
    assert "            fresh.txt\n" in done.output
    assert "git restore" in done.output
    assert "## Mine\n=======\n## Licence\n" in (repository / "README.md").read_text()
