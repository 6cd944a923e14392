package main

import (
	"maps"

	"github.com/zerfoo/zerfoo/generate"
)

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
