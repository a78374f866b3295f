"""Kernels as relocatable objects, made from LLVM IR text, following the kernel ABI of the host device."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

from triton_porting_kit.toolchain.llvm import target_machine

_PROGRAMS = """
define i32 @{name}(ptr %args, ptr %scratch, i64 %begin, i64 %end, i32 %gx, i32 %gy, i32 %gz) {{
entry:
  br label %loop
loop:
  %p = phi i64 [ %begin, %entry ], [ %next, %body.end ]
  %done = icmp sge i64 %p, %end
  br i1 %done, label %exit, label %body
body:
{body}
  br label %body.end
body.end:
  %next = add i64 %p, 1
  br label %loop
exit:
  ret i32 0
{tail}
}}
"""

# args[1] additions, counted in an element of the scratch, with out = args[0]
_BUSY = """  %out = load ptr, ptr %args
  %limit.slot = getelementptr i64, ptr %args, i64 1
  %limit = load i64, ptr %limit.slot
  %i.slot = getelementptr i64, ptr %scratch, i64 {slot}
  store volatile i64 0, ptr %i.slot
  br label %again
again:
  %i = load volatile i64, ptr %i.slot
  %i.next = add i64 %i, 1
  store volatile i64 %i.next, ptr %i.slot
  %more = icmp slt i64 %i.next, %limit
  br i1 %more, label %again, label %finished
finished:
"""

# count = args[0]: adds 1 to *count, then waits until it is args[1]
_MEET = """  %count = load ptr, ptr %args
  %all.slot = getelementptr i64, ptr %args, i64 1
  %all = load i64, ptr %all.slot
  %before = atomicrmw add ptr %count, i64 1 seq_cst
  br label %again
again:
  %here = load atomic i64, ptr %count acquire, align 8
  %alone = icmp slt i64 %here, %all
  br i1 %alone, label %again, label %together
together:"""

BODIES = {
    "empty": ("", ""),
    # out[p] += p + 1, with out = args[0]
    "count": (
        """  %out = load ptr, ptr %args
  %slot = getelementptr i64, ptr %out, i64 %p
  %value = add i64 %p, 1
  %old = load i64, ptr %slot
  %new = add i64 %old, %value
  store i64 %new, ptr %slot""",
        "",
    ),
    # fails with code 7 from program args[0] on
    "fail": (
        """  %first = load i64, ptr %args
  %bad = icmp sge i64 %p, %first
  br i1 %bad, label %failed, label %ok
ok:""",
        "failed:\n  ret i32 7",
    ),
    # busy for args[1] additions, then *args[0] += 1
    "spin": (
        _BUSY.format(slot=0) + """  %old = atomicrmw add ptr %out, i64 1 seq_cst""",
        "",
    ),
    # the assertion "said" fails in program args[0], at element args[1] of 3 x 4
    "assert": (
        """  %first = load i64, ptr %args
  %element.slot = getelementptr i64, ptr %args, i64 1
  %element = load i64, ptr %element.slot
  %bad = icmp eq i64 %p, %first
  %x = trunc i64 %p to i32
  br i1 %bad, label %failed, label %ok
failed:
  call void @tpk_host_fail(ptr @said, i32 %x, i32 1, i32 2, i64 %element, ptr @shape)
  store ptr null, ptr null
  br label %ok
ok:""",
        "",
    ),
    # an instruction that no CPU has, in program args[0]
    "trap": (
        """  %first = load i64, ptr %args
  %bad = icmp eq i64 %p, %first
  br i1 %bad, label %failed, label %ok
failed:
  call void @llvm.trap()
  br label %ok
ok:""",
        "",
    ),
    # divides 7 by args[0]
    "divide_integers": (
        """  %divisor = load i64, ptr %args
  %quotient = sdiv i64 7, %divisor
  store volatile i64 %quotient, ptr %scratch""",
        "",
    ),
    # prints what lies at args[0], of the type args[1] and the shape args[2:]
    "print": (
        """  %data = load ptr, ptr %args
  %type.slot = getelementptr i64, ptr %args, i64 1
  %type = load ptr, ptr %type.slot
  %shape = getelementptr i64, ptr %args, i64 2
  %x = trunc i64 %p to i32
  call void @tpk_host_print(ptr @prefix, ptr %type, i32 0, ptr %shape, ptr %data, i32 %x, i32 0, i32 0)""",
        "",
    ),
    # waits until *args[0] is not 0
    "gate": (
        """  %flag = load ptr, ptr %args
  br label %again
again:
  %value = load atomic i64, ptr %flag acquire, align 8
  %closed = icmp eq i64 %value, 0
  br i1 %closed, label %again, label %open
open:""",
        "",
    ),
    "meet": (_MEET, ""),
    # meets, then count[1 + p] = address of the scratch, which tells the thread
    "meet.where": (
        _MEET
        + """
  %index = add i64 %p, 1
  %place = getelementptr i64, ptr %count, i64 %index
  %thread = ptrtoint ptr %scratch to i64
  store i64 %thread, ptr %place""",
        "",
    ),
    # waits until out[p - 1] is not 0, then out[p] = 1, with out = args[0]
    "chain": (
        """  %out = load ptr, ptr %args
  %slot = getelementptr i64, ptr %out, i64 %p
  %before = getelementptr i64, ptr %slot, i64 -1
  %first = icmp eq i64 %p, 0
  br i1 %first, label %open, label %again
again:
  %value = load atomic i64, ptr %before acquire, align 8
  %closed = icmp eq i64 %value, 0
  br i1 %closed, label %again, label %open
