package main

import (
	"math"
	"slices"

	"github.com/ollama/ollama/ml"

	"kvoracle"
)

// kvcache only hands types on, so the backend may have more of them than ml does.
const (
	dtypeBF16 ml.DType = iota + 100
	dtypeF8E4M3
	dtypeF8E5M2
)

var dtypes = map[string]ml.DType{
	"": ml.DTypeOther, "unset": ml.DTypeOther, "f32": ml.DTypeF32, "f16": ml.DTypeF16,
	"bf16": dtypeBF16, "f8_e4m3": dtypeF8E4M3, "f8_e5m2": dtypeF8E5M2,
}

var floats = map[ml.DType]kvoracle.Float{}

func init() {
	for name, narrow := range kvoracle.Floats {
		floats[dtypes[name]] = narrow
	}
}

// backend is an ml.Backend over slices. What is not defined here is not called by the caches of
// kvcache; it would end the call at a nil interface.
type backend struct {
	ml.Backend
	config ml.CacheConfig
	// groups counts the contexts of shifts: one for each group of cells (OK-65).
	groups int
}

func (b *backend) CacheConfig() ml.CacheConfig { return b.config }

func (b *backend) NewContext() ml.Context {
	b.groups++
	return &context{}
}

func (b *backend) NewContextSize(int) ml.Context { return &context{} }

// context queues the writes that it is given and carries them out in Compute, as an engine does: a
// pass that only reserves memory is never computed.
type context struct {
	ml.Context
	queued []func()
}

func (c *context) Input() ml.Context    { return c }
func (c *context) Layer(int) ml.Context { return c }
func (*context) Close()                 {}

func (c *context) Forward(tensors ...ml.Tensor) ml.Context {
	for _, each := range tensors {
		c.queued = append(c.queued, each.(*tensor).write)
	}
	return c
}

func (c *context) Compute(...ml.Tensor) {
	for _, write := range c.queued {
		write()
	}
	c.queued = nil
}

// Shapes of ml list the axis first that varies fastest.
func newTensor(dtype ml.DType, shape ...int) *tensor {
	return &tensor{bits: &memory{dtype, make([]uint32, product(shape))}, shape: shape, strides: dense(shape)}
}

func (*context) Zeros(dtype ml.DType, shape ...int) ml.Tensor { return newTensor(dtype, shape...) }
func (*context) Empty(dtype ml.DType, shape ...int) ml.Tensor { return newTensor(dtype, shape...) }

func (*context) FromFloats(from []float32, shape ...int) ml.Tensor {
	made := newTensor(ml.DTypeF32, shape...)
	for i, value := range from {
		made.bits.elements[i] = math.Float32bits(value)
	}
	return made
}

func (*context) FromInts(from []int32, shape ...int) ml.Tensor {
	made := newTensor(ml.DTypeI32, shape...)
	for i, value := range from {
		made.bits.elements[i] = uint32(value)
	}
	return made
}

// memory holds elements by their bit patterns.
type memory struct {
	dtype    ml.DType
	elements []uint32
}

// tensor is a shape over memory, with strides in elements.
type tensor struct {
	ml.Tensor
	bits    *memory
	first   int
	shape   []int
	strides []int
	// write is what Forward queues: of the results of SetRows and Copy.
	write func()
}

func product(shape []int) int {
	elements := 1
	for _, n := range shape {
		elements *= n
	}
	return elements
}

func dense(shape []int) []int {
	strides, stride := make([]int, len(shape)), 1
	for i, n := range shape {
		strides[i], stride = stride, stride*n
	}
	return strides
}

func (t *tensor) bytes() int {
	if narrow, is := floats[t.bits.dtype]; is {
		return narrow.Bytes
	}
	return 4
}

func (t *tensor) Dim(n int) int    { return t.shape[n] }
func (t *tensor) Stride(n int) int { return t.strides[n] * t.bytes() }
func (t *tensor) Shape() []int     { return slices.Clone(t.shape) }
func (t *tensor) DType() ml.DType  { return t.bits.dtype }

// places lists where the elements are, the first axis varying fastest.
func (t *tensor) places() []int {
	places := make([]int, 0, product(t.shape))
	index := make([]int, len(t.shape))
	for range cap(places) {
		place := t.first
		for axis, i := range index {
			place += i * t.strides[axis]
		}
		places = append(places, place)
		for axis := range index {
			if index[axis]++; index[axis] < t.shape[axis] {
				break
			}
			index[axis] = 0
		}
	}
	return places
}

// take stores an element of another tensor, rounded to the own type.
func (t *tensor) take(place int, from *tensor, source int) {
	bits := from.bits.elements[source]
	if t.bits.dtype != from.bits.dtype {
		if narrow, is := floats[from.bits.dtype]; is {
			bits = math.Float32bits(narrow.Decode(bits))
		}
		if narrow, is := floats[t.bits.dtype]; is {
			bits = narrow.Encode(math.Float32frombits(bits))
		}
	}
	t.bits.elements[place] = bits
}

func (t *tensor) Cast(_ ml.Context, dtype ml.DType) ml.Tensor {
	made := newTensor(dtype, t.shape...)
	t.Copy(nil, made).(*tensor).write()
	return made
}

func (t *tensor) Copy(_ ml.Context, into ml.Tensor) ml.Tensor {
	to := *into.(*tensor)
	to.write = func() {
		sources := t.places()
		for i, place := range into.(*tensor).places() {
			to.take(place, t, sources[i])
		}
	}
	return &to
}

func (t *tensor) Reshape(_ ml.Context, shape ...int) ml.Tensor {
	if product(shape) != product(t.shape) || !slices.Equal(t.strides, dense(t.shape)) {
		panic("reshape of a tensor that is not dense, or to another size")
	}
	return &tensor{bits: t.bits, first: t.first, shape: shape, strides: dense(shape)}
}

// View has an offset and strides in bytes: size, stride, size, stride, size.
func (t *tensor) View(_ ml.Context, offset int, shape ...int) ml.Tensor {
	view := &tensor{bits: t.bits, first: t.first + offset/t.bytes(), strides: []int{1}}
	for i, n := range shape {
		if i%2 == 0 {
			view.shape = append(view.shape, n)
		} else {
			view.strides = append(view.strides, n/t.bytes())
		}
	}
	return view
}

// Permute moves axis i to place order[i].
func (t *tensor) Permute(_ ml.Context, order ...int) ml.Tensor {
	moved := &tensor{bits: t.bits, first: t.first, shape: make([]int, len(t.shape)), strides: make([]int, len(t.shape))}
	for axis := range t.shape {
		moved.shape[order[axis]], moved.strides[order[axis]] = t.shape[axis], t.strides[axis]
	}
	return moved
}

// SetRows replaces the rows (of the second axis) that indices name.
func (t *tensor) SetRows(_ ml.Context, from ml.Tensor, indices ml.Tensor) ml.Tensor {
	to, rows, source := *t, indices.(*tensor).bits.elements, from.(*tensor)
	to.write = func() {
		planes := 1
		if len(t.shape) > 2 {
			planes = t.shape[2]
		}
		for plane := range planes {
			for i, row := range rows {
				for column := range t.shape[0] {
					place := t.first + column*t.strides[0] + int(row)*t.strides[1]
					taken := source.first + column*source.strides[0] + i*source.strides[1]
					if planes > 1 {
						place, taken = place+plane*t.strides[2], taken+plane*source.strides[2]
					}
					t.take(place, source, taken)
				}
			}
		}
	}
	return &to
}
