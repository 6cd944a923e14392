"""The index of Infera's router (docs/systems.md)."""
