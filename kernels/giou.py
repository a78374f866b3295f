"""Generalised IoU loss over batches of boxes, forward.

For boxes A and B, with smallest enclosing box C and areas |.|:
IoU = |A and B| / |A or B|, GIoU = IoU - (|C| - |A or B|) / |C|, and the loss is 1 - GIoU, from 0 (equal
boxes) to 2 (far apart).
"""

from __future__ import annotations

import triton
import triton.language as tl

from .arrays import Array, check_contiguous, check_shape, empty

MAX_BLOCK = 1024
# The smallest divisor: empty boxes then have IoU 0 instead of NaN. It is far below any real area.
EPSILON = 1e-12


@triton.jit
def load_box(ptr, boxes, inside):
    """The corners x1, y1, x2, y2 of the numbered boxes, as float32; 0 where not `inside`."""
    x1 = tl.load(ptr + boxes * 4 + 0, mask=inside, other=0.0).to(tl.float32)
    y1 = tl.load(ptr + boxes * 4 + 1, mask=inside, other=0.0).to(tl.float32)
    x2 = tl.load(ptr + boxes * 4 + 2, mask=inside, other=0.0).to(tl.float32)
    y2 = tl.load(ptr + boxes * 4 + 3, mask=inside, other=0.0).to(tl.float32)
    return x1, y1, x2, y2


@triton.jit
def area(x1, y1, x2, y2):
    """The area of a box; 0 if its corners are in the wrong order."""
    return tl.maximum(x2 - x1, 0.0) * tl.maximum(y2 - y1, 0.0)


@triton.jit
def giou_loss_kernel(pred_ptr, target_ptr, valid_ptr, loss_ptr, n_boxes, eps, BLOCK: tl.constexpr):
    """One program per sample: mean loss over its valid boxes, BLOCK boxes at a time."""
    sample = tl.program_id(0)
    pred_ptr += sample * n_boxes * 4
    target_ptr += sample * n_boxes * 4
    valid_ptr += sample * n_boxes

    total = tl.zeros((BLOCK,), dtype=tl.float32)
    count = tl.zeros((BLOCK,), dtype=tl.int32)
    for start in range(0, n_boxes, BLOCK):
        boxes = start + tl.arange(0, BLOCK)
        inside = boxes < n_boxes
        valid = tl.load(valid_ptr + boxes, mask=inside, other=0) != 0
        px1, py1, px2, py2 = load_box(pred_ptr, boxes, inside)
        tx1, ty1, tx2, ty2 = load_box(target_ptr, boxes, inside)

        overlap = area(tl.maximum(px1, tx1), tl.maximum(py1, ty1), tl.minimum(px2, tx2), tl.minimum(py2, ty2))
        hull = area(tl.minimum(px1, tx1), tl.minimum(py1, ty1), tl.maximum(px2, tx2), tl.maximum(py2, ty2))
        union = area(px1, py1, px2, py2) + area(tx1, ty1, tx2, ty2) - overlap
        iou = overlap / tl.maximum(union, eps)
        loss = 1.0 - iou + (hull - union) / tl.maximum(hull, eps)

        # Select instead of multiply, so that NaN in invalid boxes is dropped.
        total += tl.where(valid, loss, 0.0)
        count += valid.to(tl.int32)

    mean = tl.sum(total, axis=0) / tl.maximum(tl.sum(count, axis=0), 1).to(tl.float32)
    tl.store(loss_ptr + sample, mean)


def giou_loss(
    pred: Array, target: Array, valid: Array, *, eps: float = EPSILON, out: Array | None = None
) -> Array:
    """Mean generalised IoU loss of each sample, float32 of shape (B,).

    `pred` and `target` are boxes (x1, y1, x2, y2) of shape (B, N, 4), each float32, float16 or bfloat16;
    `valid` (bool or 8-bit integer, shape (B, N)) marks the valid boxes. A sample without valid boxes has loss 0.
    Divisors below `eps` (in square units of the coordinates) are replaced by `eps`. Arrays must be contiguous.
    """
    if len(pred.shape) != 3 or pred.shape[2] != 4:
        raise ValueError(f"boxes have shape {tuple(pred.shape)}, expected (samples, boxes, 4)")
    n_samples, n_boxes = pred.shape[:2]
    out = empty((n_samples,), pred, "float32") if out is None else out
    check_shape("target", target, pred.shape)
    check_shape("valid", valid, (n_samples, n_boxes))
    check_shape("out", out, (n_samples,))
    check_contiguous(pred=pred, target=target, valid=valid, out=out)
    block = min(MAX_BLOCK, triton.next_power_of_2(max(n_boxes, 1)))
    giou_loss_kernel[(n_samples,)](pred, target, valid, out, n_boxes, eps, BLOCK=block)
    return out
