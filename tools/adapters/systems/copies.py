"""Starts an adapter once and answers each harness with a copy of it, because an import of torch takes seconds.

    python3 -m kvoracle.systems.copies SOCKET MODULE [WITHOUT ..] -- [ARGUMENT ..]
    python3 .../copies.py SOCKET

The first command runs the module MODULE up to its call of `serve`, then waits at SOCKET. The second one is the command of an
adapter: it passes its streams to a copy (`fork`) and ends with it. WITHOUT are operations that are declared missing.
"""

from __future__ import annotations

import os
import runpy
import socket
import sys
from typing import Any


MEMORY = 3
"""The file that a harness shares with its adapter (docs/adapters.md)."""


def ask(path: str) -> None:
    """Passes the streams to a copy and waits for its end."""
    streams = [0, 1, 2, *([MEMORY] if os.path.exists(f"/dev/fd/{MEMORY}") else [])]
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        socket.send_fds(server, [b"."], streams)
        server.recv(1)


def answer(path: str, module: str, without: list[str], arguments: list[str]) -> None:
    import kvoracle

    serve = kvoracle.serve

    def serve_copies(caches: Any, **named: Any) -> None:
        declared = named.pop("conventions", None) or {}
        lacking = [f"without {name}" for name in without]
        rows = {kind: list(dict.fromkeys([*declared.get(kind, []), *lacking])) for kind in caches}
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen(64)
            while True:
                asking, _ = listening.accept()
                if os.fork() == 0:
                    break
                asking.close()
        _, streams, _, _ = socket.recv_fds(asking, 1, MEMORY + 1)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        serve(caches, conventions=rows, **named)
        os._exit(0)

    kvoracle.serve = serve_copies
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        ask(sys.argv[1])
    else:
        end = sys.argv.index("--")
        answer(sys.argv[1], sys.argv[2], sys.argv[3:end], sys.argv[end + 1:])
