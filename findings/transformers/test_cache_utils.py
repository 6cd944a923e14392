"""Tests that transformers' caches should pass. Those of 5.23.0 fail: docs/findings.md of kvoracle explains each.

They need transformers and torch alone, no GPU and no model: pytest findings/transformers
"""

from types import SimpleNamespace

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicSlidingWindowLayer, QuantizedLayer, StaticCache


def config(*layer_types, **sizes):
    """The part of a model's config that a cache reads."""
    model = SimpleNamespace(layer_types=list(layer_types), num_hidden_layers=len(layer_types), **sizes)
    model.per_layer_config = [model] * len(layer_types)
    model.get_text_config = lambda decoder: model
    return model


def update(cache, *tokens, layer=0, batch=1):
    """Adds these tokens, one head and one element: the token itself. The tokens that attention gets."""
    keys = torch.tensor(tokens, dtype=torch.float32).reshape(1, 1, -1, 1).repeat(batch, 1, 1, 1)
    returned, _ = cache.update(keys, keys, layer)
    return returned[0].flatten().tolist()


def test_lost_past_unnoticed():
    """"to be able to retrieve previous full states" (DynamicSlidingWindowLayer.activate_past_recording): a crop retrieves
    them, or is refused."""
    cache = DynamicCache(config=config("sliding_attention", sliding_window=4))
    update(cache, 1, 2, 3, 4, 5, 6)
    cache.activate_past_recording()
    update(cache, 7, 8)
    try:
        cache.crop(-4)
    except RuntimeError:
        return
    kv_length, kv_offset = cache.get_mask_sizes(1, 0)
    shown = update(cache, 9)
    assert len(shown) == kv_length, f"token 9 at position 4 gets {shown}, its mask has {kv_length} columns"


def test_window_one_keeps_all():
    """"their minimal working size, i.e. `sliding_window - 1`" (DynamicSlidingWindowLayer.crop)"""
    cache = DynamicCache(config=config("sliding_attention", sliding_window=1))
    update(cache, 1, 2)
    kv_length, _ = cache.get_mask_sizes(1, 0)
    shown = update(cache, 3)
    assert len(shown) == kv_length, f"token 3 gets {shown}, its mask has {kv_length} column"


def test_slides_short():
    """"max_cache_len: The maximum number of tokens that this Cache should hold." (StaticCache): full layers refuse more."""
    cache = StaticCache(config("sliding_attention", sliding_window=8), max_cache_len=4)
    update(cache, 1, 2, 3, 4)
    try:
        shown = update(cache, 5)
    except IndexError:
        return
    assert 1 in shown, f"token 5 gets {shown}: token 1 is inside of its window of 8"


def test_recurrent_stays():
    """"Remove `tokens_to_remove` tokens from the current cache layer." (LinearAttentionCacheLayerMixin.crop)"""
    cache = DynamicCache(config=config("linear_attention"))
    cache.activate_past_recording()
    for token in (1.0, 2.0):
        cache.update_conv_state(torch.full((1, 1, 2), token), 0)
        cache.update_recurrent_state(torch.full((1, 1), token), 0)
    try:
        cache.crop(-1)
    except RuntimeError:
        return
    assert cache.get_recurrent_state(0).item() == 1, "the state has the token that was removed"


class ExactLayer(QuantizedLayer):
    """A backend whose quantizer loses nothing: quanto and hqq are not needed."""

    def _quantize(self, tensor, axis):
        return tensor.clone()

    def _dequantize(self, q_tensor):
        return q_tensor


def test_half_cropped():
    """"Remove `tokens_to_remove` tokens from the current cache layer." (DynamicLayer.crop)"""
    cache = Cache(layers=[ExactLayer(residual_length=8)])
    update(cache, 1, 2)
    update(cache, 3)
    if not cache.is_croppable:
        return
    cache.crop(-2)
    shown = update(cache, 4)
    assert shown == [1, 4], f"token 4 gets {shown}, and the length is {cache.get_seq_length()}"


def test_half_batched():
    """"Repeat the cache `repeats` times in the batch dimension." (DynamicLayer.batch_repeat_interleave)"""
    cache = Cache(layers=[ExactLayer(residual_length=8)])
    update(cache, 1, 2)
    cache.batch_repeat_interleave(2)
    assert update(cache, 3, batch=2) == [1, 2, 3]


