"""`tpk status` in repositories of the shape opencl, whose parts are the kit's until the vendor replaces one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from triton_porting_kit.driver import HOOKS
from triton_porting_kit.porting.names import names_of
from triton_porting_kit.porting.new import Shape, make
from triton_porting_kit.porting.parts import Part, State, parts_of
from triton_porting_kit.porting.sources import Repository

PACKAGE = "src/triton_chip_7"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("made")
    names = names_of("chip-7", {})
    return make(names, vendor="Chips", chip="Seven", into=into, own_repository=False, shape=Shape.OPENCL).path


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A repository as `tpk new` made it, to be edited."""
    return shutil.copytree(made, tmp_path / made.name)


def parts(root: Path) -> dict[str, Part]:
    return {part.name: part for part in parts_of(Repository(root), root / "no-reports")}


def own(root: Path) -> dict[str, str]:
    """Where the vendor's parts are."""
    found = parts(root)
    return {name: text_at(root, part) for name, part in found.items() if part.state is State.OWN}


def text_at(root: Path, part: Part) -> str:
    assert part.place is not None
    return (root / part.place.file).read_text().splitlines()[part.place.line - 1]


def append(file: Path, text: str) -> None:
    file.write_text(file.read_text() + text)


def test_a_new_repository_is_the_kits_in_all_parts(root: Path) -> None:
    found = parts(root)
    hooks = [name for name, hook in HOOKS.items() if hook.step not in ("peers", "groups")]  # it has none
    assert [*found] == ["runtime library", "devices", *hooks, "launcher", "target", "binary", "tests"]
    assert {part.state for part in found.values()} == {State.KIT}
    for name in ("runtime library", *hooks):
        assert text_at(root, found[name]) == "class Chip7Device(OpenCLDevice):"
    for name in ("devices", "launcher"):
        assert text_at(root, found[name]) == "class Chip7Driver(opencl.OpenCLDriver):"
    for name in ("target", "binary"):
        assert text_at(root, found[name]) == "class Chip7Backend(opencl.OpenCLBackend):"


def test_hooks_that_the_vendor_overrides(root: Path) -> None:
    """Among them one of those that the kit's device lacks."""
    append(
        root / PACKAGE / "device.py",
        """

class Chip7Special(Chip7Device):
    def memalloc(self, size, alignment=64):
        return special.allocate(size, alignment)

    def open_group(self, rank, ranks, heap_bytes, exchange):
        return special.group(rank, ranks)
""",
    )
    found = own(root)
    assert {name: text.strip().partition("(")[0] for name, text in found.items()} == {
        "memalloc": "def memalloc",
        "groups": "def open_group",
    }


@pytest.mark.parametrize(
    ("stage", "part"), [("loops", "target"), ("opencl", "target"), ("clbin", "binary"), ("no stage", None)]
)
def test_stages_that_the_vendor_replaces(root: Path, stage: str, part: str | None) -> None:
    """In the table itself, or set in it."""
    compiler = root / PACKAGE / "compiler.py"
    text = compiler.read_text()
    line = f'OWN_STAGES["{stage}"] = my_stage'
    append(compiler, f"\n\n{line}\n")
    assert own(root) == ({part: line} if part else {})
    table = "OWN_STAGES: dict[str, Callable[[Any, MutableMapping[str, Any]], Any]] = {"
    assert table in text
    compiler.write_text(text.replace(table + "}", f'{table}"{stage}": my_stage}}'))
    assert [*own(root)] == ([part] if part else [])


def test_a_launcher_of_the_vendors(root: Path) -> None:
    """Its own class; the kit's remain the kit's."""
    driver = root / PACKAGE / "driver.py"
    text = driver.read_text()
    append(
        driver,
        "\n    def launcher_cls(self, source, metadata):\n        return PackedLauncher(source, metadata, entry)\n",
    )
    found = parts(root)["launcher"]
    assert found.state is State.KIT
    assert "PackedLauncher(" in text_at(root, found)
    driver.write_text(text)
    append(
        driver,
        "\n    def launcher_cls(self, source, metadata):\n        return Seven(source)\n\n\nclass Seven(Launcher):\n    pass\n",
    )
    assert own(root) == {"launcher": "class Seven(Launcher):"}


def test_tests_of_the_vendors(root: Path) -> None:
    append(root / "tests" / "test_kernels.py", "\n\ndef test_the_chips_own_instructions() -> None: ...\n")
    assert own(root) == {"tests": "def test_the_chips_own_instructions() -> None: ..."}
