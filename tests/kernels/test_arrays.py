"""What host functions ask of arrays, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from triton_porting_kit.kernels import arrays
from triton_porting_kit.kernels.dropout import dropout
from triton_porting_kit.kernels.giou import giou_loss
from triton_porting_kit.kernels.layer_norm import layer_norm
from triton_porting_kit.kernels.matmul import matmul
from triton_porting_kit.kernels.softmax import softmax
from triton_porting_kit.kernels.vector_add import vector_add


class Stub:
    """An array of some library, without memory."""

    def __init__(
        self, shape: Sequence[int], dtype: Any = "float32", strides: Sequence[int] | None = None
    ) -> None:
        self.shape, self.dtype, self.device = tuple(shape), dtype, "somewhere"
        self.strides = strides or tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))

    @classmethod
    def empty(cls, shape: Sequence[int], dtype: str, device: str) -> Stub:
        assert device == "somewhere"
        return cls(shape, dtype)

    def data_ptr(self) -> int:
        return 64


def test_dtype_name_drops_the_library() -> None:
    assert arrays.dtype_name(Stub((1,), "torch.bfloat16")) == "bfloat16"
    assert arrays.dtype_name(Stub((1,), "float16")) == "float16"


def test_empty_uses_the_library_of_its_model() -> None:
    made = arrays.empty([2, 3], Stub((1,), "float16"))
    assert isinstance(made, Stub)
    assert (made.shape, made.dtype) == ((2, 3), "float16")
    assert arrays.empty([2], made, "float32").dtype == "float32"


def test_contiguity_ignores_dimensions_of_one() -> None:
    arrays.check_contiguous(x=Stub((4, 1), strides=(1, 7)))
    with pytest.raises(ValueError, match=r"x of shape \(4, 2\) has strides \(1, 4\)"):
        arrays.check_contiguous(x=Stub((4, 2), strides=(1, 4)))


VECTOR, MATRIX, MASK = Stub((8,)), Stub((4, 8)), Stub((2, 3), "bool")
REFUSED = {
    "vector_add_shapes": (lambda: vector_add(VECTOR, Stub((9,))), r"y has shape \(9,\), expected \(8,\)"),
    "softmax_of_a_vector": (lambda: softmax(VECTOR), "takes a matrix"),
    "softmax_of_columns": (lambda: softmax(Stub((4, 8), strides=(1, 4))), "contiguous rows"),
    "matmul_inner_sizes": (lambda: matmul(MATRIX, MATRIX), r"not \(M, K\) and \(K, N\)"),
    "matmul_types": (lambda: matmul(MATRIX, Stub((8, 4), "float16")), "give both one type"),
    "giou_box_size": (lambda: giou_loss(Stub((2, 3, 5)), Stub((2, 3, 5)), MASK), r"\(samples, boxes, 4\)"),
    "giou_mask": (lambda: giou_loss(Stub((2, 3, 4)), Stub((2, 3, 4)), VECTOR), "valid has shape"),
    "layer_norm_weight": (lambda: layer_norm(MATRIX, Stub((4,)), VECTOR), "weight has shape"),
    "dropout_probability": (lambda: dropout(VECTOR, 1.5, 0), "not a probability"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_mistakes_are_named(mistake: str) -> None:
    call, message = REFUSED[mistake]
    with pytest.raises(ValueError, match=message):
        call()


def test_torch_outputs_are_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    made: Any = arrays.empty((2, 3), torch.zeros(1, dtype=torch.bfloat16))
    assert (made.dtype, tuple(made.shape)) == (torch.bfloat16, (2, 3))
    assert arrays.element_strides(made) == (3, 1)
