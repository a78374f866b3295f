"""`judge`: converts a compiled kernel to evidence."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.binaries.code_object import CodeObject, read_code_object
from triton_porting_kit.conformance.code_objects.architectures import find
from triton_porting_kit.conformance.code_objects.products import Product, products_in
from triton_porting_kit.conformance.code_objects.rules import RULES, Subject
from triton_porting_kit.conformance.stages import BINARY
from triton_porting_kit.errors import CodeObjectError, SignatureError
from triton_porting_kit.launcher import ArgLayout
from triton_porting_kit.toolchain import compat
from triton_porting_kit.toolchain.amdgpu_disassembler import disassemble

_ELF, _AMDGPU = b"\x7fELF", (224).to_bytes(2, "little")
VALID = "the code object can be read, and its parts agree"
_FILE_NAME = 150
"""The number of characters of a kernel's name that Triton's cache uses in file names."""
_CLEAN_UP = ("common.inliner", "common.canonicalizer", "common.cse", "common.symbol_dce")
_SHOWN = 3
"""The maximum number of violations of one rule that are reported."""


def is_judged(content: bytes, target: Any) -> bool:
    """Whether a binary is for AMD GPUs, according to its content or to the target's architecture."""
    return (content[:4] == _ELF and content[18:20] == _AMDGPU) or find(target.arch) is not None


def judge(name: str, content: bytes, target: Any, source: Any, metadata: Any) -> list[dict[str, Any]]:
    """The evidence of a compiled kernel: its properties, and each rule that it violates.

    `name` is the kernel's symbol; `source` and `metadata` are the objects that Triton passes to a launcher. Raises
    `ToolchainError` if there is no disassembler.
    """
    item: dict[str, Any] = {"kind": "compiled", "what": name, "bytes": len(content)}
    try:
        code_object = read_code_object(content)
    except CodeObjectError as error:
        return [item, _broken(name, VALID, f"{error}; write the complete output of the linker")]
    wanted = str(target.arch).partition(":")[0]
    if code_object.arch != wanted:
        message = (
            f"it is for {code_object.arch}, but the target is {wanted}; give the code generator and the linker the "
            "target's architecture"
        )
        return [item, _broken(name, "the code object is for the target's architecture", message)]
    if name not in code_object.kernels:
        has = ", ".join(code_object.kernels) or "none"
        message = f'it has the kernels {has}; set metadata["name"] to the symbol of the function'
        return [item, _broken(name, "the code object contains the kernel", message)]
    try:
        subject = _subject(name, code_object, target, source, metadata)
    except SignatureError as error:
        return [item, _broken(name, "the kernel's signature can be laid out", str(error))]
    item["code_object"] = facts(subject)
    broken = []
    for rule in RULES:
        if told := list(rule(subject)):
            more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
            broken.append(_broken(name, _sentence(rule), "; ".join(told[:_SHOWN]) + more))
    return [item, *broken]


def facts(subject: Subject) -> dict[str, Any]:
    """The properties of a code object for the report, without zeros. They are few, because a report has thousands."""
    kernel = subject.kernel
    numbers = {
        "vgprs": kernel.vgpr_count,
        "agprs": kernel.agpr_count,
        "sgprs": kernel.sgpr_count,
        "spills": kernel.vgpr_spill_count + kernel.sgpr_spill_count,
        "scratch": kernel.private_segment_fixed_size,
        "lds": subject.lds,
        "instructions": len(subject.instructions),
    }
    found: dict[str, Any] = {"arch": subject.code_object.arch}
    found |= {key: number for key, number in numbers.items() if number}
    if subject.matrix:
        found["matrix"] = subject.matrix
    return found


def _subject(name: str, code_object: CodeObject, target: Any, source: Any, metadata: Any) -> Subject:
    kernel = code_object.kernels[name]
    return Subject(
        code_object=code_object,
        kernel=kernel,
        target=target,
        metadata=metadata,
        layout=ArgLayout.from_source(source) if hasattr(source, "signature") else None,
        instructions=disassemble(kernel.code, code_object.arch),
        products=_products(source, metadata),
        architecture=find(code_object.arch),
    )


def _products(source: Any, metadata: Any) -> frozenset[Product]:
    """The matrix products that a kernel's results depend on.

    They are read from the module of Triton's front end, before any stage of the backend, after Triton's own clean-up
    passes have removed dead code. Empty if the compile cache no longer has the module.
    """
    folder = compat.kernel_cache_folder(metadata.hash)
    name = str(getattr(source, "name", ""))[:_FILE_NAME]
    path = folder / f"{name}.source" if folder and name else None
    if path is None or not path.is_file():
        return frozenset()
    text = path.read_text(encoding="utf-8", errors="replace")
    if not products_in(text):
        return frozenset()
    module = compat.read_ttir(path)
    compat.run_passes(module, _CLEAN_UP)
    return frozenset(products_in(str(module)))


def _sentence(rule: Any) -> str:
    text = str(rule.__doc__).strip().removesuffix(".")
    return text[0].lower() + text[1:]


def _broken(name: str, what: str, message: str) -> dict[str, Any]:
    return {
        "kind": "expectation",
        "what": what,
        "holds": False,
        "message": f"{name}: {message}",
        "stage": BINARY,
    }
