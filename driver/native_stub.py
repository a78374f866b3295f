"""Writes ``_native_hooks.pyi``, the types of the hooks that `tpk_hooks.h` binds, from those of `Device`.

``python -m triton_porting_kit.driver.native_stub`` writes it. Tests compare the file with this.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from triton_porting_kit.driver.hooks import HOOKS
from triton_porting_kit.driver.native_device import NativeDevice

STUB = Path(__file__).with_name("_native_hooks.pyi")
_ALL_STREAMS = "synchronize"
"""The hook that takes None for all streams, which is a separate method in native code."""


def stub() -> str:
    """The text of the stub. Its arguments have no defaults."""
    lines = [
        "# Written by `python -m triton_porting_kit.driver.native_stub`.",
        "from triton_porting_kit.driver.device import Buffer",
        "",
        "class NativeHooks:",
        '    """What the native objects of devices have in common: no class of its own at run time."""',
        "",
    ]
    for name in HOOKS:
        method = vars(NativeDevice).get(name)
        if method is None or hasattr(method, "missing_hook"):
            continue
        found = inspect.signature(method)
        kinds = {each.name: str(each.annotation) for each in found.parameters.values() if each.name != "self"}
        if name == _ALL_STREAMS:
            kinds = {argument: kind.removesuffix(" | None") for argument, kind in kinds.items()}
        listed = ", ".join(["self", *(f"{argument}: {kind}" for argument, kind in kinds.items())])
        lines.append(f"    def {name}({listed}) -> {found.return_annotation}: ...")
        if name == _ALL_STREAMS:
            lines.append(f"    def {name}_all(self) -> None: ...")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    STUB.write_text(stub())
