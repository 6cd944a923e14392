"""Tests that the crop of static layers, new in 5.24.0, should pass. They need transformers and torch alone."""

from types import SimpleNamespace

import torch
from transformers.cache_utils import StaticCache


def cache_of(layer_type, **sizes):
    model = SimpleNamespace(layer_types=[layer_type], num_hidden_layers=1, sliding_window=sizes.pop("sliding_window", None))
    model.per_layer_config = [model]
    model.get_text_config = lambda decoder: model
    return StaticCache(model, **sizes)


def update(cache, *tokens):
    keys = torch.tensor(tokens, dtype=torch.float32).reshape(1, 1, -1, 1)
    returned, _ = cache.update(keys, keys, 0)
    return returned.flatten().tolist()


def test_slid_window_is_cropped():
    """"Whether `crop` can put this layer back as it was." (StaticSlidingWindowLayer.is_croppable)"""
    cache = cache_of("sliding_attention", sliding_window=4, max_cache_len=4)
    update(cache, 1, 2, 3, 4)
    update(cache, 5)
    if not cache.is_croppable:
        return
    cache.crop(-1)
    shown = update(cache, 6)
    assert 5 not in shown, f"token 6 gets {shown}: token 5 was removed"


def test_crop_of_more_than_there_is():
    """"Returns the sequence length of the cached states." (StaticLayer.get_seq_length)"""
    cache = cache_of("full_attention", max_cache_len=4)
    update(cache, 1, 2)
    cache.crop(-3)
    assert cache.get_seq_length() >= 0, f"the length is {int(cache.get_seq_length())}"
