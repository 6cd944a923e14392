package main

import (
	"github.com/zerfoo/float16"
	"github.com/zerfoo/float8"
	"github.com/zerfoo/ztensor/tensor"

	"kvoracle"
)

// cell is an element in which zerfoo can store rows. It copies cells and calculates with none, so
// that uint8 serves for f8_e5m2, which zerfoo does not have.
type cell interface {
	float32 | float16.Float16 | float16.BFloat16 | float8.Float8 | uint8
}

// typeOf is the narrow type of a cell; none of float32.
func typeOf[T cell]() (kvoracle.Float, bool) {
	var of T
	name := ""
	switch any(of).(type) {
	case float16.Float16:
		name = "f16"
	case float16.BFloat16:
		name = "bf16"
	case float8.Float8:
		name = "f8_e4m3"
	case uint8:
		name = "f8_e5m2"
	}
	narrow, is := kvoracle.Floats[name]
	return narrow, is
}

// cellsOf rounds values to cells.
func cellsOf[T cell](values []float32) []T {
	narrow, is := typeOf[T]()
	made := make([]T, len(values))
	for i, value := range values {
		if made[i] = T(value); is {
			made[i] = T(narrow.Encode(value))
		}
	}
	return made
}

// valuesOf is exact.
func valuesOf[T cell](cells []T) []float32 {
	narrow, is := typeOf[T]()
	made := make([]float32, len(cells))
	for i, each := range cells {
		if made[i] = float32(each); is {
			made[i] = narrow.Decode(uint32(each))
		}
	}
	return made
}

// shown is a tensor as logs have it: f32, whatever its cells are.
func shown[T cell](from *tensor.TensorNumeric[T]) *kvoracle.Tensor {
	var shape []int64
	for _, n := range from.Shape() {
		shape = append(shape, int64(n))
	}
	made := kvoracle.FloatTensor(valuesOf(from.Data()), shape...)
	return &made
}
