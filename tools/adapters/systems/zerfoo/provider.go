package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"adapter/device"

	"github.com/zerfoo/zerfoo/generate"
	"github.com/zerfoo/ztensor/compute"
	"github.com/zerfoo/ztensor/numeric"
	"github.com/zerfoo/ztensor/tensor"

	"kvoracle"
)

type (
	values      = tensor.TensorNumeric[float32]
	pair        = generate.LayerKV[float32]
	kvCache     = generate.KVCache[float32]
	pagedCache  = generate.PagedKVCache[float32]
	tracer      = generate.TracingCacheProvider[float32]
	tensorCache = generate.TensorCache[float32]
	// provider is a cache of zerfoo, with what the adapter's file adds.
	provider interface {
		generate.CacheProvider[float32]
		Saved() func()
	}
)

// Caches are those of a case by number, and the results that may be read again.
type Caches[C provider] struct {
	caches  map[int]C
	results []*pair
	objects map[int]map[int]*values // of tracers, by their numbers
	held    []any                   // lives as long as the case: addresses are not used again (ZF-71)
	faults  *device.Faults          // of the device, if there is one
	has     map[int]bool            // by cache: whether it has the device
}

// enter says whose device is called.
func (c *Caches[C]) enter(cache int) {
	if c.faults != nil {
		device.Current, c.faults.Off = c.faults, !c.has[cache]
	}
}

type which struct{ Cache int }

// put makes a cache in the place of an earlier one.
func (c *Caches[C]) put(cache int, make func() (C, error)) error {
	if cache < 0 || cache >= 4096 {
		return refused("no such cache")
	}
	c.enter(cache)
	return guard(nothing, func() error {
		made, err := make()
		if err == nil {
			c.held = append(c.held, c.caches[cache])
			c.caches[cache] = made
		}
		return err
	})
}

// read makes a call that changes nothing.
func (c *Caches[C]) read(cache int, call func(C) error) error {
	on, there := c.caches[cache]
	if !there {
		return refused("no such cache")
	}
	c.enter(cache)
	return guard(nothing, func() error { return call(on) })
}

// change makes a call that changes the cache.
func (c *Caches[C]) change(cache int, call func(C) error) error {
	on, there := c.caches[cache]
	if !there {
		return refused("no such cache")
	}
	c.enter(cache)
	return guard(on.Saved(), func() error { return call(on) })
}

type update struct {
	Cache, Layer int
	K, V         *kvoracle.Tensor
	KID          int    `json:"k_id"`
	VID          int    `json:"v_id"`
	KDevice      string `json:"k_device"`
	VDevice      string `json:"v_device"`
}

// Update adds rows.
func (c *Caches[C]) Update(given update) error {
	return c.change(given.Cache, func(on C) error {
		if !c.has[given.Cache] && (given.KDevice == "gpu" && given.K != nil || given.VDevice == "gpu" && given.V != nil) {
			return refused("the engine has no device")
		}
		k, err := c.object(given.Cache, given.KID, given.K, given.KDevice)
		if err != nil {
			return err
		}
		v, err := c.object(given.Cache, given.VID, given.V, given.VDevice)
		if err != nil {
			return err
		}
		defer release(k, v)
		return on.Update(given.Layer, k, v)
	})
}

// object is a tensor of zerfoo. Of a tracer, one with the same number is the same object.
func (c *Caches[C]) object(cache, number int, given *kvoracle.Tensor, where string) (*values, error) {
	if given == nil {
		return nil, nil
	}
	if given.DType != "f32" {
		return nil, refused("rows are f32")
	}
	made, err := newValues(given.Shape, given.Floats())
	if err == nil && where == "gpu" {
		return c.moved(made)
	}
	if objects, traced := c.objects[cache]; traced && err == nil {
		if earlier, there := objects[number]; there {
			*earlier = *made
			return earlier, nil
		}
		objects[number] = made
	}
	return made, err
}

// moved is a tensor on the device. No fault strikes it.
func (c *Caches[C]) moved(from *values) (*values, error) {
	device.Current = &device.Faults{}
	defer func() { device.Current = c.faults }()
	storage, err := tensor.NewGPUStorageFromSlice(from.Data())
	if err != nil {
		return nil, err
	}
	return tensor.NewWithStorage(from.Shape(), storage)
}

// onDevice is where a tensor's cells lie, if that is the device.
func onDevice(of *values) (*tensor.GPUStorage[float32], bool) {
	if of == nil {
		return nil, false
	}
	storage, is := of.GetStorage().(*tensor.GPUStorage[float32])
	return storage, is
}

func release(all ...*values) {
	for _, each := range all {
		if storage, is := onDevice(each); is {
			_ = storage.Free()
		}
	}
}

func newValues(shape []int64, data []float32) (*values, error) {
	own := make([]int, len(shape))
	for i, n := range shape {
		own[i] = int(n)
	}
	return tensor.New(own, data)
}

type asked struct {
	Cache, Layer int
	Keep         *bool
}

