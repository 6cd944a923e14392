"""vLLM's `KVCacheManager` and its block pool, contract `prefix.blocks`: `python3 -m kvoracle.systems.vllm [--folder DIR]`."""
