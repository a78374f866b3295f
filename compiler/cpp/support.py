"""The small inline functions that emitted text calls. Each text contains only those that it uses, for its own types."""

from __future__ import annotations

import re
from string import Template

from triton_porting_kit.compiler.cpp.dialects import Dialect
from triton_porting_kit.compiler.cpp.snippets import FLOAT_FUNCTIONS, OPENCL_SNIPPETS, SNIPPETS, Snippet
from triton_porting_kit.compiler.cpp.types import CppType

NAMESPACE = "tpk_support"

_AFTER_FAILURE = {"acq_rel": "acquire", "release": "relaxed"}
"""The memory order of a compare and swap that finds another value, which stores nothing."""

WIDE_ATOMICS = """\
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable"""

_LANE = re.compile(r"@(\w)\.(\w+)\[([^\]]*)\]")


class Support:
    """The types and functions that one text in a dialect uses."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._types: dict[str, str] = {}
        self._functions: dict[str, str] = {}

    @property
    def text(self) -> list[str]:
        """The definitions, each before its first use."""
        return [*self._types.values(), *self._functions.values()]

    def use(self, type: CppType) -> None:
        """Make sure that a type is defined."""
        rare = "u128" if type.element == "i128" else type.element
        if rare in self.dialect.rare_types:
            self._types.setdefault(rare, self.dialect.rare_types[rare])
        if type.lanes and type.name not in self._types:
            self._types[type.name] = self.dialect.vector_type(type)

    def function(
        self, snippet: str, *types: CppType, space: str = "", word: str = "", body: str = "", order: str = ""
    ) -> str:
        """The name of a support function for given types, whose definition is then part of the text.

        `space` is the address space of its pointers. `body` is the expression of the function that it applies, which
        `word` names. `order` is the memory order of an atomic operation.
        """
        parts = (snippet, word, order, *(type.name for type in types), space)
        name = "_".join(part for part in parts if part)
        if name not in self._functions:
            words = {"name": name, "body": body, "order": order, "space": space}
            definition = self._definition(snippet, types, words)
            self._functions[name] = definition  # after those that it calls
        return name

    def _definition(self, name: str, types: tuple[CppType, ...], words: dict[str, str]) -> str:
        for type in types:
            self.use(type)
        if name in FLOAT_FUNCTIONS:
            return self._float_function(name, types[0], words["name"])
        snippet = self._snippet(name)
        named = dict(zip(snippet.types, types, strict=True))
        if snippet.by_lane and types[0].lanes:
            return self._by_lane(name, named, words["name"], snippet.by_lane)
        values = {**words, **self._words(named, words["space"]), **self._calls(snippet, named, words)}
        if snippet.has_order:
            values |= self._order(words["order"], types[0])
        if "$choice" in snippet.text:
            values["choice"] = Template(self.dialect.choice).substitute(values)
        text = _LANE.sub(lambda found: self.dialect.lane(found[2], found[3], named[found[1]]), snippet.text)
        return Template(text).substitute(values)

    def _snippet(self, name: str) -> Snippet:
        special = OPENCL_SNIPPETS if self.dialect.spaces else {}
        return special.get(name) or SNIPPETS[name]

    def _calls(self, snippet: Snippet, named: dict[str, CppType], words: dict[str, str]) -> dict[str, str]:
        """The names of the functions that a function calls, by their names in its text."""
        found = {}
        for placeholder, call in snippet.calls.items():
            used, *letters = call.split()
            used, _, order = used.partition(":")
            called = self._snippet(used)
            found[placeholder] = self.function(
                used,
                *(_derived(named, letter) for letter in letters),
                space=words["space"] if called.in_memory else "",
                order=(order or words["order"]) if called.has_order else "",
            )
        return found

    def _order(self, order: str, type: CppType) -> dict[str, str]:
        """What an atomic operation of a memory order needs."""
        if not self.dialect.spaces:
            return {"ORDER": order.upper(), "FAILURE": _AFTER_FAILURE.get(order, order).upper()}
        if type.bits == 64:
            self._types.setdefault("wide atomics", WIDE_ATOMICS)
        fence = "" if order == "relaxed" else f"{self.function('fence')}();"
        return {"before": fence, "after": fence, "atomic": "atom_" if type.bits == 64 else "atomic_"}

    def _words(self, named: dict[str, CppType], space: str) -> dict[str, str]:
        """What a text says of its types: names, lanes, and what follows from them."""
        dialect = self.dialect
        words = {"inline": dialect.inline, "signbit": dialect.sign_bit}
        words |= {"ptr": f"{space}_ptr" if space else "ptr", "global": f"__{space or 'global'}"}
        for letter, type in named.items():
            words |= {letter: type.name, f"{letter}_lane": type.lane, f"{letter}_lanes": str(type.lanes)}
            words |= {f"{letter}_bits": str(type.bits), f"{letter}_f": "" if type.bits == 64 else "f"}
            words[f"{letter}_zero"] = dialect.zero(type)
            if dialect.spaces:
                words |= {f"{letter}_{name}": text for name, text in dialect.access(type, space).items()}
            if type.lanes:
                for kind, other in (("mask", type.mask), ("truths", type.truths)):
                    self.use(other)
                    words[f"{letter}_{kind}"] = other.name
                mask = dialect.convert("mask", type.mask)
                # Mesa 22.3 takes the sign of what it widened to 64 bits for 0, and a choice asks for the sign.
                words[f"{letter}_as_mask"] = f"{mask} != 0" if dialect.spaces and type.bits == 64 else mask
            elif letter == "T":
                words |= {"high": f"{(1 << type.bits) - 1}u", "signed_high": str((1 << type.bits - 1) - 1)}
                words["signed"] = f"i{type.bits}"
        return words

    def _float_function(self, name: str, type: CppType, own: str) -> str:
        """A function of floats that the language has: OpenCL C for vectors too, but remainders."""
        arguments, builtin, opencl = FLOAT_FUNCTIONS[name]
        names = arguments.split()
        # PoCL 3.1 says that fmod(7.25, 1.0) is 0 for double8.
        if type.lanes and not (self.dialect.spaces and name != "remainder_of"):
            return self._by_lane(name, {"T": type}, own, " ".join(f"{each}:T" for each in names))
        parameters = ", ".join(f"{type.name} {each}" for each in names)
        call = opencl if self.dialect.spaces else f"__builtin_{builtin}{'' if type.bits == 64 else 'f'}"
        return (
            f"{self.dialect.inline} {type.name} {own}({parameters}) {{ return {call}({', '.join(names)}); }}"
        )

    def _by_lane(self, name: str, named: dict[str, CppType], own: str, arguments: str) -> str:
        """A function of vectors, lane by lane. The first type is the result's."""
        listed = [argument.split(":") for argument in arguments.split()]
        scalar = self.function(name, *(type.scalar for type in named.values()))
        lane, result = self.dialect.lane, named["T"]
        values = ", ".join(lane(each, "i", named[letter]) for each, letter in listed)
        parameters = ", ".join(f"{named[letter].name} {each}" for each, letter in listed)
        return (
            f"{self.dialect.inline} {result.name} {own}({parameters}) {{\n"
            f"  {result.name} result = {self.dialect.zero(result)};\n"
            f"  for (int i = 0; i < {result.lanes}; ++i)\n"
            f"    {lane('result', 'i', result)} = {scalar}({values});\n  return result;\n}}"
        )


def _derived(named: dict[str, CppType], letter: str) -> CppType:
    """The type of a letter, or a type that follows from it: ``V``, ``V_scalar``."""
    name, _, part = letter.partition("_")
    type: CppType = getattr(named[name], part) if part else named[name]
    return type
