package main

import (
	"adapter/device"

	"github.com/zerfoo/zerfoo/generate"
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
