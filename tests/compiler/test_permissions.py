"""Asking for the matrix registers, of an operating system that grants or refuses them."""

from __future__ import annotations

import ctypes
import errno
import platform
import sys
import warnings

import pytest

from triton_porting_kit.compiler import permissions


class Library:
    """A C library whose `syscall` answers like a kernel that grants AMX, or refuses it with an error number."""

    def __init__(self, refusal: int = 0) -> None:
        self.refusal = refusal
        self.calls: list[tuple[int, ...]] = []

    def syscall(self, *arguments: int) -> int:
        self.calls.append(arguments)
        ctypes.set_errno(self.refusal)
        return -1 if self.refusal else 0


def ask(monkeypatch: pytest.MonkeyPatch, library: Library, machine: str = "x86_64") -> bool:
    monkeypatch.setattr(ctypes, "CDLL", lambda name, use_errno: library)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(sys, "platform", "linux")
    return permissions.matrix_registers.__wrapped__()


def test_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask(monkeypatch, library)
    assert library.calls == [(158, 0x1023, 18)]  # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)


def test_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(RuntimeWarning, match=r"refuses its use: Invalid argument.*TPK_CPU_WITHOUT=amx"):
        assert not ask(monkeypatch, Library(errno.EINVAL))


def test_other_machines_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    assert not ask(monkeypatch, library, "aarch64")
    assert library.calls == []
