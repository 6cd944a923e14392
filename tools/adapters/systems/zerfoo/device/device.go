// Package device is in the place of the libraries libcudart and libkernels: memory of the host, and
// the kernels that zerfoo's TensorCache launches.
package device

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"kvoracle"
)

// Faults are those to come in a case.
type Faults struct {
	Off    bool // no allocation succeeds, and none is counted: the cache has no device
	Allocs int  // allocations that fail
	Kernel int  // which launch from now on fails; 0: none
}

// Current are the faults of the case that is being called.
var Current = &Faults{}

const (
	success = 0
	refused = 1
	largest = 1 << 32
	// Buffers that were given back keep their addresses so long: what points there dangles.
	quarantine = 4096
)

type buffer struct {
	base uintptr
	size int
	room []byte
	of   *Faults
}

var (
	lock sync.Mutex // zerfoo frees buffers in finalizers, too
	live []*buffer  // by base
	dead []*buffer
)

func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// Launched replaces each launch, if it is set: it gets the arguments, and calls run.
var Launched func(kernel string, arguments []uintptr, run func() uintptr) uintptr

// Allocate takes memory; nil where there is none.
func Allocate(bytes int) unsafe.Pointer {
	var made uintptr
	if allocate(&made, bytes) != success {
		return nil
	}
	return pointer(made)
}

// Release gives memory back; false if it is none.
func Release(address unsafe.Pointer) bool { return free(uintptr(address)) == success }

// Cells are bytes of a live buffer; nil where they would leave it.
func Cells(address unsafe.Pointer, bytes int) []byte { return cells(uintptr(address), bytes) }

func place(address uintptr) (int, bool) {
	return slices.BinarySearchFunc(live, address, func(b *buffer, a uintptr) int { return cmp.Compare(b.base, a) })
}

func allocate(into *uintptr, bytes int) uintptr {
	if bytes < 0 {
		panic("memory of a negative size") // ZF-64
	}
	if Current.Off {
		return refused
	}
	if Current.Allocs > 0 {
		Current.Allocs--
		return refused
	}
	if bytes > largest {
		return refused
	}
	room, err := syscall.Mmap(-1, 0, max(bytes, 1), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return refused
	}
	made := &buffer{uintptr(unsafe.Pointer(unsafe.SliceData(room))), bytes, room, Current}
	lock.Lock()
	defer lock.Unlock()
	at, _ := place(made.base)
	live = slices.Insert(live, at, made)
	*into = made.base
	return success
}

func free(address uintptr) uintptr {
	lock.Lock()
	defer lock.Unlock()
	at, found := place(address)
	if !found {
		return refused
	}
	dead = append(dead, live[at])
	live = slices.Delete(live, at, at+1)
	if len(dead) > quarantine {
		_ = syscall.Munmap(dead[0].room)
		dead = dead[1:]
	}
	return success
}

// cells are bytes of a live buffer; nothing where they would leave it.
func cells(address uintptr, bytes int) []byte {
	lock.Lock()
	defer lock.Unlock()
	at, found := place(address)
	if !found {
		at--
	}
	if at < 0 || bytes < 0 {
		return nil
	}
	begin := int(address - live[at].base)
	if begin+bytes > live[at].size {
		return nil
	}
	return live[at].room[begin : begin+bytes : begin+bytes]
}

func must(address uintptr, bytes int) []byte {
	found := cells(address, bytes)
	if found == nil {
		panic("an access outside of a buffer on the device")
	}
	return found
}

// Alive says whether an address lies in a buffer, or at its end.
func Alive(address unsafe.Pointer) bool { return cells(uintptr(address), 0) != nil }

// Saved returns a function that puts the buffers of the case, and the count of launches, back as
// they are now.
func Saved() func() {
	lock.Lock()
	defer lock.Unlock()
	contents, kernel := map[*buffer][]byte{}, Current.Kernel
	for _, each := range live {
		if each.of == Current {
			contents[each] = slices.Clone(each.room)
		}
	}
	return func() {
		Current.Kernel = kernel
		for each, content := range contents {
			copy(each.room, content)
		}
	}
}

// copied does what cudaMemcpy does. Kinds: 1 to the device, 2 to the host, 3 on the device.
func copied(to, from uintptr, bytes int, kind uintptr) uintptr {
	source, target := unsafe.Slice((*byte)(pointer(from)), bytes), unsafe.Slice((*byte)(pointer(to)), bytes)
	if kind != 1 {
		source = must(from, bytes)
	}
	if kind != 2 {
		target = must(to, bytes)
	}
	copy(target, source)
	return success
}