type found struct {
	Found  bool             `json:"found"`
	Handle *int             `json:"handle,omitempty"`
	K      *kvoracle.Tensor `json:"k,omitempty"`
	V      *kvoracle.Tensor `json:"v,omitempty"`
}

// Get reads a layer.
func (c *Caches[C]) Get(from asked) (got found, failed error) {
	failed = c.read(from.Cache, func(on C) error {
		rows, there := on.Get(from.Layer)
		return c.show(rows, there, from, &got)
	})
	return
}

func (c *Caches[C]) show(rows *pair, there bool, from asked, got *found) error {
	if !there {
		return nil
	}
	*got = found{Found: true, K: shown(rows.Key), V: shown(rows.Value)}
	if c.objects != nil {
		c.held = append(c.held, rows)
	}
	if from.Keep == nil || *from.Keep {
		handle := len(c.results)
		got.Handle = &handle
		c.results = append(c.results, rows)
	}
	return nil
}

func shown(from *values) *kvoracle.Tensor {
	var shape []int64
	for _, n := range from.Shape() {
		shape = append(shape, int64(n))
	}
	made := kvoracle.FloatTensor(from.Data(), shape...)
	return &made
}

type again struct {
	K        *kvoracle.Tensor `json:"k,omitempty"`
	V        *kvoracle.Tensor `json:"v,omitempty"`
	Dangling bool             `json:"dangling,omitempty"`
}

func dangles(rows *pair) bool {
	k, is := onDevice(rows.Key)
	v, too := onDevice(rows.Value)
	return is && !device.Alive(k.Ptr()) || too && !device.Alive(v.Ptr())
}

// Reread reads an earlier result.
func (c *Caches[C]) Reread(asked struct{ Handle int }) (seen again, failed error) {
	failed = guard(nothing, func() error {
		rows := c.results[asked.Handle]
		if seen.Dangling = dangles(rows); !seen.Dangling {
			seen.K, seen.V = shown(rows.Key), shown(rows.Value)
		}
		return nil
	})
	return
}

// Poke writes one cell of an earlier result.
func (c *Caches[C]) Poke(asked cell) error {
	return guard(nothing, func() error {
		rows := map[string]*values{"k": c.results[asked.Handle].Key, "v": c.results[asked.Handle].Value}[asked.Side]
		if dangles(c.results[asked.Handle]) {
			return refused("the result is dangling")
		}
		data := rows.Data()
		data[asked.Index] = float32(asked.Value)
		if storage, is := onDevice(rows); is {
			return storage.CopyFromHost(data[asked.Index:asked.Index+1], asked.Index)
		}
		return nil
	})
}

// Truncate cuts every layer.
func (c *Caches[C]) Truncate(asked struct{ Cache, N int }) error {
	return c.change(asked.Cache, func(on C) error { on.Truncate(asked.N); return nil })
}

// Reset empties every layer.
func (c *Caches[C]) Reset(asked which) error {
	return c.change(asked.Cache, func(on C) error { on.Reset(); return nil })
}

func (c *Caches[C]) count(asked which, of func(C) int) (seen number, failed error) {
	failed = c.read(asked.Cache, func(on C) error { seen.N = of(on); return nil })
	return
}

// SeqLen is the length of layer 0.
func (c *Caches[C]) SeqLen(asked which) (number, error) { return c.count(asked, C.SeqLen) }

// Contiguous is a case of provider.contiguous.
type Contiguous struct {
	Caches[*kvCache]
}

func newContiguous() *Contiguous {
	return &Contiguous{Caches[*kvCache]{caches: map[int]*kvCache{}}}
}

type lengths struct {
	Cache     int
	NumLayers int `json:"num_layers"`
	MaxSeqLen int `json:"max_seq_len"`
}

// New makes a cache.
func (c *Contiguous) New(given lengths) error {
	return c.put(given.Cache, func() (*kvCache, error) {
		return generate.NewKVCache[float32](given.NumLayers, given.MaxSeqLen), nil
	})
}

// NumLayers counts the layers.
func (c *Contiguous) NumLayers(asked which) (number, error) {
	return c.count(asked, (*kvCache).NumLayers)
}

// Paged is a case of provider.paged: a pool, and caches over it and over earlier ones.
type Paged struct {
	Stack
	Caches[*pagedCache]
	numbers map[*block]int // of all pools
}

func newPaged() *Paged {
	return &Paged{Caches: Caches[*pagedCache]{caches: map[int]*pagedCache{}},
		numbers: map[*block]int{}}
}

// NewPool makes the pool of the caches to come.
func (p *Paged) NewPool(given sizes) (poolMade, error) {
	made, err := p.Stack.New(given)
	if err == nil {
		maps.Copy(p.numbers, p.number)
	}
	made.Elems = nil
	return made, err
}

// Drain takes blocks until `leave` are available.
func (p *Paged) Drain(asked struct{ Leave int }) (drained, error) {
	done, err := p.Stack.Drain(asked)
	done.Last = nil
	return done, err
}

