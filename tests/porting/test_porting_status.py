"""`tpk status`: whose each part is, where, and what its checks ended in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.driver import HOOKS as ALL_HOOKS
from triton_porting_kit.errors import PortingKitError
from triton_porting_kit.porting.names import names_of
from triton_porting_kit.porting.new import Shape, make
from triton_porting_kit.porting.parts import Part, State, parts_of
from triton_porting_kit.porting.sources import Repository
from triton_porting_kit.porting.status import REPORTS, run_status

Edit = Callable[[str, str, str], None]
"""Replaces a text, which has to be there, in a file."""


HOOKS = {name: hook for name, hook in ALL_HOOKS.items() if hook.step not in ("peers", "groups")}
"""Those that are a part each."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("made")
    names = names_of("chip-7", {})
    return make(names, vendor="Chips", chip="Seven", into=into, own_repository=False, shape=Shape.CORES).path


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A repository as `tpk new` made it, to be edited."""
    return shutil.copytree(made, tmp_path / made.name)


@pytest.fixture
def edit(root: Path) -> Edit:
    def replace(file: str, old: str, new: str) -> None:
        text = (root / file).read_text()
        assert old in text
        (root / file).write_text(text.replace(old, new))

    return replace


def parts(root: Path) -> dict[str, Part]:
    return {part.name: part for part in parts_of(Repository(root), root / REPORTS)}


def states(root: Path) -> dict[str, State]:
    return {name: part.state for name, part in parts(root).items()}


def text_at(root: Path, part: Part) -> str:
    assert part.place is not None
    return (root / part.place.file).read_text().splitlines()[part.place.line - 1]


def test_a_new_repository_is_the_virtual_npus_in_all_parts(root: Path) -> None:
    found = parts(root)
    steps = "launcher", "target", "binary", "emitted programs", "tests"
    assert [*found] == ["runtime library", "devices", *HOOKS, "peers", "groups", *steps]
    assert {part.state for part in found.values()} == {State.VIRTUAL}
    for name in HOOKS:
        # The native launch routine ends in the device's function.
        assert f"Device::{name if name != 'launch_entry' else 'launch'}(" in text_at(root, found[name])
    assert "find_package(vnpu" in text_at(root, found["runtime library"])
    assert "device_count()" in text_at(root, found["devices"])
    assert "CpuTarget.host()" in text_at(root, found["target"])
    assert "link_shared_object" in text_at(root, found["binary"])
    assert "Launcher" in text_at(root, found["launcher"])
    assert 'replay_runtime = "vnpu"' in text_at(root, found["emitted programs"])
    assert found["tests"].place.file == "tests/test_virtual_npu.py"  # type: ignore[union-attr]


def test_a_chip_with_memories_of_its_own_has_two_more_parts(tmp_path: Path) -> None:
    names = names_of("chip-7", {})
    made = make(names, vendor="Chips", chip="Seven", into=tmp_path, own_repository=False)
    found = parts(made.path)
    assert [*found][:3] == ["description", "intrinsics", "runtime library"]
    assert {part.state for part in found.values()} == {State.VIRTUAL}
    assert "#include <tpk_npu.h>" in text_at(made.path, found["intrinsics"])
    description = made.path / "src" / names.package / "chip_7.toml"
    description.write_text(description.read_text().replace("bytes = 524288", "bytes = 262144"))
    header = made.path / "src" / names.package / "include" / "chip_7_npu.h"
    header.write_text(header.read_text().replace("tpk_npu.h", "seven.h"))
    own = [name for name, state in states(made.path).items() if state is State.OWN]
    assert own == ["description", "intrinsics"]


def test_events_that_tell_the_time_of_a_model_are_the_virtual_npus(tmp_path: Path) -> None:
    names = names_of("chip-7", {})
    made = make(names, vendor="Chips", chip="Seven", into=tmp_path, own_repository=False)
    assert "models_time = True" in text_at(made.path, parts(made.path)["model time"])
    driver = made.path / "src" / names.package / "driver.py"
    driver.write_text(driver.read_text().replace("models_time = True", "models_time = False"))
    assert "model time" not in parts(made.path)


def test_a_hook_that_calls_another_runtime_is_the_vendors(root: Path, edit: Edit) -> None:
    edit(
        "native/device.cpp",
        "vnpu_fill(chip().get(), stream, dst,",
        "seven_fill(stream, /* vnpu_fill() */ dst,",
    )
    found = parts(root)
    assert found["memset"].state is State.OWN
    assert "Device::memset(" in text_at(root, found["memset"])
    assert {part.state for name, part in found.items() if name != "memset"} == {State.VIRTUAL}


def test_launching_is_one_function_for_two_hooks_and_the_launcher_stays_the_kits(
    root: Path, edit: Edit
) -> None:
    edit("native/device.cpp", "vnpu_launch(", "seven_launch(")
    found = states(root)
    assert {name for name, state in found.items() if state is State.OWN} == {"launch", "launch_entry"}
    assert found["launcher"] is State.KIT


def test_a_launcher_is_the_vendors_once_it_is_more_than_the_kits(root: Path, edit: Edit) -> None:
    launcher = "src/triton_chip_7/launcher.py"
    edit(launcher, "Chip7Launcher(GeneratedLauncher)", "Chip7Launcher")
    assert states(root)["launcher"] is State.OWN
    edit(launcher, "class Chip7Launcher:", "class Chip7Launcher(PythonLauncher):")
    assert states(root)["launcher"] is State.VIRTUAL
    edit("native/device.cpp", "vnpu_launch(", "seven_launch(")
    assert states(root)["launcher"] is State.KIT


def test_a_launcher_of_the_kits_may_be_used_as_it_is(root: Path, edit: Edit) -> None:
    (root / "src" / "triton_chip_7" / "launcher.py").unlink()
    edit("src/triton_chip_7/driver.py", "Chip7Launcher(source, metadata, self.device)",
         "PackedLauncher(source, metadata, self.device.launch_entry())")  # fmt: skip
    assert parts(root)["launcher"].state is State.VIRTUAL
    edit("native/device.cpp", "vnpu_launch(", "seven_launch(")
    found = parts(root)["launcher"]
    assert found.state is State.KIT
    assert "PackedLauncher(" in text_at(root, found)


def test_what_a_hook_calls_counts_too(root: Path, edit: Edit) -> None:
    """A helper that has the call is not a runtime of the vendor's."""
    edit("native/device.cpp", "vnpu_fill(chip().get()", "fill(chip().get()")
    helper = "vnpu_status fill(auto... all) { return vnpu_fill(all...); }"
    edit("native/device.cpp", "// --- memory", f"{helper}\n// --- memory")
    found = parts(root)["memset"]
    assert found.state is State.VIRTUAL
    assert "fill(auto..." in text_at(root, found)


