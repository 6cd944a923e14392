"""The protocol, from the harness's side."""

import json
import os
import subprocess
import sys
import unittest

PROGRAM = """
import dataclasses, os, sys
from kvoracle import ABSENT, NotSupported, Panic, Refused, Tensor, serve

@dataclasses.dataclass
class Both:
    first: int
    second: object = ABSENT

class Cache:
    def __init__(self, config, profile):
        if config.get("storage"):
            raise NotSupported("f32 alone")
        self.profile = profile
        print("a library prints")
        os.write(1, b"so does C\\n")
    def twice(self, k): return {"k": Tensor.of(k.shape, [2 * x for x in k.values])}
    def new_(self): return Both(1)
    def full(self): raise Refused("full", "no space", left=3)
    def panic(self): raise Panic("index")
    def wrong(self): return {}["x"]
    def nothing(self): pass
    def list(self, x): return {"x": x}
    def keyword(self, from_): return {"from": from_}
    def infinite(self): return {"x": float("inf")}

serve({"test.kind": Cache}, system="s", version="v", operations={"test.kind": ["twice"]})
"""


class AdapterTest(unittest.TestCase):
    def setUp(self):
        self.child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ,
        )
        self.addCleanup(self.child.communicate)
        self.number = 0

    def ask(self, **request):
        self.number += 1
        self.child.stdin.write(json.dumps({"id": self.number, **request}).encode() + b"\n")
        self.child.stdin.flush()
        answer = json.loads(self.child.stdout.readline())
        self.assertEqual(answer.pop("id"), self.number)
        return answer

    def call(self, op, **args):
        answer = self.ask(case=1, op=op, args=args)
        answer.pop("ns", None)
        return answer

    def open(self, **config):
        return self.ask(
            open={"case": 1, "kind": "test.kind", "profile": "documented", "config": config}
        )

    def test_greeting(self):
        greeting = self.ask(hello={"protocol": 1})["hello"]
        self.assertEqual(greeting["protocol"], 1)
        self.assertEqual(
            greeting["kinds"], [{"kind": "test.kind", "conventions": [], "operations": ["twice"]}]
        )
        self.assertFalse(greeting["memory"])

    def test_answers(self):
        self.assertEqual(
            self.open(storage="f16"), {"error": "not_supported", "detail": "f32 alone"}
        )
        self.assertEqual(self.open(), {})
        self.assertEqual(
            self.call("twice", k={"shape": [2], "data": [1, 2]}),
            {"ret": {"k": {"shape": [2], "data": [2.0, 4.0]}}},
        )
        self.assertEqual(self.call("new"), {"ret": {"first": 1}})
        self.assertEqual(
            self.call("full"), {"ret": {"error": "full", "detail": "no space", "left": 3}}
        )
        self.assertEqual(self.call("panic"), {"ret": {"panic": "index"}})
        self.assertEqual(self.call("wrong"), {"threw": "KeyError: 'x'"})
        self.assertEqual(self.call("nothing"), {"ret": {}})
        self.assertEqual(self.call("keyword", **{"from": 3}), {"ret": {"from": 3}})
        self.assertEqual(self.call("infinite"), {"ret": {"x": "inf"}})
        self.assertEqual(self.call("lacking"), {"unsupported": True})
        self.assertEqual(
            self.call("list", x=["nan:2143289345", 1, "inf"])["ret"],
            {"x": ["nan:2143289345", 1, "inf"]},
        )
        self.assertEqual(self.call("nothing", extra=1)["threw"][:9], "TypeError")

    def test_a_batch(self):
        self.open()
        answers = self.ask(case=1, batch=[{"op": "nothing", "args": {}}, {"op": "new", "args": {}}])
        self.assertEqual([one["ret"] for one in answers["batch"]], [{}, {"first": 1}])

    def test_a_closed_case_is_a_fault_of_the_adapter(self):
        self.open()
        self.assertEqual(self.ask(close=1), {})
        self.assertIn("KeyError", self.call("nothing")["fault"])


if __name__ == "__main__":
    unittest.main()
