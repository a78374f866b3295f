"""LLVM in a process that forks."""

from __future__ import annotations

import subprocess
import sys

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
