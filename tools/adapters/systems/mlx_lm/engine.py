"""Imports the caches of an mlx-lm without the rest of the engine."""

from __future__ import annotations

from kvoracle.systems import found, stand_in


def load(arguments: list[str] | None = None) -> found.Found:
    """Finds the release (found.find) and makes mlx_lm.models.cache and mlx_lm.generate importable. MLX is real."""
    release = found.find("mlx_lm", arguments)
    stand_in.only("mlx_lm", release.folder,
                  ["mlx_lm.models.cache", "mlx_lm.models.base", "mlx_lm.generate", "mlx_lm.sample_utils"])
    return release
