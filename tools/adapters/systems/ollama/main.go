// The caches of Ollama's package kvcache, as published, for kvoracle: contract positional.
package main

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ollama/ollama/kvcache"
	"github.com/ollama/ollama/ml"
	"github.com/ollama/ollama/model/input"

	"kvoracle"
)

// Lawful differences: the rules refuse these calls. kvcache does not check them, because Ollama's own
// callers never make them. Each row has the rule that says so.
var conventions = []string{
	"accepts init precondition: second init", // OK-15
	// Init has taken over the config of the backend before it panics, and a wrapper's members before
	// the one that panics have done what they are asked.
	"accepts init precondition: encoder cache does not support multiple sequences; requested: #",       // OK-70
	"accepts init precondition: encoder cache is unable to enforce requested CachePadding (#)",         // OK-70
	"accepts init precondition: sliding window memory (#) must be at least as large as the window (#)", // OK-13
	"accepts set_config precondition: config cannot be changed after being previously set",             // OK-88
	"accepts copy_prefix precondition: encoder cache does not support multiple sequences",              // OK-87
	"accepts start_forward precondition: seqs: # for # positions",                                      // OK-6
	"accepts start_forward precondition: positions: #",                                                 // OK-6
	"accepts start_forward precondition: positions: none",                                              // OK-29
	"accepts start_forward precondition: multimodal: #",                                                // OK-71: the last one counts
	"accepts remove precondition: begin, end: positions leave their domain",                            // OK-60
	"accepts put precondition: k, v: empty rows",                                                       // section 12
	"accepts put precondition: v: other tokens or heads than k (OK-#)",                                 // OK-50
	"accepts put precondition: k, v: other rows than before in layer #",                                // OK-6
	"accepts put precondition: call after a start_forward that failed",                                 // OK-28
	"accepts get precondition: call after a start_forward that failed",                                 // OK-28
	"accepts put precondition: call after close",                                                       // OK-69
	"accepts get precondition: call after close",                                                       // OK-69
}

// Of caches that have this operation.
var setCausalConventions = []string{
	"accepts set_causal precondition: call after a start_forward that failed",    // OK-28
	"accepts set_causal precondition: call after close",                          // OK-69
	"accepts set_causal precondition: set_causal before the first start_forward", // OK-38
}

type shiftConfig struct {
	Kind    string   `json:"kind"`
	Scale   *float32 `json:"scale"`
	Base    *float64 `json:"base"`
	Message *string  `json:"message"`
}

type cacheConfig struct {
	Cache   string        `json:"cache"`
	Window  int32         `json:"window"`
	Memory  int32         `json:"memory"`
	Chunk   int32         `json:"chunk"`
	Shift   *shiftConfig  `json:"shift"`
	Caches  []cacheConfig `json:"caches"`
	Backend backendConfig `json:"backend"`
}

type backendConfig struct {
	CachePadding int    `json:"cache_padding"`
	PermutedV    bool   `json:"permuted_v"`
	MaskDType    string `json:"mask_dtype"`
	Target       *int   `json:"target"`
}

func (b backendConfig) config() ml.CacheConfig {
	return ml.CacheConfig{CachePadding: b.CachePadding, PermutedV: b.PermutedV, MaskDType: dtypes[b.MaskDType]}
}

// Cache is one case. Operations are its methods.
type Cache struct {
	cache   kvcache.Cache
	members []kvcache.Cache // of a wrapper
	backend *backend
	pass    *context
	reserve bool // whether the pass only reserves memory
	layer   int
	calls   []shiftCall
	stored  map[place][]int // head_dim and heads of keys
	started bool
}

type place struct{ member, layer int }

type shiftCall struct {
	Cache   *int    `json:"cache,omitempty"`
	Layer   int     `json:"layer"`
	Offsets []int32 `json:"offsets"`
	KShape  []int   `json:"k_shape"`
	group   int
}

