#!/usr/bin/env python3
"""tools/probe/faults_vllm.py FAULT serve MODEL [OPTIONS]: `vllm` with a fault planted in its prefix cache.

For `kvoracle probe check`, which must find it. The fault is a plugin that vLLM loads in each of its processes. Needs vllm.

FAULT: keys_not_chained      equal blocks share rows, whatever stands before them
       key_lacks_last_token  blocks that differ in their last token share rows
       key_stays_in_index    a block that gets other rows is still found under its old key
       none                  the engine as it is
"""
import importlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile


def keys_not_chained(keys, pool):
    key_of = keys.hash_block_tokens
    keys.hash_block_tokens = lambda hasher, parent, tokens, *extra: key_of(hasher, None, tokens, *extra)


def key_lacks_last_token(keys, pool):
    key_of = keys.hash_block_tokens
    keys.hash_block_tokens = lambda hasher, parent, tokens, *extra: key_of(hasher, parent, tokens[:-1], *extra)


def key_stays_in_index(keys, pool):
    def evict(self, block):
        block.reset_hash()
        return False
    pool._maybe_evict_cached_block = evict


FAULTS = {each.__name__: each for each in (keys_not_chained, key_lacks_last_token, key_stays_in_index)}
FAULTS["none"] = lambda keys, pool: None


def plant():
    """Called by vLLM, once in each process."""
    FAULTS[os.environ["KVO_FAULT"]](importlib.import_module("vllm.v1.core.kv_cache_utils"),
                                    importlib.import_module("vllm.v1.core.block_pool").BlockPool)


def main():
    fault, *words = sys.argv[1:] or ["--help"]
    if fault not in FAULTS:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        described = pathlib.Path(folder) / "kvoracle_faults-0.dist-info"
        described.mkdir()
        (described / "METADATA").write_text("Metadata-Version: 2.1\nName: kvoracle-faults\nVersion: 0\n")
        (described / "entry_points.txt").write_text("[vllm.general_plugins]\nkvoracle = faults_vllm:plant\n")
        path = os.pathsep.join([folder, str(pathlib.Path(__file__).resolve().parent), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "KVO_FAULT": fault}
        with subprocess.Popen([sys.executable, "-m", "vllm.entrypoints.cli.main", *words], env=environment) as engine:
            signal.signal(signal.SIGTERM, lambda *_: engine.terminate())
            return engine.wait()


if __name__ == "__main__":
    sys.exit(main())
