"""The door to Triton's internals."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.runtime.cache
from triton._C.libtriton import ir as triton_ir

from triton_porting_kit.cli.requirements import tried_range
from triton_porting_kit.errors import ToolchainError
from triton_porting_kit.toolchain import compat, mlir


def parsed(text: str, folder: Path) -> Any:
    """A Triton module from text, which keeps its context as Triton's own compiler makes it do."""
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    file = folder / "module.ttir"
    file.write_text(text)
    module = triton_ir.parse_mlir_module(str(file), context)
    module.context = context
    return module


KERNEL = """
tt.func public @kernel(%p: !tt.ptr<f32>) {
  %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  tt.return
}
"""


@pytest.mark.parametrize(
    "attributes", ["", "attributes {a.first = 1 : i32}", 'attributes {a.first = 1 : i32, z.last = "x"}']
)
def test_generic_text_is_read_by_upstream_mlir(attributes: str, tmp_path: Path) -> None:
    module = parsed(f"module {attributes} {{ {KERNEL} }}", tmp_path)
    text = compat.generic_text(module)
    assert "data_layout" not in text
    assert '"tt.make_range"() <{' in text
    found = mlir.parse_module(text).operation
    for name in ("a.first", "z.last"):
        assert (name in found.attributes) == (name in attributes)


def test_a_pass_that_is_not_there_is_named(tmp_path: Path) -> None:
    module = parsed(f"module {{ {KERNEL} }}", tmp_path)
    compat.run_passes(module, ["common.canonicalizer"])
    assert "make_range" not in str(module)
    with pytest.raises(ToolchainError, match=r"ttir\.no_such_pass"):
        compat.run_passes(module, ["ttir.no_such_pass"])


DESCRIPTOR = "!tt.tensordesc<8xf32>" if compat.release() >= (3, 8) else "!tt.tensordesc<tensor<8xf32>>"


@pytest.mark.parametrize(
    ("argument", "body", "descriptors", "hints"),
    [
        ("!tt.ptr<f32>", "", False, False),
        (DESCRIPTOR, "", True, False),
        ("i32", "scf.for %i = %x to %x step %x : i32 {}", False, compat.release() < (3, 7)),
        ("i32", "scf.for %i = %x to %x step %x : i32 {} {tt.loop_unroll_factor = 2 : i32}", False, True),
    ],
)
def test_what_a_module_holds(
    argument: str, body: str, descriptors: bool, hints: bool, tmp_path: Path
) -> None:
    text = f"tt.func public @kernel(%x: {argument}) {{ {body} tt.return }}"
    found = compat.contents(parsed(text, tmp_path))
    assert {"tt.func", "tt.return"} <= found.operations
    assert ("scf.for" in found.operations) == ("scf.for" in body)
    assert (found.has_descriptors, found.has_unroll_hints) == (descriptors, hints)


def test_passes_are_printed_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    compat.run_passes(parsed(f"module {{ {KERNEL} }}", tmp_path), ["common.cse"])
    assert "IR Dump" not in capfd.readouterr().err
    monkeypatch.setenv("MLIR_ENABLE_DUMP", "1")
    compat.run_passes(parsed(f"module {{ {KERNEL} }}", tmp_path), ["common.cse"])
    assert "IR Dump Before CSE" in capfd.readouterr().err


# --- releases ----------------------------------------------------------------------------------------


def installed(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Let Triton say that it is of another release."""
    monkeypatch.setattr(triton, "__version__", version)


@pytest.mark.parametrize("version", ["3.6.0", "3.7.1", "3.8.0", "3.9.0", "3.9.0+git1234"])
def test_releases_that_were_tried_are_taken_silently(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, version)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compat.check_release()


@pytest.mark.parametrize("version", ["3.5.1", "2.3.1", "nonsense"])
def test_a_release_that_is_too_old_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, version)
    with pytest.raises(ToolchainError, match=rf"Triton {version} is too old: the kit needs 3\.6 or later"):
        compat.check_release()


def test_a_newer_release_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "3.99.0")
    with pytest.warns(compat.UntriedReleaseWarning, match=r"3\.99\.0, only with 3\.6 to 3\.9"):
        compat.check_release()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compat.check_release()


def test_what_another_release_has_not_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(triton.runtime.cache, "get_cache_manager")
    with pytest.raises(ImportError):  # a defect, in a release that was tried
        compat.kernel_cache_folder("never asked for")
    installed(monkeypatch, "3.99.0")
    with pytest.raises(ToolchainError, match=r"Triton 3\.99\.0 is not what kernel_cache_folder\(\) expects"):
        compat.kernel_cache_folder("never asked for")


def test_the_range_of_the_package_is_what_was_tried() -> None:
    first, last = compat.TRIED[0], compat.TRIED[-1]
    assert tried_range("triton").split(",") == [f"<{last[0]}.{last[1] + 1}", f">={first[0]}.{first[1]}.0"]


def test_line_of_a_definition_below_decorators(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kernel:
        starting_line_number = 7
        raw_src = ("@decorator(\n", "  1)\n", "@triton.jit\n", "def kernel(x):\n", "    pass\n")

    assert compat.definition_line(Kernel()) == 10
