"""Artefacts that pass between stages as MLIR without being printed and parsed again."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import mlir


class MlirArtefact:
    """A valid MLIR module that prints as the text it has when it is made: later stages change it in place.

    The text keeps the locations, so that what is read from the file still knows the lines of the kernel.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self._text = str(module.operation.get_asm(enable_debug_info=True, assume_verified=True))

    def __str__(self) -> str:
        return self._text


def mlir_module(source: Any, stage: str) -> Any:
    """The MLIR module of an artefact, or of the text of an artefact's file.

    Raises `CompilationError` with MLIR's own message when text does not parse.
    """
    if isinstance(source, MlirArtefact):
        return source.module
    try:
        return mlir.parse_module(str(source))
    except Exception as error:
        raise CompilationError(
            f"the input of stage {stage} is not valid MLIR: {error}",
            remedy="check the file that overrides the stage before",
        ) from error


def check_mlir(artefact: Any) -> None:
    """Raise MLIR's error unless `artefact` is the text of a module."""
    mlir.parse_module(str(artefact))