def test_functions_of_the_standard_library_are_no_hooks(root: Path, edit: Edit) -> None:
    edit(
        "native/device.cpp",
        'check("memcpy_htod", vnpu_copy_to_device(chip().get(), stream, dst, src, size));',
        "std::memset(at(dst), 0, 8); memcpy_dtod(0, 0, 0); chip_.reset(); ::memset(at(dst), 0, 8);",
    )
    assert states(root)["memcpy_htod"] is State.OWN


def test_a_hook_in_python_alone_is_the_vendors(root: Path, edit: Edit) -> None:
    device = "src/triton_chip_7/device.py"
    edit(device, "self._native.memset(dst, value, size, stream)", "runtime.fill(dst, value, size)")
    found = parts(root)["memset"]
    assert found.state is State.OWN
    assert "def memset(" in text_at(root, found)


def test_a_hook_that_raises_for_some_arguments_is_there(root: Path, edit: Edit) -> None:
    edit("src/triton_chip_7/device.py", "        self._native.memset(dst, value, size, stream)",
         "        if size < 9:\n            return runtime.fill(dst, value, size)\n        raise InvalidArgument('size')")  # fmt: skip
    assert states(root)["memset"] is State.OWN


def test_a_device_that_says_it_is_the_virtual_npu_is(root: Path, edit: Edit) -> None:
    edit("native/device.cpp", "vnpu_get_config(", "seven_config(")
    assert states(root)["properties"] is State.VIRTUAL
    edit("src/triton_chip_7/device.py", " (virtual NPU)", "")
    assert states(root)["properties"] is State.OWN


def test_a_runtime_that_ctypes_calls_is_looked_at(root: Path, edit: Edit) -> None:
    device = "src/triton_chip_7/device.py"
    edit(device, "self._native.memset(dst, value, size, stream)", "library.vnpu_fill(dst, value, size)")
    edit(device, "self._native.memfree(addr)", "library.seven_free(addr)")
    found = states(root)
    assert (found["memset"], found["memfree"]) == (State.VIRTUAL, State.OWN)


