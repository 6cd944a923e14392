// Compiled into zerfoo's package generate (an overlay): what the adapter shows of it and no exported
// function does.
package generate

import (
	"slices"

	"adapter/device"

	"github.com/zerfoo/ztensor/compute"
	"github.com/zerfoo/ztensor/tensor"
)

// Blocks has all blocks of a pool, free or not.
func (p *BlockPool[T]) Blocks() []Block[T] { return p.blocks }

// Table has the blocks of a cache in order of position, null ones included.
func (c *PagedKVCache[T]) Table() []*Block[T] { return c.blockTable }

// Cursors has the positions that each layer holds.
func (c *PagedKVCache[T]) Cursors() []int { return c.layerCursors }

// kept returns a function that puts the elements of slices back as they are now.
func kept[E any](all ...[]E) func() {
	var copies [][]E
	for _, each := range all {
		copies = append(copies, slices.Clone(each))
	}
	return func() {
		for i, each := range all {
			copy(each, copies[i])
		}
	}
}

// Saved returns a function that puts the pool back as it is now.
func (p *BlockPool[T]) Saved() func() {
	var cells [][]T
	for _, block := range p.blocks {
		cells = append(cells, block.K, block.V)
	}
	free, blocks, stack, contents := p.free, kept(p.blocks), kept(p.free), kept(cells...)
	return func() {
		p.free = free
		blocks()
		stack()
		contents()
	}
}

// Saved returns a function that puts the cache back as it is now.
func (c *KVCache[T]) Saved() func() {
	var cells [][]T
	for _, layer := range c.layers {
		cells = append(cells, layer.keyBuf, layer.valBuf)
	}
	layers, contents := kept(c.layers), kept(cells...)
	return func() {
		layers()
		contents()
	}
}

// Saved returns a function that puts the cache and its pool back as they are now.
func (c *PagedKVCache[T]) Saved() func() {
	before, cursors, pool := *c, kept(c.layerCursors), c.pool.Saved()
	table := kept(c.blockTable[:cap(c.blockTable)])
	return func() {
		*c = before
		cursors()
		table()
		pool()
	}
}

// Saved returns a function that puts the cache and its device back as they are now.
func (c *TensorCache[T]) Saved() func() {
	var cells [][]T
	for _, layer := range c.layers {
		cells = append(cells, layer.kBuf, layer.vBuf)
	}
	before, layers, contents, buffers := *c, kept(c.layers), kept(cells...), device.Saved()
	return func() {
		*c = before
		layers()
		contents()
		buffers()
	}
}

// Empty says whether a layer has no cells.
func (c *TensorCache[T]) Empty(layer int) bool { return c.layers[layer].batch*c.layers[layer].dim == 0 }

// Saved returns a function that puts the real cache back as it is now.
func (t *TracingCacheProvider[T]) Saved() func() {
	return t.real.(interface{ Saved() func() }).Saved()
}

// Tracer has what was recorded.
func (t *TracingCacheProvider[T]) Tracer() *compute.Tracer[T] { return t.tracer }

// The steps of sampling, each by itself.
var (
	ApplyTemperature       = applyTemperature
	ApplyTopK              = applyTopK
	ApplyTopP              = applyTopP
	ApplyRepetitionPenalty = applyRepetitionPenalty
	Softmax                = softmax
	Argmax                 = argmax
	SampleFromDistribution = sampleFromDistribution
)

// SampleFromLogits chooses a token.
func SampleFromLogits(logits *tensor.TensorNumeric[float32], config SamplingConfig, generated []int) (int, error) {
	return (&Generator[float32]{}).sampleFromLogits(logits, config, generated)
}
