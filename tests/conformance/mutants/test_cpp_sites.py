"""What can be changed in C++, against a list written by hand."""

from __future__ import annotations

from triton_porting_kit.conformance.mutants.cpp_sites import cpp_mutations

SOURCE = """#if 3 < 4
#endif
// if (a < b) return;
template <int n = 2> std::vector<int *> f(const char *text, int a) {
  std::lock_guard lock(mutex);
  if (a < n && !done)
    g("a + b");
  for (int i = 0; i < a; ++i) {
    total += i;
  }
  while (left())
    h();
  do {
  } while (a);
  throw Error("more than ", 3 + 4);
}
"""


def test_a_function() -> None:
    source = SOURCE.encode()
    found = []
    for mutation in cpp_mutations("driver/host/native/x.cpp", source):
        after = mutation.apply(source).decode().splitlines()
        found.append((mutation.line, mutation.operator, after[mutation.line - 1].strip()))
    assert sorted(found) == [
        (4, "constant", "template <int n = (2 + 1)> std::vector<int *> f(const char *text, int a) {"),
        (5, "statement", ";"),
        (6, "comparison", "if (a <= n && !done)"),
        (6, "condition", "if (false)"),
        (6, "condition", "if (true)"),
        (6, "logic", "if (a < n || !done)"),
        (6, "sign", "if (a < n && done)"),
        (7, "statement", ";"),
        (8, "arithmetic", "for (int i = 0; i < a; --i) {"),
        (8, "comparison", "for (int i = 0; i <= a; ++i) {"),
        (8, "constant", "for (int i = (0 + 1); i < a; ++i) {"),
        (9, "arithmetic", "total -= i;"),
        (9, "statement", ";"),
        (11, "condition", "while (false)"),
        (12, "statement", ";"),
        (15, "statement", ";"),
    ]


def test_places_are_in_bytes() -> None:
    source = "// größer\nbool f() { return x_ < 3; }\n".encode()
    after = {mutation.apply(source).decode() for mutation in cpp_mutations("x.cpp", source)}
    assert after == {
        "// größer\nbool f() { return x_ <= 3; }\n",
        "// größer\nbool f() { return x_ < (3 + 1); }\n",
    }