def test_a_device_in_process_needs_no_extension(root: Path, edit: Edit) -> None:
    """All hooks by ctypes, no C++: nothing is missing, and what was left behind is still told."""
    shutil.rmtree(root / "native")
    (root / "CMakeLists.txt").unlink()
    device = "src/triton_chip_7/device.py"
    edit(device, "from triton_chip_7 import _native", "from triton_chip_7 import runtime as _native")
    edit(device, " (virtual NPU)", "")
    found = states(root)
    left = {"target", "binary", "emitted programs", "tests"}
    assert {name for name, state in found.items() if state is State.VIRTUAL} == left
    assert State.MISSING not in found.values()


def test_the_extension_may_have_another_name_in_the_device(root: Path, edit: Edit) -> None:
    device = "src/triton_chip_7/device.py"
    edit(device, "self._native", "self._chip")
    assert states(root)["memalloc"] is State.VIRTUAL
    edit("native/device.cpp", "vnpu_alloc(", "seven_alloc(")
    assert states(root)["memalloc"] is State.OWN


def test_hooks_may_be_inherited(root: Path, edit: Edit) -> None:
    """From a class of the repository's own, and from the kit's, which hands them on to the extension."""
    device = root / "src" / "triton_chip_7" / "device.py"
    edit("src/triton_chip_7/device.py", "class Chip7Device(Device):", "class Base(Device):")
    device.write_text(device.read_text() + "\n\nclass Chip7Device(Base):\n    pass\n")
    assert states(root)["memalloc"] is State.VIRTUAL
    edit("src/triton_chip_7/device.py", "class Base(Device):", "class Base(NativeDevice):")
    edit("src/triton_chip_7/device.py", "def memalloc(", "def other(")
    assert states(root)["memalloc"] is State.VIRTUAL
    edit("native/device.cpp", "vnpu_alloc(", "seven_alloc(")
    found = parts(root)["memalloc"]
    assert found.state is State.OWN
    assert "Device::memalloc(" in text_at(root, found)


def test_a_device_of_the_kits_is_the_kits(root: Path, edit: Edit) -> None:
    edit("src/triton_chip_7/device.py", "class Chip7Device(Device):", "class Chip7Device(HostDevice):")
    edit("src/triton_chip_7/device.py", "def memalloc(", "def other(")
    assert states(root)["memalloc"] is State.KIT


def test_a_hook_that_was_removed_is_missing(root: Path, edit: Edit) -> None:
    device = "src/triton_chip_7/device.py"
    edit(device, "def memset(", "def fill(")
    edit(device, "self._native.memfree(addr)", "raise NotImplementedError")
    found = parts(root)
    assert {name for name, part in found.items() if part.state is State.MISSING} == {"memset", "memfree"}
    assert "class Chip7Device(" in text_at(root, found["memset"])


def test_a_native_function_that_was_removed_is_missing(root: Path, edit: Edit) -> None:
    edit("native/device.cpp", "Device::create_event()", "Device::new_event()")
    found = parts(root)["create_event"]
    assert found.state is State.MISSING
    assert "def create_event(" in text_at(root, found)


def test_a_native_function_may_be_bound_as_it_is(root: Path, edit: Edit) -> None:
    edit("native/device.cpp", "uint64_t Device::create_event()", "uint64_t Device::fresh()")
    assert parts(root)["create_event"].state is State.MISSING
    edit(
        "native/bindings.cpp",
        "  module.attr(",
        '  device.def("create_event", &Device::fresh);\n  module.attr(',
    )
    found = parts(root)["create_event"]
    assert found.state is State.OWN
    assert '"create_event"' in text_at(root, found)


def test_a_device_needs_no_native_launch_routine(root: Path, edit: Edit) -> None:
    edit("src/triton_chip_7/device.py", "def launch_entry(", "def other(")
    assert states(root)["launch_entry"] is State.OWN


COMPILER = "src/triton_chip_7/compiler.py"


def test_steps_beside_the_hooks(root: Path, edit: Edit) -> None:
    edit("CMakeLists.txt", "find_package(vnpu CONFIG REQUIRED)", "find_package(seven)  # not vnpu::vnpu")
    edit("CMakeLists.txt", "vnpu::vnpu", "seven")
    edit("native/device.cpp", "vnpu_count(", "seven_count(")
    edit("src/triton_chip_7/launcher.py", "super().__init__(source, metadata, entry)",
         "super().__init__(source, metadata, entry, runtime=RuntimeSymbol('seven', '<seven.h>'))")  # fmt: skip
    edit("src/triton_chip_7/driver.py", '"vnpu"', '"triton_chip_7.replay:Seven"')
    (root / "tests" / "test_virtual_npu.py").unlink()
    found = parts(root)
    assert {name for name, part in found.items() if part.state is State.OWN} == {
        "runtime library",
        "devices",
        "launcher",
        "emitted programs",
        "tests",
    }
    assert "RuntimeSymbol" in text_at(root, found["launcher"])


