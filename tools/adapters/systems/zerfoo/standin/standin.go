// Package standin is in the place of math/rand/v2 and sort in zerfoo's sampling.go, which leave open
// what they answer.
package standin

import "sort"

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

// Slice sorts, and keeps the order of equal elements (ZF-96).
func Slice(elements any, less func(a, b int) bool) { sort.SliceStable(elements, less) }