func (c *Cache) open(kind string, config cacheConfig) {
	c.stored = map[place][]int{}
	c.backend = &backend{config: config.Backend.config()}
	c.pass = &context{}
	if kind != "wrapper" {
		c.cache = c.member(kind, config, nil)
		return
	}
	for i, member := range config.Caches {
		c.members = append(c.members, c.member(member.Cache, member, &i))
	}
	c.cache = kvcache.NewWrapperCache(c.members...)
}

func (c *Cache) member(kind string, config cacheConfig, number *int) kvcache.Cache {
	var shift func(ml.Context, int, ml.Tensor, ml.Tensor) (ml.Tensor, error)
	if config.Shift != nil {
		shift = c.shift(*config.Shift, number)
	}
	switch kind {
	case "swa":
		return kvcache.NewSWACache(config.Window, shift)
	case "swa_mem":
		return kvcache.NewSWAMemCache(config.Window, config.Memory, shift)
	case "chunked":
		return kvcache.NewChunkedAttentionCache(config.Chunk, shift)
	case "encoder":
		return kvcache.NewEncoderCache()
	}
	return kvcache.NewCausalCache(shift)
}

// shift makes the function that a model gives to its cache, and notes its calls.
func (c *Cache) shift(config shiftConfig, member *int) func(ml.Context, int, ml.Tensor, ml.Tensor) (ml.Tensor, error) {
	return func(ctx ml.Context, layer int, keys, offsets ml.Tensor) (ml.Tensor, error) {
		call := shiftCall{Cache: member, Layer: layer, KShape: slices.Clone(keys.Shape()), group: c.backend.groups}
		slices.Reverse(call.KShape)
		for _, offset := range offsets.(*tensor).bits.elements {
			call.Offsets = append(call.Offsets, int32(offset))
		}
		if config.Kind == "fail" {
			c.calls = append(c.calls, c.first(call))
			message := "shift refused"
			if config.Message != nil {
				message = *config.Message
			}
			return nil, kvoracle.Refuse("other:"+message, "")
		}
		c.calls = append(c.calls, call)
		moved := keys.(*tensor).Cast(ctx, ml.DTypeF32).(*tensor)
		move(config, moved.bits.elements, moved.shape[0], moved.shape[1], call.Offsets)
		return moved, nil
	}
}

// first is the call for the lowest layer. Which one the cache makes first is random (a map of Go), and
// a call that fails changes no layer.
func (c *Cache) first(call shiftCall) shiftCall {
	member := 0
	if call.Cache != nil {
		member = *call.Cache
	}
	for at, shape := range c.stored {
		if at.member == member && at.layer <= call.Layer {
			call.Layer, call.KShape = at.layer, []int{len(call.Offsets), shape[1], shape[0]}
		}
	}
	return call
}

func move(config shiftConfig, keys []uint32, dim, heads int, offsets []int32) {
	for cell, offset := range offsets {
		for head := range heads {
			row := keys[(cell*heads+head)*dim:][:dim]
			if config.Kind == "rope" {
				turn(config, row, offset)
				continue
			}
			scale := float32(1)
			if config.Scale != nil {
				scale = *config.Scale
			}
			for i, key := range row {
				row[i] = math.Float32bits(math.Float32frombits(key) + scale*float32(offset))
			}
		}
	}
}

func turn(config shiftConfig, row []uint32, offset int32) {
	base := 10000.0
	if config.Base != nil {
		base = *config.Base
	}
	half := len(row) / 2
	for d := range half {
		sin, cos := math.Sincos(float64(offset) * math.Pow(base, -float64(d)/float64(half)))
		x, y := float64(math.Float32frombits(row[d])), float64(math.Float32frombits(row[d+half]))
		row[d] = math.Float32bits(float32(x*cos - y*sin))
		row[d+half] = math.Float32bits(float32(x*sin + y*cos))
	}
}

// guarded makes a call of an engine that has started. A panic of kvcache is a refusal.
func (c *Cache) guarded(call func() error) error {
	if !c.started {
		return kvoracle.Refuse("precondition", "before Init")
	}
	return c.guard(call)
}

