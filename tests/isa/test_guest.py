"""The process that runs kernels: calls, services of the host, what happens when it dies."""

from __future__ import annotations

import struct

import pytest
from guest import PAGE, Guest, GuestDied, cannot_run
from guest_program import compile_object

from triton_porting_kit.compiler import ISA_LEVELS

SOURCE = """
@numbers = internal constant [2 x i64] [i64 5, i64 7]
@second = internal global ptr getelementptr ([2 x i64], ptr @numbers, i64 0, i64 1)
declare i64 @asked(i64, i64, i64)
declare double @fma(double, double, double)

define i32 @kernel(ptr %args, ptr %scratch, i64 %begin, i64 %end, i32 %x, i32 %y, i32 %z) {
  %p = load volatile ptr, ptr @second
  %n = load i64, ptr %p
  store i64 %n, ptr %args
  %h = call i64 @asked(i64 %begin, i64 %end, i64 %n)
  %r = trunc i64 %h to i32
  %s = add i32 %r, %z
  ret i32 %s
}
define i32 @reads(ptr %args) {
  %v = load i32, ptr %args, align 1
  ret i32 %v
}
define i32 @fuses(ptr %args) {
  %v = call double @fma(double 3.0, double 5.0, double -1.0)
  %r = fptosi double %v to i32
  ret i32 %r
}
"""

LEVELS = ("sse2", "neon")
"""One of this machine, one of another."""


@pytest.fixture(params=LEVELS)
def guest(request: pytest.FixtureRequest) -> Guest:
    level = ISA_LEVELS[request.param]
    if reason := cannot_run(level):
        pytest.skip(reason)

    def asked(guest: Guest, arguments: tuple[int, ...]) -> int:
        if arguments[0] < 0:
            raise ArithmeticError("asked for nothing")
        return sum(arguments[:3])

    def fma(guest: Guest, arguments: tuple[int, ...]) -> int:
        a, b, c = struct.unpack("3d", struct.pack("3q", *arguments[:3]))
        return int(struct.unpack("q", struct.pack("d", a * b + c))[0])

    return Guest(level.target(), {"asked": asked, "fma": fma})


def load(guest: Guest, source: str = SOURCE) -> dict[str, int]:
    return guest.load(compile_object(source, guest.target))


def test_calls_and_services(guest: Guest) -> None:
    with guest:
        symbols, block = load(guest), guest.allocate(8)
        assert guest.call(symbols["kernel"], block, programs=(100, 200), grid=(1, 2, 4000)) == 4307
        assert struct.unpack("q", guest.view(block, 8)) == (7,)
        assert guest.call(symbols["fuses"], block) == 14


def test_a_stray_access_ends_the_guest_only(guest: Guest) -> None:
    with guest:
        symbols, pages = load(guest), guest.allocate(3 * PAGE, PAGE)
        guest.protect(pages, PAGE, 0)
        guest.protect(pages + 2 * PAGE, PAGE, 0)
        guest.view(pages + PAGE, 4)[:] = struct.pack("i", 42)
        for stray in (pages + PAGE - 1, pages + 2 * PAGE - 3):
            with pytest.raises(GuestDied, match="SIGSEGV"):
                guest.call(symbols["reads"], stray)
            # The next call starts another, with the same memory and the same pages that it may not touch.
            assert guest.call(symbols["reads"], pages + PAGE) == 42
            assert guest.call(symbols["kernel"], pages + PAGE + 64, programs=(1, 2)) == 11


def test_what_a_service_raises_reaches_the_caller(guest: Guest) -> None:
    with guest:
        symbols, block = load(guest), guest.allocate(8)
        with pytest.raises(ArithmeticError, match="asked for nothing"):
            guest.call(symbols["kernel"], block, programs=(-1, 0))
        assert guest.call(symbols["kernel"], block, programs=(1, 1)) == 10


def test_a_routine_that_is_not_there(guest: Guest) -> None:
    with guest, pytest.raises(LookupError, match="the kernel calls unknown"):
        load(guest, "declare void @unknown()\ndefine void @f() { call void @unknown() ret void }")
