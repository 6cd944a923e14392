"""SGLang's `RadixCache` over its slot allocators, contract `prefix.radix`: `python3 -m kvoracle.systems.sglang [--folder DIR]`."""