def test_static_hybrid_half_cropped():
    """"Remove `tokens_to_remove` tokens from the current Cache." (Cache.crop); `is_croppable`: "Whether `crop` can put the
    whole cache back as it was, so a rollback leaves no trace." """
    cache = StaticCache(config("hybrid"), max_cache_len=8)
    cache.activate_past_recording()
    for token in (1, 2, 3):
        cache.update_conv_state(torch.full((1, 1, 1), float(token)), 0)
        update(cache, token)
    if not cache.is_croppable:
        return
    cache.crop(-1)
    assert cache.get_seq_length() == 2, f"the length is {int(cache.get_seq_length())}, the convolution lost token 3"


def test_layers_torn():
    """"Remove `tokens_to_remove` tokens from the current Cache." (Cache.crop): from all layers, or from none."""
    cache = DynamicCache(config=config("full_attention", "sliding_attention", sliding_window=2))
    for layer in (0, 1):
        update(cache, 1, 2, 3, layer=layer)
    try:
        cache.crop(-1)
    except RuntimeError:
        pass
    lengths = [cache.get_seq_length(layer) for layer in (0, 1)]
    assert lengths[0] == lengths[1], f"the layers have {lengths} tokens"


def test_empty_skips_batch():
    """"Repeat and interleave the cache" (Cache.batch_repeat_interleave), also when a rollback has emptied it."""
    cache = DynamicCache()
    update(cache, 1, 2)
    cache.crop(-2)
    cache.batch_repeat_interleave(2)
    assert update(cache, 3, batch=2) == [3]


def test_refused_update_changes():
    """"Returns the sequence length of the cached states." (DynamicLayer.get_seq_length)"""
    cache = DynamicCache()
    update(cache, 1, 2)
    keys, values = torch.ones(1, 1, 1, 1), torch.ones(2, 1, 1, 1)
    try:
        cache.update(keys, values, 0)
    except RuntimeError:
        pass
    layer = cache.layers[0]
    assert layer.keys.shape[2] == layer.values.shape[2], "there are more keys than values"


def test_negative_length():
    """"Returns the sequence length of the cached states." (DynamicSlidingWindowLayer.get_seq_length)"""
    layer = DynamicSlidingWindowLayer(sliding_window=2)
    layer.activate_past_recording()
    keys = torch.ones(1, 1, 3, 1)
    layer.update(keys, keys)
    layer.crop(-5)
    assert layer.get_seq_length() >= 0, f"the length is {layer.get_seq_length()}"


def test_unbounded_ignored():
    """"A value of `-1` means no maximum" (Cache.get_max_length)"""
    cache = DynamicCache(config=config("full_attention", "sliding_attention", sliding_window=4))
    assert cache.get_max_length() == -1, f"the maximum is {cache.get_max_length()}, but layer 0 has none"


def test_always_croppable():
    """"Whether `crop` can put the whole cache back as it was, so a rollback leaves no trace." (Cache.is_croppable)"""
    cache = DynamicCache(config=config("sliding_attention", sliding_window=2))
    update(cache, 1, 2, 3)
    if cache.is_croppable:
        cache.crop(-1)


def test_rows_broadcast():
    """"key_states (`torch.Tensor`): The new key states to cache." (StaticSlidingWindowLayer.update)"""
    cache = StaticCache(config("sliding_attention", sliding_window=2), max_cache_len=8)
    update(cache, 1, 2, batch=2)
    try:
        update(cache, 3, batch=1)
    except RuntimeError:
        return
    assert False, "one row was stored in both rows of the batch"


def test_length_is_live():
    """`get_seq_length` returns an int by its signature (StaticLayer): the length at the time of the call."""
    cache = StaticCache(config("full_attention"), max_cache_len=4)
    update(cache, 1)
    before = cache.get_seq_length()
    update(cache, 2)
    assert before == 1, f"the length that was returned before is {int(before)} now"


def test_batch_size_stale():
    """"Return the batch size of the cache" (Cache.batch_size)"""
    cache = StaticCache(config("full_attention"), max_cache_len=4)
    update(cache, 1, batch=2)
    cache.reorder_cache(torch.tensor([0]))
    assert cache.batch_size == cache.layers[0].keys.shape[0], f"the batch size is {cache.batch_size}"
