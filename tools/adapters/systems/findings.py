"""python3 -m kvoracle.systems.findings SYSTEM FILE.. [--folder DIR]: the tests of files on a release, without pytest.

Prints `fault NAME: why` or `holds NAME` for each function test_NAME, in order. The release is found as by the adapter of SYSTEM. A
file needs the engine alone; here its caches are imported without the rest of it. Exit status: 0, or 2 if one cannot be loaded.
"""

from __future__ import annotations

import importlib
import runpy
import sys


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    system, *files = sys.argv[1:]
    at = files.index("--folder") if "--folder" in files else len(files)
    files, arguments = files[:at], files[at:]
    importlib.import_module(f"kvoracle.systems.{system.replace('-', '_')}.engine").load(arguments)
    tests = [each for file in files for each in runpy.run_path(file).items() if each[0].startswith("test_")]
    for name, test in tests:
        try:
            test()
            print("holds", name[5:])
        except Exception as error:
            print("fault", f"{name[5:]}: {type(error).__name__}: {error}".splitlines()[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
