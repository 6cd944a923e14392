"""The caches of mlx-lm (docs/systems.md)."""
