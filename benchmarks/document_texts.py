"""The texts of the page about performance that hold no figures."""

from __future__ import annotations

from .timing import LEAST_RUNS
from .worker import RUNS

HEAD = f"""# Performance of the CPU backend

`python -m benchmarks.run` measures the figures. `make performance` keeps those of each kind of CPU in
`benchmarks/results/` and draws the plots. `python -m benchmarks.document` writes this page from these files. Do not
edit this page; edit `benchmarks/document.py`.

- Every kernel is written as in Triton's tutorials, without code specific to CPUs. Its result is checked against
  float64 before it is timed. The gradient of attention is one kernel that adds to dq atomically, as FlashAttention's
  is; before 2026-11-27, two kernels were measured, which do seven products instead of five.
- Calls of the kit and of the peer alternate, on the same arrays. The peer writes into an existing output if its library
  supports that.
- A sample lasts at least ten milliseconds. A run takes {RUNS} samples of each, or as many as fit in a minute, but at
  least {LEAST_RUNS}.
- A sample of several calls begins with one more that is not timed: it finds caches and memory as the peer left them.
- The allocator keeps what is freed (`MALLOC_MMAP_MAX_=0`), as those do that PyTorch's guide to tuning asks for. Else
  results of some megabytes are mapped anew in each call, page by page, on either side: a gradient of SwiGLU takes 127
  instead of 23 ms.
- Products of fp16 and tile sizes on the AMD, and others that the notes name, were measured without that call, and with
  the allocator's defaults.
- A ratio is the peer's median time divided by the kit's: above 1, the kit is faster. Quartiles are those of ratios of
  samples adjacent in time. A target is missed if the median misses it, even if a quartile
  meets it.
- Autotuned kernels use their best configuration.
"""

INNER_LOOPS = """## The inner loops

`tpk compile` prints the measured code without running it. For a product of bf16 on a CPU with AVX-512:

```sh
tpk compile kernels/matmul.py:matmul_kernel --emit asm --cpu znver5 \\
  -s "a_ptr=*bf16:16, b_ptr=*bf16:16, c_ptr=*bf16:16, M=i32:16, N=i32:16, K=i32:16, stride_am=i32:16, stride_ak=1, \\
      stride_bk=i32:16, stride_bn=1, stride_cm=i32:16, stride_cn=1" \\
  -c ACCUMULATOR=tl.float32,LEAKY_RELU=False,BLOCK_M=128,BLOCK_N=128,BLOCK_K=64,GROUP_M=8
```

The product spends its time in the loop with the most `vdpbf16ps`. Sixteen accumulators stay in registers. Each step
along K reads four vectors of packed B and broadcasts a pair of A for each of four rows, directly from the matrix.
After sixteen steps, the enclosing loop prefetches: `prefetcht0` the next four rows of A, `prefetcht1` the data of B
that is packed next. The loop processes several `BLOCK_K` before it stores the accumulators. Variants:

- `*fp32` uses `vfmadd231ps` and prefetches both by `prefetcht1`, `*i8` uses `vpdpbusd`, and `--cpu haswell` has half
  the registers.
- With `--cpu sapphirerapids`, the loop with four `tdpbf16ps` multiplies two by two tiles in AMX registers.

Other kernels:

- `kernels/gelu.py:gelu_residual_kernel`: `vpermps` looks up the coefficients of erf by the interval of its argument.
- `kernels/layer_norm.py:layer_norm_forward_kernel`: `prefetcht0` in the last loop prefetches the next program's
  row.
- `kernels/vector_add.py:vector_add_kernel`: the loop with `vmovntps` serves launches that write more than the caches
  hold.
"""

