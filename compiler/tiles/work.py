"""Counts what vector code executes, for the chip's time: calls of ``tpk_npu_work`` and ``tpk_npu_works`` in the loops.

Loops are written for vectors of the host's size, and the chip's instructions take more. The work of a block whose
widest vector has w bytes is therefore w / (the vector unit's bytes) instructions for each operation; of the scalars
beside them, too, since the chip's loop would have as many fewer iterations. Loads and stores count their own bytes.
Work is told before the next command, so
that it lies between the right ones, and loops without commands are told as a whole. An expanded function of
elements counts as one special instruction; a product that may be contracted with a sum, as one multiplication with it.
What counts as nothing: a loop's own number, and an address that is linear in it, which grows by the same number in each
iteration; a scalar that is repeated for a vector instruction, which takes scalars, too.

The loops are counted as the text that `LoopBuilder` writes, an operation on each line: parsing and printing them takes
longer than counting.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from triton_porting_kit.abi.npu import INTRINSICS, KINDS, PREFIX, WORK_PARTS
from triton_porting_kit.chips.description import ChipDescription

_ONE, _SEVERAL = f"{PREFIX}work", f"{PREFIX}works"
_COMMAND = re.compile(rf"llvm\.call @{PREFIX}(?!reads\b|writes\b)")
"""A call of an intrinsic that takes time: the announcements do not."""
_NAME = re.compile(r'^ *(?:%\w+(?::\d+)? = )?"?([\w.]*)', re.MULTILINE)
"""The name of the operation that begins in a line, for every line: nothing where none does."""
_VALUE = re.compile(r"%\w+")
_CONSTANT = re.compile(r"^ *(%\w+) = arith\.constant (-?\d+) : \w+$")
_INDICES = re.compile(r"^ *(%\w+) = arith\.(addi|muli) (%\w+), (%\w+) : i64$")
_OWN_NUMBER = re.compile(r"scf\.for (%\w+) = ")
_CONTRACTIBLE = re.compile(r"^ *(%\w+) = arith\.mulf .*fastmath<.*contract")
_FORMS = {
    "arith.constant": _CONSTANT,
    "arith.addi": _INDICES,
    "arith.muli": _INDICES,
    "scf.for": _OWN_NUMBER,
    "arith.mulf": _CONTRACTIBLE,
}
"""By the name of an operation, the form in which it matters for others."""
_LOOP = re.compile(r"scf\.for %\w+ = (%\w+(?:#\d+)?) to (%\w+(?:#\d+)?) step (%\w+(?:#\d+)?) ")
_LOOP_TYPE = re.compile(r" : (\w+) \{$")
_VECTOR = re.compile(r"vector<(\d+)x([^\d>]+)(\d*)>")
_LANES = re.compile(r"\[([\d, ]*)\]")
_FUNCTION = re.compile(r"function:\d+")
_FREE = frozenset((
    "arith.constant", "llvm.mlir.constant", "llvm.getelementptr", "llvm.mlir.addressof", "llvm.mlir.poison",
    "llvm.mlir.zero", "llvm.ptrtoint", "llvm.inttoptr", "llvm.alloca", "arith.bitcast", "vector.bitcast",
    "scf.yield", "scf.condition", "llvm.return",
))  # fmt: skip
_OF_KINDS = {
    "multiply": ("arith.mulf", "arith.muli", "math.fma", "arith.mulsi_extended", "arith.mului_extended"),
    "divide": (
        "arith.divf", "arith.remf", "math.sqrt", "math.rsqrt", "arith.divsi", "arith.divui", "arith.remsi",
        "arith.remui",
    ),
    "convert": (
        "arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.trunci", "arith.sitofp", "arith.uitofp",
        "arith.fptosi", "arith.fptoui",
    ),
    "load": (
        "llvm.load", "vector.load", "vector.maskedload", "llvm.intr.masked.load", "vector.gather",
        "llvm.intr.masked.gather",
    ),
    "store": (
        "llvm.store", "vector.store", "vector.maskedstore", "llvm.intr.masked.store", "vector.scatter",
        "llvm.intr.masked.scatter",
    ),
    "rearrange": (
        "vector.shuffle", "vector.extract", "vector.insert", "vector.broadcast", "vector.interleave",
        "vector.reduction", "vector.transpose", "vector.from_elements",
    ),
}  # fmt: skip
_KINDS = {name: kind for kind, names in _OF_KINDS.items() for name in names}
"""The kinds of vector operations; all others are simple, or special if they are functions."""

Work = Counter[str]
"""Operations by kind; or bytes of them: as many as the vector unit's are one instruction."""


