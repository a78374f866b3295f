from collections.abc import Sequence

from triton_porting_kit.driver._native_hooks import NativeHooks

launch_entry: int
services: dict[str, int]
functions: dict[str, int]
signatures: dict[str, str]

def choose_programs(begin: int, end: int) -> None: ...
def pool_width() -> int: ...

class RemovedFunction:
    @property
    def busy(self) -> bool: ...

class Host(NativeHooks):
    def __init__(self, memory_limit: int) -> None: ...
    @property
    def context(self) -> int: ...
    def memory_usage(self) -> tuple[int, int, int, int]: ...
    def allocation_of(self, addr: int) -> tuple[int, int] | None: ...
    def add_function(
        self,
        entry: int,
        scratch_bytes: int,
        cleared_bytes: int,
        asserts: bool,
        argument_bytes: int,
        updates: bool,
        exclusive_at: int,
        name: str,
        code_bytes: int,
        program_at: int,
        pointers: Sequence[int],
        explanation: Sequence[str],
    ) -> int: ...
    def remove_function(self, function: int) -> RemovedFunction: ...
    def launch(self, function: int, x: int, y: int, z: int, stream: int, args: bytes) -> None: ...
    def close(self) -> None: ...
    def reset(self) -> None: ...
