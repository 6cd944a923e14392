package kvoracle

import "math"

// Float is a type of at most 16 bits in which elements are stored.
type Float struct {
	Name     string
	Bytes    int
	mantissa int // bits
	bias     int
	largest  float64
	finite   bool // no infinities: what is too large is the largest, a NaN has all bits but the sign
}

// Floats are those types by their names in logs.
var Floats = map[string]Float{
	"f16":     {"f16", 2, 10, 15, 65504, false},
	"bf16":    {"bf16", 2, 7, 127, 0x1.FEp127, false},
	"f8_e4m3": {"f8_e4m3", 1, 3, 7, 448, true},
	"f8_e5m2": {"f8_e5m2", 1, 2, 15, 57344, true},
}

func (f Float) sign() uint32 { return 1 << (8*f.Bytes - 1) }

// Encode rounds to the nearest value, ties to even.
func (f Float) Encode(value float32) uint32 {
	bits := math.Float32bits(value)
	sign := bits >> 31 * f.sign()
	magnitude := math.Abs(float64(value))
	infinity := (f.sign() - 1) >> f.mantissa << f.mantissa
	switch {
	case magnitude == 0:
		return sign
	case f.finite && magnitude != magnitude:
		return f.sign() - 1
	case magnitude != magnitude: // quiet, with the sign and the upper payload bits
		return sign | infinity | 1<<(f.mantissa-1) | bits&(1<<23-1)>>(23-f.mantissa)
	}
	_, exponent := math.Frexp(magnitude)
	if exponent--; exponent < 1-f.bias {
		exponent = 1 - f.bias
	}
	steps := math.RoundToEven(math.Ldexp(magnitude, f.mantissa-exponent))
	if math.Ldexp(steps, exponent-f.mantissa) > f.largest {
		if !f.finite {
			return sign | infinity
		}
		exponent = int(math.Log2(f.largest))
		steps = math.Ldexp(f.largest, f.mantissa-exponent)
	}
	// The first bit of a normal number adds one to the exponent.
	return sign | uint32((exponent+f.bias-1)<<f.mantissa+int(steps))
}

// Decode is exact.
func (f Float) Decode(bits uint32) float32 {
	mantissa := bits & (1<<f.mantissa - 1)
	exponent := int(bits & (f.sign() - 1) >> f.mantissa)
	sign := bits / f.sign() << 31
	last := int(f.sign()-1) >> f.mantissa
	switch {
	case exponent == last && f.Name == "f8_e4m3" && mantissa == 7: // the only NaN, and there is no infinity
		return math.Float32frombits(sign | 0x7FC00000)
	case exponent == last && f.Name != "f8_e4m3":
		return math.Float32frombits(sign | 0xFF<<23 | mantissa<<(23-f.mantissa))
	}
	if exponent > 0 {
		mantissa |= 1 << f.mantissa
	} else {
		exponent = 1
	}
	value := math.Ldexp(float64(mantissa), exponent-f.bias-f.mantissa)
	return math.Float32frombits(math.Float32bits(float32(value)) | sign)
}
