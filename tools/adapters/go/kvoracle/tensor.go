// Package kvoracle lets kvoracle drive a KV cache that is written in Go.
package kvoracle

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Number is a float that JSON may write as a word: "inf", "-inf", "nan", "nan:BITS".
type Number float64

// UnmarshalJSON reads a number or a word.
func (n *Number) UnmarshalJSON(text []byte) error {
	var word string
	if json.Unmarshal(text, &word) != nil {
		return json.Unmarshal(text, (*float64)(n))
	}
	if bits, found := strings.CutPrefix(word, "nan:"); found {
		value, err := strconv.ParseUint(bits, 10, 32)
		*n = Number(math.Float32frombits(uint32(value)))
		return err
	}
	value, err := strconv.ParseFloat(word, 64)
	*n = Number(value)
	return err
}

// MarshalJSON writes a number or a word.
func (n Number) MarshalJSON() ([]byte, error) {
	value := float64(n)
	switch {
	case math.IsInf(value, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(value, -1):
		return []byte(`"-inf"`), nil
	case math.IsNaN(value) && math.Float32bits(float32(value)) == 0x7FC00000:
		return []byte(`"nan"`), nil
	case math.IsNaN(value):
		return []byte(fmt.Sprintf(`"nan:%d"`, math.Float32bits(float32(value)))), nil
	case value == 0 && math.Signbit(value):
		return []byte("-0.0"), nil
	}
	return strconv.AppendFloat(nil, value, 'g', -1, 64), nil
}

// Tensor is dense and row-major: the last axis varies fastest. Data has the elements' bytes,
// little-endian.
type Tensor struct {
	Shape []int64
	DType string // "f32", "f16", "bf16", "i32", "f8_e4m3", "f8_e5m2"
	Data  []byte
}

var widths = map[string]int{"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "f8_e4m3": 1, "f8_e5m2": 1}

// FloatTensor makes an f32 tensor with a copy of values.
func FloatTensor(values []float32, shape ...int64) Tensor {
	made := Tensor{Shape: shape, DType: "f32", Data: make([]byte, 4*len(values))}
	for i, value := range values {
		binary.LittleEndian.PutUint32(made.Data[4*i:], math.Float32bits(value))
	}
	return made
}

// Floats has the elements of a tensor of floats.
func (t Tensor) Floats() []float32 {
	narrow, rounded := Floats[t.DType]
	values := make([]float32, t.Elements())
	for i := range values {
		switch {
		case !rounded:
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
		case narrow.Bytes == 2:
			values[i] = narrow.Decode(uint32(binary.LittleEndian.Uint16(t.Data[2*i:])))
		default:
			values[i] = narrow.Decode(uint32(t.Data[i]))
		}
	}
	return values
}

// Elements is the product of the shape.
func (t Tensor) Elements() int { return len(t.Data) / widths[t.DType] }

func (t *Tensor) putBits(i int, bits uint64) {
	for at, width := 0, widths[t.DType]; at < width; at++ {
		t.Data[i*width+at] = byte(bits >> (8 * at))
	}
}

type tensorText struct {
	Shape []int64  `json:"shape"`
	DType string   `json:"dtype,omitempty"`
	Data  []Number `json:"data,omitempty"`
	Bits  []uint64 `json:"bits,omitempty"`
	At    *int     `json:"at,omitempty"`
}

// UnmarshalJSON reads a tensor from text or from the shared memory.
func (t *Tensor) UnmarshalJSON(text []byte) error {
	var in tensorText
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*t = Tensor{Shape: in.Shape, DType: in.DType}
	if t.DType == "" {
		t.DType = "f32"
	}
	count := 1
	for _, size := range t.Shape {
		count *= int(size)
	}
	width := widths[t.DType]
	t.Data = make([]byte, count*width)
	if in.At != nil {
		copy(t.Data, shared[*in.At:*in.At+len(t.Data)])
		return nil
	}
	for i, bits := range in.Bits {
		t.putBits(i, bits)
	}
	narrow, rounds := Floats[t.DType]
	for i, value := range in.Data {
		switch {
		case rounds:
			t.putBits(i, uint64(narrow.Encode(float32(value))))
		case t.DType == "f32":
			t.putBits(i, uint64(math.Float32bits(float32(value))))
		default:
			t.putBits(i, uint64(int32(value)))
		}
	}
	return nil
}

// MarshalJSON writes a tensor to the shared memory, or as text.
func (t Tensor) MarshalJSON() ([]byte, error) {
	out := tensorText{Shape: t.Shape, DType: t.DType}
	if out.Shape == nil {
		out.Shape = []int64{0}
	}
	if out.DType == "f32" {
		out.DType = ""
	}
	if at, found := put(t.Data); found {
		out.At = &at
		return json.Marshal(out)
	}
	width := widths[t.DType]
	out.Bits = make([]uint64, 0, t.Elements())
	for i := 0; i < t.Elements(); i++ {
		var bits uint64
		for at := 0; at < width; at++ {
			bits |= uint64(t.Data[i*width+at]) << (8 * at)
		}
		out.Bits = append(out.Bits, bits)
	}
	type always struct {
		Shape []int64  `json:"shape"`
		DType string   `json:"dtype,omitempty"`
		Bits  []uint64 `json:"bits"`
	}
	return json.Marshal(always{out.Shape, out.DType, out.Bits})
}
