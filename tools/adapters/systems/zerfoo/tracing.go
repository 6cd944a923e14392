package main

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/zerfoo/zerfoo/generate"
	"github.com/zerfoo/ztensor/compute"
	"github.com/zerfoo/ztensor/tensor"
)

type tracer = generate.TracingCacheProvider[float32]

type tracingConfig struct {
	Real      string
	NumLayers int `json:"num_layers"`
	MaxSeqLen int `json:"max_seq_len"`
	Pool      sizes
}

// Tracing is a case of provider.tracing.
type Tracing struct {
	Caches[float32, *tracer]
	config tracingConfig
}

func newTracing(config tracingConfig) *Tracing {
	return &Tracing{Caches[float32, *tracer]{
		caches:  map[int]*tracer{},
		objects: map[int]map[int]*tensor.TensorNumeric[float32]{}}, config}
}

func (c tracingConfig) made() (generate.CacheProvider[float32], error) {
	switch c.Real {
	case "paged":
		pool, err := newPool[float32](c.Pool)
		if err != nil {
			return nil, err
		}
		return generate.NewPagedKVCache(pool, c.NumLayers), nil
	case "tensor":
		return generate.NewTensorCache(engine, c.NumLayers, c.MaxSeqLen), nil
	}
	return generate.NewKVCache[float32](c.NumLayers, c.MaxSeqLen), nil
}

// New makes a tracer over a new cache.
func (t *Tracing) New(given struct {
	Cache  int
	Frozen [][]int64 `json:"frozen_shapes"`
}) error {
	return t.put(given.Cache, func() (*tracer, error) {
		objects, frozen := map[int]*tensor.TensorNumeric[float32]{}, []*tensor.TensorNumeric[float32]{}
		for i, shape := range given.Frozen {
			made, err := newValues[float32](shape, nil)
			if err != nil {
				return nil, err
			}
			objects[i], frozen = made, append(frozen, made)
		}
		real, err := t.config.made()
		if err != nil {
			return nil, err
		}
		t.objects[given.Cache] = objects
		return generate.NewTracingCacheProvider(real, compute.NewTracer(frozen)), nil
	})
}

type traced struct {
	Op     string `json:"op"`
	Inputs []int  `json:"inputs"`
	Output int    `json:"output"`
	Layer  int    `json:"layer"`
}

type slotShape struct {
	slot  int
	shape []int
}

// MarshalJSON writes a pair.
func (s slotShape) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{s.slot, append([]int{}, s.shape...)})
}

type trace struct {
	Ops    []traced    `json:"ops"`
	Next   int         `json:"next_slot"`
	Shapes []slotShape `json:"shapes"`
	Frozen []int       `json:"frozen_slots"`
	Opaque bool        `json:"opaque"`
}

// Trace shows what was recorded.
func (t *Tracing) Trace(asked which) (seen trace, failed error) {
	failed = t.read(asked.Cache, func(on *tracer) error {
		from := on.Tracer()
		seen = trace{[]traced{}, from.NextSlot(), []slotShape{}, append([]int{}, from.FrozenSlots()...), from.HasOpaqueOps()}
		slices.Sort(seen.Frozen)
		for _, each := range from.TracedOps() {
			seen.Ops = append(seen.Ops, traced{each.OpName, each.InputIDs, each.OutputID, each.ExtraArgs["layer"].(int)})
		}
		for slot, shape := range from.SlotShapes() {
			seen.Shapes = append(seen.Shapes, slotShape{slot, shape})
		}
		slices.SortFunc(seen.Shapes, func(a, b slotShape) int { return cmp.Compare(a.slot, b.slot) })
		return nil
	})
	return
}