SECTIONS = {
    "first result": (
        "A new process imports Triton, compiles a vector addition or finds it in the cache, runs it and reads the\n"
        "result. Triton's digest of its own files is in the cache. The reference reads the artefacts of the kit's\n"
        "stages from files, and another process only imports Triton and NumPy. Half of what the stages add is\n"
        "opening MLIR's library and importing its bindings: 43,000 symbols are looked up by name, 2,000 pages mapped,\n"
        "and the bindings' classes and MLIR's passes registered. Functions are bound when they are first called.\n"
        "Looking into the library itself first would save 1.5 ms, but allocators that replace malloc do not work\n"
        "then. Autotuning: what the first launch takes, with one call of each configuration. After the fork,\n"
        "each of two processes copies about 5,000 pages. This is measured before all other rows. After\n"
        "them, on the Xeon with AMX, two processes were 1.45 to 1.52 times as fast as one. The cause is not known:\n"
        "2 GB in memory, millions of objects, or torch.compile before it change nothing.\n"
        "Most of a cached start is Triton's own. On Zen 3, of 0.45 s, 0.32 s are the imports of Triton and NumPy, and\n"
        "0.06 to 0.09 s the import of Gluon, which Triton's first launch does. Another Zen 3, which read files more\n"
        "slowly, took 0.52 s for the imports alone, and 0.73 s for a kernel in the cache."
    ),
    "launch": "An empty kernel with four arguments.",
    "scaling": (
        "The time with one thread over that with several. What is limited by memory stands beside the gain of a\n"
        "triad over as many bytes.\n"
        "\n"
        "With more than two threads, what is limited by arithmetic stands beside as many processes of one thread\n"
        "(`benchmarks/copies.py`). They run the same kernel at the same time, and share nothing but the machine\n"
        "and the operands. The figure is the calls per second of launches with all threads, over those of all\n"
        "processes together. The time of one thread alone is no measure: on the Xeon with AMX, whose cores other\n"
        "machines use as well, a product of bf16 of 2048x2048 took it 20 or 50 ms within a minute, and 16\n"
        "processes 50 to 60 ms each. The target also holds beside the gain of the peak, which varies as much as\n"
        "the time of one thread. Torch's own gain has no target.\n"
        "\n"
        "What misses its target with 16 threads:\n"
        "\n"
        "- Launches of less than a millisecond, and the gradient of attention, which is three. Traces of a product of\n"
        "  bf16 of 512x512x512, and of attention in bf16, show where the time from call to return goes:\n"
        "\n"
        "  | from the row above until | product, µs | attention, µs |\n"
        "  |---|---|---|\n"
        "  | the job starts: Python, most of it Triton's own | 21 | 55 |\n"
        "  | half of the threads run | 5 | 5 |\n"
        "  | half of the threads are done | 41 | 567 |\n"
        "  | the last thread is done | 11 | 33 |\n"
        "  | the caller has the result | 5 | 11 |\n"
        "\n"
        "  Python takes 7 µs if its code and objects are in the caches; a kernel's data replaces them there. Each\n"
        "  thread has 4 or 16 programs, and the last thread ends up to one program later than the others. With\n"
        "  16 processes, each takes 527 µs for the product: to reach 0.85, a launch may take at most 39 µs in all.\n"
        "- The first program of a thread, which packs operands, takes 1.3 to 1.5 times as long as others. CPUs\n"
        "  differ by a third.\n"
        "- Kernels of less than about 200 µs, such as softmax of 1823x781 and GIoU. A launch on 16 threads of\n"
        "  torch takes 16 to 19 µs if its programs do nothing, and 21 to 27 µs with 4,096 of them, as long as\n"
        "  torch's addition of a few rows; on one thread it takes 6 µs. The triad starts no threads.\n"
        "- Kernels limited by memory that compute as well: their arithmetic gains what the peak does, which is 8\n"
        "  to 10 on some days, probably where two CPUs share a core. The gradient of layer norm is two launches.\n"
        "- Cumulative sums write half of what they move, and a triad a third. Lines that are written are read\n"
        "  before, so that at the same bandwidth they reach 0.89 of what the triad does."
    ),
    "tiles": "All tile sizes of 32, 64 and 128 in each dimension, relative to the best.",
    "after torch": (
        "A call of the kit right after an addition by torch, whose threads may still occupy the cores, compared\n"
        "with one right after the same addition by the kit."
    ),
    "memory": "The growth of a process beyond operands and result, including the scratch of all threads.",
}
"""What stands under the title of a group of figures."""

