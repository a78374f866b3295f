"""Signatures: how Triton's types flatten, and that the compiled function has exactly these parameters."""

from __future__ import annotations

import json
import re
import types
from collections import namedtuple
from typing import Any

import pytest

from triton_porting_kit.errors import SignatureError
from triton_porting_kit.launcher import Signature

Pair = namedtuple("Pair", ["left", "right"])


def flat(signature: Signature) -> list[tuple[str, str]]:
    return [(parameter.name, parameter.type) for parameter in signature.parameters]


def test_scalars_keep_their_order_and_names() -> None:
    signature = Signature.from_types({"x": "*fp32", "B": "constexpr", "n": "i32", "z": None, "f": "bf16"})
    assert flat(signature) == [("x", "*fp32"), ("n", "i32"), ("f", "bf16")]
    assert [parameter.path for parameter in signature.parameters] == [(0,), (2,), (4,)]


def test_a_sequence_of_types_gets_names() -> None:
    assert flat(Signature.from_types(["*i8", ("u1", "fp64")])) == [
        ("arg0", "*i8"),
        ("arg1[0]", "u1"),
        ("arg1[1]", "fp64"),
    ]


def test_tuples_flatten_depth_first() -> None:
    signature = Signature.from_types({"t": ("i8", Pair("i16", ("*fp16", "constexpr")), ()), "n": "i64"})
    assert flat(signature) == [("t[0]", "i8"), ("t[1].left", "i16"), ("t[1].right[0]", "*fp16"), ("n", "i64")]
    assert [parameter.path for parameter in signature.parameters] == [(0, 0), (0, 1, 0), (0, 1, 1, 0), (1,)]


def test_descriptors_expand(descriptor_flags: tuple[str, ...]) -> None:
    signature = Signature.from_types({"d": "tensordesc<fp16[64, 32]>"})
    assert [parameter.type for parameter in signature.parameters] == (
        ["*fp16", "i64", "i64", "i64", "i64", *["i1"] * len(descriptor_flags), "i32", "i32", "i64", "i64"]
    )
    names = [parameter.name for parameter in signature.parameters]
    assert names[:5] == ["d.base", "d.shape[0]", "d.shape[1]", "d.strides[0]", "d.strides[1]"]
    assert names[5:-4] == [f"d.{flag}" for flag in descriptor_flags]
    im2col = Signature.from_types({"d": "tensordesc_im2col<fp16[64, 32],input_rank=4,Layout<[1]>>"})
    assert im2col.arguments[0].rank == 4
    assert len(im2col.parameters) == 1 + 4 * 4 + len(descriptor_flags)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("fp8e5", "argument 'x' has the type 'fp8e5', which a kernel argument cannot have"),
        ("i128", "'i128'"),
        ("*", "'\\*'"),
        ("", "''"),
        ("void", "'void'"),
        ("tensordesc<fp16>", "is not a tensor descriptor"),
        ("tensordesc<i128[4]>", None),
        (5, "argument 'x' has 5 for its type"),
        (("i32", "what"), "argument 'x\\[1\\]' has the type 'what'"),
    ],
)
def test_unknown_types(type_: Any, text: str | None) -> None:
    if text is None:  # a pointer may point to anything
        assert flat(Signature.from_types({"x": type_}))[0] == ("x.base", "*i128")
        return
    with pytest.raises(SignatureError, match=text):
        Signature.from_types({"x": type_})


def source(signature: dict[Any, Any], constants: dict[Any, Any], arg_names: list[str] | None = None) -> Any:
    fn = types.SimpleNamespace(arg_names=arg_names) if arg_names else None
    return types.SimpleNamespace(signature=signature, constants=constants, fn=fn)


def test_constants_of_a_source() -> None:
    signature = Signature.from_source(
        source({"x": "*i8", "n": "i32", "t": ("i8", "i16")}, {"n": 1, (2, 1): 2})
    )
    assert flat(signature) == [("x", "*i8"), ("t[0]", "i8")]
    # Positions count the function's arguments, and the signature may leave constexprs out.
    partial = source({"x": "*i8", "n": "i32"}, {(1,): 128, (2,): 4}, ["x", "BLOCK", "n"])
    assert flat(Signature.from_source(partial)) == [("x", "*i8")]


def test_a_source_made_from_ir_has_numbered_arguments() -> None:
    ir_source = types.SimpleNamespace(signature={0: "*fp32", 1: "i32"})
    assert flat(Signature.from_source(ir_source)) == [("0", "*fp32"), ("1", "i32")]


def test_flatten_takes_values_apart() -> None:
    signature = Signature.from_types({"a": "i8", "B": "constexpr", "t": (("i8",), "constexpr")})
    assert signature.flatten((1, "ignored", ((2,), "too"))) == [1, 2]
    with pytest.raises(SignatureError, match=r"takes 3 arguments \(a, B, t\), got 2"):
        signature.flatten((1, 2))


def test_survives_json() -> None:
    signature = Signature.from_types(
        {"x": "*fp32", "t": ("i32", Pair("constexpr", "tensordesc<i8[4]>")), "N": "constexpr", "e": ()}
    )
    assert Signature.from_dict(json.loads(json.dumps(signature.to_dict()))) == signature


# --- against Triton ------------------------------------------------------------------------------

_MLIR_TYPES = {"i1": "i1", "u1": "i1", "fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64"}


def mlir_type(type_: str) -> str:
    if type_.startswith("*"):
        return f"!tt.ptr<{mlir_type(type_[1:])}>"
    return _MLIR_TYPES.get(type_, re.sub("^u", "i", type_))


@pytest.mark.parametrize(
    "signature",
    [
        {"a": "*fp32", "d": "tensordesc<fp32[16, 32]>", "c": ("i32", ("fp16", "constexpr")), "n": "i64"},
        {"a": "u1", "d": "tensordesc<bf16[8]>", "c": Pair("tensordesc<i8[4, 4, 16]>", "fp64"), "n": "u8"},
        {"a": "bf16", "d": "constexpr", "c": ((), ("*i16",), "constexpr"), "n": "u64"},
    ],
    ids=range(3),
)
def test_compiled_function_has_these_parameters(signature: dict[str, Any]) -> None:
    from launcher_kernels import takes_four
    from triton._C.libtriton import ir, passes
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.compiler import ASTSource

    constants = {
        path: 1
        for path, type_ in [((1,), signature["d"]), ((2, 1, 1), "constexpr"), ((2, 2), "constexpr")]
        if type_ == "constexpr" and exists(signature, path)
    }
    backend = CUDABackend(GPUTarget("cuda", 80, 32))  # any of Triton's own: only its front end is used
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options({})
    src = ASTSource(takes_four, signature, constants)
    codegen = backend.get_codegen_implementation(options)
    module = src.make_ir(backend.target, options, codegen, backend.get_module_map(), context)
    manager = ir.pass_manager(context)
    passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    manager.run(module, "rewrite_tensor_descriptor_to_pointer")

    line = next(line for line in module.str_nodebug().splitlines() if "tt.func public" in line)
    parameters = re.findall(r"%\w+: ([^,()]+)", line.split(") attributes")[0])
    assert parameters == [mlir_type(p.type) for p in Signature.from_source(src).parameters]


def exists(signature: dict[str, Any], path: tuple[int, ...]) -> bool:
    value: Any = tuple(signature.values())
    for step in path:
        if not isinstance(value, tuple) or step >= len(value):
            return False
        value = value[step]
    return value == "constexpr"
