"""Finding functions in C++ without a compiler."""

from __future__ import annotations

import pytest

from triton_porting_kit.porting.native_sources import definitions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("void f() { a(); }", {"f": " a(); "}),
        ("int Device::get(int x) const noexcept { return x; }", {"get": " return x; "}),
        ("auto f(int (*g)(int)) -> std::vector<int> { g(1); }", {"f": " g(1); "}),
        ("void f();\nint g(int);\n", {}),
        ("void f() { if (x) { g(); } while (y) {} }", {"f": " if (x) { g(); } while (y) {} "}),
        ("void f() {", {"f": ""}),
        (
            'extern "C" int32_t entry(void *context,\n    int size) {\n  return 0;\n}',
            {"entry": "\n  return 0;\n"},
        ),
        ("struct S {\n  S() {}\n  void m() { n(); }\n};", {"S": "", "m": " n(); "}),
    ],
)
def test_definitions(text: str, expected: dict[str, str]) -> None:
    assert {name: body for name, _, body in definitions(text)} == expected
