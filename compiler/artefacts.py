"""Artefacts that pass between stages parsed, and not only as text."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from triton_porting_kit.compiler.defects import InvalidIR
from triton_porting_kit.compiler.dialect import verifier
from triton_porting_kit.toolchain import mlir


class Parsed(str):
    """A text, and the valid module that it says: the next stage takes that, and need not parse the text again."""

    __slots__ = ("_module",)

    _module: Any

    def __new__(cls, text: str, module: Any) -> Parsed:
        artefact = super().__new__(cls, text)
        artefact._module = module
        return artefact

    def take(self) -> Any | None:
        """The module, for the first who asks: stages change it in place."""
        module, self._module = self._module, None
        return module


def parsed(source: object, parse: Callable[[str], Any]) -> Any:
    """The module of an artefact: as it is passed on, or else what `parse` makes of its text, or of its file's."""
    module = source.take() if isinstance(source, Parsed) else None
    return parse(str(source)) if module is None else module


def mlir_artefact(module: Any) -> Parsed:
    """A module that a stage has built. Raises `InvalidIR` where MLIR's verifier refuses it.

    The text keeps the locations, so that what is read from the file still knows the lines of the kernel.
    """
    verify(module)
    return Parsed(str(module.operation.get_asm(enable_debug_info=True, assume_verified=True)), module)


def mlir_module(source: object) -> Any:
    """The MLIR module of an artefact, or of the text of its file. Raises `InvalidIR` for text that is none."""
    return parsed(source, parse_mlir)


def structured_artefact(module: Any) -> Parsed:
    """A module of the structured form that a stage has built.

    Raises `InvalidIR` where MLIR's verifier refuses it, or, with TPK_VERIFY set, the dialect's.
    """
    if os.environ.get("TPK_VERIFY", "") not in ("", "0"):
        verifier.verify(module)
    return mlir_artefact(module)


def structured_module(source: object) -> Any:
    """The module of a structured artefact, or of the text of its file. Raises `InvalidIR` for text that is none."""
    return parsed(source, parse_structured)


def parse_structured(text: str) -> Any:
    """The structured module of a text, which MLIR's verifier and the dialect's have taken.

    Raises `InvalidIR`, which names the line of the text.
    """
    module = parse_mlir(text)
    verifier.verify(module, text)
    return module


def parse_mlir(text: str) -> Any:
    """The module of a text, which MLIR's verifier has taken. Raises `InvalidIR` with MLIR's own message."""
    try:
        return mlir.parse_module(text)
    except Exception as error:
        raise InvalidIR.of_mlir("this is not valid MLIR", error, text) from error


def verify(module: Any) -> None:
    """Raise `InvalidIR` with MLIR's message and the module's text where its verifier refuses a module."""
    try:
        module.operation.verify()
    except mlir.ir.MLIRError as error:
        text = module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
        raise InvalidIR.of_mlir("MLIR's verifier refuses it", error, str(text)) from error
