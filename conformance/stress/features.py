"""Features of programs about addresses that compilers may get wrong, by name; and the choice of few programs that cover
all pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

from triton_porting_kit.conformance.stress.happenings import happenings
from triton_porting_kit.conformance.stress.operations.base import INTEGERS, UNSIGNED
from triton_porting_kit.conformance.stress.operations.elementwise import FUNCTIONS
from triton_porting_kit.conformance.stress.program import (
    BETWEEN,
    Branch,
    Fetch,
    Let,
    Loop,
    Program,
    Put,
    Statement,
    Store,
    given_twice,
    uses,
    walk,
)
from triton_porting_kit.conformance.stress.typing import types_of

Marks = frozenset[str]
"""The operations by which a value was computed, directly or indirectly."""
_OWN = {
    "&": "an and",
    "plain %": "a remainder by a number of run time",
    "plain //": "a quotient by a number of run time",
    "^": "an exclusive or",
    "|": "an or",
    "~": "a complement",
    "tl.where": "a choice",
    "advance": "a pointer moved by a number of run time",
}
"""The mark that each operation adds."""
_BY_LITERAL = {
    "%": "a remainder by a literal",
    "//": "a quotient by a literal",
    "^": "an exclusive or",
    "|": "an or",
    "&": "an and",
}
_STEPS = ("a literal stride above 1", "a literal stride below 0")
_REARRANGED = {
    "tl.reshape": "a pointer that was reshaped",
    "tl.trans": "a pointer that was permuted",
    "tl.permute": "a pointer that was permuted",
    "tl.expand_dims": "a pointer that was given a dimension",
    "[:, None]": "a pointer that was given a dimension",
    "tl.broadcast_to": "a pointer that was broadcast",
    "tl.join": "a pointer that was joined",
    "tl.split": "a pointer that was split",
    "tl.where": "a pointer that lanes choose",
}
"""The marks that operations on pointers add."""
_STRIDE, _START, _END = "a stride of run time", "a start of run time", "an end of run time"
_ALL = "a stride, a start and an end of run time"
_ONE_TERM, _BOTH_TERMS = "a sum of which one term wraps around", "a sum of which both terms wrap around"
_DIFFERENCE = "a difference of tiles"
_STRIDES = "a difference of large strides"
_LONG = 1 << 32
_DIVISIONS = ("plain %", "plain //")
_NUMBERS = {-(2**31): "-2**31", 2**31 - 1: "2**31 - 1", 0: "0", -1: "-1", 1: "1"}
_THROUGH_LOADS = frozenset(
    {
        *_OWN.values(),
        *_BY_LITERAL.values(),
        *(f"the number {n} of run time" for n in _NUMBERS.values()),
        *("a number beyond 32 bits of run time", "narrow unsigned arithmetic", "loaded data", "a counter"),
    }
) - {"an and"}
"""Marks of an address that also apply to the value loaded from it."""
_DEAR = frozenset(operation.name for operation in FUNCTIONS) | frozenset(_DIVISIONS)
"""Operations that take long."""
MANY = 8
"""The number of such operations that makes a value expensive."""
UNROLLED = 50
"""The number of iterations from which an unrolled loop counts as long."""


def features(program: Program) -> frozenset[str]:
    """The features of a program; empty if it is not about addresses."""
    return frozenset(_Features(program).found) if program.regions else frozenset()


class _Features:
    """Walks over a program and tracks how values are computed and used."""

    def __init__(self, program: Program) -> None:
        self.types = types_of(program)
        happened = happenings(program)
        self.happened, self.wrapped = happened.marks, happened.wrapped
        self.known: set[int] = set()
        """Scalars that are run-time numbers or computed from them."""
        self.large: dict[int, frozenset[int]] = {}
        """The strides beyond 32 bits from which a value was computed."""
        self.arrays: dict[int, frozenset[tuple[int, bool]]] = {}
        """The regions that pointers point into, and which of their two arguments the pointers come from."""
        self.read: set[tuple[int, bool]] = set()
        self.written: set[tuple[int, bool]] = set()
        self.marks: dict[int, Marks] = {}
        self.loads: dict[int, int] = {}
        """The number of chained loads that led to a value."""
        self.cost: dict[int, int] = {}
        """The number of expensive operations that led to a value."""
        self.roles: dict[int, set[str]] = {}
        self.found: set[str] = set()
        self.sources: dict[int, frozenset[int]] = {}
        self.repeated: set[int] = set()
        """Tiles whose elements are all the same number."""
        self._body(program.body, "")
        self.found |= happened.found
        if any((region, not second) in self.written for region, second in self.read):
            self.found.add("an array loaded by one argument and stored by the other")
        self.found |= {"an array given twice"} if given_twice(program) else set()
        self.found |= {f"arrays at the {program.place} of pages"} if program.place != "zones" else set()
        self.found |= {"several programs"} if program.programs > 1 else set()
        uses_of = {region.use for region in program.regions}
        self.found |= {"an atomic operation"} if uses_of - {"load", "store"} else set()
        self.found |= {f"a tile of {name}" for name in self._shapes()}
        self.found |= {"one value in an address, in a mask and stored"} if any(
            len(roles) == 3 for roles in self.roles.values()
        ) else set()  # fmt: skip

    def _shapes(self) -> Iterator[str]:
        for statement in self.pointers:
            shape = self.types[statement].shape
            if shape and set(shape) == {1}:
                yield "one element"
            elif len(shape) == 2 and 1 in shape:
                yield "one row" if shape[0] == 1 else "one column"

    @property
    def pointers(self) -> list[int]:
        return [v for v, t in self.types.items() if t.is_pointer]

    def _body(self, body: tuple[Statement, ...], where: str) -> None:
        for statement in body:
            match statement:
                case Let():
                    self._let(statement)
                    self._computed(statement, where)
                case Fetch():
                    self._access(statement, where)
                    marks = (self._of(*uses(statement)) & _THROUGH_LOADS) | {"loaded data"}
                    self.marks[statement.out] = marks
                    self.loads[statement.out] = 1 + max(self.loads.get(v, 0) for v in uses(statement))
                    if self.loads[statement.out] > 2:
                        self.found.add("three loads of which each depends on the one before")
                    self.sources[statement.out] = frozenset({statement.out})
                case Put():
                    self._access(statement, where)
                    self._role(statement.value, "stored")
                case Store():
                    self._role(statement.value, "stored")
                case Loop():
                    self._loop(statement)
                case Branch():
                    self.found.add("an if")
                    self._body(statement.then, "an if")
                    self._body(statement.other, "an if")
                    for r in statement.results:
                        self._take(r.out, r.then, r.other)
                        if self.types[r.out].is_pointer:
                            self.marks[r.out] |= {"a pointer that an if chooses"}

    def _let(self, let: Let) -> None:
        own = self._own(let)
        if let.op == "literal" and let.attrs["symbol"] in _BY_LITERAL:
            own.add(_BY_LITERAL[let.attrs["symbol"]])
        if let.op == "argument":
            own.update(self._argument(let.attrs["value"]))
        if any(self.types[v].kind_name in UNSIGNED[:2] for v in let.outs):
            own.add("narrow unsigned arithmetic")
        for out in let.outs:
            self.marks[out] = self._of(*let.args) | own
            self.loads[out] = max((self.loads.get(v, 0) for v in let.args), default=0)
            found = (
                frozenset().union(*(self.sources.get(v, {v}) for v in let.args))
                if let.args
                else frozenset({out})
            )
            self.sources[out] = frozenset({out}) if self.types[out].kind_name != "i1" else found | {out}
            if let.op == "address":
                self._role(let.args[0], "address")
                self.arrays[out] = frozenset({(let.attrs["region"], bool(let.attrs["second"]))})
            elif self.types[out].is_pointer:
                self.arrays[out] = frozenset().union(*(self.arrays.get(v, frozenset()) for v in let.args))

    def _own(self, let: Let) -> set[str]:
        """The marks that an operation adds to those of its operands."""
        own = {_OWN[let.op]} if let.op in _OWN else set()
        if let.op == "&" and self.types[let.outs[0]].kind_name == "i1":
            own = set()
        own |= self.happened.get(let.outs[0], set())
        types = [self.types[v] for v in (*let.args, *let.outs)]
        if types[-1].is_pointer and let.op in _REARRANGED:
            own = {_REARRANGED[let.op]}
        if any(t.kind_name in ("u32", "u64") for t in types):
            own.add("wide unsigned arithmetic")
        symbol = str(let.attrs["symbol"]) if let.op == "literal" else let.op
        if (
            let.args and all(not t.shape for t in types) and self.known.issuperset(let.args)
        ) or let.op == "argument":
            self.known.update(let.outs)
        elif len(let.args) == 2 and len(self.known.intersection(let.args)) == 1 and types[-1].shape:
            own |= {_STRIDE} if symbol == "*" else {_START} if symbol in ("+", "-") else set()
            if _DIFFERENCE in self._of(*let.args) and "a sum that leaves 32 bits" in own:
                own.add("a difference of tiles that a number of run time takes out of 32 bits")
            if symbol.startswith("compare"):
                marks = self._of(*let.args)
                own |= {_END, *({_ALL} if {_STRIDE, _START} <= marks else ())}
                own |= {
                    f"{stride}, a start and an end of run time"
                    for stride in _STEPS
                    if {stride, _START} <= marks
                }
        if let.op == "literal" and symbol == "*" and types[-1].shape:
            literal = let.attrs["literal"]
            own |= {_STEPS[0]} if literal > 1 else {_STEPS[1]} if literal < 0 else set()
        if (
            symbol == "-"
            and len(types) == 3
            and all(t.shape for t in types)
            and types[-1].kind_name in INTEGERS
        ):
            own.add(_DIFFERENCE)
        own |= self._wrapping(let, symbol)
        strides = frozenset().union(*(self.large.get(v, frozenset()) for v in let.args))
        if let.op == "argument" and abs(let.attrs["value"]) >= _LONG:
            strides = frozenset(let.outs)
        self.large.update(dict.fromkeys(let.outs, strides))
        own |= {"a stride beyond 32 bits"} if symbol == "*" and strides.intersection(let.args) else set()
        own |= {_STRIDES} if symbol in ("+", "-", "advance") and len(strides) > 1 else set()
        return own

    def _wrapping(self, let: Let, symbol: str) -> set[str]:
        """The number of terms of a sum that wrap around."""
        terms = [v in self.wrapped for v in let.args]
        if symbol in ("+", "-") and len(terms) == 2 and all(self.types[v].shape for v in let.args):
            return {_BOTH_TERMS} if all(terms) else {_ONE_TERM} if any(terms) else set()
        if any(terms) and symbol in ("*", "cast", "+", "-", "[:, None]", "tl.expand_dims"):
            self.wrapped.update(let.outs)
        return set()

    def _computed(self, let: Let, where: str) -> None:
        if let.op in _DIVISIONS and where:
            self.found.add(f"a division in {where}")
        if let.op == "tl.dot" and where:
            self.found.add(f"a product of matrices in {where}")
        if let.op == "tl.full" and self.types[let.outs[0]].rank:
            self.repeated.update(let.outs)
        if let.op == "address" and let.args[0] in self.repeated:
            self.found.add("one element for many lanes")
        cost = max((self.cost.get(v, 0) for v in let.args), default=0) + (let.op in _DEAR)
        self.cost.update(dict.fromkeys(let.outs, cost))
        if cost >= MANY:
            self.found.add("a value of which much is computed")

    def _argument(self, value: int | float) -> Iterator[str]:
        if value in _NUMBERS:
            yield f"the number {_NUMBERS[int(value)]} of run time"
        if abs(value) >= _LONG:
            yield "a number beyond 32 bits of run time"

    def _loop(self, loop: Loop) -> None:
        name = "a while" if loop.style in ("while", "halving") else "a for"
        self.found.add(name)
        self.found |= {*self._counting(loop)} if loop.style == BETWEEN else set()
        self.found |= {"a loop without iterations"} if loop.iterations == 0 else set()
        self.found |= {"a loop that is unrolled often"} if loop.iterations >= UNROLLED else set()
        self.marks[loop.index] = frozenset({"a counter"})
        for c in loop.carried:
            self._take(c.param, c.initial)
        self._body(loop.body, name)
        params = {c.param for c in loop.carried}
        for c in loop.carried:
            if self.types[c.param].is_pointer and c.next in params - {c.param}:
                self.found.add("pointers exchanged by a loop")
            if self.types[c.param].is_pointer and c.next != c.param:
                self.found.add("a pointer carried by a loop")
                step = [
                    s.attrs["step"]
                    for s in walk(loop.body)
                    if isinstance(s, Let) and c.next in s.outs and s.op == "step"
                ]
                self.found |= {f"a pointer carried {'back' if n < 0 else 'forward'}" for n in step}
            elif self.types[c.param].rank and c.next != c.param:
                self.found.add("a tile carried by a loop")
            self._take(c.param, c.param, c.next)

    def _counting(self, loop: Loop) -> Iterator[str]:
        yield "a for between numbers of run time"
        if loop.step is not None:
            yield "a for in steps of run time"
        if loop.stride < 0:
            yield "a for that counts down"
        if self.types[loop.index].kind_name == "i64":
            yield "a for that counts in 64 bits"

    def _access(self, access: Fetch | Put, where: str) -> None:
        what = "load" if isinstance(access, Fetch) else "store"
        (self.written if isinstance(access, Put) else self.read).update(self.arrays.get(access.pointer, ()))
        if isinstance(access, Put):
            self.found.add("a store to computed places")
        if where:
            self.found.add(f"a {what} in {where}")
        for mark in self._of(access.pointer):
            self.found.add(f"an address by {mark}" if not mark.startswith("the number") else mark)
        if access.mask is None:
            return
        for mark in self._of(access.mask):
            self.found.add(f"a mask by {mark}" if not mark.startswith("the number") else mark)
        for source in self.sources.get(access.mask, ()):
            self._role(source, "mask")

    def _take(self, out: int, *values: int) -> None:
        self.marks[out] = self._of(*values)
        self.loads[out] = max(self.loads.get(v, 0) for v in values)
        self.sources[out] = frozenset({out})
        self.arrays[out] = frozenset().union(*(self.arrays.get(v, frozenset()) for v in values))

    def _role(self, value: int, role: str) -> None:
        self.roles.setdefault(value, set()).add(role)

    def _of(self, *values: int) -> Marks:
        return frozenset().union(*(self.marks.get(v, frozenset()) for v in values))


Features = Callable[[Program], frozenset[str]]


def pairs_of(programs: Iterable[Program], features: Features = features) -> Counter[tuple[str, str]]:
    """The number of programs in which each pair of features occurs."""
    return Counter(pair for program in programs for pair in combinations(sorted(features(program)), 2))


def covering(
    programs: Iterable[Program], least: int = 5, times: int = 1, features: Features = features
) -> list[Program]:
    """A small set of programs. It contains, at least `times` each, every pair of features that `least` or more programs
    have."""
    given = list(programs)
    counts = pairs_of(given, features)
    missing = {pair: times for pair, count in counts.items() if count >= max(least, times)}
    own = [(p, missing.keys() & combinations(sorted(features(p)), 2)) for p in given]
    chosen = []
    while missing:
        program, pairs = max(own, key=lambda item: sum(pair in missing for pair in item[1]))
        chosen.append(program)
        own.remove((program, pairs))
        for pair in pairs & missing.keys():
            missing[pair] -= 1
            if not missing[pair]:
                del missing[pair]
    return sorted(chosen, key=lambda p: p.seed)
