package main

import (
	"encoding/json"
	"errors"
	"math/bits"
	"strings"

	"kvoracle"
)

// Two slices of elements a layer.
type rows struct{ k, v []byte }

type cache struct {
	layers []rows
	width  uint64
	tokens uint64
}

type caches struct{ all []*cache }

var layeredVector = kvoracle.Kind{
	Name: "layered.vector",
	Open: func(config json.RawMessage, _ string) (any, error) {
		if strings.Contains(string(config), "storage") {
			return nil, errors.New("f32 alone")
		}
		return &caches{}, nil
	},
	Operations: strings.Fields("new with_capacity append advance k v len is_empty num_layers entry_size clear clone"),
}

type sizes struct {
	Layers uint64 `json:"num_layers"`
	Heads  uint64 `json:"num_kv_heads"`
	Dim    uint64 `json:"head_dim"`
	Most   uint64 `json:"max_seq_len"`
}
type number struct {
	Cache int `json:"cache"`
}
type place struct {
	Cache int             `json:"cache"`
	Layer uint64          `json:"layer"`
	K     kvoracle.Tensor `json:"k"`
	V     kvoracle.Tensor `json:"v"`
}

func (c *caches) New(s sizes) (number, error) {
	high, width := bits.Mul64(s.Heads, s.Dim)
	more, elements := bits.Mul64(width, s.Most)
	if high > 0 || more > 0 || elements > 1<<60 || s.Layers > 1<<20 {
		return number{}, kvoracle.Refuse("out_of_range", "too large")
	}
	c.all = append(c.all, &cache{make([]rows, s.Layers), width, 0})
	return number{len(c.all) - 1}, nil
}

func (c *caches) WithCapacity(s sizes) (number, error) { return c.New(s) }

func (c *caches) layer(p place) (*rows, error) {
	own := c.all[p.Cache]
	if p.Layer >= uint64(len(own.layers)) {
		return nil, kvoracle.Refuse("out_of_range", "layer %d", p.Layer)
	}
	return &own.layers[p.Layer], nil
}

func (c *caches) Append(p place) error {
	layer, err := c.layer(p)
	if err != nil {
		return err
	}
	if width := c.all[p.Cache].width; uint64(p.K.Elements()) != width || uint64(p.V.Elements()) != width {
		return kvoracle.Refuse("bad_shape", "rows have %d elements", width)
	}
	layer.k = append(layer.k, p.K.Data...)
	if fault == "stores_keys_as_values" {
		p.V = p.K
	}
	layer.v = append(layer.v, p.V.Data...)
	return nil
}

func (c *caches) Advance(n number) { c.all[n.Cache].tokens++ }

func flat(data []byte) kvoracle.Tensor {
	return kvoracle.Tensor{Shape: []int64{int64(len(data) / 4)}, DType: "f32", Data: data}
}

func (c *caches) K(p place) (any, error) {
	layer, err := c.layer(p)
	if err != nil {
		return nil, err
	}
	return map[string]any{"k": flat(layer.k)}, nil
}

func (c *caches) V(p place) (any, error) {
	layer, err := c.layer(p)
	if err != nil {
		return nil, err
	}
	return map[string]any{"v": flat(layer.v)}, nil
}

func (c *caches) Len(n number) any     { return map[string]any{"len": c.all[n.Cache].tokens} }
func (c *caches) IsEmpty(n number) any { return map[string]any{"is_empty": c.all[n.Cache].tokens == 0} }
func (c *caches) NumLayers(n number) any {
	return map[string]any{"num_layers": len(c.all[n.Cache].layers)}
}
func (c *caches) EntrySize(n number) any { return map[string]any{"entry_size": c.all[n.Cache].width} }

func (c *caches) Clear(n number) {
	own := c.all[n.Cache]
	own.layers = make([]rows, len(own.layers))
	own.tokens = 0
}

func (c *caches) Clone(n number) number {
	from := c.all[n.Cache]
	copied := &cache{make([]rows, len(from.layers)), from.width, from.tokens}
	for i, layer := range from.layers {
		copied.layers[i] = rows{append([]byte(nil), layer.k...), append([]byte(nil), layer.v...)}
	}
	c.all = append(c.all, copied)
	return number{len(c.all) - 1}
}