MISSES = {
    "layer norm fp32 [^,]*": (
        "- Layer norm takes 83 to 89 % of the roof on the Xeon with AMX, and torch 67 to 90 %: in runs where torch is\n"
        "  that near to it, 1.1 is not to be had."
    ),
    "attention (fp32|bf16) [^,]*": (
        "- Attention in float32, and in bf16 on Cascade Lake, which multiplies it as float32, spends five sixths\n"
        "  of its time in its two products, at 79 % of the peak in registers; maxima and exponentials take an\n"
        "  eighth. With loads beside the multiply-adds, blocks of any shape reach 85 % on the Xeon with AMX,\n"
        "  probably since its clock falls: beside a chain of integer products it is 3.9 GHz without loads, and\n"
        "  3.5 with them. Prefetching rows and unrolling further gain nothing. On Cascade Lake, the same products\n"
        "  as loops in C reach 87 to 93 %, with which attention would be 1.28 times as fast as torch. Adding the\n"
        "  lanes of each row's sum in a loop of its own gains nothing there. On Zen 4, both products, maxima and\n"
        "  exponentials reach 86 % of the peak; 1.3 would take 89. On Zen 3, both products reach the peak and take\n"
        "  78 % of the time, and exponentials 14: with all that is not a product in half of its time, it would be\n"
        "  1.3 times as fast as torch."
    ),
    "matmul fp32 [^,]*": (
        "- On Cascade Lake, products of float32 reach 74 % of the peak, and torch 84. The same blocks as loops in C\n"
        "  reach 84 while all operands are in L2, and 65 to 75 beyond it: each program reads its rows of A from L3,\n"
        "  and stores its sums once per strip of B. Without these stores, the kit would reach 84 as well. Torch packs\n"
        "  both operands for whole caches, which a program of one tile cannot. Blocks of 8x3 and 6x4 vectors, strips\n"
        "  of B in L2, packing A, and prefetching sums or A's next columns into L2 were tried: none is faster. On the\n"
        "  Xeon with AMX, one thread reached 0.91 to 0.98 of torch's speed for 512 on three days, and 0.85 on a fourth."
    ),
    "attention (fp32|bf16) .*, AVX2": (
        "- With AVX2, attention spends most of its time in its two products, and an eighth in exponentials. These\n"
        "  take 21 operations for eight numbers, of which 13 need the two units that also multiply. With products at\n"
        "  the peak in registers and exponentials at that limit, it would be about 1.3 times as fast as torch. In\n"
        "  bf16, a twelfth is widening factors and rounding weights, which takes as long in the loop of the\n"
        "  exponentials."
    ),
    "attention backward fp32 .*, AVX2": (
        "- With AVX2, the gradient of attention in float32 takes about as long as torch's: both do five products."
    ),
    "matmul fp32 .*, AVX2": (
        "- With AVX2 on Cascade Lake, blocks of sums as loops in C reach about 95 % of the peak while all operands\n"
        "  are in L1, and whole products of the kit 80 to 83 %. Rows of A that are a power of two apart share sets of\n"
        "  L1: with 48 floats more in each, the kit is 1 to 8 % faster. Packing A costs more than that, and strips of\n"
        "  B in 18 or 24 instead of 16 of 32 KiB of L1 gain nothing. Four steps along K without a branch would be up\n"
        "  to 3 % faster than two, but take a half longer to compile."
    ),
    "matmul bf16 .*": (
        "- With AMX, a product of bf16 takes as long as the same loops in C. Those of 1024x1024x1024 in tiles of\n"
        "  128x256 take 1.7 ms: 1.2 if all operands are in L1 (0.8 if B holds zeros, probably since the clock stays\n"
        "  higher), 0.3 more for A, which each program reads from L3 at 28 GB/s, and 0.2 for packing B. Rows before\n"
        "  strips, other panels, 64x512 sums over all of K as in oneDNN's kernel, and prefetches of the next rows of\n"
        "  A or of the result into any cache gain at most 3 %, and packing A costs more than it gains. Wider tiles\n"
        "  read A less often, and tiles that go down all rows before the next columns pack each part of B once: with\n"
        "  2048 rows, 128x256 is 5 to 8 % faster by that.\n"
        "- On Zen 4, products of bf16 reach 91 to 97 % of the peak with two threads, and torch 89 to 92: for 1.1,\n"
        "  they would have to reach 98 to 101."
    ),
    "matmul fp16 .*": (
        "- A product of fp16 takes as long as one of float32 on Cascade Lake: its sums are float32, and no\n"
        "  instruction of these CPUs multiplies halves into such sums. Those of AVX512-FP16 add halves to halves."
    ),
    "matmul int8 .*": (
        "- On Cascade Lake, a product of bytes is 7 % faster if rows of A are not biased, 7 % if B is not packed,\n"
        "  10 % if sums are neither read nor stored between panels, and nearly as fast as torch's without all of\n"
        "  these. Four steps along K without a branch gain 1 %. Longer panels and prefetches of sums gain nothing.\n"
        "  Blocks of 8x2 vectors take a third longer. With B biased instead, while it is packed, each row's elements\n"
        "  have to be added up: on the Xeon with AMX, limited to AVX-512, that costs the 4 % that it gains.\n"
        "  On Zen 4, both sides reach about nine tenths of the peak, and without the bias the kit would gain 2 %."
    ),
    "segmented sum .*": (
        "- One thread adds whole vectors to a segment. Several do so under locks of 1 KiB of memory, since x86-64\n"
        "  has no atomic addition of floats; where they add to the same segments, the cache lines of these go from\n"
        "  core to core. torch.compile adds each float by a compare-and-swap, and eager adds with one thread."
    ),
    "linear and cross entropy .*": (
        "- The linear layer with cross entropy goes over the weights, and over their gradient, once for each chunk of\n"
        "  128 rows, so that the logits of all rows are never in memory. `torch in chunks` does the same in torch's\n"
        "  operators; torch eager keeps all logits. As in Liger's kernels, products are torch's: on the Xeon with AMX\n"
        "  they take 95 % of the time with one thread, 4 % longer than for all rows at once, and the loss takes 5 %.\n"
        "  Where the allocator keeps memory, holding all logits costs torch less."
    ),
    "embedding with gradient .*": (
        "- An embedding gathers rows of 2 KiB, and its gradient adds as many. Of 18 ms with one thread of Cascade\n"
        "  Lake, 8 write the zeros that the gradient begins with, on both sides. Gathering takes 5, and torch's 4."
    ),
    "grouped product .*": (
        "- The rows of each of eight experts are padded to tiles of 32, which adds an eighth to 1,024 rows, or of 64,\n"
        "  which adds a fourth. On Zen 4, four fifths of the time are products, near the peak; packing weights is 15 %."
    ),
    "batched products .*": (
        "- A batched product of 32x32 matrices does 5 operations for each byte that it moves: memory and multiplying\n"
        "  take about as long as each other, and what does not overlap shows. Torch comes close to the limit, too."
    ),
    "convolution .*": (
        "- A convolution as implicit GEMM reads its rows where they lie, but the sums are read and written once\n"
        "  for every two places of the filter, since the weights of more do not fit into L1. Otherwise it takes\n"
        "  as much of the peak as a product of the same size."
    ),
}
"""Why a kernel or workload, by a regular expression of its name, misses its target where it does."""

TAIL = """## Reproducing the figures

```sh
make performance                                        # the whole page: three runs; needs an idle machine
python -m benchmarks.run --only 'softmax|matmul fp32'   # some rows, with their targets
python -m benchmarks.compare old.json new.json          # regressions beyond noise; exit status 1 if any
make bench-counts                                       # instruction counts of compiling and launching, by callgrind
```
"""
