"""The engines that the command knows by name can be installed, and releases are put in order."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

from kvoracle.systems import copies, drift, found, install

SYSTEMS = pathlib.Path(install.__file__).resolve().parent
NAMED = re.findall(r'System\{"([\w-]+)", "(\w+)"', SYSTEMS.with_suffix(".cpp").read_text(encoding="utf-8"))


class Systems(unittest.TestCase):
    def test_each_name_has_an_adapter_and_a_release(self):
        self.assertGreater(len(NAMED), 3)
        for name, module in NAMED:
            self.assertIn(name, install.SYSTEMS)
            self.assertTrue((SYSTEMS / module / "__main__.py").is_file(), module)

    def test_the_nearest_known_release_is_no_newer_one(self):
        known = ["0.9.1", "0.10.0", "0.33.0"]
        self.assertEqual("0.10.0", found.nearest("0.32.9", known))
        self.assertEqual("0.33.0", found.nearest("1.0", known))
        self.assertEqual("0.9.1", found.nearest("0.1", known))

    def test_of_minor_releases_the_last_correction_is_tried(self):
        listed, drift.listed = drift.listed, lambda system: ["0.9.0", "0.9.2", "0.10.0", "0.10.1", "0.11.0"]
        try:
            self.assertEqual(["0.8.0", "0.9.2", "0.10.1", "0.11.0"], drift.releases("sglang", "0.8.0", "0.11.0"))
        finally:
            drift.listed = listed

    def test_copies_of_an_adapter_answer_each_harness(self):
        library = pathlib.Path(copies.__file__).absolute().parents[2]
        with tempfile.TemporaryDirectory() as folder:
            socket = pathlib.Path(folder) / "socket"
            (pathlib.Path(folder) / "empty.py").write_text(
                'import kvoracle\nkvoracle.serve({"x.y": None}, system="s", version="1")\n'
            )
            server = subprocess.Popen(
                [sys.executable, "-m", copies.__name__, str(socket), "empty", "pop", "--"],
                env={**os.environ, "PYTHONPATH": os.pathsep.join([folder, str(library)])},
            )
            try:
                while not socket.exists():
                    self.assertIsNone(server.poll())
                    time.sleep(0.01)
                for _ in range(2):
                    done = subprocess.run(
                        [sys.executable, "-S", copies.__file__, str(socket)],
                        input=json.dumps({"id": 1, "hello": {"protocol": 1}}) + "\n",
                        stdout=subprocess.PIPE,
                        text=True,
                        check=True,
                    )
                    kinds = json.loads(done.stdout)["hello"]["kinds"]
                    self.assertEqual([["without pop"]], [each["conventions"] for each in kinds])
            finally:
                server.kill()
                server.wait()


if __name__ == "__main__":
    unittest.main()