def count_work(text: str, chip: ChipDescription) -> str:
    """The text of a module of loops, with the calls."""
    return _Counting(text, chip.vector.bytes).run()


@dataclass(slots=True)
class _Block:
    """The operations of a block, and the line before which its work is told at the latest: that of its terminator."""

    operations: list[_Operation] = field(default_factory=list)
    end: int = 0


@dataclass(slots=True)
class _Operation:
    """An operation that begins in a line, and its regions. `tells`: whether a command is in them, or it is one."""

    line: int
    name: str
    tells: bool
    regions: list[_Block] = field(default_factory=list)


_TERMINATORS = ("scf.yield", "scf.condition", "llvm.return")


class _Counting:
    """Counts the work of a text."""

    def __init__(self, text: str, width: int) -> None:
        self._width = width
        self._lines = text.splitlines()
        self._names = _NAME.findall(text)
        self._mentions = Counter(_VALUE.findall(text))
        found: dict[re.Pattern[str], list[re.Match[str]]] = {form: [] for form in _FORMS.values()}
        addresses = []
        for name, line in zip(self._names, self._lines, strict=False):  # the text may end with an empty line
            if name == "llvm.getelementptr":
                addresses.append(line.partition("=")[2])
            elif (form := _FORMS.get(name)) is not None and (match := form.search(line)) is not None:
                found[form].append(match)
        self._numbers = {match[1]: int(match[2]) for match in found[_CONSTANT]}
        self._offsets = _offsets(
            [match.groups() for match in found[_INDICES]],
            {match[1] for match in found[_OWN_NUMBER]},
            Counter(_VALUE.findall(" ".join(addresses))),
            self._mentions,
            self._numbers,
        )
        self._contractible = {match[1] for match in found[_CONTRACTIBLE]}
        self._inserted: dict[int, list[str]] = {}
        self._tables: dict[tuple[int, ...], str] = {}
        self._called: set[str] = set()
        self._next = 0

    def run(self) -> str:
        """The text with the calls."""
        module = self._read(0)[0]
        for function in module.operations[0].regions[0].operations:
            for block in function.regions:
                self._block(block)
        head = [
            f"  llvm.func @{name}({', '.join(INTRINSICS[name].mlir[0])})" for name in sorted(self._called)
        ]
        head += [
            f"  llvm.mlir.global internal constant @{symbol}(dense<{list(table)}> : tensor<{len(table)}xi64>) : "
            f"!llvm.array<{len(table)} x i64>"
            for table, symbol in self._tables.items()
        ]
        lines, result, done = self._lines, [], 0
        # Into the module, the head stands before what is inserted there.
        inserted = [(module.operations[0].line + 1, head), *sorted(self._inserted.items())]
        for number, texts in sorted(inserted, key=lambda each: each[0]):
            result += lines[done:number]
            result += texts
            done = number
        return "\n".join([*result, *lines[done:]]) + "\n"

    # --- the text as blocks ----------------------------------------------------------------------

    def _read(self, line: int) -> tuple[_Block, int]:
        """The block that begins at a line, and the line that closes it: that of a brace, or behind the last one."""
        block, lines, names = _Block(), self._lines, self._names
        while line < len(lines):
            text, name = lines[line], names[line]
            if not name:
                first = text.lstrip()[:1]
                if first == "}":
                    break
                if first in ("/", "^", ""):  # a comment, or the arguments of a block
                    line += 1
                    continue
            operation = _Operation(line, name, name == "llvm.call" and _COMMAND.search(text) is not None)
            block.operations.append(operation)
            while text.endswith("{"):
                inner, line = self._read(line + 1)
                operation.regions.append(inner)
                operation.tells = operation.tells or any(each.tells for each in inner.operations)
                text = lines[line]
            line += 1
        last = block.operations[-1] if block.operations else None
        block.end = last.line if last is not None and last.name in _TERMINATORS else line
        return block, line

    # --- counting --------------------------------------------------------------------------------

    def _block(self, block: _Block) -> Work:
        """Count a block. Returns the bytes of one execution that no call tells yet."""
        own: Work = Counter()
        widest = 0
        pending: Work = Counter()
        tells = any(operation.tells for operation in block.operations)

        def settle() -> None:
            scale = min(widest, self._width) if widest else self._width
            for kind, count in own.items():
                pending[kind] += count * scale
            own.clear()

        functions: set[str] = set()
        for operation in block.operations:
            if operation.tells:
                settle()
                self._tell(operation.line, pending)
                pending.clear()
            if operation.regions:
                pending.update(self._nested(operation))
                continue
            if operation.name in _FREE:
                continue
            text = self._lines[operation.line]
            kind, width = self._kind(operation.name, text)
            function = _FUNCTION.search(text) if width and "function:" in text else None
            if function is not None:
                kind = "" if function[0] in functions else "special"
                functions.add(function[0])
            if kind in ("load", "store") and width:
                pending[kind] += min(width, self._width)
            elif operation.name == "vector.broadcast" and text.count("vector<") == 1:  # of a scalar
                widest = max(widest, width)
            elif kind:
                own[kind] += 1
                widest = max(widest, width)
        settle()
        if tells:
            self._tell(block.end, pending)
            pending.clear()
        return pending

    def _nested(self, operation: _Operation) -> Mapping[str, int]:
        """The work of an operation's regions that is told outside of them."""
        found = [(block, self._block(block)) for block in operation.regions]
        if operation.name != "scf.for":
            for block, work in found:
                self._tell(block.end, work)
            return {}
        ((_, work),) = found
        header = self._lines[operation.line]
        bounds = _LOOP.search(header)
        assert bounds is not None
        start, stop, step = (self._numbers.get(value) for value in bounds.groups())
        if start is not None and stop is not None and step:
            iterations = max(0, -(-(stop - start) // step))
            return {kind: count * iterations for kind, count in work.items()}
        kind = _LOOP_TYPE.search(header)
        assert kind is not None
        self._tell_loop(operation.line, list(bounds.groups()), kind[1], work)
        return {}

    def _kind(self, name: str, text: str) -> tuple[str, int]:
        """The kind of an operation, empty if it is free, and the bytes of its vectors; 0 for scalars."""
        if name in ("arith.addi", "arith.muli"):
            if self._is_offset(text):
                return "", 0
        elif name in ("arith.addf", "arith.subf"):
            if self._is_contracted(text):
                return "", 0
        elif name == "llvm.call" and f"@{PREFIX}" in text:
            return "", 0  # the chip counts what issuing a command takes
        width = _bytes(name, text) if "vector<" in text else 0
        if not width:
            return "scalar", 0
        if name == "llvm.call" or (name.startswith("math.") and name not in _KINDS and name != "math.absf"):
            return "special", width
        return _KINDS.get(name, "simple"), width

    def _is_offset(self, text: str) -> bool:
        """Whether a sum or product computes what addresses take as it is."""
        result = _VALUE.search(text)
        return result is not None and result[0] in self._offsets

    def _is_contracted(self, text: str) -> bool:
        """Whether a sum is computed with the product that it adds or subtracts."""
        if "fastmath<" not in text or "contract" not in text:
            return False
        operands = _VALUE.findall(text)[1:]
        return any(value in self._contractible and self._mentions[value] == 2 for value in operands)

    # --- calls -----------------------------------------------------------------------------------

    def _insert(self, line: int, *texts: str) -> None:
        following = self._lines[line]
        indent = len(following) - len(following.lstrip()) + (2 if following.lstrip().startswith("}") else 0)
        self._inserted.setdefault(line, []).extend(" " * indent + text for text in texts)

    def _value(self, line: int, text: str) -> str:
        """A new value before a line."""
        self._next += 1
        self._insert(line, f"%work{self._next} = {text}")
        return f"%work{self._next}"

    def _call(self, line: int, routine: str, *arguments: str) -> None:
        self._called.add(routine)
        types = ", ".join(INTRINSICS[routine].mlir[0])
        self._insert(line, f"llvm.call @{routine}({', '.join(arguments)}) : ({types}) -> ()")

    def _tell(self, line: int, work: Mapping[str, int]) -> None:
        """Tell work before a line."""
        counts = {kind: -(-count // self._width) for kind, count in work.items() if count}
        if len(counts) > 1:
            parts = {kind: count * WORK_PARTS for kind, count in counts.items()}
            self._call_several(line, parts, self._value(line, "arith.constant 1 : i64"))
            return
        for kind, count in counts.items():
            number = self._value(line, f"arith.constant {KINDS[kind]} : i32")
            self._call(line, _ONE, number, self._value(line, f"arith.constant {count} : i64"))

    def _tell_loop(self, line: int, bounds: list[str], kind: str, work: Mapping[str, int]) -> None:
        """Tell the work of a loop before it, by the number of its iterations."""
        if not any(work.values()):
            return
        if kind != "i64":
            bounds = [self._value(line, f"arith.extsi {value} : {kind} to i64") for value in bounds]
        start, stop, step = bounds
        length = self._value(line, f"arith.subi {stop}, {start} : i64")
        zero, one = (self._value(line, f"arith.constant {number} : i64") for number in (0, 1))
        length = self._value(line, f"arith.maxsi {length}, {zero} : i64")
        rest = self._value(line, f"arith.subi {step}, {one} : i64")
        rounded = self._value(line, f"arith.addi {length}, {rest} : i64")
        iterations = self._value(line, f"arith.divui {rounded}, {step} : i64")
        parts = {kind: -(-count * WORK_PARTS // self._width) for kind, count in work.items()}
        self._call_several(line, parts, iterations)

    def _call_several(self, line: int, parts: Mapping[str, int], iterations: str) -> None:
        table = tuple(parts.get(kind, 0) for kind in KINDS)
        symbol = self._tables.setdefault(table, f"tpk_work_{len(self._tables)}")
        self._call(
            line, _SEVERAL, self._value(line, f"llvm.mlir.addressof @{symbol} : !llvm.ptr"), iterations
        )


def _offsets(
    found: list[tuple[str, ...]],
    own_numbers: set[str],
    in_addresses: Counter[str],
    mentions: Counter[str],
    numbers: Mapping[str, int],
) -> set[str]:
    """The indices that only addresses are computed from, and that are a value plus a number, or a loop's own number by
    known factors. `found` has sums and products: the result, the operation, the operands.
    """
    uses = Counter(in_addresses)
    alone = set()
    for result, _, *operands in reversed(found):  # what uses a value stands behind it
        if mentions[result] - 1 == uses[result]:
            alone.add(result)
            uses.update(operands)
    linear = set(own_numbers)
    free = set()
    for result, name, *operands in found:
        if not any(value in numbers for value in operands):
            continue
        grows = any(value in linear for value in operands)
        if grows:
            linear.add(result)
        if result in alone and (grows or name == "addi"):
            free.add(result)
    return free


_WIDTHS: dict[str, int] = {}


def _bytes(name: str, text: str) -> int:
    """Bytes of the widest vector that an operation uses or gives; 0 if there is none."""
    types = text[text.find(" : ") :]
    known = _WIDTHS.get(types)
    if known is None:
        found = [(int(lanes), max(8, int(bits or 64))) for lanes, _, bits in _VECTOR.findall(types)]
        known = _WIDTHS[types] = max((lanes * bits // 8 for lanes, bits in found), default=0)
    if name == "vector.shuffle" and known:  # its result has as many lanes as it lists
        *_, bits = _VECTOR.findall(types)[0]
        listed = _LANES.search(text)
        assert listed is not None
        known = max(known, (listed[1].count(",") + 1) * max(8, int(bits or 64)) // 8)
    return known
