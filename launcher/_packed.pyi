from collections.abc import Callable
from typing import Any

class Launcher:
    launch: Callable[..., None]
    def __init__(self, launch: Callable[..., None], /) -> None: ...
    def __call__(self, *args: Any, **hidden: Any) -> None: ...

def guard(
    steps: list[Any], other_version: Callable[[], int], function: int, context: int
) -> tuple[object, int, int]: ...
def bind(
    arguments: list[Any],
    hidden: list[Any],
    size: int,
    argument_names: str,
    hidden_names: str,
    function: int,
    context: int,
) -> Callable[..., None]: ...
