"""Public models in small configurations, with random weights. Nothing is loaded from a hub.

Dropout is off, because devices draw other random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers

_WORDS = 61

_LAYERS = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
_TEXT = {**_LAYERS, "vocab_size": _WORDS, "max_position_embeddings": 40}
_GROUPED = {**_TEXT, "num_key_value_heads": 2}
_EXPERTS = {
    **_GROUPED,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "experts_implementation": "batched_mm",  # the default takes no float64, which the reference is computed in
}
_STEADY = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_SMALL_IMAGES = {**_LAYERS, **_STEADY, "image_size": 32, "patch_size": 8, "num_labels": 5}


@dataclass(frozen=True)
class Model:
    """A class of transformers and its configuration."""

    name: str
    config: str
    settings: dict[str, Any]
    data: Callable[[], dict[str, Any]]
    """The arguments of a training step."""

    def make(self) -> Any:
        """The model with random weights."""
        return getattr(transformers, self.name)(getattr(transformers, self.config)(**self.settings)).train()


def words(*shape: int) -> torch.Tensor:
    """Random words, none of which is special."""
    return torch.randint(3, _WORDS, shape)


def text() -> dict[str, Any]:
    """Two sequences, which the model continues."""
    tokens = words(2, 9)
    return {"input_ids": tokens, "labels": tokens}


def padded() -> dict[str, Any]:
    """Two sequences of different lengths with a class each."""
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, 6:] = 0
    return {"input_ids": words(2, 9), "attention_mask": mask, "labels": torch.tensor([0, 2])}


def images() -> dict[str, Any]:
    """Two images with a class each."""
    return {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([1, 4])}


MODELS = {
    "Llama": Model("LlamaForCausalLM", "LlamaConfig", _GROUPED, text),
    "Qwen3": Model("Qwen3ForCausalLM", "Qwen3Config", {**_GROUPED, "head_dim": 8}, text),
    "Gemma 3": Model("Gemma3ForCausalLM", "Gemma3TextConfig", {**_GROUPED, "head_dim": 8}, text),
    "Mixtral": Model("MixtralForCausalLM", "MixtralConfig", _EXPERTS, text),
    "gpt-oss": Model("GptOssForCausalLM", "GptOssConfig", {**_EXPERTS, "head_dim": 8}, text),
    "Mamba": Model(
        "MambaForCausalLM",
        "MambaConfig",
        {"vocab_size": _WORDS, "hidden_size": 16, "state_size": 4, "num_hidden_layers": 2},
        text,
    ),
    "GPT-2": Model(
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": _WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
        | {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
        text,
    ),
    "BERT": Model(
        "BertForSequenceClassification", "BertConfig", {**_TEXT, **_STEADY, "num_labels": 3}, padded
    ),
    "T5": Model(
        "T5ForConditionalGeneration",
        "T5Config",
        {"vocab_size": _WORDS, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
        | {"dropout_rate": 0.0, "decoder_start_token_id": 0, "pad_token_id": 0},
        lambda: {"input_ids": words(2, 9), "labels": words(2, 7)},
    ),
    "Whisper": Model(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {"vocab_size": _WORDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2}
        | {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48}
        | {"decoder_ffn_dim": 48, "num_mel_bins": 8, "max_source_positions": 15, "max_target_positions": 20}
        | {
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
            "dropout": 0.0,
        },
        lambda: {"input_features": torch.randn(2, 8, 30), "labels": words(2, 7)},
    ),
    "CLIP": Model(
        "CLIPModel",
        "CLIPConfig",
        {"text_config": {**_TEXT, "eos_token_id": 2}, "vision_config": _SMALL_IMAGES, "projection_dim": 16},
        lambda: {"input_ids": words(2, 9), "pixel_values": torch.randn(2, 3, 32, 32), "return_loss": True},
    ),
    "ViT": Model("ViTForImageClassification", "ViTConfig", _SMALL_IMAGES, images),
    "Swin": Model(
        "SwinForImageClassification",
        "SwinConfig",
        {"image_size": 32, "patch_size": 4, "embed_dim": 12, "depths": [1, 1], "num_heads": [2, 3]}
        | {"window_size": 4, "num_labels": 5, "drop_path_rate": 0.0, **_STEADY},
        images,
    ),
    "ResNet": Model(
        "ResNetForImageClassification",
        "ResNetConfig",
        {"embedding_size": 8, "hidden_sizes": [16, 24], "depths": [1, 2], "num_labels": 5},
        images,
    ),
    "ConvNeXt": Model(
        "ConvNextForImageClassification",
        "ConvNextConfig",
        {"hidden_sizes": [12, 20], "depths": [1, 1], "num_stages": 2, "num_labels": 5},
        images,
    ),
    "EfficientNet": Model(
        "EfficientNetForImageClassification",
        "EfficientNetConfig",
        {"width_coefficient": 0.25, "depth_coefficient": 0.1, "image_size": 32, "hidden_dim": 320}
        | {"num_labels": 5, "dropout_rate": 0.0, "drop_connect_rate": 0.0, "in_channels": [32, 16, 24]}
        | {"out_channels": [16, 24, 32], "kernel_sizes": [3, 3, 5], "strides": [1, 2, 2]}
        | {"num_block_repeats": [1, 1, 1], "expand_ratios": [1, 6, 6], "depthwise_padding": []},
        images,
    ),
}
"""By name."""
