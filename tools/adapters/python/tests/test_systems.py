"""The engines that the command knows by name can be installed, and releases are put in order."""

import pathlib
import re
import unittest

from kvoracle.systems import drift, found, install

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


if __name__ == "__main__":
    unittest.main()
