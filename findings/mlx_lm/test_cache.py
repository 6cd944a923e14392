"""Tests that mlx-lm's caches should pass. Those of 0.32.2 fail: docs/findings.md of kvoracle explains each.

They need mlx-lm alone, no GPU and no model: pytest findings/mlx_lm
"""

import os
import tempfile

import mlx.core as mx
from mlx_lm.models.cache import (
    ArraysCache,
    BatchKVCache,
    BatchRotatingKVCache,
    ChunkedKVCache,
    ConcatenateKVCache,
    KVCache,
    LRUPromptCache,
    QuantizedKVCache,
    RotatingKVCache,
    can_trim_prompt_cache,
    load_prompt_cache,
    save_prompt_cache,
    trim_prompt_cache,
)


def rows(*tokens, batch=1):
    """Keys and values of these tokens, one head and one element: the token itself."""
    array = mx.repeat(mx.array(tokens, mx.float32).reshape(1, 1, -1, 1), batch, axis=0)
    return array, array


def update(cache, *tokens, batch=1):
    keys, _ = cache.update_and_fetch(*rows(*tokens, batch=batch))
    return keys


def seen(cache, *tokens, batch=1, **window):
    """For each row of the batch and each of these new tokens: the tokens that the mask of the cache shows to it."""
    mask = cache.make_mask(len(tokens), **window)
    keys = update(cache, *tokens, batch=batch)[:, 0, :, 0]
    mask = mx.broadcast_to(mask, (batch, 1, len(tokens), keys.shape[1]))[:, 0]
    return [[[int(key) for key, shown in zip(row, line) if shown] for line in lines]
            for row, lines in zip(keys.tolist(), mask.tolist())]


def test_padding_hides_token():
    """"every token gets at least self.max_size context" (BatchRotatingKVCache._update_concat)."""
    cache = BatchRotatingKVCache(max_size=4, left_padding=[0, 3])
    for token in range(1, 6):
        update(cache, token, batch=2)
    # The second row holds tokens 4 and 5: its padding was in front of them.
    shown = seen(cache, 6, 7, batch=2)[1]
    assert shown == [[4, 5, 6], [4, 5, 6, 7]], f"tokens 6 and 7 see {shown}"


def test_kept_slots_roll():
    """"May need a mask for when window_size < max_size" (RotatingKVCache.make_mask): of the last window_size tokens."""
    cache = RotatingKVCache(max_size=4, keep=1)
    for token in range(1, 5):
        update(cache, token)
    shown = seen(cache, 5, window_size=2)[0][0]
    assert sorted(shown) == [4, 5], f"token 5 sees {shown}"


def test_concatenate_trim_undone():
    """"This function will trim the cache if possible (in-place) and return the number of tokens that were trimmed."
    (trim_prompt_cache)"""
    cache = ConcatenateKVCache()
    update(cache, 1, 2, 3)
    assert trim_prompt_cache([cache], 2) == 2
    shown = update(cache, 4).flatten().tolist()
    assert shown == [1, 4], f"token 4 sees {shown}"


def test_chunk_trimmed_short():
    """What fetch_nearest_cache returns is the prompt: the cache holds its first tokens, the list has the others."""
    cache = [KVCache(), ChunkedKVCache(chunk_size=4)]
    prompt = list(range(1, 11))
    for token in prompt:
        for layer in cache:
            update(layer, token)
        cache[1].maybe_trim_front()  # as models/llama4.py before each forward
    store = LRUPromptCache()
    store.insert_cache("model", prompt, cache)
    assert can_trim_prompt_cache(cache)
    found, rest = store.fetch_nearest_cache("model", [1, 2, 3, 99])
    assert rest == [99]
    offsets = [layer.offset for layer in found]
    assert offsets == [3, 3], f"the layers hold {offsets} tokens of the prompt"


def test_chunk_rolled_back_over_its_front():
    """After a rollback a layer shows what it showed before the tokens that were taken back (trim_prompt_cache)."""
    cache = ChunkedKVCache(chunk_size=4)
    for token in range(1, 8):
        cache.maybe_trim_front()
        update(cache, token)
    before = update(cache, 8).flatten().tolist()
    assert before[-4:] == [5, 6, 7, 8]
    for token in range(9, 12):
        cache.maybe_trim_front()
        update(cache, token)
    if trim_prompt_cache([cache], 3) == 3:
        shown = cache.keys_and_values()[0].flatten().tolist()
        assert shown[-4:] == [5, 6, 7, 8], f"the chunk has {shown}"


def test_note_forgotten():
    """"Load a prompt cache from a file." (load_prompt_cache): it goes on as the one that was saved."""
    for cache in (BatchKVCache([1, 0]), BatchRotatingKVCache(4, [1, 0])):
        update(cache, 1, 2, batch=2)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cache.safetensors")
            save_prompt_cache(path, [cache])
            loaded = load_prompt_cache(path)[0]
        loaded.finalize()
        assert update(loaded, 3, batch=2).shape == (2, 1, 3, 1)


def test_empty_state_refused():
    """"Load a prompt cache from a file." (load_prompt_cache)"""
    assert ConcatenateKVCache.from_state(ConcatenateKVCache().state).empty()


def test_empty_has_no_bytes():
    """"Return the size of this cache in bytes" (_BaseCache.nbytes)"""
    assert QuantizedKVCache().nbytes == 0


def test_filter_needs_rows():
    """"In-place filter to keep just the given indices in the cache." (filter)"""
    cache = BatchKVCache([0, 0])
    update(cache, 1, 2, batch=2)
    cache.filter([])
    assert cache.offset.size == 0


def test_one_token_prefix_ignored():
    """"Longest prefix with a value" (PromptTrieResult.shorter)"""
    state = ArraysCache(1)
    state[0] = rows(7)[0]
    store = LRUPromptCache()
    store.insert_cache("model", [7], [state])
    found, rest = store.fetch_nearest_cache("model", [7, 8])
    assert found is not None and rest == [8], f"nothing is found, {rest} is left"


def test_trim_unguarded():
    """"return the number of tokens that were trimmed" (trim_prompt_cache): a ring that has wrapped cannot be trimmed."""
    cache = RotatingKVCache(max_size=4)
    for token in range(1, 7):
        update(cache, token)
    trimmed = cache.trim(2)
    shown = sorted(update(cache, 7).flatten().tolist())
    assert trimmed == 0 or 6 not in shown, f"token 7 sees {shown}, and {trimmed} tokens were trimmed"


def test_negative_trim_grows():
    """"return the number of tokens that were trimmed" (trim_prompt_cache)"""
    cache = KVCache()
    update(cache, 1, 2)
    assert cache.trim(-1) == 0 and cache.offset == 2, f"the length is {cache.offset}"