open:
  store atomic i64 1, ptr %slot release, align 8""",
        "",
    ),
    # out[p] = a / b, of doubles: out, a, b = args
    "divide": (
        """  %out = load ptr, ptr %args
  %a.slot = getelementptr i64, ptr %args, i64 1
  %a = load double, ptr %a.slot
  %b.slot = getelementptr i64, ptr %args, i64 2
  %b = load double, ptr %b.slot
  %quotient = fdiv double %a, %b
  %slot = getelementptr double, ptr %out, i64 %p
  store double %quotient, ptr %slot""",
        "",
    ),
    # adds 1 to the first 8 bytes of the scratch, and puts the sum into out[p], with out = args[0]
    "tally": (
        """  %out = load ptr, ptr %args
  %slot = getelementptr i64, ptr %out, i64 %p
  %before = load i64, ptr %scratch
  %now = add i64 %before, 1
  store i64 %now, ptr %scratch
  store i64 %now, ptr %slot""",
        "",
    ),
    # the same, after args[1] additions
    "drag": (
        _BUSY.format(slot=1)
        + """  %slot = getelementptr i64, ptr %out, i64 %p
  %before = load i64, ptr %scratch
  %now = add i64 %before, 1
  store i64 %now, ptr %scratch
  store i64 %now, ptr %slot""",
        "",
    ),
    # out[p] = the first number in the scratch, with out = args[0]
    "told": (
        """  %out = load ptr, ptr %args
  %slot = getelementptr i64, ptr %out, i64 %p
  %told = load i64, ptr %scratch
  store i64 %told, ptr %slot""",
        "",
    ),
    # counts in args[0][2] the programs that are told 1, and in args[0][1] those of them that others run beside
    "exclude": (
        """  %told = load i64, ptr %scratch
  %inside = load ptr, ptr %args
  %disturbed = getelementptr i64, ptr %inside, i64 1
  %exclusive = getelementptr i64, ptr %inside, i64 2
  %before = atomicrmw add ptr %inside, i64 1 seq_cst
"""
        + _BUSY.format(slot=1)
        + """  %after = atomicrmw sub ptr %inside, i64 1 seq_cst
  %others = sub i64 %after, 1
  %any = or i64 %before, %others
  %crowded = icmp ne i64 %any, 0
  %crowd = zext i1 %crowded to i64
  %fault = and i64 %crowd, %told
  %faults = atomicrmw add ptr %disturbed, i64 %fault seq_cst
  %calls = atomicrmw add ptr %exclusive, i64 %told seq_cst""",
        "",
    ),
    # counts in args[0][3] the programs that are told 0, in args[0][4] the others, and in args[0][2] the programs that
    # some of the other kind ran beside
    "kinds": (
        """  %told = load i64, ptr %scratch
  %state = load ptr, ptr %args
  %any.told = icmp ne i64 %told, 0
  %kind = zext i1 %any.told to i64
  %other.kind = sub i64 1, %kind
  %mine = getelementptr i64, ptr %state, i64 %kind
  %other = getelementptr i64, ptr %state, i64 %other.kind
  %entered = atomicrmw add ptr %mine, i64 1 seq_cst
  %before = atomicrmw add ptr %other, i64 0 seq_cst
"""
        + _BUSY.format(slot=2)
        + """  %after = atomicrmw add ptr %other, i64 0 seq_cst
  %left = atomicrmw sub ptr %mine, i64 1 seq_cst
  %others = or i64 %before, %after
  %any = icmp ne i64 %others, 0
  %fault = zext i1 %any to i64
  %disturbed = getelementptr i64, ptr %state, i64 2
  %faults = atomicrmw add ptr %disturbed, i64 %fault seq_cst
  %place = add i64 %kind, 3
  %calls = getelementptr i64, ptr %state, i64 %place
  %counted = atomicrmw add ptr %calls, i64 1 seq_cst""",
        "",
    ),
    # out[p] = address of the scratch, after writing its last 8 bytes
    "scratch": (
        """  %out = load ptr, ptr %args
  %last = getelementptr i8, ptr %scratch, i64 {last}
  store i64 %p, ptr %last
  %slot = getelementptr i64, ptr %out, i64 %p
  %address = ptrtoint ptr %scratch to i64
  store i64 %address, ptr %slot""",
        "",
    ),
}

_GLOBALS = {
    "trap": "declare void @llvm.trap()\n",
    "assert": """
@said = private constant [5 x i8] c"said\\00"
@shape = private constant [3 x i64] [i64 2, i64 3, i64 4]
declare void @tpk_host_fail(ptr, i32, i32, i32, i64, ptr)
""",
    "print": """
@prefix = private constant [4 x i8] c" v \\00"
declare void @tpk_host_print(ptr, ptr, i32, ptr, ptr, i32, i32, i32)
""",
}


def ir(
    kind: str,
    name: str,
    *,
    scratch: int = 64,
    cleared: int = 0,
    abi: int = 3,
    exclusive: int | None = None,
    stripes: int | None = None,
) -> str:
    body, tail = BODIES[kind]
    told = "" if exclusive is None else f"@{name}__exclusive = constant i64 {exclusive}\n"
    told += "" if stripes is None else f"@{name}__stripes = constant i64 {stripes}\n"
    return _PROGRAMS.format(name=name, body=body.replace("{last}", str(scratch - 8)), tail=tail) + (
        f"@{name}__scratch_bytes = constant [2 x i64] [i64 {scratch}, i64 {cleared}]\n"
        f"@tpk_host_abi_version = constant i32 {abi}\n" + told + _GLOBALS.get(kind, "")
    )


@functools.cache
def assemble(text: str, triple: str | None = None) -> bytes:
    machine = target_machine(triple)
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    return machine.emit_object(module)


def kernel(kind: str, name: str | None = None, **options: int) -> bytes:
    """The object of a kernel of `BODIES` under its own or another name."""
    return assemble(ir(kind, name or kind, **options))
