"""Tensors: bits and numbers, as JSON and in shared memory."""

import math
import os
import unittest

from kvoracle.tensor import Memory, Tensor, json_of_tensor, tensor_of_json


class TensorTest(unittest.TestCase):
    def test_numbers_of_each_type(self):
        for dtype in ("f32", "f16", "bf16", "f8_e4m3", "f8_e5m2"):
            with self.subTest(dtype):
                values = [0.0, -0.0, 1.0, -1.5, 0.5, 448.0 if dtype == "f8_e4m3" else 1024.0]
                tensor = Tensor.of([2, 3], values, dtype)
                self.assertEqual(tensor.values, values)
                self.assertEqual(math.copysign(1, tensor.values[1]), -1)
        self.assertEqual(Tensor.of([2], [7, -7], "i32").values, [7, -7])
        self.assertEqual(Tensor.of([2], [7, 2**32 - 1], "u32").values, [7, 2**32 - 1])
        self.assertEqual(Tensor.of([2], [1, 0], "bool").bits.tobytes(), b"\x01\x00")

    def test_smallest_numbers_of_eight_bits(self):
        self.assertEqual(Tensor.of([1], [2.0**-9], "f8_e4m3").bits[0], 1)
        self.assertEqual(Tensor.of([1], [2.0**-16], "f8_e5m2").bits[0], 1)

    def test_a_payload_of_nan_survives(self):
        text = {"shape": [2], "bits": [2143289345, 1065353216]}
        tensor = tensor_of_json(text, None)
        self.assertTrue(math.isnan(tensor.values[0]))
        self.assertEqual(json_of_tensor(tensor, None), text)

    def test_text_of_numbers(self):
        text = {"shape": [2, 2], "data": [1.0, 0.1, -0.0, 3.0]}
        tensor = tensor_of_json(text, None)
        self.assertEqual(tensor_of_json(json_of_tensor(tensor, None), None), tensor)
        self.assertEqual(tensor_of_json({"shape": [1], "data": ["-inf"]}, None).values, [-math.inf])

    def test_a_shape_must_fit(self):
        with self.assertRaisesRegex(ValueError, r"shape \[3\] does not fit 2 elements"):
            Tensor.of([3], [1, 2])
        with self.assertRaisesRegex(ValueError, "dtype: f64: allowed are f32"):
            Tensor.of([1], [1], "f64")

    def test_rows(self):
        tensor = Tensor.of([2, 3], range(6))
        self.assertEqual(tensor.rows()[1].values, [3, 4, 5])
        self.assertEqual(Tensor.stacked(tensor.rows()), tensor)
        self.assertEqual(Tensor.stacked([], (3,)).shape, (0, 3))

    def test_shared_memory(self):
        file = os.memfd_create("test")
        os.ftruncate(file, 4096)
        memory = Memory(file, 4096)
        large = Tensor.of([100], range(100))
        first, second = json_of_tensor(large, memory), json_of_tensor(large, memory)
        self.assertEqual(first, {"shape": [100], "at": 2048})
        self.assertEqual(second["at"], 2048 + 448)
        self.assertEqual(tensor_of_json(first, memory), large)
        self.assertIn("data", json_of_tensor(Tensor.of([1000], range(1000)), memory))
        self.assertIn("data", json_of_tensor(Tensor.of([2], [1, 2]), memory))
        memory.restart()
        self.assertEqual(json_of_tensor(large, memory)["at"], 2048)


if __name__ == "__main__":
    unittest.main()
