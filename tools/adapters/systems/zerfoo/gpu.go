package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"unsafe"

	"adapter/device"

	"github.com/zerfoo/zerfoo/generate"

	"kvoracle"
)

// call is a call of the device, as logs have it.
type call = map[string]any

// Codes of CUDA that the kernels of a case answer.
const (
	noKernels  = 100
	badPointer = 700
)

// live is a buffer of a case.
type live struct {
	base, size uintptr
	number     int
	name       string // of a source: k_src, v_src
}

// allocator is the generate.GPUAllocator of a case. It notes calls, and makes them fail.
type allocator struct {
	live                        []live
	next                        int // the number of the next buffer
	calls                       []call
	alloc, free, memcpy, kernel int // which such call from now on fails; 0: none
	kernels                     bool
}

func strikes(count *int) bool {
	if *count > 0 {
		*count--
		return *count == 0
	}
	return false
}

func (a *allocator) note(noted call, err error) error {
	if err != nil {
		noted["error"] = true
	}
	a.calls = append(a.calls, noted)
	return err
}

// shown is an address as logs have it.
func (a *allocator) shown(address uintptr) any {
	for _, each := range a.live {
		if address >= each.base && address <= each.base+each.size {
			if each.name != "" {
				return each.name
			}
			return call{"buf": each.number, "off": address - each.base}
		}
	}
	if address == 0 {
		return nil
	}
	return call{"buf": nil, "off": address}
}

// take allocates without a fault; nil where there is no memory.
func (a *allocator) take(size, number int, name string) unsafe.Pointer {
	made := device.Allocate(size)
	if made != nil {
		a.live = append(a.live, live{uintptr(made), uintptr(size), number, name})
	}
	return made
}

func (a *allocator) give(address unsafe.Pointer) {
	a.live = slices.DeleteFunc(a.live, func(each live) bool { return each.base == uintptr(address) })
}

// Alloc allocates.
func (a *allocator) Alloc(size int) (unsafe.Pointer, error) {
	if size < 0 {
		panic("memory of a negative size") // ZF-1
	}
	noted := call{"fn": "alloc", "size": size}
	if !strikes(&a.alloc) {
		if made := a.take(size, a.next, ""); made != nil {
			noted["buf"] = a.next
			a.next++
			return made, a.note(noted, nil)
		}
	}
	return nil, a.note(noted, kvoracle.Refuse("other:alloc_failed", ""))
}

// Free gives memory back.
func (a *allocator) Free(address unsafe.Pointer) error {
	noted := call{"fn": "free", "ptr": a.shown(uintptr(address))}
	if strikes(&a.free) {
		return a.note(noted, kvoracle.Refuse("other:free_failed", ""))
	}
	if !device.Release(address) {
		return a.note(noted, kvoracle.Refuse("other:bad_pointer", ""))
	}
	a.give(address)
	return a.note(noted, nil)
}

// Memcpy copies to the device (kind 0) or to the host.
func (a *allocator) Memcpy(to, from unsafe.Pointer, size, kind int) error {
	noted := call{"fn": "memcpy", "size": size, "kind": kind, "dst": "host", "src": "host"}
	on, host := from, to
	if kind == 0 {
		on, host = to, from
		noted["dst"] = a.shown(uintptr(to))
	} else {
		noted["src"] = a.shown(uintptr(from))
	}
	if strikes(&a.memcpy) {
		return a.note(noted, kvoracle.Refuse("other:memcpy_failed", ""))
	}
	cells := device.Cells(on, size)
	if cells == nil {
		return a.note(noted, kvoracle.Refuse("other:bad_pointer", ""))
	}
	if kind == 0 {
		copy(cells, unsafe.Slice((*byte)(host), size))
	} else {
		copy(unsafe.Slice((*byte)(host), size), cells)
	}
	return a.note(noted, nil)
}

// launched notes the arguments of each launch.
func (a *allocator) launched(name string, given []uintptr, run func() uintptr) (result uintptr) {
	if !a.kernels {
		return noKernels
	}
	noted := call{"fn": strings.TrimPrefix(name, "launch_")}
	if noted["fn"] == "increment_counter" {
		noted["counter"], noted["delta"] = a.shown(given[0]), given[1]
	} else {
		noted["dst"], noted["src"], noted["counter"] = a.shown(given[0]), a.shown(given[1]), a.shown(given[2])
		noted["dim"], noted["max_seq_len"] = given[3], given[4]
	}
	defer func() {
		if recover() != nil {
			result = badPointer
		}
		var err error
		if result != 0 {
			err = errors.New("refused")
		}
		_ = a.note(noted, err)
	}()
	if strikes(&a.kernel) {
		return 1
	}
	return run()
}

