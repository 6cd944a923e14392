package main

import (
	"context"

	"github.com/zerfoo/zerfoo/generate"
)

// Context is a case of provider.context. Operations are its methods.
type Context struct{ now context.Context }

func newContext() *Context { return &Context{context.Background()} }

type stored struct{ Kind, Outer, Inner string }

func inert(kind string) generate.CacheProvider[float32] {
	switch kind {
	case "kv":
		return generate.NewKVCache[float32](0, 0)
	case "paged":
		return &generate.PagedKVCache[float32]{}
	}
	return nil
}

// Background starts again.
func (c *Context) Background() { *c = *newContext() }

// WithCache stores a cache.
func (c *Context) WithCache(given stored) { c.now = generate.WithCache(c.now, inert(given.Kind)) }

// WithKvCache stores a contiguous cache, or a null one.
func (c *Context) WithKvCache(given stored) error {
	if given.Kind == "paged" {
		return refused("no contiguous cache")
	}
	cache, _ := inert(given.Kind).(*generate.KVCache[float32])
	c.now = generate.WithKVCache(c.now, cache)
	return nil
}

// WithCacheNested stores two caches.
func (c *Context) WithCacheNested(given stored) {
	c.now = generate.WithCache(generate.WithCache(c.now, inert(given.Outer)), inert(given.Inner))
}

type foundCache struct {
	Found bool   `json:"found"`
	Kind  string `json:"kind,omitempty"`
}

// GetCache finds a cache.
func (c *Context) GetCache() foundCache {
	cache, there := generate.GetCache[float32](c.now)
	switch found := cache.(type) {
	case *generate.KVCache[float32]:
		if found == nil {
			return foundCache{there, "typed_nil_kv"}
		}
		return foundCache{there, "kv"}
	case *generate.PagedKVCache[float32]:
		return foundCache{there, "paged"}
	}
	return foundCache{Found: there}
}

// GetCacheOtherType asks for another element type.
func (c *Context) GetCacheOtherType() foundCache {
	_, there := generate.GetCache[float64](c.now)
	return foundCache{Found: there}
}

type foundKV struct {
	Found bool `json:"found"`
	Nil   bool `json:"nil"`
}

// GetKvCache finds a contiguous cache.
func (c *Context) GetKvCache() foundKV {
	cache, there := generate.GetKVCache[float32](c.now)
	return foundKV{there, cache == nil}
}
