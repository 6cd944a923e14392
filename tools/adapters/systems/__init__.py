"""Adapters of engines as they are published: `python3 -m kvoracle.systems.NAME` drives the caches of the engine that is
installed, or of the release in --folder DIR. Nothing of an engine is changed."""