func (c *Cache) guard(call func() error) (failed error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			failed = kvoracle.Refuse("precondition", "%v", panicked)
		}
	}()
	return call()
}

func code(err error) error {
	var refused *kvoracle.Refused
	switch {
	case err == nil || errors.As(err, &refused):
		return err
	case errors.Is(err, kvcache.ErrKvCacheFull):
		return kvoracle.Refuse("full", "%v", err)
	case errors.Is(err, kvcache.ErrNotSupported):
		return kvoracle.Refuse("not_supported", "%v", err)
	}
	return kvoracle.Refuse("other:"+err.Error(), "")
}

func (c *Cache) SetConfig(config backendConfig) error {
	return c.guard(func() error {
		if config.Target != nil {
			c.members[*config.Target].SetConfig(config.config())
		} else {
			c.cache.SetConfig(config.config())
		}
		return nil
	})
}

type sizes struct {
	MaxSequences int    `json:"max_sequences"`
	Capacity     int    `json:"capacity"`
	MaxBatch     int    `json:"max_batch"`
	DType        string `json:"dtype"`
}

func (c *Cache) Init(given sizes) error {
	dtype, known := dtypes[given.DType]
	if !known { // q8, q4: codes in groups are no ml.DType
		return kvoracle.ErrUnsupported
	}
	return c.guard(func() error {
		c.cache.Init(c.backend, dtype, given.MaxSequences, given.Capacity, given.MaxBatch)
		c.started = true
		return nil
	})
}

type batch struct {
	Positions  []int32 `json:"positions"`
	Seqs       []int   `json:"seqs"`
	Reserve    bool    `json:"reserve"`
	Multimodal []int   `json:"multimodal"`
}

func (c *Cache) StartForward(asked batch) error {
	given := input.Batch{Positions: asked.Positions, Sequences: asked.Seqs}
	for _, row := range asked.Multimodal {
		given.Multimodal = append(given.Multimodal, input.MultimodalIndex{Index: row})
	}
	return c.guarded(func() error {
		c.pass, c.reserve = &context{}, asked.Reserve
		return code(c.cache.StartForward(c.pass, given, asked.Reserve))
	})
}

func (c *Cache) SetLayer(asked struct{ Layer int }) error {
	return c.guarded(func() error {
		c.cache.SetLayer(asked.Layer)
		c.layer = asked.Layer
		return nil
	})
}

func (c *Cache) SetLayerType(asked struct{ Type int }) error {
	return c.guarded(func() error {
		c.cache.(*kvcache.WrapperCache).SetLayerType(asked.Type)
		return nil
	})
}

// selected is the member that put and get go to.
func (c *Cache) selected() kvcache.Cache {
	if wrapper, is := c.cache.(*kvcache.WrapperCache); is {
		return wrapper.UnderlyingCache()
	}
	return c.cache
}

type index struct {
	Index int `json:"index"`
}

func (c *Cache) UnderlyingCache() (found index, failed error) {
	failed = c.guarded(func() error {
		found.Index = slices.Index(c.members, c.selected())
		return nil
	})
	return
}

type rows struct{ K, V kvoracle.Tensor }

func (c *Cache) Put(given rows) error {
	return c.guarded(func() error {
		k, v := fromRows(given.K), fromRows(given.V)
		c.cache.Put(c.pass, k, v)
		c.stored[place{max(0, slices.Index(c.members, c.selected())), c.layer}] = k.Shape()[:2]
		if c.reserve { // planned, never computed (OK-27)
			c.pass.queued = nil
		}
		c.pass.Compute()
		return nil
	})
}

// Shapes of logs list the axis last that varies fastest.
func fromRows(given kvoracle.Tensor) ml.Tensor {
	shape := make([]int, len(given.Shape))
	for i, n := range given.Shape {
		shape[len(shape)-1-i] = int(n)
	}
	return (&context{}).FromFloats(given.Floats(), shape...)
}

