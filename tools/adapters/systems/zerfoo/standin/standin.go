// Package standin is in the place of math, math/rand/v2 and sort in zerfoo's sampling.go, which leave
// open what they answer, to the last bit.
package standin

import (
	"math"
	"reflect"
	"sort"
)

const (
	words  = 312 // of std::mt19937_64
	middle = 156
)

var (
	state [words]uint64
	next  int
)

// Seed starts the random numbers of an operation (ZF-98).
func Seed(seed uint64) {
	state[0], next = seed, words
	for i := uint64(1); i < words; i++ {
		state[i] = 6364136223846793005*(state[i-1]^state[i-1]>>62) + i
	}
}

// Float64 is uniform in [0, 1).
func Float64() float64 {
	if next == words {
		for i := range state {
			joined := state[i]&^(1<<31-1) | state[(i+1)%words]&(1<<31-1)
			state[i] = state[(i+middle)%words] ^ joined>>1 ^ joined&1*0xB5026F5AA96619E9
		}
		next = 0
	}
	drawn := state[next]
	next++
	drawn ^= drawn >> 29 & 0x5555555555555555
	drawn ^= drawn << 17 & 0x71D67FFFEDA60000
	drawn ^= drawn << 37 & 0xFFF7EEE000000000
	drawn ^= drawn >> 43
	return float64(drawn&(1<<53-1)) / (1 << 53)
}

// Slice sorts pairs of an index and a value as less says, NaN below every number. The order of equal
// ones stays (ZF-96).
func Slice(pairs any, less func(a, b int) bool) {
	list := reflect.ValueOf(pairs)
	lacks := func(i int) bool { return math.IsNaN(list.Index(i).Field(1).Float()) }
	sort.SliceStable(pairs, func(a, b int) bool { return less(a, b) || lacks(b) && !lacks(a) })
}

// Inf is that of math.
func Inf(sign int) float64 { return math.Inf(sign) }

// IsInf is that of math.
func IsInf(value float64, sign int) bool { return math.IsInf(value, sign) }

// Exp is e to the power of x, as the contract's own exponential has it: within a unit in the last
// place, and the same in every library.
func Exp(x float64) float64 {
	switch {
	case x != x:
		return math.NaN()
	case x > 709.782712893383973096:
		return math.Inf(1)
	case x < -745.133219101941108420:
		return 0
	}
	k := math.Floor(float64(x*1.44269504088896338700) + 0.5)
	r := float64(x-float64(k*6.93147180369123816490e-01)) - float64(k*1.90821492927058770002e-10)
	sum := 0.0
	for i := range terms {
		sum = float64(sum*r) + terms[i]
	}
	reduced := 1 + (r + float64(float64(r*r)*sum))
	n := int(k)
	return float64(reduced*math.Ldexp(1, n/2)) * math.Ldexp(1, n-n/2)
}

// terms are 1/n! for n = 13 to 2.
var terms = func() (all [12]float64) {
	factorial := 1.0
	for i := range all {
		factorial *= float64(i + 2)
		all[len(all)-1-i] = 1 / factorial
	}
	return
}()
