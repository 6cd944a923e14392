"""Puts KV caches to the test: kvoracle drives them, and compares them with reference caches."""

from .adapter import ABSENT, NotSupported, Panic, Refused, Unsupported, serve
from .recorder import record
from .tensor import Tensor

__version__ = "0.1.0"
__all__ = ["ABSENT", "NotSupported", "Panic", "Refused", "Tensor", "Unsupported", "record", "serve"]
