"""The same definitions for C++: ``python -m triton_porting_kit.abi.header`` writes ``include/tpk_abi.h``.

The header is in the repository, so that building does not need the kit's Python. Tests compare it with this.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from triton_porting_kit import __version__
from triton_porting_kit.abi import kernel, launching, npu
from triton_porting_kit.abi.launching import LAST_OF_LAUNCH, Code

INCLUDE = Path(__file__).parent / "include"
"""The include directory."""
HEADER = INCLUDE / "tpk_abi.h"


def header() -> str:
    """The text of the header."""
    lines = [
        "// What passes between the kit's compiler, launchers and devices. Written by",
        "// `python -m triton_porting_kit.abi.header`: change what that reads.",
        "#ifndef TPK_ABI_H",
        "#define TPK_ABI_H",
        "",
        "#include <cstdint>",
        "",
        "// clang-format off",
        "namespace tpk {",
        "",
        "/// The kernel ABI: its version, and the symbols of an object file. Some stand behind the kernel's name.",
        f"inline constexpr std::int32_t AbiVersion = {kernel.VERSION};",
        f'inline constexpr char AbiVersionSymbol[] = "{kernel.VERSION_SYMBOL}";',
        f'inline constexpr char ScratchSuffix[] = "{kernel.SCRATCH}";',
        f'inline constexpr char PointersSuffix[] = "{kernel.POINTERS}";',
        f'inline constexpr char ChipSuffix[] = "{npu.CHIP}";',
        "",
        "/// The version of what compiled devices share with the kit, and the kit's release. Bound classes keep both.",
        f"inline constexpr std::int32_t DeviceInterface = {launching.DEVICE_INTERFACE};",
        f'inline constexpr char KitRelease[] = "{__version__}";',
        f'inline constexpr char BuiltWith[] = "{launching.BUILT_WITH}";',
        "",
        "/// A compiled kernel: runs the programs [begin, end) of the grid, returns 0 or a failure code.",
        _pointer("KernelEntry", kernel.PARAMETERS),
        "",
        "/// A device's launch routine: copies `args` before it returns, and returns a Code up to LastOfLaunch, but",
        "/// for Ok with a text in `message`.",
        _pointer("LaunchFunction", launching.PARAMETERS),
        "",
        "/// The kit's errors by number.",
        "enum class Code : std::int32_t {",
        *(f"  {code.name} = {int(code)}," for code in Code),
        "};",
        f"inline constexpr Code LastOfLaunch = Code::{LAST_OF_LAUNCH.name};",
        "",
        "/// The code that a launch routine returns for an error.",
        "constexpr Code launchCode(Code code) {",
        "  return code > Code::Ok && code <= LastOfLaunch ? code : Code::LaunchError;",
        "}",
        "",
        "/// The names of the exceptions, by Code; that of Ok is not used.",
        "inline constexpr const char *ErrorNames[] = {",
        *(f'  "{(code or Code.DeviceError).name}",' for code in Code),
        "};",
        "",
        "} // namespace tpk",
        "// clang-format on",
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _pointer(name: str, parameters: Sequence[tuple[str, str]]) -> str:
    """The type of pointers to a function that returns an int32_t."""
    listed = (f"{kind}{'' if kind.endswith('*') else ' '}{parameter}" for parameter, kind in parameters)
    text = f"using {name} = std::int32_t (*)({', '.join(listed)});"
    return "\n".join(textwrap.wrap(text, 108, subsequent_indent="    ", break_on_hyphens=False))


if __name__ == "__main__":
    HEADER.write_text(header())