func launch(work func()) uintptr {
	if Current.Kernel > 0 {
		if Current.Kernel--; Current.Kernel == 0 {
			return refused
		}
	}
	work()
	return success
}

func counter(address uintptr) int32 { return int32(binary.LittleEndian.Uint32(must(address, 4))) }

// kernel looks at its addresses, and gives what is to be done.
type kernel func(to, from uintptr, elements int) func()

// offset copies a row to the position that a counter holds (ZF-47).
func offset(to, from, position uintptr, row, most, width int, store kernel) uintptr {
	at := int(counter(position))
	if at < 0 {
		panic("a counter below 0")
	}
	if at >= most {
		return launch(func() {})
	}
	return launch(store(to+uintptr(at*row*width), from, row))
}

func words(to, from uintptr, elements int) func() {
	target, source := must(to, 4*elements), must(from, 4*elements)
	return func() { copy(target, source) }
}

var half = kvoracle.Floats["f16"] // ZF-67

func narrowed(to, from uintptr, elements int) func() {
	target, source := must(to, 2*elements), must(from, 4*elements)
	return func() {
		for i := range elements {
			value := math.Float32frombits(binary.LittleEndian.Uint32(source[4*i:]))
			binary.LittleEndian.PutUint16(target[2*i:], uint16(half.Encode(value)))
		}
	}
}

func widened(to, from uintptr, elements int) func() {
	target, source := must(to, 4*elements), must(from, 2*elements)
	return func() {
		for i := range elements {
			value := half.Decode(uint32(binary.LittleEndian.Uint16(source[2*i:])))
			binary.LittleEndian.PutUint32(target[4*i:], math.Float32bits(value))
		}
	}
}

type function struct {
	name string
	call func(a []uintptr) uintptr
}

// Of the streams there is one, and it does its work at once.
var functions = []function{
	{"cudaMalloc", func(a []uintptr) uintptr { return allocate((*uintptr)(pointer(a[0])), int(a[1])) }},
	{"cudaFree", func(a []uintptr) uintptr { return free(a[0]) }},
	{"cudaMemcpy", func(a []uintptr) uintptr { return copied(a[0], a[1], int(a[2]), a[3]) }},
	{"cudaMemcpyAsync", func(a []uintptr) uintptr { return copied(a[0], a[1], int(a[2]), a[3]) }},
	{"cudaSetDevice", func([]uintptr) uintptr { return success }},
	{"cudaGetErrorString", func([]uintptr) uintptr { return 0 }},
	{"cudaStreamCreate", func(a []uintptr) uintptr { *(*uintptr)(pointer(a[0])) = 1; return success }},
	{"launch_increment_counter", func(a []uintptr) uintptr {
		return launch(func() {
			binary.LittleEndian.PutUint32(must(a[0], 4), uint32(counter(a[0])+int32(a[1])))
		})
	}},
	{"launch_offset_memcpy", func(a []uintptr) uintptr { return offset(a[0], a[1], a[2], int(a[3]), int(a[4]), 4, words) }},
	{"launch_offset_memcpy_fp16", func(a []uintptr) uintptr { return offset(a[0], a[1], a[2], int(a[3]), int(a[4]), 2, narrowed) }},
	{"launch_f32_to_fp16", func(a []uintptr) uintptr { return launch(narrowed(a[1], a[0], int(a[2]))) }},
	{"launch_fp16_to_f32", func(a []uintptr) uintptr { return launch(widened(a[1], a[0], int(a[2]))) }},
}

// Symbol is the address of a function. One that is not here has one, too, and refuses each call.
func Symbol(name string) uintptr {
	return uintptr(len(functions) - slices.IndexFunc(functions, func(f function) bool { return f.name == name }))
}

// Call calls a function.
func Call(address uintptr, arguments []uintptr) uintptr {
	if address > uintptr(len(functions)) {
		return refused
	}
	called := functions[uintptr(len(functions))-address]
	if Launched == nil || !strings.HasPrefix(called.name, "launch_") {
		return called.call(arguments)
	}
	return Launched(called.name, arguments, func() uintptr { return called.call(arguments) })
}
