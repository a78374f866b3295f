"""Autocast: the types that operators compute in, by torch's own header and torch's own lists of calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from host_backend import NAME
from torch._subclasses.fake_tensor import FakeTensorMode

from triton_porting_kit.pytorch.operators import autocast

HEADER = Path(torch.__file__).parent / "include/ATen/autocast_mode.h"

TABLES = {
    "AT_FORALL_LOWER_PRECISION_FP": autocast.LOWER_PRECISION.split(),
    "AT_FORALL_FP32": autocast.FLOAT32.split(),
    "AT_FORALL_FP32_SET_OPT_DTYPE": autocast.FLOAT32_RESULT.split(),
    "AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE": list(autocast.APPENDED),
    "AT_FORALL_PROMOTE": autocast.PROMOTED.split(),
}
"""The macros of the header, and the names here."""

LISTS = {
    "torch_fp16": (torch.float16, torch),
    "nn_fp16": (torch.float16, torch._C._nn),
    "linalg_fp16": (torch.float16, torch._C._linalg),
    "methods_fp16": (torch.float16, None),
    "torch_fp32": (torch.float32, torch),
    "nn_fp32": (torch.float32, torch._C._nn),
    "methods_fp32": (torch.float32, None),
    "torch_need_autocast_promote": (torch.float32, torch),
    "torch_expect_builtin_promote": (None, torch),
    "methods_expect_builtin_promote": (None, None),
}
"""The lists of torch's `AutocastTestLists`: the type of results, and the module that has the operators."""


NAMED = re.compile(r"\.(\w*[Dd]imname|names_)")
"""Overloads for tensors whose dimensions have names, up to torch 2.12. Operators written in Python cannot take them."""


def macro(name: str) -> list[str]:
    """The operators that a macro of the header lists, without those for named tensors."""
    text = HEADER.read_text()
    body = re.search(rf"#define {name}\(_\)((?:.*\\\n)+.*\n)", text)
    assert body
    found = re.findall(r'"([\w.]+)"', body[1])
    if not found:
        pairs = re.findall(r"_\((\w+)(?:, (\w+))?\)", body[1])
        found = [name if not overload else f"{name}.{overload}" for name, overload in pairs]
    return [name for name in found if not NAMED.search(name)]


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_those_of_torch(name: str) -> None:
    assert TABLES[name] == macro(name)


def calls(kind: str) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any], Any]]:
    """Operator, arguments, named arguments and type of the result of each call of a list."""
    from torch.testing._internal.autocast_test_lists import AutocastTestLists

    for name, args, *rest in getattr(AutocastTestLists(NAME), kind):
        extra = rest[0] if rest else None  # named arguments, a type, or whether torch's tests skip the call
        if "cudnn" in name or (extra and not isinstance(extra, (dict, torch.dtype))):
            continue
        named = extra if isinstance(extra, dict) else {}
        yield name, args, named, extra if isinstance(extra, torch.dtype) else LISTS[kind][0]


def tensors(value: Any) -> list[torch.Tensor]:
    return [each for each in torch.utils._pytree.tree_leaves(value) if isinstance(each, torch.Tensor)]


@pytest.mark.parametrize("kind", LISTS)
def test_results_have_the_types_of_torchs_devices(chip: Any, kind: str) -> None:
    module = LISTS[kind][1]
    with FakeTensorMode():
        for name, args, named, expected in calls(kind):
            if name == "equal":  # needs values
                continue
            with torch.autocast(NAME, dtype=torch.float16):
                if module is not None and hasattr(module, name):
                    results = [getattr(module, name)(*args, **named)]
                else:
                    results = [getattr(args[0], name)(*args[1:], **named)]
            for result in tensors(results):
                assert result.dtype == expected, name


def test_a_type_that_loses_accuracy_is_refused(chip: Any) -> None:
    x = torch.rand(4, device=NAME)
    with torch.autocast(NAME), pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
        torch.nn.functional.binary_cross_entropy(x, x)


@pytest.mark.parametrize(
    ("dtype", "compiles"), [(torch.bfloat16, False), (torch.float16, True)], ids=["eager", "compiled"]
)
def test_training_computes_in_the_type_and_keeps_gradients_in_float32(
    chip: Any, dtype: torch.dtype, compiles: bool
) -> None:
    torch.manual_seed(0)
    host = torch.nn.Sequential(torch.nn.Linear(12, 9), torch.nn.LayerNorm(9), torch.nn.Linear(9, 5))
    device = torch.nn.Sequential(
        *(type(m)(*a) for m, a in zip(host, [(12, 9), (9,), (9, 5)], strict=True))
    ).to(NAME)
    device.load_state_dict(host.state_dict())
    x, y = torch.randn(7, 12), torch.randint(5, (7,))

    def loss(network: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        with torch.autocast(x.device.type, dtype=dtype):
            logits = network(x)
            return logits, torch.nn.functional.cross_entropy(logits, y)

    expected, wanted = loss(host, x, y)
    wanted.backward()
    run = torch.compile(loss) if compiles else loss
    logits, found = run(device, x.to(NAME), y.to(NAME))
    found.backward()
    assert logits.dtype == expected.dtype == dtype
    assert found.dtype == wanted.dtype == torch.float32
    step = torch.finfo(dtype).eps
    torch.testing.assert_close(logits.cpu(), expected, atol=4 * step, rtol=4 * step)
    torch.testing.assert_close(found.cpu(), wanted, atol=4 * step, rtol=4 * step)
    for ours, theirs in zip(device.parameters(), host.parameters(), strict=True):
        assert ours.grad.dtype == torch.float32
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad, atol=4 * step, rtol=8 * step)
    assert chip.fallbacks() == {}