// GPU is a case of provider.device. Operations are its methods.
type GPU struct {
	cache *generate.GPUKVCache
	sizes gpuSizes
	on    allocator
}

type gpuSizes struct {
	NumLayers int    `json:"num_layers"`
	MaxSeqLen int    `json:"max_seq_len"`
	NumHeads  int    `json:"num_heads"`
	HeadDim   int    `json:"head_dim"`
	Nil       bool   `json:"nil_allocator"`
	Kernels   string `json:"kernels"`
}

// done is an answer of a call that changes something, with the calls of the device.
type done struct {
	Error    string `json:"error,omitempty"`
	Calls    []call `json:"calls"`
	K        any    `json:"k,omitempty"`
	V        any    `json:"v,omitempty"`
	KContent []any  `json:"k_content,omitempty"`
	VContent []any  `json:"v_content,omitempty"`
}

// observed makes a call, and notes what it asks of the device.
func (g *GPU) observed(run func() error) (seen done) {
	device.Current, device.Launched = &device.Faults{}, g.on.launched
	defer func() { device.Launched = nil }()
	g.on.calls = []call{}
	if err := guard(nothing, run); err != nil {
		seen.Error = err.(*kvoracle.Refused).Code
	}
	seen.Calls = g.on.calls
	return
}

func (g *GPU) changed(run func() error) done {
	return g.observed(func() error {
		if g.cache == nil {
			return refused("no cache")
		}
		return run()
	})
}

// New makes a cache, and closes the earlier one beyond the reach of failures to come.
func (g *GPU) New(given gpuSizes) done {
	before := g.on.kernels
	var made *generate.GPUKVCache
	seen := g.observed(func() (err error) {
		g.on.kernels = given.Kernels != "unavailable"
		var from generate.GPUAllocator = &g.on
		if given.Nil {
			from = nil
		}
		made, err = generate.NewGPUKVCache(from, given.NumLayers, given.MaxSeqLen, given.NumHeads, given.HeadDim)
		return err
	})
	if made == nil || seen.Error != "" {
		g.on.kernels = before
		return seen
	}
	if g.cache != nil {
		alloc, free, memcpy, kernel := g.on.alloc, g.on.free, g.on.memcpy, g.on.kernel
		g.on.alloc, g.on.free, g.on.memcpy, g.on.kernel = 0, 0, 0, 0
		_ = g.cache.Close()
		g.on.alloc, g.on.free, g.on.memcpy, g.on.kernel = alloc, free, memcpy, kernel
	}
	g.cache, g.sizes = made, given
	return seen
}

type row struct {
	Layer  int
	SeqPos int `json:"seq_pos"`
	K, V   []kvoracle.Number
}

func floats(given []kvoracle.Number) []float32 {
	own := make([]float32, len(given))
	for i, value := range given {
		own[i] = float32(value)
	}
	return own
}

// Append writes a position from the host.
func (g *GPU) Append(given row) done {
	return g.changed(func() error { return g.cache.Append(given.Layer, floats(given.K), floats(given.V), given.SeqPos) })
}

// source is a row on the device for the time of one call.
func (g *GPU) source(name string, given []kvoracle.Number) unsafe.Pointer {
	made := g.on.take(4*len(given), 0, name)
	cells := device.Cells(made, 4*len(given))
	for i, value := range floats(given) {
		_, _ = binary.Encode(cells[4*i:], binary.LittleEndian, value)
	}
	return made
}

// AppendGpu writes a position from the device.
func (g *GPU) AppendGpu(given row) done {
	return g.changed(func() error {
		k, v := g.source("k_src", given.K), g.source("v_src", given.V)
		defer func() {
			for _, each := range []unsafe.Pointer{k, v} {
				g.on.give(each)
				device.Release(each)
			}
		}()
		return g.cache.AppendGPU(given.Layer, k, v, nil)
	})
}

// SyncCounter takes the length from the counter.
func (g *GPU) SyncCounter() done {
	return g.changed(func() error { return g.cache.SyncCounterFromGPU() })
}

