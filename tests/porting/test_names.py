"""The rule for names, by a table; what is suggested is always acceptable, and what follows from a name is code."""

from __future__ import annotations

import importlib
import inspect
import keyword
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_porting_kit.errors import NamingError
from triton_porting_kit.porting import names as rule
from triton_porting_kit.porting.names import following, installed, names_of, refusal, suggestions, title
from triton_porting_kit.porting.template import Template
from triton_porting_kit.public import MODULES, PARTS

GOOD = {
    "acme": ("acme", "acme", "triton_acme", "Acme"),
    "x": ("x", "x", "triton_x", "X"),
    "Acme": ("acme", "acme", "triton_acme", "Acme"),
    "ACME": ("acme", "acme", "triton_acme", "ACME"),
    "TensorOne": ("tensorone", "tensorone", "triton_tensorone", "TensorOne"),
    "my-chip": ("my-chip", "my_chip", "triton_my_chip", "MyChip"),
    "my_chip": ("my-chip", "my_chip", "triton_my_chip", "MyChip"),
    "a-1-b": ("a-1-b", "a_1_b", "triton_a_1_b", "A1B"),
    "npu2": ("npu2", "npu2", "triton_npu2", "Npu2"),
    "json-chip": ("json-chip", "json_chip", "triton_json_chip", "JsonChip"),
    "match": ("match", "match", "triton_match", "Match"),  # a word of Python in some places only
    "a23456789012345678901234": (
        "a23456789012345678901234",
        "a23456789012345678901234",
        "triton_a23456789012345678901234",
        "A23456789012345678901234",
    ),
}

REFUSED = {
    "": ("empty", "acme"),
    "a" * 25: ("25 characters", "a" * 24),
    "7chip": ("begins with '7'", "chip7"),
    "123": ("begins with '1'", "chip-123"),
    "-x": ("begins with '-'", "x"),
    "_x": ("begins with '_'", "x"),
    "x-": ("each dash", "x"),
    "a--b": ("each dash", "a-b"),
    "a-_b": ("each dash", "a-b"),
    "work/acme": ("path", "acme"),
    "work\\acme": ("path", "acme"),
    "..": ("'.'", "acme"),
    "v1.5": ("'.'", "v1-5"),
    "my chip": ("' '", "my-chip"),
    "a\n": ("'\\n'", "a"),
    "a\0b": ("'\\x00'", "a-b"),
    "ñandú": ("'ñ'", "nandu"),
    "芯片": ("'片'", "acme"),
    "\u0391cme": ("'\u0391'", "cme"),  # a Greek capital
    "a\u0131": ("'\u0131'", "a"),
    "{{x}}": ("'{'", "x"),
    "$(x)": ("'$'", "x"),
    "class": ("keyword of Python", "class-npu"),
    "Class": ("keyword of Python", "Class-npu"),
    "None": ("keyword of Python", "None-npu"),
    "async": ("keyword of Python", "async-npu"),
    "triton": ("begin with triton", "acme"),
    "triton-acme": ("begin with triton", "acme"),
    "Triton_acme": ("begin with triton", "acme"),
    "tritonic": ("begin with triton", "ic"),
    "cpu": ("reference backend", "cpu-npu"),
    "CPU": ("reference backend", "CPU-npu"),
    "nvidia": ("NVIDIA", "nvidia-npu"),
    "cuda": ("NVIDIA", "cuda-npu"),
    "amd": ("AMD", "amd-npu"),
    "hip": ("AMD", "hip-npu"),
    "porting-kit": ("the kit itself", "porting-kit-npu"),
    "porting_kit": ("the kit itself", "porting-kit-npu"),
    "kernels": ("collection of kernels", "kernels-npu"),
    "os": ("module of Python's standard library", "os-npu"),
    "OS": ("module of Python's standard library", "OS-npu"),
    "json": ("module of Python's standard library", "json-npu"),
    "test": ("take it for tests", "test-npu"),
    "Tests": ("take it for tests", "Tests-npu"),
    "con": ("Windows reserves this name for a device", "con-npu"),
    "AUX": ("Windows reserves this name for a device", "AUX-npu"),
    "com1": ("Windows reserves this name for a device", "com1-npu"),
    "lpt9": ("Windows reserves this name for a device", "lpt9-npu"),
    "src": ("folders of a repository", "src-npu"),
    "driver": ("parts of a backend", "driver-npu"),
    "default": ("looks like a setting", "default-npu"),
    "host": ("classes", "host-npu"),
    "Packed": ("classes", "Packed-npu"),
    "taken": ("a backend of somebody", "taken-npu"),
    "Taken": ("a backend of somebody", "Taken-npu"),
    "taken-too": ("a backend of somebody", "taken-too-npu"),
    "taken_too": ("a backend of somebody", "taken-too-npu"),
}
REGISTERED = {**rule.IN_TREE, "taken": "a backend of somebody", "taken-too": "a backend of somebody"}


@pytest.mark.parametrize("given", GOOD)
def test_names_that_will_do(given: str) -> None:
    names = names_of(given, REGISTERED)
    assert (names.name, names.backend, names.package, names.class_prefix) == GOOD[given]
    assert names.repository == f"triton-{names.name}"


