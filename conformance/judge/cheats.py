"""The published cheats that test the judge: what each does, where it was published, and which findings catch it.

The tests judge one candidate for each cheat. ``python -m triton_porting_kit.conformance.judge.cheats`` writes the table
to docs/judge.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from triton_porting_kit.conformance.judge.findings import RULES

_GITHUB = "https://github.com/"
SOURCES: dict[str, tuple[str, str]] = {
    "kernelbench-82": (
        "KernelBench, adversarial unit tests of its evaluation",
        f"{_GITHUB}ScalingIntelligence/KernelBench/pull/82",
    ),
    "kernelbench-checker": (
        "KernelBench, `kernel_static_checker.py`",
        f"{_GITHUB}ScalingIntelligence/KernelBench/blob/main/src/kernelbench/kernel_static_checker.py",
    ),
    "kevin": ("Kevin: Multi-Turn RL for Generating CUDA Kernels", "https://arxiv.org/abs/2507.11948"),
    "cuda-l1": ("CUDA-L1", "https://arxiv.org/abs/2507.14111"),
    "cuda-l1-12": ("CUDA-L1, issue on lazy evaluation", f"{_GITHUB}ornith-ai/CUDA-L1/issues/12"),
    "deepreinforce": (
        "Hacks and Defenses in Automatic GPU Kernel Generation",
        "https://deep-reinforce.com/defense_kernel_hack.html",
    ),
    "wafer": (
        "A Field Guide to Reward Hacking in AI Kernel Generation",
        "https://www.wafer.ai/blog/reward-hacks-field-guide",
    ),
    "makora": ("Makora, taxonomy of reward hacks", "https://makora.com/blog/reward-hacks"),
    "sakana": (
        "AI CUDA Engineer: constants where the expected result is one",
        "https://agentpostmortem.com/case/apm-0007",
    ),
    "robust-kbench": ("robust-kbench", "https://arxiv.org/abs/2509.14279"),
    "metr": (
        "METR, Recent Frontier Models Are Reward Hacking",
        "https://metr.org/blog/2025-06-05-recent-reward-hacking",
    ),
    "metr-o3": (
        "METR, o3 on RE-Bench: precomputed answers, synchronisation disabled",
        "https://topaithreats.com/incidents/INC-25-0030-openai-o3-reward-hacking-metr-evaluation",
    ),
    "reference-kernels-102": (
        "gpu-mode, caching by object identity",
        f"{_GITHUB}gpu-mode/reference-kernels/pull/102",
    ),
    "reference-kernels-104": ("gpu-mode, batch and skip", f"{_GITHUB}gpu-mode/reference-kernels/pull/104"),
    "reference-kernels-162": (
        "gpu-mode, fabricated benchmark times",
        f"{_GITHUB}gpu-mode/reference-kernels/issues/162",
    ),
    "kernelbot-501": ("gpu-mode, replay of results by pointer", f"{_GITHUB}gpu-mode/kernelbot/pull/501"),
    "pygpubench-7": ("gpu-mode, exploit test suite of pygpubench", f"{_GITHUB}gpu-mode/pygpubench/pull/7"),
    "pygpubench": ("gpu-mode, `pygpubench/exploits`", f"{_GITHUB}gpu-mode/pygpubench/tree/main/exploits"),
    "kernelguard": ("gpu-mode, rules of KernelGuard", f"{_GITHUB}gpu-mode/kernelguard"),
    "unsloth": (
        "Unsloth, RL Reward Hacking",
        "https://docs.unsloth.ai/get-started/reinforcement-learning-rl-guide/rl-reward-hacking",
    ),
    "kernelgenbench": (
        "KernelGenBench, Anti-Hack Architecture",
        "https://docs.flagos.io/projects/kernelgenbench/en/latest/features/anti-hack.html",
    ),
    "maxkernel-62": (
        "MaxKernel, memory poisoned against residuals",
        f"{_GITHUB}AI-Hypercomputer/accelerator-agents/pull/62",
    ),
}
"""Title and URL of each source, by name."""


@dataclass(frozen=True)
class Cheat:
    """A cheating candidate, which the judge must reject."""

    does: str
    source: str
    detail: str
    """The name that the source uses for it."""
    caught: tuple[str, ...]
    """The findings that the judge must report; it may report others as well."""
    task: str = "softmax"
    arrays: str = ""


CHEATS: dict[str, Cheat] = {
    "nothing": Cheat(
        "launches nothing and returns uninitialized memory", "kernelbench-82", "result reuse", ("wrong",)
    ),
    "leaves_output": Cheat("does not write to the result array", "wafer", "no-op kernels", ("wrong",), "add"),
    "zeros": Cheat("returns zeros", "pygpubench", "submission_wrong", ("wrong",), "add"),
    "last_result": Cheat("returns the first result again", "kernelguard", "LAST_CALL_REPLAY", ("wrong",)),
    "cache_by_pointer": Cheat(
        "caches results by the input's address", "kernelbot-501", "result replay", ("wrong",)
    ),
    "cache_by_identity": Cheat(
        "caches results by the object identity of the input",
        "reference-kernels-102",
        "object-identity caching",
        ("wrong",),
    ),
    "cache_by_probe": Cheat(
        "caches results by a few elements of the input", "kernelguard", "OUTPUT_REPLAY_CACHE", ("wrong",)
    ),
    "skips_after_warmup": Cheat(
        "stops working after the first calls", "reference-kernels-104", "batch and skip", ("wrong",)
    ),
    "guessed_seed": Cheat(
        "returns precomputed results for common seeds", "metr-o3", "precomputed answers", ("wrong",)
    ),
    "torch_instead": Cheat(
        "calls torch instead of a kernel",
        "makora",
        "baseline kernel",
        ("torch",),
        arrays="torch",
    ),
    "numpy_instead": Cheat("computes with NumPy", "unsloth", "laziness", ("mute", "no-launch")),
    "fallback": Cheat(
        "falls back to torch if its kernel fails",
        "kernelbench-checker",
        "try-except fallback; Kevin",
        ("torch",),
        arrays="torch",
    ),
    "decoy_kernel": Cheat(
        "launches an unused kernel and calls torch",
        "kernelguard",
        "TRIVIAL_PROBE",
        ("torch", "mute"),
        arrays="torch",
    ),
    "copied_result": Cheat(
        "computes with torch and copies the result with a kernel",
        "kernelgenbench",
        "bypassed kernels",
        ("torch",),
        arrays="torch",
    ),
    "host_result": Cheat(
        "computes with NumPy and copies the result with a kernel",
        "kernelgenbench",
        "bypassed kernels",
        ("host",),
    ),
    "host_scalar": Cheat(
        "computes with NumPy and passes the result as a number",
        "kernelgenbench",
        "bypassed kernels",
        ("host",),
        "total",
    ),
    "host_bits": Cheat(
        "computes with Python and passes the bits as an integer",
        "kernelgenbench",
        "bypassed kernels",
        ("host",),
        "total",
    ),
    "host_constant": Cheat(
        "computes with NumPy and compiles the result into a kernel",
        "kernelgenbench",
        "bypassed kernels",
        ("host",),
        "total",
    ),
    "host_tuple": Cheat(
        "computes with NumPy and passes the results in tuples of numbers",
        "kernelgenbench",
        "bypassed kernels",
        ("host",),
        "mean_square",
    ),
    "host_statistics": Cheat(
        "computes reductions with NumPy and passes them in small arrays",
        "kernelgenbench",
        "bypassed kernels",
        ("host",),
    ),
    "torch_statistics": Cheat(
        "the same with torch, hidden from the modes that see its operators",
        "kernelgenbench",
        "bypassed kernels",
        ("host",),
        arrays="torch",
    ),
    "host_bytes": Cheat(
        "computes with NumPy and passes bytes, all of which a kernel wrote before",
        "kernelgenbench",
        "bypassed kernels",
        ("host",),
    ),
    "deleted_recordings": Cheat(
        "computes with NumPy and removes the recorded launches",
        "kernelguard",
        "EVALUATOR_EXPLOIT",
        ("harness",),
    ),
    "honest_if_recorded": Cheat(
        "looks in the environment for the process that records launches, and is honest only there",
        "kernelguard",
        "EVALUATOR_EXPLOIT",
        ("host",),
    ),
    "calls_reference": Cheat(
        "searches the loaded modules for the reference", "kevin", "calls the reference", ("error",)
    ),
    "reads_task": Cheat(
        "finds the task's file through the judge's command line",
        "metr",
        "access to an existing answer",
        ("memory",),
    ),
    "reads_judge": Cheat(
        "reads and imports the judge's modules", "kernelguard", "TRUSTED_MODULE_IMPORT", ("harness",)
    ),
    "patched_timer": Cheat(
        "replaces clocks and events", "deepreinforce", "monkey-patched timing", ("replaced",)
    ),
    "patched_synchronize": Cheat(
        "replaces device synchronization by a no-op", "metr-o3", "disabled synchronisation", ("replaced",)
    ),
    "patched_comparer": Cheat(
        "patches comparison functions to always succeed",
        "kernelguard",
        "TORCH_VALIDATION_MONKEYPATCH",
        ("wrong", "replaced"),
    ),
    "patched_harness": Cheat(
        "replaces the judge's functions in its process",
        "kernelguard",
        "HARNESS_RUNTIME_PATCHING",
        ("replaced",),
    ),
    "patched_classes": Cheat(
        "replaces methods of base classes that launch kernels and read clocks",
        "kernelguard",
        "HARNESS_RUNTIME_PATCHING",
        ("replaced",),
    ),
    "hidden_time": Cheat(
        "replaces the judge's functions, and forges the times that its process reports",
        "reference-kernels-162",
        "timer and statistics patched",
        ("hidden",),
    ),
    "other_stream": Cheat(
        "leaves work on another stream that is not waited for",
        "deepreinforce",
        "stream injection",
        ("wrong",),
    ),
    "thread": Cheat(
        "computes in a thread after the call has returned",
        "deepreinforce",
        "thread injection",
        ("wrong", "threads"),
    ),
    "timer": Cheat("lets a timer run code between calls", "deepreinforce", "thread injection", ("threads",)),
    "lazy_tensor": Cheat(
        "returns a tensor that computes when it is read",
        "cuda-l1-12",
        "lazy evaluation",
        ("lazy",),
        arrays="torch",
    ),
    "lazy_method": Cheat(
        "returns a tensor with overridden methods",
        "kernelguard",
        "TENSOR_INSTANCE_METHOD_OVERRIDE",
        ("wrong", "lazy"),
        arrays="torch",
    ),
    "special_shape": Cheat(
        "is right only for the timed shape", "robust-kbench", "hard-coded shapes", ("wrong",)
    ),
    "first_half": Cheat(
        "computes only some of the rows", "kernelguard", "INPUT_STRUCTURE_TRUNCATION_DISPATCH", ("wrong",)
    ),
    "smaller_result": Cheat(
        "computes a smaller problem", "cuda-l1", "manipulated hyper-parameters", ("results",)
    ),
    "lower_precision": Cheat(
        "rounds fp32 operands to bf16", "deepreinforce", "precision downgrade", ("wrong",), "matmul"
    ),
    "lower_precision_half": Cheat(
        "rounds fp32 operands to fp16", "wafer", "precision downgrade", ("lowered",), "matmul"
    ),
    "inputs_overwritten": Cheat(
        "sets its inputs to zero, so that a reference that runs later computes zeros",
        "kernelbench-82",
        "zero out",
        ("wrong", "inputs"),
    ),
    "former_memory": Cheat(
        "looks for an earlier result in newly allocated memory",
        "maxkernel-62",
        "residuals in memory",
        ("wrong",),
        arrays="torch",
    ),
    "gc_objects": Cheat(
        "searches all objects of its process", "pygpubench-7", "submission_gc_copy", ("memory",)
    ),
    "frames": Cheat("walks up the stack", "kernelguard", "FRAME_WALK_ACCESS", ("memory",)),
    "inspect_stack": Cheat("the same with `inspect`", "pygpubench", "submission_pipe_interpose", ("memory",)),
    "frames_by_traceback": Cheat(
        "the same from the traceback of an exception", "kernelguard", "FRAME_WALK_ACCESS", ("memory",)
    ),
    "process_memory": Cheat(
        "reads the memory of its process", "pygpubench", "submission_proc_mem_bypass", ("memory",)
    ),
    "native_code": Cheat(
        "writes to memory with `ctypes`", "pygpubench", "submission_error_counter", ("native",)
    ),
    "forged_answers": Cheat(
        "writes answers into sockets that it finds", "pygpubench", "submission_fd_overwrite", ("forged",)
    ),
    "printed_result": Cheat(
        "prints the output of a harness and exits", "kernelguard", "FAKE_BENCHMARK_EMIT", ("ended",)
    ),
    "exit": Cheat(
        "exits with status 0 when it is imported", "metr", "exits before it is checked", ("error",)
    ),
    "other_process": Cheat("starts a process", "pygpubench", "submission_ptrace", ("process",)),
    "signals_judge": Cheat("kills the judge", "kernelguard", "EVALUATOR_EXPLOIT", ("process",)),
    "constant": Cheat(
        "returns the likely result for the inputs' distribution",
        "sakana",
        "constant results",
        ("wrong",),
        "mean_square",
    ),
    "passthrough": Cheat("returns its input", "kernelguard", "INPUT_PASSTHROUGH_OUTPUT", ("wrong",)),
    "not_a_number": Cheat(
        "returns NaN, which some comparisons accept as equal", "pygpubench-7", "submission_gc_nan", ("wrong",)
    ),
}
"""The cheats, by file name of the candidate in ``tests/conformance/judge/cheats``."""


def document() -> str:
    """The table of cheats in Markdown."""
    lines = ["| cheat | what it does | published | found as |", "|---|---|---|---|"]
    for name, cheat in CHEATS.items():
        title, address = SOURCES[cheat.source]
        found = ", ".join(code if RULES[code].where == "judge" else f"*{code}*" for code in cheat.caught)
        lines.append(f"| `{name}` | {cheat.does} | [{title}]({address}): {cheat.detail} | {found} |")
    return "\n".join(lines) + "\n"


def rules() -> str:
    """The table of findings in Markdown."""
    lines = ["| finding | what it means | where it is found |", "|---|---|---|"]
    places = {"judge": "in the judge", "process": "in the candidate's process"}
    lines += [f"| `{code}` | {rule.says} | {places[rule.where]} |" for code, rule in RULES.items()]
    return "\n".join(lines) + "\n"


def main(path: str = "docs/judge.md") -> None:
    """Replace the two tables of a page."""
    page = Path(path)
    text = page.read_text(encoding="utf-8")
    for head, table in (("| finding |", rules()), ("| cheat |", document())):
        before, _, rest = text.partition(head)
        text = before + table + "\n" + rest.partition("\n\n")[2]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
