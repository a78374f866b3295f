"""From lines of loops and of C++ back to the kernel's lines."""

from __future__ import annotations

import triton
import triton.language as tl
from ttir_source import ttir_text

from triton_porting_kit.compiler import CpuTarget, cpp_pipeline
from triton_porting_kit.compiler.source_comments import SourceComments

TEXT = """module {
  // kernel.py: /a/kernel.py
  // b/kernel.py: /a path/b/kernel.py
  llvm.func
    // parameter X
    %1 = llvm.load
    // tpk.load, kernel.py:12
    %2 = llvm.load
      // tpk.store, b/kernel.py:7
      llvm.store
    // scf.for
    scf.for
}"""


@triton.jit
def add_one(values, count, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(values + at, tl.load(values + at, mask=at < count) + 1, mask=at < count)


def test_lines() -> None:
    source_comments = SourceComments(TEXT)
    assert source_comments.head == ["kernel.py: /a/kernel.py", "b/kernel.py: /a path/b/kernel.py"]
    found = {
        line: (str(source_comments.location_of_line(line)), source_comments.operation_of_line(line))
        for line in range(1, 14)
    }
    unknown = ("None", None)
    assert [found[line] for line in (1, 4, 6)] == [unknown] * 3
    assert [found[line] for line in (7, 8)] == [("/a/kernel.py:12:0", "tpk.load")] * 2
    assert [found[line] for line in (9, 10)] == [("/a path/b/kernel.py:7:0", "tpk.store")] * 2
    assert [found[line] for line in (11, 13)] == [("None", "scf.for")] * 2


def test_cpp_has_the_remarks_of_the_loops() -> None:
    source = ttir_text(add_one, {"values": "*i32", "count": "i32"}, B=32)
    artefacts = cpp_pipeline(CpuTarget.portable(32)).after("ttir").until("cpp").run(source, {})
    loops, cpp = (SourceComments(str(artefacts[name])) for name in ("loops", "cpp"))
    assert list(loops.files.values()) == list(cpp.files.values()) == [__file__]
    text = str(artefacts["cpp"])
    line = next(i for i, line in enumerate(text.splitlines(), 1) if "store_u32x8(v" in line)
    location = cpp.location_of_line(line)
    assert location is not None
    assert (location.file, cpp.operation_of_line(line)) == (__file__, "tpk.store")
    first = add_one.fn.__code__.co_firstlineno
    assert location.line == first + 3
    for name in ("const ptr arg_values = ", "const u32 arg_count = "):
        assert name in text
