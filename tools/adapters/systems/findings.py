"""python3 -m kvoracle.systems.findings SYSTEM FILE [--folder DIR]: the tests of FILE on a release, without pytest.

Prints `fault NAME: why` or `holds NAME` for each function test_NAME. The release is found as by the adapter of SYSTEM. FILE needs
the engine alone; here its caches are imported without the rest of it. Exit status: 0, or 2 if FILE cannot be loaded.
"""

from __future__ import annotations

import importlib
import runpy
import sys


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    system, file, *arguments = sys.argv[1:]
    importlib.import_module(f"kvoracle.systems.{system.replace('-', '_')}.engine").load(arguments)
    for name, test in runpy.run_path(file).items():
        if not name.startswith("test_"):
            continue
        try:
            test()
            print("holds", name[5:])
        except Exception as error:
            print("fault", f"{name[5:]}: {type(error).__name__}: {error}".splitlines()[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
