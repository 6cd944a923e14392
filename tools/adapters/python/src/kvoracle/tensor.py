"""Tensors as operations have them: a shape, a type of elements, and their bytes."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "f8_e4m3": 1, "f8_e5m2": 1, "u32": 4, "bool": 1}
_CODES = {1: "B", 2: "H", 4: "I"}
_OF_NUMPY = {"float32": "f32", "float16": "f16", "int32": "i32", "uint32": "u32", "bool": "bool"}


def _bytes_of(dtype: str) -> int:
    if dtype not in _BYTES:
        raise ValueError(f"dtype: {dtype}: allowed are {', '.join(_BYTES)}")
    return _BYTES[dtype]


def _float_of_bits(dtype: str, bits: int) -> float:
    if dtype == "f32":
        return float(struct.unpack("<f", struct.pack("<I", bits))[0])
    if dtype == "f16":
        return float(struct.unpack("<e", struct.pack("<H", bits))[0])
    if dtype == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    if dtype == "i32":
        return float(struct.unpack("<i", struct.pack("<I", bits))[0])
    if dtype in ("u32", "bool"):
        return float(bits)
    exponent_bits, bias = (4, 7) if dtype == "f8_e4m3" else (5, 15)
    mantissa_bits = 7 - exponent_bits
    sign = -1.0 if bits & 0x80 else 1.0
    exponent = (bits & 0x7F) >> mantissa_bits
    mantissa = bits & ((1 << mantissa_bits) - 1)
    if dtype == "f8_e4m3" and bits & 0x7F == 0x7F:
        return math.nan
    if dtype == "f8_e5m2" and exponent == 31:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - bias - mantissa_bits)
    return sign * math.ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits)


_F8_BITS: dict[str, dict[float, int]] = {}


def _bits_of_float(dtype: str, value: float) -> int:
    """The bits of a value that the type can hold."""
    if dtype == "f32":
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    if dtype == "f16":
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    if dtype == "bf16":
        return int(struct.unpack("<I", struct.pack("<f", value))[0]) >> 16
    if dtype in ("i32", "u32", "bool"):
        return int(value) & 0xFFFFFFFF
    if dtype not in _F8_BITS:
        known = {_float_of_bits(dtype, bits): bits for bits in range(255, -1, -1)}
        _F8_BITS[dtype] = {number: bits for number, bits in known.items() if number == number}
    if value == 0:
        return 0x80 if math.copysign(1, value) < 0 else 0
    if value != value:
        return 0x7F
    return _F8_BITS[dtype][value]


class Tensor:
    """A dense tensor, row-major: the last axis varies fastest.

    `bits` has one unsigned number an element: what its bytes are, little-endian.
    """

    __slots__ = ("shape", "dtype", "bits")

    def __init__(self, shape: Sequence[int], bits: array[int], dtype: str = "f32") -> None:
        _bytes_of(dtype)
        if math.prod(shape) != len(bits):
            raise ValueError(f"shape {list(shape)} does not fit {len(bits)} elements")
        self.shape = tuple(shape)
        self.dtype = dtype
        self.bits = bits

    @classmethod
    def of(cls, shape: Sequence[int], values: Iterable[float], dtype: str = "f32") -> Tensor:
        """A tensor of values that its type can hold."""
        if dtype == "f32":
            return cls(shape, array("I", array("f", values).tobytes()), dtype)
        code = _CODES[_bytes_of(dtype)]
        return cls(shape, array(code, (_bits_of_float(dtype, value) for value in values)), dtype)

    @property
    def values(self) -> list[float]:
        """The elements as numbers."""
        if self.dtype == "f32":
            return array("f", self.bits.tobytes()).tolist()
        return [_float_of_bits(self.dtype, bits) for bits in self.bits]

    def numpy(self) -> Any:
        """A numpy array of the elements; bf16 and f8 have none. Needs numpy."""
        import numpy

        types = {code: name for name, code in _OF_NUMPY.items()}
        return numpy.frombuffer(self.bits.tobytes(), types[self.dtype]).reshape(self.shape).copy()

    @classmethod
    def of_numpy(cls, values: Any) -> Tensor:
        """A tensor with a copy of a numpy array of float32, float16, int32, uint32 or bool."""
        return cls.of_bits(values.shape, values, _OF_NUMPY[str(values.dtype)])

    @classmethod
    def of_bits(cls, shape: Sequence[int], values: Any, dtype: str) -> Tensor:
        """A tensor with a copy of the bytes of a numpy array, which are elements of `dtype`."""
        return cls(shape, array(_CODES[_bytes_of(dtype)], values.tobytes()), dtype)

    def rows(self) -> list[Tensor]:
        """The parts along the first axis."""
        count = self.shape[0]
        width = len(self.bits) // count if count else 0
        rest = self.shape[1:]
        return [
            Tensor(rest, self.bits[i * width : (i + 1) * width], self.dtype) for i in range(count)
        ]

    @classmethod
    def stacked(
        cls, rows: Sequence[Tensor], rest: Sequence[int] = (), dtype: str = "f32"
    ) -> Tensor:
        """The tensor whose rows() these are; `rest` is the shape of a row where there is none."""
        bits = array(_CODES[_BYTES[rows[0].dtype if rows else dtype]])
        for row in rows:
            bits.extend(row.bits)
        shape = rows[0].shape if rows else tuple(rest)
        return cls((len(rows), *shape), bits, rows[0].dtype if rows else dtype)

    def copy(self) -> Tensor:
        return Tensor(self.shape, self.bits[:], self.dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        return (self.shape, self.dtype, self.bits) == (other.shape, other.dtype, other.bits)

    def __repr__(self) -> str:
        return f"Tensor({list(self.shape)}, {self.values}, {self.dtype!r})"


class Memory:
    """Memory that is shared with the harness: it writes the first half, the adapter the second."""

    _AS_TEXT = 256

    def __init__(self, file: int, size: int) -> None:
        import mmap

        self._bytes = memoryview(mmap.mmap(file, size))
        self._half = size // 2
        self._used = self._half

    def restart(self) -> None:
        """What was put may be overwritten."""
        self._used = self._half

    def get(self, offset: int, size: int) -> bytes:
        return bytes(self._bytes[offset : offset + size])

    def put(self, data: bytes) -> int | None:
        """The offset; None where text is as good, or there is no room."""
        if len(data) < self._AS_TEXT or len(data) > len(self._bytes) - self._used:
            return None
        offset = self._used
        self._bytes[offset : offset + len(data)] = data
        self._used = (self._used + len(data) + 63) & ~63
        return offset


def tensor_of_json(text: dict[str, Any], memory: Memory | None) -> Tensor:
    dtype = text.get("dtype", "f32")
    shape = text["shape"]
    code = _CODES[_BYTES[dtype]]
    if "at" in text:
        assert memory is not None
        size = math.prod(shape) * _BYTES[dtype]
        return Tensor(shape, array(code, memory.get(text["at"], size)), dtype)
    if "bits" in text:
        return Tensor(shape, array(code, text["bits"]), dtype)
    return Tensor.of(shape, [float(value) for value in text["data"]], dtype)


def json_of_tensor(tensor: Tensor, memory: Memory | None) -> dict[str, Any]:
    text: dict[str, Any] = {"shape": list(tensor.shape)}
    if tensor.dtype != "f32":
        text["dtype"] = tensor.dtype
    offset = memory.put(tensor.bits.tobytes()) if memory is not None else None
    if offset is not None:
        text["at"] = offset
        return text
    values = tensor.values if tensor.dtype == "f32" else []
    if tensor.dtype == "f32" and all(map(math.isfinite, values)):
        text["data"] = values
    else:
        text["bits"] = tensor.bits.tolist()
    return text
