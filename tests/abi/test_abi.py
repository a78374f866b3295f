"""What compiler, launcher and driver agree on is written once: the C++ of it, the documents, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from triton_porting_kit.abi import block, header, kernel, launching
from triton_porting_kit.abi.intervals import Op
from triton_porting_kit.abi.launching import LAST_OF_LAUNCH, LAUNCH_ERRORS, Code
from triton_porting_kit.errors import PortingKitError
from triton_porting_kit.launcher.types import Kind

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "compiler", "launcher", "driver", "backends", "kernels", "conformance", "backend_template")
ABI = ROOT / "src" / "triton_porting_kit" / "abi"


def sources(*suffixes: str) -> dict[str, str]:
    """The texts of the kit's files of these kinds, but for those of the ABI itself."""
    return {
        str(path.relative_to(ROOT)): path.read_text()
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.name.endswith(suffixes) and ABI not in path.parents
    }


CODE = (".py", ".cpp", ".h", ".pyi", ".j2", ".jinja")


def test_the_header_is_what_the_definitions_say() -> None:
    assert header.HEADER.read_text() == header.header(), "run `python -m triton_porting_kit.abi.header`"


@pytest.mark.parametrize(
    "word", [kernel.VERSION_SYMBOL, kernel.SCRATCH, kernel.POINTERS, kernel.ARGUMENT_BYTES, kernel.PROGRAM]
)
def test_symbols_are_spelled_nowhere_else(word: str) -> None:
    written = rf"(?<!\w){word}\b" if word.startswith("__") else word
    found = {path for path, text in sources(*CODE).items() if re.search(rf'["}}]{written}"', text)}
    assert found == set()


def test_codes_are_called_like_their_errors() -> None:
    assert [int(code) for code in Code] == [*range(len(Code))]
    for code in Code:
        if code:
            assert issubclass(code.error, PortingKitError)
            assert code.error.__name__ == code.name
    assert [*LAUNCH_ERRORS] == [*range(1, LAST_OF_LAUNCH + 1)]


def test_no_other_list_of_errors_has_numbers() -> None:
    """The virtual NPU's statuses are a runtime's own, as any vendor has them, which devices translate."""
    pattern = re.compile(r"enum[^;]*?\{[^}]*\b(OutOfMemory|InvalidPointer|DeviceLost)\b[^}]*\}", re.DOTALL)
    found = {path for path, text in sources(".h", ".cpp", ".jinja", ".j2").items() if pattern.search(text)}
    assert found == set()


def test_the_virtual_npu_s_statuses_are_translated_by_name() -> None:
    """Its numbers are its own: the template's device gives each status the code that means the same."""
    template = ROOT / "backend_template" / "template" / "native" / "errors.cpp"
    cases = re.findall(r"case VNPU_(\w+):\s*return Kind::(\w+);", template.read_text())
    text = (ROOT / "driver" / "virtual" / "include" / "vnpu.h").read_text()
    statuses = re.findall(r"^  VNPU_(\w+) = \d+", text, re.MULTILINE)
    assert ["OK", *(status for status, _ in cases)] == statuses
    words = {"LAUNCH_FAILED": "LaunchError", "COPY_FAILED": "CopyError"}
    for status, code in cases:
        assert code == words.get(status, "".join(word.title() for word in status.split("_")))
        assert code in Code.__members__


@pytest.mark.parametrize(
    ("path", "name", "members"),
    [
        ("launcher/native/packed.cpp", "Kind", [kind.name for kind in Kind]),
        ("launcher/native/guard.h", "Op", [op.name for op in Op]),
    ],
)
def test_numbers_that_python_gives_native_code_are_the_same(path: str, name: str, members: list[str]) -> None:
    found = re.search(rf"enum class {name}\b[^{{]*\{{([^}}]*)\}}", (ROOT / path).read_text())
    assert found is not None
    listed = re.findall(r"(\w+)(?: = \d+)?,?", re.sub(r"//.*", "", found[1]))
    assert [word.replace("_", "").upper() for word in listed] == [m.replace("_", "") for m in members]


def test_the_contract_lists_the_codes() -> None:
    text = (ROOT / "docs" / "contracts.md").read_text()
    listed = re.findall(r"(\d+)\s+`([A-Z]\w+)`", text[text.index("A native routine is") :].split("\n\n")[0])
    assert [(int(number), name) for number, name in listed] == [
        (code, error.__name__) for code, error in LAUNCH_ERRORS.items()
    ]


def test_the_contract_has_the_routine() -> None:
    text = (ROOT / "docs" / "contracts.md").read_text().replace("\n", " ")
    found = re.search(r"`int32_t launch\(([^`]*)\)`", text)
    assert found is not None
    kinds = [re.sub(r"\w+$", "", each.strip()).strip() for each in found[1].split(",")]
    assert kinds == [kind.replace("std::", "") for _, kind in launching.PARAMETERS]


def test_the_architecture_has_the_kernel() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    found = re.search(r"`int32_t NAME\(([^`]*)\)`", text)
    assert found is not None
    kinds = [re.sub(r"\w+$", "", each.strip()).strip() for each in found[1].split(",")]
    assert kinds == [kind.replace("std::", "") for _, kind in kernel.PARAMETERS]
    assert f"| `int32_t {kernel.VERSION_SYMBOL}` | {kernel.VERSION} |" in text
    for suffix in (kernel.SCRATCH, kernel.POINTERS, kernel.ARGUMENT_BYTES, kernel.PROGRAM):
        assert f"NAME{suffix}" in text


@pytest.mark.parametrize(
    ("sizes", "expected", "end"),
    [((), [], 0), ((8, 4, 8), [0, 8, 16], 24), ((1, 8, 2, 1), [0, 8, 16, 18], 19), ((4,), [0], 4)],
)
def test_each_parameter_lies_at_a_multiple_of_its_size(
    sizes: tuple[int, ...], expected: list[int], end: int
) -> None:
    assert block.offsets(sizes) == (expected, end)
    assert block.round_up(end, block.ALIGNMENT) % block.ALIGNMENT == 0
