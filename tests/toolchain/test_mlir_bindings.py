"""The modules of MLIR's dialects are loaded only where a program uses them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from triton_porting_kit.toolchain import mlir, mlir_bindings

READING = """
import sys
from triton_porting_kit.toolchain import mlir

module = mlir.parse_module("func.func @f(%a: i32) -> i32 { %b = arith.addi %a, %a : i32 return %b : i32 }")
(function,) = module.body.operations
names = [operation.operation.name for operation in function.regions[0].blocks[0].operations]
assert names == ["arith.addi", "func.return"], names
loaded = [name for name in sys.modules if name.startswith(f"{mlir.ROOT}.dialects._") and name.endswith("_ops_gen")]
assert not loaded, loaded
"""
USING = """
import importlib
arith = importlib.import_module(f"{mlir.ROOT}.dialects.arith")
dialects = importlib.import_module(f"{mlir.ROOT}.dialects")
assert dialects.arith is arith
with mlir.make_context(), mlir.ir.Location.unknown():
    i32 = mlir.ir.IntegerType.get_signless(32)
    module = mlir.ir.Module.create()
    with mlir.ir.InsertionPoint(module.body):
        arith.ConstantOp(i32, 7)
    assert "arith.constant 7 : i32" in str(module)
names = {}
exec(f"from {mlir.ROOT}.dialects.func import *", names)
assert "FuncOp" in names
"""


def run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_operations_are_read_without_them() -> None:
    run(READING)


def test_programs_can_use_them() -> None:
    run(READING + USING)


def test_the_root_is_the_package_that_is_loaded() -> None:
    assert mlir.ir.__name__ == f"{mlir_bindings.root()}.ir"


@pytest.mark.parametrize("proc", [True, False], ids=["proc", "no-proc"])
def test_a_module_is_printed_as_the_bindings_print_it(proc: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    module = mlir.parse_module(
        'func.func @f(%a: i32) -> i32 {%b = arith.addi %a, %a {tpk.x = "é"} : i32 loc("k.py":7:1) return %b : i32}'
    )
    operation = module.operation
    if not proc:
        monkeypatch.setattr(mlir, "_OPEN_FILES", "/nowhere")
    for lines, generic in ((True, False), (False, False), (True, True)):
        given: dict[str, Any] = {"enable_debug_info": lines, "print_generic_op_form": generic}
        assert mlir.printed(module, lines=lines, generic=generic) == operation.get_asm(**given)
    assert '"k.py":7:1' in mlir.printed(module)
    assert '"k.py":7:1' not in mlir.printed(module, lines=False)


def test_the_bindings_find_the_library_open() -> None:
    code = """
from triton_porting_kit.toolchain import mlir_bindings
def is_open():
    return "libMLIRPythonCAPI" in open("/proc/self/maps").read()
assert not is_open()
mlir_bindings.open_library()
assert is_open()
from triton_porting_kit.toolchain import mlir
assert "return" in str(mlir.parse_module("func.func @f() { return }"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_operation_is_a_key_while_its_operands_change() -> None:
    text = (
        "func.func @f(%a: i32, %b: i32) { %c = arith.addi %a, %b : i32 %d = arith.addi %a, %b : i32 return }"
    )
    module = mlir.parse_module(text)
    block = module.body.operations[0].regions[0].blocks[0]
    first, second = (block.operations[number].operation for number in (0, 1))
    known = {first: 1, second: 2}
    first.operands[0] = block.arguments[1]
    first.attributes["tpk.mark"] = mlir.ir.UnitAttr.get(module.context)
    assert [known[first], known[second]] == [1, 2]
    assert [known[view] for view in list(block.operations)[:2]] == [1, 2]
    assert block.operations[2].operation not in known
