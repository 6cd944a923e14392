package main

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/zerfoo/zerfoo/generate"

	"kvoracle"
)

// Stack is a case of block_pool.stack. Operations are its methods.
type Stack[T cell] struct {
	pool    *generate.BlockPool[T]
	number  map[*generate.Block[T]]int
	out     []bool // by block: handed out by an operation
	misused bool   // a block was freed that was not out
}

func newStack[T cell]() any { return &Stack[T]{} }

type sizes struct {
	NumLayers   int `json:"num_layers"`
	BlockSize   int `json:"block_size"`
	HeadDim     int `json:"head_dim"`
	MaxMemoryMB int `json:"max_memory_mb"`
}

type poolMade struct {
	Cap   int  `json:"cap"`
	Elems *int `json:"elems_per_side,omitempty"`
}

// New makes a pool in the place of the earlier one.
func (s *Stack[T]) New(given sizes) (made poolMade, failed error) {
	failed = guard(nothing, func() error {
		pool, err := newPool[T](given)
		if err != nil {
			return err
		}
		*s = Stack[T]{pool: pool, number: map[*generate.Block[T]]int{}, out: make([]bool, pool.Cap())}
		for i := range pool.Blocks() {
			s.number[&pool.Blocks()[i]] = i
		}
		elems := len(pool.Blocks()[0].K)
		made = poolMade{pool.Cap(), &elems}
		return nil
	})
	return
}

// newPool makes a pool. zerfoo counts 4 bytes a cell whatever the type (ZF-20), where the contract has
// the size of the type: the budget is that of as many cells.
func newPool[T cell](given sizes) (*generate.BlockPool[T], error) {
	var of T
	return generate.NewBlockPool[T](given.NumLayers, given.BlockSize, given.HeadDim, given.MaxMemoryMB*(4/int(unsafe.Sizeof(of))))
}

// with makes a call of a pool that is there.
func (s *Stack[T]) with(call func() error) error {
	if s.pool == nil {
		return refused("no pool")
	}
	return guard(nothing, call)
}

// on makes a call with a block of the pool.
func (s *Stack[T]) on(number int, call func(*generate.Block[T]) error) error {
	return s.with(func() error { return call(&s.pool.Blocks()[number]) })
}

type allocated struct {
	Block int `json:"block"`
	Used  int `json:"used"`
}

// Alloc takes a block.
func (s *Stack[T]) Alloc() (taken allocated, failed error) {
	failed = s.with(func() error {
		made, err := s.pool.Alloc()
		if err == nil {
			taken = allocated{s.number[made], made.Used}
			s.out[taken.Block] = true
		}
		return err
	})
	return
}

// FreeBlock gives a block back, or a null one.
func (s *Stack[T]) FreeBlock(asked struct{ Block *int }) error {
	if asked.Block == nil {
		return s.with(func() error { s.pool.Free(nil); return nil })
	}
	return s.on(*asked.Block, func(freed *generate.Block[T]) error {
		s.pool.Free(freed)
		s.misused = s.misused || !s.out[*asked.Block]
		s.out[*asked.Block] = false
		return nil
	})
}

type drained struct {
	Taken int  `json:"taken"`
	Last  *int `json:"last,omitempty"`
}

// Drain takes blocks until `leave` are available.
func (s *Stack[T]) Drain(asked struct{ Leave int }) (done drained, failed error) {
	last := -1
	done.Last = &last
	failed = s.with(func() error {
		for s.pool.Available() > max(asked.Leave, 0) {
			taken, err := s.Alloc()
			if err != nil {
				return err
			}
			done.Taken, last = done.Taken+1, taken.Block
		}
		return nil
	})
	return
}

// SetUsed writes the count of used positions of a block.
func (s *Stack[T]) SetUsed(asked allocated) error {
	return s.on(asked.Block, func(to *generate.Block[T]) error { to.Used = asked.Used; return nil })
}

type oneCell struct {
	Block, Handle int
	Side          string
	Index         int
	Value         kvoracle.Number
}

// WriteBlock writes one cell of a block.
func (s *Stack[T]) WriteBlock(asked oneCell) error {
	return s.on(asked.Block, func(to *generate.Block[T]) error {
		side := to.K
		if asked.Side == "v" {
			side = to.V
		}
		side[asked.Index] = cellsOf[T]([]float32{float32(asked.Value)})[0]
		return nil
	})
}

type sides struct {
	K    []kvoracle.Number `json:"k"`
	V    []kvoracle.Number `json:"v"`
	Used int               `json:"used"`
}

// ReadBlock shows a block.
func (s *Stack[T]) ReadBlock(asked struct{ Block int }) (seen sides, failed error) {
	failed = s.on(asked.Block, func(from *generate.Block[T]) error {
		seen = sides{numbers(valuesOf(from.K)), numbers(valuesOf(from.V)), from.Used}
		return nil
	})
	return
}

func (s *Stack[T]) count(of func() int) (seen number, failed error) {
	failed = s.with(func() error { seen.N = of(); return nil })
	return
}

// Available counts the free blocks.
func (s *Stack[T]) Available() (number, error) {
	return s.count(func() int { return s.pool.Available() })
}

// Cap counts all blocks.
func (s *Stack[T]) Cap() (number, error) { return s.count(func() int { return s.pool.Cap() }) }

// BlockSize has the positions of a block.
func (s *Stack[T]) BlockSize() (number, error) {
	return s.count(func() int { return s.pool.BlockSize() })
}

type work struct{ Workers, Iterations, Hold int }

type met struct {
	Available int  `json:"available"`
	Double    bool `json:"double_owner_seen"`
}

// Concurrent lets workers take blocks and give them back; then the free blocks are put in ascending
// order with `used` 0, since the workers leave them in any (ZF-26).
func (s *Stack[T]) Concurrent(asked work) (seen met, failed error) {
	failed = s.with(func() error {
		if min(asked.Workers, asked.Iterations, asked.Hold) < 0 || asked.Workers > 64 || asked.Iterations > 100_000 ||
			asked.Hold > 1024 || asked.Workers*asked.Iterations*asked.Hold > 10_000_000 || s.misused {
			return refused("too much work, or a block was freed that was not out")
		}
		owned, twice := make([]atomic.Bool, s.pool.Cap()), atomic.Bool{}
		var workers sync.WaitGroup
		for range asked.Workers {
			workers.Go(func() {
				for range asked.Iterations {
					for _, each := range s.take(asked.Hold, func(number int) {
						if owned[number].Swap(true) {
							twice.Store(true)
						}
					}) {
						owned[s.number[each]].Store(false)
						s.pool.Free(each)
					}
				}
			})
		}
		workers.Wait()
		free := s.take(s.pool.Cap(), func(int) {})
		slices.SortFunc(free, func(a, b *generate.Block[T]) int { return cmp.Compare(s.number[b], s.number[a]) })
		for _, each := range free {
			s.pool.Free(each)
		}
		seen = met{s.pool.Available(), twice.Load()}
		return nil
	})
	return
}

// take takes at most so many blocks, and tells their numbers.
func (s *Stack[T]) take(most int, tell func(number int)) (taken []*generate.Block[T]) {
	for range most {
		each, err := s.pool.Alloc()
		if err != nil {
			break
		}
		tell(s.number[each])
		taken = append(taken, each)
	}
	return
}
