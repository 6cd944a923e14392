"""Tests that mlx-lm's generation should pass. Those of 0.32.2 fail: docs/findings.md of kvoracle explains each.

They need mlx-lm alone, no GPU and no weights: pytest findings/mlx_lm
"""

import mlx.core as mx
from mlx_lm.generate import generate_step, speculative_generate_step
from mlx_lm.models.cache import RotatingKVCache

VOCABULARY, WINDOW = 97, 8
PROMPT = mx.array([1, 2, 3])


class Model:
    """One layer with a sliding window, as in Gemma 3: the next token is the sum of the tokens that it attends to."""

    def __init__(self, step):
        self.step, self.layers = step, [self]

    def make_cache(self):
        return [RotatingKVCache(max_size=WINDOW)]

    def __call__(self, inputs, cache):
        mask = cache[0].make_mask(inputs.shape[1], return_array=True)
        tokens = inputs.astype(mx.float32)[:, None, :, None]
        keys, _ = cache[0].update_and_fetch(tokens, tokens)
        keys = keys[0, 0, :, 0]
        shown = mx.ones((1, keys.size)) if mask is None else mask.astype(mx.float32)
        sums = (shown @ keys + self.step).astype(mx.int32) % VOCABULARY
        return mx.eye(VOCABULARY)[sums][None] * 100


def drafted(model, draft_model):
    steps = speculative_generate_step(PROMPT, model, draft_model, num_draft_tokens=2, max_tokens=12)
    return [int(token) for token, _, _ in steps]


def test_rejected_drafts_stay():
    """"trim the cache if possible (in-place) and return the number of tokens that were trimmed" (trim_prompt_cache):
    a draft model changes the speed and not the tokens. The number is not looked at; it is 0 once a window is full."""
    alone = [int(token) for token, _ in generate_step(PROMPT, Model(step=0), max_tokens=12)]
    assert drafted(Model(step=0), Model(step=0)) == alone  # every draft is right: nothing is taken back
    tokens = drafted(Model(step=0), Model(step=1))
    assert tokens == alone, f"with a draft model {tokens}, without one {alone}"
