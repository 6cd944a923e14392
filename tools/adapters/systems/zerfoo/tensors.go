package main

import (
	"errors"

	"adapter/device"

	"github.com/zerfoo/zerfoo/generate"
	"github.com/zerfoo/ztensor/compute"
	"github.com/zerfoo/ztensor/numeric"

	"kvoracle"
)

var (
	engine   compute.Engine[float32] = compute.NewCPUEngine[float32](numeric.Float32Ops{})
	streamed                         = compute.NewStreamed(engine)
)

type tensorCache = generate.TensorCache[float32]

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
			on = streamed
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

// Get reads a layer. One without cells and of a negative length has no tensors: nothing is found (ZF-2).
func (t *Tensors) Get(from asked) (got found, failed error) {
	failed = t.read(from.Cache, func(on *tensorCache) error {
		rows, there := on.Get(from.Layer)
		return t.show(rows, there && (rows.Key != nil || !on.Empty(from.Layer)), from, &got)
	})
	return
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
		seen = counters{held(on.GPUCounterPtr()), held(on.KVSeqLenPtr())}
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
