// Ollama's causal cache, the Go peer of tools/peers/run.
//
//	ollama append | mask CELLS SEQUENCES
//
// Does step by step what tools/peers/ours.cpp does, and prints the same line of JSON.
package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/ollama/ollama/kvcache"
	"github.com/ollama/ollama/ml"
	"github.com/ollama/ollama/model/input"
)

const (
	layers = 32
	tokens = 512
	heads  = 8
	dim    = 128
	width  = heads * dim
	passes = 5
	chunk  = 512
)

func fill(row []float32, layer, side, token int) {
	for i := range row {
		row[i] = float32((layer*977 + side*389 + token*131 + i*7) % 8191)
	}
}

type sum struct{ sum, index uint64 }

func (s *sum) add(value uint64) {
	s.sum += value * (s.index%8191 + 1)
	s.index++
}

type times []float64

func (t *times) time(call func()) {
	begin := time.Now()
	call()
	*t = append(*t, float64(time.Since(begin).Nanoseconds()))
}

func (t times) median() float64 {
	slices.Sort(t)
	return t[len(t)/2]
}

func start(cache *kvcache.Causal, positions []int32, sequences []int) {
	batch := input.Batch{Positions: positions, Sequences: sequences}
	if err := cache.StartForward(context{}, batch, false); err != nil {
		panic(err)
	}
}

func takeBack(cache *kvcache.Causal, sequence int, kept int32) {
	if err := cache.Remove(sequence, kept, math.MaxInt32); err != nil {
		panic(err)
	}
}

// StartForward, which finds the token's cell and builds its mask, is not timed.
func appendTokens() (float64, uint64) {
	cache := kvcache.NewCausalCache(nil)
	cache.Init(backend{}, ml.DTypeF32, 1, tokens, 1)
	rows := make([][2]*tensor, layers)
	for i := range rows {
		for side := range rows[i] {
			rows[i][side] = &tensor{floats: make([]float32, width), shape: []int{dim, heads, 1}}
		}
	}
	var all times
	for pass := 0; pass <= passes; pass++ {
		if pass > 0 {
			takeBack(cache, 0, 0)
		}
		for token := range tokens {
			for layer := range rows {
				for side := range rows[layer] {
					fill(rows[layer][side].floats, layer, side, token)
				}
			}
			start(cache, []int32{int32(token)}, []int{0})
			step := func() {
				for layer := range rows {
					cache.SetLayer(layer)
					cache.Put(context{}, rows[layer][0], rows[layer][1])
				}
			}
			if pass == 0 {
				step()
			} else {
				all.time(step)
			}
		}
	}
	var check sum
	for layer := range layers {
		cache.SetLayer(layer)
		k, v, _ := cache.Get(context{})
		for _, side := range []ml.Tensor{k, v} {
			for _, value := range side.Floats() {
				check.add(uint64(value))
			}
		}
	}
	return all.median(), check.sum
}

func mask(cells, sequences int) (float64, uint64) {
	cache := kvcache.NewCausalCache(nil)
	cache.Init(backend{}, ml.DTypeF32, sequences, cells/sequences, chunk)
	used, filled := 0, cells/4*3
	plan := func(count int) (positions []int32, names []int) {
		for range count {
			positions = append(positions, int32(used/sequences))
			names = append(names, used%sequences)
			used++
		}
		return
	}
	for used < filled {
		positions, names := plan(chunk)
		start(cache, positions, names)
	}
	rows := &tensor{floats: make([]float32, chunk), shape: []int{1, 1, chunk}}
	cache.SetLayer(0)
	cache.Put(context{}, rows, rows)
	var all times
	var check sum
	for pass := 0; pass <= 2; pass++ {
		for used < cells {
			positions, names := plan(sequences)
			if pass > 0 {
				all.time(func() { start(cache, positions, names) })
				continue
			}
			start(cache, positions, names)
			_, _, shown := cache.Get(context{})
			for _, value := range shown.Floats() {
				if value != 0 && !math.IsInf(float64(value), -1) {
					panic("a mask of something else")
				}
				if value == 0 {
					check.add(1)
				} else {
					check.add(0)
				}
			}
		}
		for name := range sequences {
			takeBack(cache, name, int32(filled/sequences))
		}
		used = filled
	}
	return all.median(), check.sum
}

func number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		panic(err)
	}
	return n
}

func main() {
	var ns float64
	var check uint64
	switch os.Args[1] {
	case "append":
		ns, check = appendTokens()
	case "mask":
		ns, check = mask(number(os.Args[2]), number(os.Args[3]))
	default:
		panic("unknown work: " + os.Args[1])
	}
	fmt.Printf("{\"ns\": %.1f, \"check\": %d}\n", ns, check)
}
