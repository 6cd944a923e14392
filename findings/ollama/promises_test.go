// What Ollama says of its kvcache, as tests of the package: copy this file into kvcache/. Each fails at
// v0.13.5 to v0.17.4. The backend is that of causal_test.go.
package kvcache

import (
	"math"
	"slices"
	"testing"

	"github.com/ollama/ollama/ml"
	"github.com/ollama/ollama/model/input"
)

func pass(t *testing.T, cache *Causal, positions ...int32) ml.Context {
	t.Helper()
	context := &testContext{}
	batch := input.Batch{Positions: positions, Sequences: make([]int, len(positions))}
	if err := cache.StartForward(context, batch, false); err != nil {
		t.Fatal(err)
	}
	rows := context.FromFloats(make([]float32, len(positions)), 1, 1, len(positions))
	cache.Put(context, rows, rows)
	return context
}

// visible counts the cells that the last token of the pass sees.
func visible(cache *Causal, context ml.Context) int {
	_, _, mask := cache.Get(context)
	row := mask.Floats()[(mask.Dim(1)-1)*mask.Dim(0):]
	return len(row) - len(slices.DeleteFunc(slices.Clone(row), func(entry float32) bool { return entry == 0 }))
}

// "If so, then we should return an error, which will trigger the runner to evaluate the full history and
// rebuild the window" (Remove, as a TODO); "CanResume returns true if the cache can continue with the next
// token at the given position".
func TestRemoveLeavesTheWindowComplete(t *testing.T) {
	same := func(_ ml.Context, _ int, key, _ ml.Tensor) (ml.Tensor, error) { return key, nil }
	cache := NewSWACache(3, same)
	cache.Init(&testBackend{}, ml.DTypeF16, 1, 64, 8)
	pass(t, cache, 0, 1, 2, 3)
	pass(t, cache, 4)
	pass(t, cache, 5) // positions 0 and 1 have left the memory
	err := cache.Remove(0, 1, 4)
	resumes := cache.CanResume(0, 3)
	seen := visible(cache, pass(t, cache, 3))
	if err == nil && seen != 4 {
		t.Errorf("after Remove(0, 1, 4) without an error the token at 3 sees %d tokens; want itself and the 3 before (CanResume: %t)",
			seen, resumes)
	}
}

// "CopyPrefix copies tokens in the range [0, len) from srcSeq to dstSeq".
func TestCopyPrefixOntoItself(t *testing.T) {
	cache := NewCausalCache(nil)
	cache.Init(&testBackend{}, ml.DTypeF16, 1, 16, 8)
	pass(t, cache, 0, 1, 2)
	cache.CopyPrefix(0, 0, 2)
	if seen := visible(cache, pass(t, cache, 2)); seen != 3 {
		t.Errorf("after CopyPrefix(0, 0, 2) the token at 2 sees %d tokens; want 3", seen)
	}
}

// "SetCausal disables causal mask generation for a particular range of indicies in the current batch for
// subsequent calls to Get."
func TestSetCausalAfterNoContext(t *testing.T) {
	cache := NewCausalCache(nil)
	cache.Init(&testBackend{}, ml.DTypeF16, 1, 16, 8)
	context := pass(t, cache, 0, 1, 2)
	cache.SetCausal(nil, CausalOptions{Except: []int{0}})
	cache.SetCausal(context, CausalOptions{Except: []int{0}})
	_, _, mask := cache.Get(context)
	if math.IsInf(float64(mask.Floats()[2]), -1) {
		t.Error("token 0 does not see token 2, though SetCausal was called with a context")
	}
}
