"""LLVM's options, and LLVM in a process that forks."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import llvmlite.binding
import pytest

from triton_porting_kit.toolchain import llvm

# A thread generates code all the time, by a switch of the process's; each child does the same, or hangs.
_FORKS = """
import os, signal, threading
from triton_porting_kit.toolchain import llvm
BODY = "".join(f"  %x{i + 1} = fadd double %x{i}, 1.0\\n" for i in range(200))
TEXT = f"define double @f(double %x0) {{\\n{BODY}  ret double %x200\\n}}"
def compile():
    module = llvm.parse(TEXT, llvm.host_triple())
    return llvm.emit_object(module, llvm.target_machine())
expected, stop = compile(), False
def work():
    while not stop:
        compile()
thread = threading.Thread(target=work, daemon=True); thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        same = compile() == expected
        llvm.LinkedObject(expected, ["f"])
        os._exit(0 if same and llvm._without_passes._inside == 0 else 1)
    status = os.waitpid(child, 0)[1]
    assert status == 0, status
    assert compile() == expected
stop = True
thread.join()
"""


def test_children_compile_that_are_forked_while_other_threads_do() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FORKS], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


# Wide constants near each other, of which constant hoisting would compute two from the first.
_WIDE = """
define i64 @f(i64 %a, ptr %p, i1 %c) {
  %x = add i64 %a, 81985529216486895
  br i1 %c, label %more, label %end
more:
  %y = xor i64 %x, 81985529216486903
  store i64 %y, ptr %p
  %z = and i64 %y, 81985529216486911
  ret i64 %z
end:
  ret i64 %x
}
"""


def assembly(*, by_llvmlite: bool = False) -> str:
    module, machine = llvm.parse(_WIDE, llvm.host_triple()), llvm.target_machine()
    if not by_llvmlite:
        return llvm.emit_assembly(module, machine)
    module.data_layout = str(machine.target_data)
    return str(machine.emit_assembly(module))


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What LLVM was given."""
    given: list[str] = []
    by_llvmlite = llvmlite.binding.set_option

    def set_option(name: str, option: str) -> None:
        given.append(option)
        by_llvmlite(name, option)

    monkeypatch.setattr(llvmlite.binding, "set_option", set_option)
    return given


def test_passes_are_left_out_of_our_code_alone(options: list[str]) -> None:
    before = assembly(by_llvmlite=True)
    ours = assembly()
    assert [option[0] for option in options] == ["@", "@"]
    assert not [option for option in options if Path(option[1:]).exists()]
    wide = "819855292164869"
    assert ours.count(wide) > before.count(wide)
    assert assembly(by_llvmlite=True) == before


@pytest.mark.parametrize("folder", ["é", "not there"])
def test_options_are_given_one_by_one_where_no_file_can_hold_them(
    folder: str, options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = assembly()
    options.clear()
    (tmp_path / "é").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / folder))
    assert assembly() == expected
    assert len(options) > 2
    assert not [option for option in options if option.startswith("@")]


def test_known_features_are_those_of_the_host_and_of_other_architectures() -> None:
    assert llvm.host_features().keys() <= llvm.known_features(llvm.host_triple())
    assert "sve2" in llvm.known_features("aarch64-unknown-linux-gnu")
    assert llvm.known_features("z80-unknown-none") == frozenset()