def test_a_driver_that_never_looks_has_the_kits_answer(root: Path, edit: Edit) -> None:
    edit("src/triton_chip_7/driver.py", "def is_available(", "def other(")
    assert states(root)["devices"] is State.KIT


def both(root: Path) -> tuple[State, State]:
    found = states(root)
    return found["target"], found["binary"]


def test_a_target_with_a_name_and_the_kits_linker(root: Path, edit: Edit) -> None:
    edit(COMPILER, "CpuTarget.host()", "CpuTarget.of('riscv64', 'seven')")
    assert both(root) == (State.OWN, State.VIRTUAL)  # the way of C++ has the system's compiler
    edit(
        COMPILER,
        'command_words(options.cxx_command, "cxx_command") or CPP_COMMAND',
        "('seven-cc', '{input}')",
    )
    assert both(root) == (State.OWN, State.KIT)
    edit(COMPILER, "link_shared_object(", "seven_link(")
    assert both(root) == (State.OWN, State.OWN)


def test_a_portable_target_is_the_kits(root: Path) -> None:
    """The chip's toolchain is a C++ compiler: what is emitted is for any."""
    text = """
from triton_porting_kit.compiler import CPP_COMMAND, CpuTarget, Pipeline, PipelineBackend, cpp_pipeline

class Chip7Backend(PipelineBackend):
    def pipeline(self, options):
        return cpp_pipeline(CpuTarget.portable(64), command=("seven-cc", "{input}", "-o", "{output}"))
"""
    (root / COMPILER).write_text(text)
    assert both(root) == (State.KIT, State.OWN)
    assert "portable(64)" in text_at(root, parts(root)["target"])
    assert "class Chip7Backend" in text_at(root, parts(root)["binary"])
    (root / COMPILER).write_text(
        text.replace('command=("seven-cc", "{input}", "-o", "{output}")', "binary='so'")
    )
    assert both(root) == (State.KIT, State.VIRTUAL)
    (root / COMPILER).write_text(text.replace("CpuTarget.portable(64), ", ""))
    assert both(root) == (State.KIT, State.OWN)
    (root / COMPILER).write_text(text.replace("CpuTarget.portable(64)", "CpuTarget.host()"))
    assert both(root) == (State.VIRTUAL, State.OWN)


def test_a_pipeline_without_the_kits_loops_is_the_vendors(root: Path) -> None:
    (root / COMPILER).write_text("class Chip7Backend(PipelineBackend):\n    name = 'chip_7'\n")
    assert both(root) == (State.OWN, State.OWN)


# --- tests -----------------------------------------------------------------------------------------------


def about_virtual(root: Path) -> list[str]:
    return [test.name for test in Repository(root).tests if test.about_virtual]


def test_tests_about_the_virtual_npu_are_told_from_others(root: Path) -> None:
    assert set(about_virtual(root)) == {
        "test_the_memory_of_the_host_is_not_the_chips",
        "test_a_failure_is_raised_once",
        "test_a_module_that_the_chip_refuses",
        "test_a_lost_chip_comes_back_by_a_reset",
    }
    (root / "tests" / "test_virtual_npu.py").unlink()
    assert about_virtual(root) == []
    (root / "tests" / "test_mine.py").write_text(
        '''"""Unlike the virtual NPU, ours."""
import pytest

@pytest.fixture
def faulty(monkeypatch):
    monkeypatch.setenv("VNPU_FAULTS", "die:1")

def test_by_a_fixture(faulty):
    pass

def test_of_ours():
    "Not about VNPU_FAULTS."

@pytest.mark.needs("virtual-npu")
class TestAll:
    @pytest.mark.needs("virtual-npu")
    def test_marked(self):
        pass
'''
    )
    assert about_virtual(root) == ["test_by_a_fixture", "test_marked"]


# --- results ---------------------------------------------------------------------------------------------


