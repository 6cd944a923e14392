package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"unsafe"

	"adapter/device"

	"github.com/zerfoo/zerfoo/generate"
	"github.com/zerfoo/ztensor/compute"
	"github.com/zerfoo/ztensor/numeric"
	"github.com/zerfoo/ztensor/tensor"

	"kvoracle"
)

// provider is a cache of zerfoo, with what the adapter's file adds.
type provider[T cell] interface {
	generate.CacheProvider[T]
	Saved() func()
}

// Caches are those of a case by number, and the results that may be read again.
type Caches[T cell, C provider[T]] struct {
	caches  map[int]C
	results []*generate.LayerKV[T]
	objects map[int]map[int]*tensor.TensorNumeric[T] // of tracers, by their numbers
	held    []any                                    // lives as long as the case: addresses are not used again (ZF-71)
	faults  *device.Faults                           // of the device, if there is one
	has     map[int]bool                             // by cache: whether it has the device
}

// enter says whose device is called.
func (c *Caches[T, C]) enter(cache int) {
	if c.faults != nil {
		device.Current, c.faults.Off = c.faults, !c.has[cache]
	}
}

type which struct{ Cache int }

// put makes a cache in the place of an earlier one.
func (c *Caches[T, C]) put(cache int, make func() (C, error)) error {
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
func (c *Caches[T, C]) read(cache int, call func(C) error) error {
	on, there := c.caches[cache]
	if !there {
		return refused("no such cache")
	}
	c.enter(cache)
	return guard(nothing, func() error { return call(on) })
}

// change makes a call that changes the cache.
func (c *Caches[T, C]) change(cache int, call func(C) error) error {
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
func (c *Caches[T, C]) Update(given update) error {
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
func (c *Caches[T, C]) object(cache, number int, given *kvoracle.Tensor, where string) (*tensor.TensorNumeric[T], error) {
	if given == nil {
		return nil, nil
	}
	if given.DType != "f32" {
		return nil, refused("rows are f32")
	}
	made, err := newValues(given.Shape, cellsOf[T](given.Floats()))
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
func (c *Caches[T, C]) moved(from *tensor.TensorNumeric[T]) (*tensor.TensorNumeric[T], error) {
	device.Current = &device.Faults{}
	defer func() { device.Current = c.faults }()
	storage, err := tensor.NewGPUStorageFromSlice(from.Data())
	if err != nil {
		return nil, err
	}
	return tensor.NewWithStorage(from.Shape(), storage)
}

// onDevice is where a tensor's cells lie, if that is the device.
func onDevice[T cell](of *tensor.TensorNumeric[T]) (*tensor.GPUStorage[T], bool) {
	if of == nil {
		return nil, false
	}
	storage, is := of.GetStorage().(*tensor.GPUStorage[T])
	return storage, is
}

func release[T cell](all ...*tensor.TensorNumeric[T]) {
	for _, each := range all {
		if storage, is := onDevice(each); is {
			_ = storage.Free()
		}
	}
}

func newValues[T cell](shape []int64, data []T) (*tensor.TensorNumeric[T], error) {
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
func (c *Caches[T, C]) Get(from asked) (got found, failed error) {
	failed = c.read(from.Cache, func(on C) error {
		rows, there := on.Get(from.Layer)
		return c.show(rows, there, from, &got)
	})
	return
}

func (c *Caches[T, C]) show(rows *generate.LayerKV[T], there bool, from asked, got *found) error {
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

type again struct {
	K        *kvoracle.Tensor `json:"k,omitempty"`
	V        *kvoracle.Tensor `json:"v,omitempty"`
	Dangling bool             `json:"dangling,omitempty"`
}

func dangles[T cell](rows *generate.LayerKV[T]) bool {
	k, is := onDevice(rows.Key)
	v, too := onDevice(rows.Value)
	return is && !device.Alive(k.Ptr()) || too && !device.Alive(v.Ptr())
}

// Reread reads an earlier result.
func (c *Caches[T, C]) Reread(asked struct{ Handle int }) (seen again, failed error) {
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
func (c *Caches[T, C]) Poke(asked oneCell) error {
	return guard(nothing, func() error {
		rows := map[string]*tensor.TensorNumeric[T]{"k": c.results[asked.Handle].Key, "v": c.results[asked.Handle].Value}[asked.Side]
		if dangles(c.results[asked.Handle]) {
			return refused("the result is dangling")
		}
		data := rows.Data()
		data[asked.Index] = cellsOf[T]([]float32{float32(asked.Value)})[0]
		if storage, is := onDevice(rows); is {
			return storage.CopyFromHost(data[asked.Index:asked.Index+1], asked.Index)
		}
		return nil
	})
}

// Truncate cuts every layer.
func (c *Caches[T, C]) Truncate(asked struct{ Cache, N int }) error {
	return c.change(asked.Cache, func(on C) error { on.Truncate(asked.N); return nil })
}

// Reset empties every layer.
func (c *Caches[T, C]) Reset(asked which) error {
	return c.change(asked.Cache, func(on C) error { on.Reset(); return nil })
}

func (c *Caches[T, C]) count(asked which, of func(C) int) (seen number, failed error) {
	failed = c.read(asked.Cache, func(on C) error { seen.N = of(on); return nil })
	return
}

// SeqLen is the length of layer 0.
func (c *Caches[T, C]) SeqLen(asked which) (number, error) { return c.count(asked, C.SeqLen) }

// Contiguous is a case of provider.contiguous.
type Contiguous[T cell] struct {
	Caches[T, *generate.KVCache[T]]
}

func newContiguous[T cell]() any {
	return &Contiguous[T]{Caches[T, *generate.KVCache[T]]{caches: map[int]*generate.KVCache[T]{}}}
}

type lengths struct {
	Cache     int
	NumLayers int `json:"num_layers"`
	MaxSeqLen int `json:"max_seq_len"`
}

// New makes a cache.
func (c *Contiguous[T]) New(given lengths) error {
	return c.put(given.Cache, func() (*generate.KVCache[T], error) {
		return generate.NewKVCache[T](given.NumLayers, given.MaxSeqLen), nil
	})
}

// NumLayers counts the layers.
func (c *Contiguous[T]) NumLayers(asked which) (number, error) {
	return c.count(asked, (*generate.KVCache[T]).NumLayers)
}

// Paged is a case of provider.paged: a pool, and caches over it and over earlier ones.
type Paged[T cell] struct {
	Stack[T]
	Caches[T, *generate.PagedKVCache[T]]
	numbers map[*generate.Block[T]]int // of all pools
}

func newPaged[T cell]() any {
	return &Paged[T]{Caches: Caches[T, *generate.PagedKVCache[T]]{caches: map[int]*generate.PagedKVCache[T]{}},
		numbers: map[*generate.Block[T]]int{}}
}

// NewPool makes the pool of the caches to come.
func (p *Paged[T]) NewPool(given sizes) (poolMade, error) {
	made, err := p.Stack.New(given)
	if err == nil {
		maps.Copy(p.numbers, p.number)
	}
	made.Elems = nil
	return made, err
}

// Drain takes blocks until `leave` are available.
func (p *Paged[T]) Drain(asked struct{ Leave int }) (drained, error) {
	done, err := p.Stack.Drain(asked)
	done.Last = nil
	return done, err
}

// New makes a cache over the pool.
func (p *Paged[T]) New(given lengths) error {
	return p.put(given.Cache, func() (*generate.PagedKVCache[T], error) {
		return generate.NewPagedKVCache(p.pool, given.NumLayers), nil
	})
}

// Free gives the blocks of a cache back.
func (p *Paged[T]) Free(asked which) error {
	return p.change(asked.Cache, func(on *generate.PagedKVCache[T]) error { on.Free(); return nil })
}

// NumLayers counts the layers.
func (p *Paged[T]) NumLayers(asked which) (number, error) {
	return p.Caches.count(asked, (*generate.PagedKVCache[T]).NumLayers)
}

type table struct {
	Blocks  []*int `json:"blocks"`
	Cursors []int  `json:"cursors"`
}

// Table shows the block table and the cursors.
func (p *Paged[T]) Table(asked which) (seen table, failed error) {
	failed = p.read(asked.Cache, func(on *generate.PagedKVCache[T]) error {
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

type (
	tracer      = generate.TracingCacheProvider[float32]
	tensorCache = generate.TensorCache[float32]
)

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

var (
	engine     compute.Engine[float32] = compute.NewCPUEngine[float32](numeric.Float32Ops{})
	withStream                         = sync.OnceValues(func() (*compute.Streamed[float32], error) { return compute.NewStreamed(engine) })
)

// Tensors is a case of provider.tensor. Operations are its methods.
type Tensors struct{ Caches[float32, *tensorCache] }

func newTensors() *Tensors {
	return &Tensors{Caches[float32, *tensorCache]{caches: map[int]*tensorCache{}, faults: &device.Faults{}, has: map[int]bool{}}}
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

// Update adds rows. A null V is refused before any memory is asked for (ZF-54).
func (t *Tensors) Update(given update) error {
	before := *t.faults
	err := t.Caches.Update(given)
	if given.V == nil && errors.As(err, new(*kvoracle.Refused)) {
		t.faults.Allocs = before.Allocs
	}
	return err
}

// GetFullBuffer reads the whole buffers of a layer on the device.
func (t *Tensors) GetFullBuffer(from asked) (got found, failed error) {
	failed = t.read(from.Cache, func(on *tensorCache) error {
		k, v := on.GetFullBuffer(from.Layer)
		return t.show(&generate.LayerKV[float32]{Key: k, Value: v}, k != nil, from, &got)
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
		for to, from := range map[**int32]unsafe.Pointer{&seen.GPU: on.GPUCounterPtr(), &seen.KVSeq: on.KVSeqLenPtr()} {
			if from != nil {
				value := *(*int32)(from)
				*to = &value
			}
		}
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
