// A cache that knows nothing of kvoracle. With FAULT in the environment it stores keys as values.
package main

import (
	"encoding/json"
	"os"
)

type rows struct {
	Shape []int     `json:"shape"`
	Data  []float32 `json:"data"`
}

type sizes struct {
	Layers int `json:"num_layers"`
}

type place struct {
	Cache, Layer int
	K, V         rows
}

type caches struct{ all [][][2][]float32 }

type kind struct{}

var layeredVector kind

func (kind) Open(json.RawMessage, string) (any, error) { return &caches{}, nil }

func (c *caches) New(of sizes) map[string]int {
	c.all = append(c.all, make([][2][]float32, of.Layers))
	return map[string]int{"cache": len(c.all) - 1}
}

func (c *caches) WithCapacity(of sizes) map[string]int { return c.New(of) }

func (c *caches) Append(to place) error {
	layer := &c.all[to.Cache][to.Layer]
	if os.Getenv("FAULT") != "" {
		to.V = to.K
	}
	layer[0] = append(layer[0], to.K.Data...)
	layer[1] = append(layer[1], to.V.Data...)
	return nil
}

func (c *caches) read(at place, side int) rows {
	data := c.all[at.Cache][at.Layer][side]
	return rows{[]int{len(data)}, data}
}

func (c *caches) K(at place) (map[string]rows, error) {
	return map[string]rows{"k": c.read(at, 0)}, nil
}

func (c *caches) V(at place) (map[string]rows, error) {
	return map[string]rows{"v": c.read(at, 1)}, nil
}