def passed(name: str) -> Record:
    evidence = [{"kind": "expectation", "what": "it", "holds": True}]
    return Record(name, name.partition("/")[0], "It works.", 0.1, 0, evidence)


def failed(name: str) -> Record:
    return Record(
        name, "runtime", "It works.", 0.1, 0, [{"kind": "expectation", "what": "it", "holds": False}]
    )


def write_run(folder: Path, start: str, *records: Record) -> None:
    folder.mkdir(parents=True)
    run: dict[str, Any] = {
        **{"backend": "chip_7", "suite_version": "1", "triton_version": "3.9.0", "seed": 0, "complete": True},
        "start": start,
        "planned": [record.name for record in records],
    }
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "records.jsonl").write_text("".join(json.dumps(record.to_json()) + "\n" for record in records))


def test_the_last_result_of_each_check_counts(root: Path) -> None:
    assert not any(part.results for part in parts(root).values())
    names = [f"runtime/copies/memset-{n}-at-0" for n in (1, 2, 3)]
    write_run(root / REPORTS, "2026-01-02T00:00:00", *map(passed, names))
    assert parts(root)["memset"].results == {Status.PASS: 3}
    assert not parts(root)["memcpy_htod"].results
    write_run(root / REPORTS / "selected", "2026-01-03T00:00:00", failed(names[0]))
    assert parts(root)["memset"].results == {Status.PASS: 2, Status.FAIL: 1}


def test_an_earlier_selection_does_not_count(root: Path) -> None:
    name = "runtime/copies/memset-1-at-0"
    write_run(root / REPORTS, "2026-01-02T00:00:00", passed(name))
    write_run(root / REPORTS / "selected", "2026-01-01T00:00:00", failed(name))
    assert parts(root)["memset"].results == {Status.PASS: 1}


# --- the command -----------------------------------------------------------------------------------------


def test_the_table(root: Path, edit: Edit, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(
        root / REPORTS,
        "2026-01-02T00:00:00",
        failed("runtime/memory/size-1"),
        passed("runtime/memory/size-2"),
    )
    edit("native/device.cpp", "vnpu_fill", "seven_fill")
    assert run_status(root, None) == 0
    lines = capsys.readouterr().out.splitlines()
    row = {line.split("  ")[0]: line for line in lines}
    assert "virtual NPU" in row["memalloc"]
    assert "native/device.cpp:" in row["memalloc"]
    assert "runtime/memory/size-*" in row["memalloc"]
    assert "1 fail, 1 pass" in row["memalloc"]
    assert " own " in row["memset"]
    assert "not run" in row["memset"]
    assert lines[-1] == f"chip_7: 1 of {len(HOOKS) + 9} parts are the vendor's own"
    told = "tests/test_virtual_npu.py tests the virtual NPU: test_the_memory_of_the_host_is_not_the_chips,"
    assert any(line.startswith(told) for line in lines)
    edit("native/device.cpp", "vnpu_launch(", "seven_launch(")
    run_status(root, None)
    assert capsys.readouterr().out.endswith(
        f"3 of {len(HOOKS) + 9} parts are the vendor's own, 1 the kit's\n"
    )


def test_the_exit_status_says_that_a_hook_is_missing(
    root: Path, edit: Edit, capsys: pytest.CaptureFixture[str]
) -> None:
    edit("src/triton_chip_7/device.py", "def reset(", "def restart(")
    assert run_status(root, None) == 1
    assert "missing" in capsys.readouterr().out


def test_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_status(root, None, as_json=True) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["backend"], data["own"], data["kit"]) == ("chip_7", 0, 0)
    assert "tests/test_virtual_npu.py::test_a_failure_is_raised_once" in data["virtual_tests"]
    assert data["parts"][3] == {
        "name": "memalloc",
        "state": "virtual NPU",
        "file": "native/device.cpp",
        "line": data["parts"][3]["line"],
        "checks": [*HOOKS["memalloc"].checks],
        "results": {},
    }


@pytest.mark.parametrize("content", [None, "[project]\nname = 'x'\n", "no [ toml"])
def test_what_is_no_repository_of_a_backend_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "pyproject.toml").write_text(content)
    with pytest.raises(PortingKitError, match=r"pyproject\.toml"):
        run_status(tmp_path, None)


def test_sources_that_python_cannot_read_are_named(root: Path) -> None:
    (root / "src" / "triton_chip_7" / "driver.py").write_text("def broken(:\n")
    with pytest.raises(PortingKitError, match=r"driver\.py"):
        run_status(root, None)
