#!/usr/bin/env python3
"""tools/probe/planted.py ENGINE FAULT [OPTIONS]: an engine serves with a fault planted in its prefix cache.

For `kvoracle probe check`, which must find it. OPTIONS are those of `vllm serve`, or of `python -m sglang.launch_server`.
Needs the engine. Modules of cards that SGLang imports and a machine without a card lacks are empty.

ENGINE, FAULT: vllm    keys_not_chained      equal blocks share rows, whatever stands before them
                       key_lacks_last_token  blocks that differ in their last token share rows
                       key_stays_in_index    a block that gets other rows is still found under its old key
               sglang  hit_repeats_row       the last row of a hit is the one before it
                       locks_are_lost        rows that a request reads may be evicted
               either  none                  the engine as it is
"""
import importlib.machinery
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import types


def keys_not_chained(keys):
    key_of = keys.hash_block_tokens
    keys.hash_block_tokens = lambda hasher, parent, tokens, *extra: key_of(hasher, None, tokens, *extra)


def key_lacks_last_token(keys):
    key_of = keys.hash_block_tokens
    keys.hash_block_tokens = lambda hasher, parent, tokens, *extra: key_of(hasher, parent, tokens[:-1], *extra)


def key_stays_in_index(pools):
    def evict(self, block):
        block.reset_hash()
        return False
    pools.BlockPool._maybe_evict_cached_block = evict


def hit_repeats_row(caches):
    slots_of = caches.UnifiedRadixCache.prefix_device_indices

    def repeated(self, req):
        slots = slots_of(self, req).clone()
        slots[1:][-1:] = slots[:-1][-1:]
        return slots
    caches.UnifiedRadixCache.prefix_device_indices = repeated


def locks_are_lost(caches):
    caches.UnifiedRadixCache.lock = lambda *_, **__: None


COMMANDS = {"vllm": ["-m", "vllm.entrypoints.cli.main", "serve"], "sglang": ["-m", "sglang.launch_server"]}
KEYS, POOL = "vllm.v1.core.kv_cache_utils", "vllm.v1.core.block_pool"
TREE = "sglang.srt.mem_cache.unified_radix_cache"
# The module that each fault changes.
FAULTS = {"vllm": {keys_not_chained: KEYS, key_lacks_last_token: KEYS, key_stays_in_index: POOL},
          "sglang": {hit_repeats_row: TREE, locks_are_lost: TREE}}
CARD = ("torchvision", "torchaudio", "sgl_kernel", "flashinfer", "decord", "cuda")


class Changed:
    """A finder of one module, which is changed when it has run."""

    def __init__(self, module, change):
        self.module, self.change = module, change

    def find_spec(self, name, path=None, target=None):
        if name != self.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        run = spec.loader.exec_module

        def run_and_change(module):
            run(module)
            self.change(module)
        spec.loader.exec_module = run_and_change
        return spec


class Nothing(type):
    """A class of which every member is such a class."""

    def __getattr__(cls, name):
        return empty(name)


def empty(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Nothing(name, (), {"__init__": lambda self, *_, **__: None, "__call__": lambda self, *_, **__: self,
                              "__getattr__": lambda self, wanted: empty(wanted)()})


class Card:
    """Finds modules of a card where they are not installed. To `find_spec` they are not there."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in CARD or self.is_only_asked():
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    @staticmethod
    def is_only_asked():
        frame = sys._getframe()
        while frame is not None and frame.f_code is not importlib.util.find_spec.__code__:
            frame = frame.f_back
        return frame is not None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = empty
        return module

    def exec_module(self, module):
        pass


def plant():
    """Called in each process of the engine, before anything is imported."""
    engine, fault = os.environ["KVO_PLANTED"].split()
    for change, module in FAULTS[engine].items():
        if change.__name__ == fault:
            sys.meta_path.insert(0, Changed(module, change))
    if engine == "sglang":
        sys.meta_path.append(Card())


def main():
    engine, fault, *options = sys.argv[1:] if len(sys.argv) > 2 else ("", "")
    if fault not in ["none", *(change.__name__ for change in FAULTS.get(engine, []))] or engine not in FAULTS:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "sitecustomize.py").write_text("import planted\nplanted.plant()\n", encoding="utf-8")
        path = os.pathsep.join([folder, str(pathlib.Path(__file__).resolve().parent), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "KVO_PLANTED": f"{engine} {fault}"}
        with subprocess.Popen([sys.executable, *COMMANDS[engine], *options], env=environment) as server:
            signal.signal(signal.SIGTERM, lambda *_: server.terminate())
            return server.wait()


if __name__ == "__main__":
    sys.exit(main())