// Reset makes length and counter 0.
func (g *GPU) Reset() done { return g.changed(func() error { g.cache.Reset(); return nil }) }

// Close frees everything.
func (g *GPU) Close() done { return g.changed(func() error { return g.cache.Close() }) }

// DevicePointerArrays copies all pointers to the device.
func (g *GPU) DevicePointerArrays() done {
	var k, v unsafe.Pointer
	seen := g.changed(func() (err error) { k, v, err = g.cache.DevicePointerArrays(); return })
	if seen.Error == "" {
		seen.K, seen.V, seen.KContent, seen.VContent = g.on.shown(uintptr(k)), g.on.shown(uintptr(v)), g.content(k), g.content(v)
	}
	return seen
}

func (g *GPU) content(array unsafe.Pointer) (all []any) {
	for _, each := range unsafe.Slice((*uintptr)(array), g.sizes.NumLayers) {
		all = append(all, g.on.shown(each))
	}
	return
}

// asked makes a query of a cache that is there.
func (g *GPU) asked(query func()) error {
	if g.cache == nil {
		return refused("no cache")
	}
	return guard(nothing, func() error { query(); return nil })
}

// SeqLen is the length.
func (g *GPU) SeqLen(of which) (seen number, failed error) {
	if of.Cache != 0 {
		return seen, refused("no such cache")
	}
	failed = g.asked(func() { seen.N = g.cache.SeqLen() })
	return
}

type pointers struct {
	K any `json:"k"`
	V any `json:"v"`
	N int `json:"n"`
}

// Pointers shows the buffers of a layer.
func (g *GPU) Pointers(of struct{ Layer int }) (seen pointers, failed error) {
	failed = g.asked(func() {
		k, v, n := g.cache.Pointers(of.Layer)
		seen = pointers{g.on.shown(uintptr(k)), g.on.shown(uintptr(v)), n}
	})
	return
}

type counterPtr struct {
	Ptr any `json:"ptr"`
}

// CounterPtr shows the address of the counter.
func (g *GPU) CounterPtr() (seen counterPtr, failed error) {
	failed = g.asked(func() { seen.Ptr = g.on.shown(uintptr(g.cache.GPUCounterPtr())) })
	return
}

type counted struct {
	N *int32 `json:"n"`
}

// ReadCounter shows what the counter holds.
func (g *GPU) ReadCounter() (seen counted, failed error) {
	failed = g.asked(func() { seen.N = held(g.cache.GPUCounterPtr()) })
	return
}

// held is what a counter on the device holds.
func held(counter unsafe.Pointer) *int32 {
	if counter == nil {
		return nil
	}
	value := *(*int32)(counter)
	return &value
}

// ReadBuffer shows the buffers of a layer.
func (g *GPU) ReadBuffer(of struct{ Layer int }) (seen found, failed error) {
	failed = g.asked(func() {
		k, v, _ := g.cache.Pointers(of.Layer)
		if seen.Found = k != nil && v != nil; seen.Found {
			seen.K, seen.V = g.buffer(k), g.buffer(v)
		}
	})
	return
}

func (g *GPU) buffer(from unsafe.Pointer) *kvoracle.Tensor {
	width := g.sizes.NumHeads * g.sizes.HeadDim
	made := kvoracle.FloatTensor(unsafe.Slice((*float32)(from), g.sizes.MaxSeqLen*width), int64(g.sizes.MaxSeqLen), int64(width))
	return &made
}

type alive struct {
	Bufs []int `json:"bufs"`
}

// LiveBuffers shows the numbers of the buffers that are not given back.
func (g *GPU) LiveBuffers() alive {
	seen := alive{[]int{}}
	for _, each := range g.on.live {
		seen.Bufs = append(seen.Bufs, each.number)
	}
	slices.SortFunc(seen.Bufs, cmp.Compare[int])
	return seen
}

// Inject makes calls of the device fail.
func (g *GPU) Inject(given struct {
	Alloc  *int `json:"alloc_fail_at"`
	Free   *int `json:"free_fail_at"`
	Memcpy *int `json:"memcpy_fail_at"`
	Kernel *int `json:"kernel_fail_at"`
}) {
	for to, from := range map[*int]*int{&g.on.alloc: given.Alloc, &g.on.free: given.Free, &g.on.memcpy: given.Memcpy, &g.on.kernel: given.Kernel} {
		if from != nil {
			*to = *from
		}
	}
}
