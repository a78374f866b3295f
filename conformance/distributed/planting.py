"""Where faults are planted: rules on the syntax tree of the sources of kernels of several ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import triton_porting_kit

MODULES = {
    "triton_porting_kit.language": "language",
    "triton_porting_kit.distributed.kernels": "kernels",
    "triton_porting_kit.distributed.overlapped_kernels": "overlapped",
}
"""The sources, and their short names."""
PROGRAMS = {
    "symmetric_at": ("put",),
    "put": ("put",),
    "put_signal": ("put",),
    "get": ("get",),
    "get_signal": ("get", "reuse"),
    "notify": ("put", "passing", "threads"),
    "wait": ("put", "reuse", "threads"),
    "fence": ("fence", "threads"),
    "barrier_at": ("barrier",),
    "barrier_all": ("barrier", "get"),
    "all_gather_kernel": ("all_gather",),
    "all_to_all_kernel": ("all_to_all",),
    "reduce_scatter_kernel": ("reduce_scatter",),
    "one_shot_kernel": ("one_shot",),
    "two_shot_kernel": ("two_shot",),
    "ring_kernel": ("ring",),
    "_first": ("all_gather", "reduce_scatter"),
    "_end": ("all_gather", "reduce_scatter"),
    "_sum_of_ranks": ("reduce_scatter",),
    "_copy": ("all_gather",),
    "_product": ("products",),
    "_multiply_and_send": ("products",),
    "all_gather_matmul_kernel": ("products",),
    "matmul_reduce_scatter_kernel": ("products",),
    "dispatch_kernel": ("experts",),
    "combine_kernel": ("experts",),
    "_copy_keys": ("attention",),
    "_attend": ("attention",),
    "ring_attention_kernel": ("attention",),
}
"""The programs that use a function; others are used by all."""
_PEER = {
    "symmetric_at": 2,
    "put": 3,
    "put_signal": 3,
    "get": 2,
    "get_signal": 2,
    "notify": 2,
    "_copy_keys": 5,
    "_multiply_and_send": 6,
}
"""Which argument of a function is a rank."""
_CHUNKS = {"count", "part", "size", "sequence", "room", "width", "SEQUENCE", "M", "N", "K", "each"}
"""Names of sizes: what they are multiplied by is a number of a chunk."""
_MASKS = ("offsets < end", "inside < end")
"""The end of a chunk."""


@dataclass(frozen=True)
class Fault:
    """One changed place."""

    rule: str
    module: str
    line: int
    sentence: str
    """What is wrong."""
    text: str
    """The source with the fault."""
    number: int = 0
    programs: tuple[str, ...] = ()
    """The programs of `modelled` to try; all if there are none."""

    @property
    def name(self) -> str:
        return f"{self.rule}/{MODULES[self.module]}-{self.line}-{self.number}"

    @staticmethod
    def none() -> Fault:
        """The sources as they are."""
        module = next(iter(MODULES))
        return Fault("none", module, 0, "nothing is wrong", _source(module))


def _source(module: str) -> str:
    """The text of a module, which is not imported."""
    path = Path(triton_porting_kit.__file__).parent.joinpath(*module.split(".")[1:])
    return path.with_suffix(".py").read_text()


Change = tuple[str, ast.AST, str, str]
"""A rule, a node, the text that replaces it, and a sentence."""


def faults() -> list[Fault]:
    """All faults."""
    found: list[Fault] = []
    for module in MODULES:
        source = _source(module)
        tree = ast.parse(source)
        for function in tree.body:
            if not isinstance(function, ast.FunctionDef):
                continue
            for rule, node, text, sentence in _changes(function):
                changed = _replaced(source, node, text)
                number = sum(fault.rule == rule and fault.line == node.lineno for fault in found)  # type: ignore[attr-defined]
                programs = PROGRAMS.get(function.name, ())
                found.append(Fault(rule, module, node.lineno, sentence, changed, number, programs))  # type: ignore[attr-defined]
    return found


def _replaced(source: str, node: ast.AST, text: str) -> str:
    """The source with other text in place of a node."""
    begin, end = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
    lines = source.splitlines(keepends=True)
    head = lines[begin].encode()[: node.col_offset].decode()  # type: ignore[attr-defined]
    tail = lines[end].encode()[node.end_col_offset :].decode()  # type: ignore[attr-defined]
    lines[begin : end + 1] = [head + text + tail]
    return "".join(lines)


def _called(node: ast.AST) -> str:
    """The name of the called function, of the library or of the module."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _changes(function: ast.FunctionDef) -> Iterator[Change]:
    everywhere = _loops_over_all(function)
    statements = [node.value for node in ast.walk(function) if isinstance(node, ast.Expr)]
    for node in ast.walk(function):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _removed(node)
        if isinstance(node, ast.Call):
            if _called(node) == "barrier_at" and node not in statements:
                yield from _counted(node)
            yield from _orders(node)
            yield from _peers(node)
            yield from _amounts(node)
            if _called(node) in ("range", "static_range") and "RANKS" in ast.unparse(node):
                last = node.args[-1]
                yield "loop", last, f"{ast.unparse(last)} - 1", "a loop over ranks ends one early"
        elif isinstance(node, ast.BinOp):
            yield from _neighbours(node, everywhere)
            yield from _chunks(node)
        elif isinstance(node, ast.Compare) and ast.unparse(node) in _MASKS:
            left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
            yield "chunk", node, f"({left} <= {right})", f"{left} < {right} includes one element too many"
            yield "chunk", node, f"({left} < {right} - 1)", f"{left} < {right} leaves out the last element"


