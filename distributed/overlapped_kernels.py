"""Kernels that compute while they communicate, in Triton and `triton_porting_kit.language`.

Each begins with a barrier between programs of the same index on all ranks, whose number of calls is the number that
signals have to reach. No other kernel uses the same words and signals. Programs depend only on programs of the same
index.
"""

from __future__ import annotations

import triton
import triton.language as tl

import triton_porting_kit.language as tpl


@triton.jit
def _product(
    a, b, rows, M, N, K, column, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """A tile of the product of a, M by K, and b, K by N; float32. `rows` and `column`: its rows and first column."""
    columns = column + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        left = tl.load(a + rows[:, None] * K + inner, mask=(rows[:, None] < M) & (inner < K), other=0.0)
        right = tl.load(
            b + inner[:, None] * N + columns, mask=(inner[:, None] < K) & (columns < N), other=0.0
        )
        total = tl.dot(left, right, total, input_precision="ieee")
    return total


@triton.jit
def _multiply_and_send(
    group, left, b, out, a, place, peer, upto, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Multiply this program's rows of `left`, M by K, and b; between the tiles put the first `upto` columns of its rows
    of `a` to `place` on `peer`, so that transfers and products take turns."""
    pieces = tl.cdiv(N, BLOCK_N)
    for block in range(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.num_programs(0)):
        rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
        for piece in range(pieces):
            for start in range(piece * BLOCK_K, upto, pieces * BLOCK_K):
                inner = start + tl.arange(0, BLOCK_K)
                sent = (rows[:, None] < M) & (inner < K)
                offsets = rows[:, None] * K + inner
                tpl.put(group, place + offsets, tl.load(a + offsets, mask=sent), peer, sent)
            column = piece * BLOCK_N
            tile = _product(left, b, rows, M, N, K, column, BLOCK_M, BLOCK_N, BLOCK_K)
            columns = column + tl.arange(0, BLOCK_N)
            mask = (rows[:, None] < M) & (columns < N)
            tl.store(out + rows[:, None] * N + columns, tile.to(out.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["M", "N", "K"])
def all_gather_matmul_kernel(
    group, words, signals, a, gathered, b, out, M, N, K,
    RANKS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Multiply every rank's a, M by K, by this rank's b, K by N; `gathered` gets the others', and `out` the products.

    A program has some blocks of rows of each rank's a. While it multiplies the rows of one rank, its own first, it puts
    its own to the rank that multiplies them next.
    """
    program = tl.program_id(0)
    signals += program * RANKS
    call = tpl.barrier_at(group, words + 2 * program)
    me = tpl.rank(group)
    place = gathered + me * M * K
    _multiply_and_send(
        group, a, b, out + me * M * N, a, place, (me + 1) % RANKS, K if RANKS > 1 else 0, M, N, K,
        BLOCK_M, BLOCK_N, BLOCK_K,
    )  # fmt: skip
    for step in range(1, RANKS):
        tpl.notify(group, signals + me, (me + step) % RANKS)
        source = (me + RANKS - step) % RANKS
        tpl.wait(group, signals + source, call)
        upto = tl.where(step + 1 < RANKS, K, 0)
        _multiply_and_send(
            group, gathered + source * M * K, b, out + source * M * N, a, place, (me + step + 1) % RANKS, upto,
            M, N, K, BLOCK_M, BLOCK_N, BLOCK_K,
        )  # fmt: skip


@triton.jit(do_not_specialize=["M", "N", "K"])
def matmul_reduce_scatter_kernel(
    group, words, signals, a, b, partial, out, M, N, K,
    RANKS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Sum the products of every rank's a, RANKS * M by K, and b, K by N; `out` gets this rank's M rows of the sum.

    A program has some blocks of rows of each rank's part. It multiplies those of the others first and puts them to
    `partial` there, M by N for each rank that sends, and adds up what it gets while others still multiply.
    """
    program = tl.program_id(0)
    signals += program * RANKS
    call = tpl.barrier_at(group, words + 2 * program)
    me = tpl.rank(group)
    for step in range(1, RANKS + 1):
        peer = (me + step) % RANKS
        for block in range(program, tl.cdiv(M, BLOCK_M), tl.num_programs(0)):
            rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
            for column in range(0, N, BLOCK_N):
                tile = _product(a + peer * M * K, b, rows, M, N, K, column, BLOCK_M, BLOCK_N, BLOCK_K)
                columns = column + tl.arange(0, BLOCK_N)
                mask = (rows[:, None] < M) & (columns < N)
                tpl.put(group, partial + (me * M + rows[:, None]) * N + columns, tile, peer, mask)
        tpl.notify(group, signals + me, peer)
    for source in range(RANKS):
        tpl.wait(group, signals + source, call)
    for block in range(program, tl.cdiv(M, BLOCK_M), tl.num_programs(0)):
        rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
        for column in range(0, N, BLOCK_N):
            columns = column + tl.arange(0, BLOCK_N)
            mask = (rows[:, None] < M) & (columns < N)
            total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
            for source in range(RANKS):
                total += tl.load(partial + (source * M + rows[:, None]) * N + columns, mask=mask)
            tl.store(out + rows[:, None] * N + columns, total.to(out.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["entries", "width", "each", "room"])
def dispatch_kernel(
    group, words, signals, x, experts, received, received_experts, counts, slots, entries, width, each, room,
    TOP: tl.constexpr, RANKS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_W: tl.constexpr,
):  # fmt: skip
    """Put tokens to the ranks of their experts.

    `x` has rows of `width` elements; entry e of `experts`, of which there are TOP for each row, is an expert of row
    e // TOP. Rank r has the experts from r * each on. Part s of `received`, of `room` rows, gets the rows that rank s
    sends, in the order of entries, the same part of `received_experts` their experts, and `counts` their number.
    `slots` keeps where each entry went. Program i sends to the rank i places ahead, and waits for the one i behind.
    """
    program = tl.program_id(0)
    call = tpl.barrier_at(group, words + 2 * program)
    me = tpl.rank(group)
    peer = (me + program) % RANKS
    sent = 0
    for start in range(0, entries, BLOCK):
        entry = start + tl.arange(0, BLOCK)
        expert = tl.load(experts + entry, mask=entry < entries, other=-1)
        goes = (expert >= peer * each) & (expert < (peer + 1) * each)
        slot = sent + tl.cumsum(goes.to(tl.int32), 0) - 1
        tl.store(slots + entry, slot, mask=goes)
        tpl.put(group, received_experts + me * room + slot, expert, peer, goes)
        for first in range(0, width, BLOCK_W):
            column = first + tl.arange(0, BLOCK_W)
            mask = goes[:, None] & (column < width)
            row = tl.load(x + (entry[:, None] // TOP) * width + column, mask=mask)
            tpl.put(group, received + (me * room + slot[:, None]) * width + column, row, peer, mask)
        sent += tl.sum(goes.to(tl.int32))
    tpl.put(group, counts + me, sent, peer)
    tpl.notify(group, signals + me, peer)
    tpl.wait(group, signals + (me + RANKS - program) % RANKS, call)


@triton.jit(do_not_specialize=["tokens", "width", "each", "room"])
def combine_kernel(
    group, words, results, experts, weights, slots, out, tokens, width, each, room,
    TOP: tl.constexpr, BLOCK: tl.constexpr, BLOCK_W: tl.constexpr,
):  # fmt: skip
    """Sum what the experts of each token have made of it, times `weights`, in float32.

    `results` is laid out as what `dispatch_kernel` has received. A row is read where it is.
    """
    program = tl.program_id(0)
    tpl.barrier_at(group, words + 2 * program)
    me = tpl.rank(group)
    for start in range(program * BLOCK, tokens, tl.num_programs(0) * BLOCK):
        token = start + tl.arange(0, BLOCK)
        for first in range(0, width, BLOCK_W):
            column = first + tl.arange(0, BLOCK_W)
            mask = (token[:, None] < tokens) & (column < width)
            total = tl.zeros([BLOCK, BLOCK_W], tl.float32)
            for k in tl.static_range(TOP):
                entry = token * TOP + k
                peer = tl.load(experts + entry, mask=token < tokens, other=0) // each
                slot = tl.load(slots + entry, mask=token < tokens, other=0)
                weight = tl.load(weights + entry, mask=token < tokens, other=0.0)
                place = results + (me * room + slot[:, None]) * width + column
                row = tpl.get(group, place, peer[:, None], mask, 0.0)
                total += weight[:, None] * row.to(tl.float32)
            tl.store(out + token[:, None] * width + column, total.to(out.dtype.element_ty), mask=mask)
    tpl.barrier_at(group, words + 2 * program)


@triton.jit
def _copy_keys(group, k, v, k_to, v_to, peer, SEQUENCE, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    """Put the keys and values of a head to `peer`."""
    depth = tl.arange(0, DEPTH)
    for start in range(0, SEQUENCE, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        mask = (rows[:, None] < SEQUENCE) & (depth < DEPTH)
        offsets = rows[:, None] * DEPTH + depth
        tpl.put(group, k_to + offsets, tl.load(k + offsets, mask=mask), peer, mask)
        tpl.put(group, v_to + offsets, tl.load(v + offsets, mask=mask), peer, mask)


@triton.jit
def _attend(
    q, k, v, sums, largest, weights, ahead, scale, SEQUENCE,
    CAUSAL: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Add what some keys and values contribute to the attention of a head: `sums`, the largest exponent of each row and
    the sum of `weights` so far. `ahead`: how many positions the first query is ahead of the first key."""
    depth = tl.arange(0, DEPTH)
    for start in range(0, SEQUENCE, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        inside = rows < SEQUENCE
        offsets = rows[:, None] * DEPTH + depth
        query = tl.load(q + offsets, mask=inside[:, None], other=0.0)
        total = tl.load(sums + offsets, mask=inside[:, None], other=0.0)
        top = tl.load(largest + rows, mask=inside, other=float("-inf"))
        weight = tl.load(weights + rows, mask=inside, other=0.0)
        for first in range(0, SEQUENCE, BLOCK):
            keys = first + tl.arange(0, BLOCK)
            places = keys[:, None] * DEPTH + depth
            key = tl.load(k + places, mask=keys[:, None] < SEQUENCE, other=0.0)
            value = tl.load(v + places, mask=keys[:, None] < SEQUENCE, other=0.0)
            seen = (keys < SEQUENCE)[None, :]
            if CAUSAL:
                seen = seen & (keys[None, :] <= rows[:, None] + ahead)
            score = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
            score = tl.where(seen, score, float("-inf"))
            raised = tl.maximum(top, tl.max(score, 1))
            base = tl.where(raised == float("-inf"), 0.0, raised)  # a row that sees no key yet
            factor = tl.exp(top - base)
            part = tl.exp(score - base[:, None])
            weight = weight * factor + tl.sum(part, 1)
            total = tl.dot(part.to(value.dtype), value, total * factor[:, None], input_precision="ieee")
            top = raised
        tl.store(sums + offsets, total, mask=inside[:, None])
        tl.store(largest + rows, top, mask=inside)
        tl.store(weights + rows, weight, mask=inside)


@triton.jit(do_not_specialize=["heads", "sequence"])
def ring_attention_kernel(
    group, words, arrived, freed, q, k, v, keys, values, sums, largest, weights, out, heads, sequence, scale,
    CAUSAL: tl.constexpr, RANKS: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Attention of this rank's queries to every rank's keys and values, which go around a ring.

    `q`, `k`, `v` and `out` are heads by sequence by DEPTH. `keys` and `values` have two places for each head, which are
    used in turns: one is read and sent on while the other one is written by the left neighbour. `sums`, `largest` and
    `weights` keep what each row has so far; `sums` and `weights` are zero and `largest` is -inf at first.
    """
    me = tpl.rank(group)
    right, left = (me + 1) % RANKS, (me + RANKS - 1) % RANKS
    size = sequence * DEPTH
    for head in range(tl.program_id(0), heads, tl.num_programs(0)):
        call = tpl.barrier_at(group, words + 2 * head)
        arrivals = (call - 1) * (RANKS - 1)
        releases = (call - 1) * (RANKS - 2)
        row, place = head * sequence, 2 * head * size
        _copy_keys(
            group, k + head * size, v + head * size, keys + place, values + place, me, sequence, DEPTH, BLOCK
        )
        for step in tl.static_range(RANKS):
            here = place + step % 2 * size
            there = place + (step + 1) % 2 * size
            if step < RANKS - 1:
                if step > 0:
                    tpl.wait(group, freed + head, releases + step)
                _copy_keys(
                    group,
                    keys + here,
                    values + here,
                    keys + there,
                    values + there,
                    right,
                    sequence,
                    DEPTH,
                    BLOCK,
                )
                tpl.notify(group, arrived + head, right)
            source = (me + RANKS - step) % RANKS
            _attend(
                q + head * size, keys + here, values + here, sums + head * size, largest + row, weights + row,
                (me - source) * sequence, scale, sequence, CAUSAL, DEPTH, BLOCK,
            )  # fmt: skip
            if step < RANKS - 2:
                tpl.notify(group, freed + head, left)
            if step < RANKS - 1:
                tpl.wait(group, arrived + head, arrivals + step + 1)
        depth = tl.arange(0, DEPTH)
        for start in range(0, sequence, BLOCK):
            rows = start + tl.arange(0, BLOCK)
            offsets = head * size + rows[:, None] * DEPTH + depth
            mask = rows[:, None] < sequence
            weight = tl.load(weights + row + rows, mask=rows < sequence, other=1.0)
            total = tl.load(sums + offsets, mask=mask, other=0.0) / weight[:, None]
            tl.store(out + offsets, total.to(out.dtype.element_ty), mask=mask)
