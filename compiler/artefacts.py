"""Artefacts that are passed between stages as parsed modules, and not only as text."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from triton_porting_kit.compiler.defects import InvalidIR
from triton_porting_kit.toolchain import mlir


class Parsed(str):
    """A text together with its parsed and valid module, so that the next stage need not parse it again."""

    __slots__ = ("_module",)

    _module: Any

    def __new__(cls, text: str, module: Any) -> Parsed:
        artefact = super().__new__(cls, text)
        artefact._module = module
        return artefact

    def take(self) -> Any | None:
        """The module, for the first caller only: stages change it in place."""
        module, self._module = self._module, None
        return module


def parsed(source: object, parse: Callable[[str], Any]) -> Any:
    """The module of an artefact: the parsed one if there is one, else `parse` applied to its text."""
    module = source.take() if isinstance(source, Parsed) else None
    return parse(str(source)) if module is None else module


def mlir_artefact(module: Any, *, lines: bool = True, verified: bool = False) -> Parsed:
    """The artefact of a module that a stage has built. Raises `InvalidIR` if MLIR's verifier rejects it.

    With `lines`, the text keeps the locations, so that stages that read it from a file still know the lines of the
    kernel. A stage that has verified the module itself says so: `verified`.
    """
    if not verified:
        verify(module)
    return Parsed(mlir.printed(module, lines=lines), module)


def mlir_module(source: object) -> Any:
    """The MLIR module of an artefact, or of the text of its file. Raises `InvalidIR` if the text is not valid MLIR."""
    return parsed(source, parse_mlir)


def structured_artefact(module: Any, *, verified: bool = False) -> Parsed:
    """The artefact of a module of the structured form that a stage has built.

    Raises `InvalidIR` if MLIR's verifier rejects it, which is not asked about a module that is `verified`, or, with
    TPK_VERIFY set, the dialect's verifier.
    """
    if os.environ.get("TPK_VERIFY", "") not in ("", "0"):
        from triton_porting_kit.compiler.dialect import verifier

        verifier.verify(module)
    return mlir_artefact(module, verified=verified)


def structured_module(source: object) -> Any:
    """The module of a structured artefact, or of the text of its file. Raises `InvalidIR` if the text is not valid."""
    return parsed(source, parse_structured)


def parse_structured(text: str) -> Any:
    """The structured module of a text, verified by MLIR and by the dialect.

    Raises `InvalidIR`, which names the line of the text.
    """
    from triton_porting_kit.compiler.dialect import verifier

    module = parse_mlir(text)
    verifier.verify(module, text)
    return module


def parse_mlir(text: str) -> Any:
    """The module of a text, verified by MLIR. Raises `InvalidIR` with MLIR's own message."""
    try:
        return mlir.parse_module(text)
    except Exception as error:
        raise InvalidIR.of_mlir("this is not valid MLIR", error, text) from error


def verify(module: Any) -> None:
    """Raise `InvalidIR` with MLIR's message and the module's text if MLIR's verifier rejects a module."""
    try:
        module.operation.verify()
    except mlir.ir.MLIRError as error:
        text = module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
        raise InvalidIR.of_mlir("MLIR's verifier refuses it", error, str(text)) from error