type shown struct {
	K    *kvoracle.Tensor `json:"k"`
	V    *kvoracle.Tensor `json:"v"`
	Mask *kvoracle.Tensor `json:"mask"`
}

func (c *Cache) Get() (got shown, failed error) {
	failed = c.guarded(func() error {
		k, v, mask := c.cache.Get(c.pass)
		got = shown{toRows(k), toRows(v), toRows(mask)}
		return nil
	})
	return
}

func toRows(given ml.Tensor) *kvoracle.Tensor {
	from, is := given.(*tensor)
	if !is {
		return nil
	}
	made := &kvoracle.Tensor{DType: "f32"}
	if narrow, is := floats[from.bits.dtype]; is {
		made.DType = narrow.Name
	}
	for i := range from.shape {
		made.Shape = append(made.Shape, int64(from.shape[len(from.shape)-1-i]))
	}
	for _, place := range from.places() {
		element := binary.LittleEndian.AppendUint32(nil, from.bits.elements[place])
		made.Data = append(made.Data, element[:from.bytes()]...)
	}
	return made
}

type causal struct {
	Except []int `json:"except"`
	Ctx    *bool `json:"ctx"`
}

func (c *Cache) SetCausal(asked causal) error {
	return c.guarded(func() error {
		var ctx ml.Context
		if asked.Ctx == nil || *asked.Ctx {
			ctx = c.pass
		}
		c.selected().(*kvcache.Causal).SetCausal(ctx, kvcache.CausalOptions{Except: asked.Except})
		return nil
	})
}

func (c *Cache) CopyPrefix(asked struct {
	Src, Dst int
	Len      int32
}) error {
	return c.guarded(func() error {
		c.cache.CopyPrefix(asked.Src, asked.Dst, asked.Len)
		return nil
	})
}

type value struct {
	Value bool `json:"value"`
}

func (c *Cache) CanResume(asked struct {
	Seq int
	Pos int32
}) (answer value, failed error) {
	failed = c.guarded(func() error {
		answer.Value = c.cache.CanResume(asked.Seq, asked.Pos)
		return nil
	})
	return
}

type removed struct {
	Error string      `json:"error,omitempty"`
	Calls []shiftCall `json:"shift_calls,omitempty"`
}

func (c *Cache) Remove(asked struct {
	Seq        int
	Begin, End int32
}) (done removed, failed error) {
	failed = c.guarded(func() error {
		c.calls = nil
		err := code(c.cache.Remove(asked.Seq, asked.Begin, asked.End))
		// Within a group layers come in the order of a map of Go, which is random.
		slices.SortStableFunc(c.calls, func(a, b shiftCall) int {
			return cmp.Or(a.group-b.group, a.Layer-b.Layer)
		})
		done.Calls = c.calls
		if err != nil {
			done.Error = err.(*kvoracle.Refused).Code
		}
		return nil
	})
	return
}

func (c *Cache) EncoderCached() (cached value, failed error) {
	failed = c.guarded(func() error {
		cached.Value = c.selected().(*kvcache.EncoderCache).EncoderCached()
		return nil
	})
	return
}

func (c *Cache) Close() error {
	return c.guarded(func() error {
		c.cache.Close()
		return nil
	})
}

func main() {
	var kinds []kvoracle.Kind
	for _, name := range []string{"causal", "swa", "swa_mem", "chunked", "encoder", "wrapper"} {
		rows := conventions
		if name != "encoder" {
			rows = slices.Concat(conventions, setCausalConventions)
		}
		kinds = append(kinds, kvoracle.Kind{Name: "positional." + name, Conventions: rows,
			Open: func(text json.RawMessage, _ string) (any, error) {
				var config cacheConfig
				if err := json.Unmarshal(text, &config); err != nil {
					return nil, fmt.Errorf("config: %w", err)
				}
				made := &Cache{}
				made.open(name, config)
				return made, nil
			}})
	}
	kvoracle.Serve("ollama", kvoracle.ModuleVersion("github.com/ollama/ollama"), kinds...)
}