@pytest.mark.parametrize("given", REFUSED)
def test_names_that_are_refused(given: str) -> None:
    reason, better = REFUSED[given]
    with pytest.raises(NamingError, match=re.escape(reason)) as caught:
        names_of(given, REGISTERED)
    assert caught.value.suggestion == better
    assert repr(better) in str(caught.value)
    assert repr(given) in str(caught.value)


@pytest.mark.parametrize("word", keyword.kwlist)
def test_words_of_python_are_refused(word: str) -> None:
    assert "keyword of Python" in refusal(word, {})


@pytest.mark.parametrize("module", sorted(sys.stdlib_module_names))
def test_modules_of_the_standard_library_are_refused(module: str) -> None:
    assert refusal(module, {})


@pytest.mark.parametrize("name", ["os", "con", "cpu", "acme"])
def test_what_follows_from_a_name_that_was_taken_before(name: str) -> None:
    """Repositories may have names that are refused today."""
    assert following(name).package == f"triton_{name}"
    with pytest.raises(NamingError, match="cannot be the name"):
        following(f"{name}/..")


@given(st.text(max_size=40))
def test_any_text_is_handled(text: str) -> None:
    try:
        names = names_of(text, REGISTERED)
    except NamingError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert not refusal(refused.suggestion, REGISTERED)
        assert refused.suggestion in list(suggestions(text))
        return
    assert names.package.isidentifier()
    assert names.class_prefix.isidentifier()
    assert names.backend.isidentifier()
    assert not keyword.iskeyword(names.backend)
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", names.name)
    # The same name whichever way it was typed.
    assert names_of(names.backend, REGISTERED).name == names_of(names.name, REGISTERED).name == names.name


def test_backends_that_are_installed_are_taken() -> None:
    import triton

    there = installed()
    assert {name.replace("_", "-") for name in triton.backends.backends} <= set(there)
    for name in there:
        with pytest.raises(NamingError):
            names_of(name)


def test_packages_that_can_be_imported_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "triton_elsewhere").mkdir()
    (tmp_path / "triton_elsewhere" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(NamingError, match="triton_elsewhere already exists"):
        names_of("elsewhere", {})


def test_distributions_that_are_installed_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    information = tmp_path / "triton_distant-2.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: triton-distant\nVersion: 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(NamingError, match=r"triton-distant 2\.0 is installed"):
        names_of("distant", {})


def test_no_class_is_called_like_one_of_the_kit() -> None:
    """Every role that a class of the template has, after every name, gives a class that the kit and Triton have not."""
    template = "".join(content.decode() for _, content, _ in Template.own().files())
    roles = set(re.findall(r"class \{\{ *class_prefix *\}\}(\w+)", template))
    roles |= {"Backend", "Device", "Driver", "Launcher", "Options", "Pipeline", "Properties", "Target"}
    public = {"BaseBackend", "DriverBase", "GPUDriver", "GPUTarget"}
    for part in PARTS:
        public |= set(importlib.import_module(f"triton_porting_kit.{part}").__all__)
    for module in MODULES:
        held = vars(importlib.import_module(f"triton_porting_kit.{module}"))
        public |= {name for name, value in held.items() if inspect.isclass(value)}
    beginnings = {
        name.removesuffix(role) for name in public for role in roles if name.endswith(role) and name != role
    }
    assert beginnings
    for beginning in beginnings:
        typed = "-".join(re.findall(r"[A-Z]+[a-z]*", beginning))
        for name in (beginning, typed):
            assert refusal(name, rule.IN_TREE), (
                f"{name} makes a class of the backend be called like the kit's"
            )


@pytest.mark.parametrize(
    "text",
    ["Acme", "Acme Corporation & Co., Ltd.", "A-100+ (rev. B)", "Müller", "Žižkov", "x" * 32, "42"],
)
def test_titles_that_will_do(text: str) -> None:
    assert title(text, "vendor") == text


def test_blanks_of_titles_are_put_right() -> None:
    assert title("  Acme \n Corp ", "vendor") == "Acme Corp"


@pytest.mark.parametrize(
    ("text", "reason", "better"),
    [
        ("", "is empty", ""),
        ("  ", "is empty", ""),
        ('the "best"', "'\"'", "the best"),
        ("O'Brien", '"\'"', "O Brien"),
        ("a\\b", repr("\\"), "a b"),
        ("{{ 7 * 7 }}", "'{'", "7 7"),
        ("a#b", "'#'", "a b"),
        ("a\x1b[31mb", "'\\x1b'", "a 31mb"),
        ("芯片", "'片'", ""),
        ("\u0410cme", "'\u0410'", "cme"),
        ("a\u0131", "'\u0131'", "a"),  # a Cyrillic capital
        ("x" * 33, "33 characters", "x" * 32),
    ],
)
def test_titles_that_are_refused(text: str, reason: str, better: str) -> None:
    with pytest.raises(NamingError, match=re.escape(reason)) as caught:
        title(text, "chip")
    assert caught.value.suggestion == better
