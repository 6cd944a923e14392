"""Imports the caches of a vLLM without the rest of the engine."""

from __future__ import annotations

import importlib
import os
from typing import Any

from kvoracle.systems import found, stand_in


class SamplingParams:
    """Of the engine's class, what a request reads."""

    extra_args = structured_outputs = prompt_logprobs = None

    def __init__(self, max_tokens: int = 1 << 30, skip_reading_prefix_cache: bool = False) -> None:
        self.max_tokens, self.skip_reading_prefix_cache = max_tokens, skip_reading_prefix_cache


def load(arguments: list[str] | None = None) -> found.Found:
    """Finds the release (found.find) and makes its modules of caches importable, with keys by SHA-256, the default."""
    release = found.find("vllm", arguments)
    os.environ["VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES"] = "0"  # events have whole keys instead of 64 bits of them
    stand_in.only("vllm", release.folder,
                  ["vllm.distributed.kv_events", "vllm.envs", "vllm.v1.core.", "vllm.v1.request", "vllm.v1.kv_cache_", "vllm.v1.hisparse.layout",
                   "vllm.v1.metrics.stats", "vllm.v1.structured_output.request", "vllm.v1.utils", "vllm.utils.hashing",
                   "vllm.utils.math_utils"])
    module: Any = importlib.import_module
    module("vllm.utils.torch_utils").get_dtype_size = lambda dtype: 4
    module("vllm.sampling_params").SamplingParams = SamplingParams
    module("vllm.v1.request").length_from_prompt_token_ids_or_embeds = lambda tokens, embeds: len(tokens)
    module("vllm.v1.core.kv_cache_utils").init_none_hash(module("vllm.utils.hashing").sha256)
    managers = module("vllm.v1.core.single_type_kv_cache_manager")
    if hasattr(managers, "register_all_kvcache_specs"):  # since 0.23
        managers.register_all_kvcache_specs(None)
    return release
