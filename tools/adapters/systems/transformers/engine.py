"""Imports the caches of a transformers without the rest of the engine."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from kvoracle.systems import found, stand_in


def load(arguments: list[str] | None = None) -> found.Found:
    """Finds the release (found.find) and makes transformers.cache_utils importable. torch is real."""
    release = found.find("transformers", arguments)
    torch: Any = importlib.import_module("torch")
    dynamo: Any = types.ModuleType("torch._dynamo")  # static layers tag their buffers for it; the real one takes seconds
    dynamo.mark_static_address = lambda buffer: None
    torch._dynamo = sys.modules["torch._dynamo"] = dynamo
    stand_in.only("transformers", release.folder, ["transformers.cache_utils"])
    sys.meta_path.pop()  # no stand-ins for what torch does without
    utils: Any = importlib.import_module("transformers.utils")
    utils.is_hqq_available = utils.is_optimum_quanto_available = lambda: False
    utils.is_torchdynamo_compiling = torch.compiler.is_compiling
    return release
