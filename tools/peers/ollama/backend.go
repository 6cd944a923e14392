// A backend of slices for Ollama's caches: a tensor is a shape over memory, an operation is done
// at once.
package main

import (
	"github.com/ollama/ollama/ml"
)

// What is not defined here is not called by a causal cache; it would fail at a nil interface.
type backend struct{ ml.Backend }

func (backend) NewContextSize(int) ml.Context { return context{} }

type context struct{ ml.Context }

func (c context) Input() ml.Context               { return c }
func (c context) Layer(int) ml.Context            { return c }
func (c context) Forward(...ml.Tensor) ml.Context { return c }
func (context) Close()                            {}

// Dimensions are listed fastest first; all tensors are dense.
func (context) Zeros(_ ml.DType, shape ...int) ml.Tensor {
	cells := 1
	for _, n := range shape {
		cells *= n
	}
	return &tensor{floats: make([]float32, cells), shape: shape}
}

// The caller gives its slice up: a copy would be this backend's time, not the cache's.
func (context) FromFloats(from []float32, shape ...int) ml.Tensor {
	return &tensor{floats: from, shape: shape}
}

func (context) FromInts(from []int32, shape ...int) ml.Tensor {
	return &tensor{ints: from, shape: shape}
}

type tensor struct {
	ml.Tensor
	floats []float32
	ints   []int32
	shape  []int
}

func (t *tensor) Dim(n int) int { return t.shape[n] }

func (t *tensor) Stride(n int) int {
	bytes := 4
	for _, size := range t.shape[:n] {
		bytes *= size
	}
	return bytes
}

func (t *tensor) Floats() []float32 { return t.floats }

func (t *tensor) Reshape(_ ml.Context, shape ...int) ml.Tensor {
	return &tensor{floats: t.floats, ints: t.ints, shape: shape}
}

// Of a dense tensor and its strides: shape is dim, stride, dim, stride, dim.
func (t *tensor) View(_ ml.Context, offset int, shape ...int) ml.Tensor {
	dims := []int{shape[0], shape[2], shape[4]}
	begin := offset / 4
	return &tensor{floats: t.floats[begin : begin+dims[0]*dims[1]*dims[2]], shape: dims}
}

func (t *tensor) SetRows(_ ml.Context, src ml.Tensor, idxs ml.Tensor) ml.Tensor {
	from, width := src.(*tensor).floats, t.shape[0]
	for i, row := range idxs.(*tensor).ints {
		copy(t.floats[int(row)*width:(int(row)+1)*width], from[i*width:(i+1)*width])
	}
	return t
}
