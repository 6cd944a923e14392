"""The caches of Hugging Face transformers (docs/systems.md)."""