// New makes a cache over the pool.
func (p *Paged) New(given lengths) error {
	return p.put(given.Cache, func() (*pagedCache, error) {
		return generate.NewPagedKVCache(p.pool, given.NumLayers), nil
	})
}

// Free gives the blocks of a cache back.
func (p *Paged) Free(asked which) error {
	return p.change(asked.Cache, func(on *pagedCache) error { on.Free(); return nil })
}

// NumLayers counts the layers.
func (p *Paged) NumLayers(asked which) (number, error) {
	return p.Caches.count(asked, (*pagedCache).NumLayers)
}

type table struct {
	Blocks  []*int `json:"blocks"`
	Cursors []int  `json:"cursors"`
}

// Table shows the block table and the cursors.
func (p *Paged) Table(asked which) (seen table, failed error) {
	failed = p.read(asked.Cache, func(on *pagedCache) error {
		seen = table{[]*int{}, append([]int{}, on.Cursors()...)}
		for _, each := range on.Table() {
			var number *int
			if each != nil {
				found := p.numbers[each]
				number = &found
			}
			seen.Blocks = append(seen.Blocks, number)
		}
		return nil
	})
	return
}

type tracingConfig struct {
	Real      string
	NumLayers int `json:"num_layers"`
	MaxSeqLen int `json:"max_seq_len"`
	Pool      sizes
}

// Tracing is a case of provider.tracing.
type Tracing struct {
	Caches[*tracer]
	config tracingConfig
}

func newTracing(config tracingConfig) *Tracing {
	return &Tracing{Caches[*tracer]{
		caches:  map[int]*tracer{},
		objects: map[int]map[int]*values{}}, config}
}

func (c tracingConfig) made() (generate.CacheProvider[float32], error) {
	switch c.Real {
	case "paged":
		pool, err := c.Pool.pool()
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
		objects, frozen := map[int]*values{}, []*values{}
		for i, shape := range given.Frozen {
			made, err := newValues(shape, nil)
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

var (
	engine     compute.Engine[float32] = compute.NewCPUEngine[float32](numeric.Float32Ops{})
	withStream                         = sync.OnceValues(func() (*compute.Streamed[float32], error) { return compute.NewStreamed(engine) })
)

// Tensors is a case of provider.tensor. Operations are its methods.
type Tensors struct{ Caches[*tensorCache] }

func newTensors() *Tensors {
	return &Tensors{Caches[*tensorCache]{caches: map[int]*tensorCache{}, faults: &device.Faults{}, has: map[int]bool{}}}
}

type faults struct {
	Allocs *int `json:"malloc_fail"`
	Kernel int  `json:"kernel_fail_at"`
}

// Inject makes calls of the device fail.
func (t *Tensors) Inject(asked faults) {
	if asked.Allocs != nil {
		t.faults.Allocs = *asked.Allocs
	}
	t.faults.Kernel = asked.Kernel
}

// New makes a cache.
func (t *Tensors) New(given struct {
	lengths
	faults
	DType  string
	Device string
	Stream bool
}) error {
	before, had := *t.faults, t.has[given.Cache]
	if given.Allocs != nil {
		t.faults.Allocs = *given.Allocs
	}
	t.has[given.Cache] = given.Device == "gpu"
	err := t.put(given.Cache, func() (*tensorCache, error) {
		on := engine
		if given.Stream {
			with, err := withStream()
			if err != nil {
				return nil, err
			}
			on = with
		}
		return generate.NewTensorCache(on, given.NumLayers, given.MaxSeqLen, generate.WithKVDtype(given.DType)), nil
	})
	if err != nil {
		*t.faults, t.has[given.Cache] = before, had
	}
	return err
}

// GetFullBuffer reads the whole buffers of a layer on the device.
func (t *Tensors) GetFullBuffer(from asked) (got found, failed error) {
	failed = t.read(from.Cache, func(on *tensorCache) error {
		k, v := on.GetFullBuffer(from.Layer)
		return t.show(&pair{Key: k, Value: v}, k != nil, from, &got)
	})
	return
}

type counters struct {
	GPU   *int32 `json:"gpu_counter"`
	KVSeq *int32 `json:"kv_seq_len"`
}

// Counters shows the counters on the device.
func (t *Tensors) Counters(asked which) (seen counters, failed error) {
	failed = t.read(asked.Cache, func(on *tensorCache) error {
		seen = counters{(*int32)(on.GPUCounterPtr()), (*int32)(on.KVSeqLenPtr())}
		return nil
	})
	return
}

// SyncCounter takes all lengths from the counter.
func (t *Tensors) SyncCounter(asked which) error {
	return t.change(asked.Cache, (*tensorCache).SyncCounterFromGPU)
}

// Free drops buffers, lengths and counters.
func (t *Tensors) Free(asked which) error {
	return t.change(asked.Cache, func(on *tensorCache) error { on.Free(); return nil })
}

// MaxSeqLen is what a layer has room for.
func (t *Tensors) MaxSeqLen(asked which) (number, error) {
	return t.count(asked, (*tensorCache).MaxSeqLen)
}
