"""The generated launcher: C++ launch code for each signature, built by the system's compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.launcher import _packed
from triton_porting_kit.launcher.build import BuildOptions, Shared, build_module
from triton_porting_kit.launcher.codegen import RuntimeSymbol, generate_source
from triton_porting_kit.launcher.codegen.source import APART, MODULE_NAME, support_source
from triton_porting_kit.launcher.entry import LaunchEntry, required
from triton_porting_kit.launcher.guard import Guard
from triton_porting_kit.launcher.layout import ArgLayout


class GeneratedLauncher(_packed.Launcher):
    """Launches one kernel on a device; constructed and called like `PackedLauncher`, with the same errors.

    `runtime` names a launch routine to link instead of calling `entry.function`; `options` say how to build. The
    constructor raises `LauncherBuildError`, `InsecureCacheError`, or `MissingHook` if `entry` is None. `source` is the
    C++ text.
    """

    def __init__(
        self,
        src: Any,
        metadata: Any,
        entry: LaunchEntry | None,
        *,
        hidden: Mapping[str, str] | None = None,
        runtime: RuntimeSymbol | None = None,
        options: BuildOptions | None = None,
    ) -> None:
        entry = required(entry)
        self.layout = ArgLayout.from_source(src, hidden)
        self.metadata = metadata
        self.source = generate_source(self.layout, runtime)
        module = build_module(self.source, MODULE_NAME, options, shared=Shared(support_source(), APART))
        linked = _Entry(module.routine or entry.function, entry.context)
        self.guard = Guard(src, metadata, self.layout)
        self.entry = self.guard.entry(linked)
        self._device = entry  # must outlive its launchers
        super().__init__(module.bind(self.entry.function, self.entry.context))


@dataclass(frozen=True)
class _Entry:
    """See `LaunchEntry`."""

    function: int
    context: int