def _loops_over_all(function: ast.FunctionDef) -> set[str]:
    """Variables of loops over all ranks: where one of them is in a rank, another start only changes the order."""
    ends = ("RANKS", "1, RANKS + 1", "1, ranks + 1", "program, RANKS")
    return {
        ast.unparse(node.target)
        for node in ast.walk(function)
        if isinstance(node, ast.For)
        and isinstance(node.iter, ast.Call)
        and ", ".join(map(ast.unparse, node.iter.args)) in ends
    }


def _removed(node: ast.Expr) -> Iterator[Change]:
    name = _called(node.value)
    if name in ("notify", "wait", "barrier_at", "fence", "debug_barrier", "atomic_add", "put"):
        yield "removed", node, "pass", f"{name} is removed"


def _counted(call: ast.Call) -> Iterator[Change]:
    words = ast.unparse(call.args[1])
    only_counts = f'(tl.atomic_add({words} + 1, 1, sem="relaxed", scope="gpu") + 1)'
    yield "removed", call, only_counts, "barrier_at only counts"


def _orders(node: ast.Call) -> Iterator[Change]:
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if not _called(node).startswith("atomic_") or ast.unparse(given["scope"]) != "'sys'":
        return
    order = ast.literal_eval(given["sem"])
    for weaker in ("relaxed", *(("acquire", "release") if order == "acq_rel" else ())):
        yield "weaker", given["sem"], f'"{weaker}"', f"{order} is {weaker}"
    yield "weaker", given["scope"], '"gpu"', "the scope is gpu"


def _peers(node: ast.Call) -> Iterator[Change]:
    place = _PEER.get(_called(node))
    if place is not None and len(node.args) > place:
        peer = node.args[place]
        other = "1" if ast.unparse(peer) == "0" else f"(({ast.unparse(peer)}) * 0)"
        yield (
            "peer",
            peer,
            other,
            f"always rank {other[0] if other == '1' else 0} instead of {ast.unparse(peer)}",
        )


def _amounts(node: ast.Call) -> Iterator[Change]:
    if _called(node) == "wait" and len(node.args) == 3:
        least = node.args[2]
        yield "amount", least, f"{ast.unparse(least)} - 1", "a wait ends one notification early"
        yield "amount", least, f"{ast.unparse(least)} + 1", "a wait ends one notification late"


def _neighbours(node: ast.BinOp, everywhere: set[str]) -> Iterator[Change]:
    if isinstance(node.op, ast.Mod) and ast.unparse(node.right) in ("RANKS", "ranks"):
        names = {each.id for each in ast.walk(node.left) if isinstance(each, ast.Name)}
        if not names & everywhere:
            yield "peer", node.left, f"({ast.unparse(node.left)} + 1)", f"the rank behind {ast.unparse(node)}"


def _chunks(node: ast.BinOp) -> Iterator[Change]:
    if isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Name) and node.right.id in _CHUNKS:
        text = ast.unparse(node)
        yield "chunk", node, f"({text} + 1)", f"{text} is one element late"
        yield "chunk", node.left, f"({ast.unparse(node.left)} + 1)", f"the chunk behind {text}"
