// The caches and the sampling of zerfoo's package generate, as published, for kvoracle: contracts
// block_pool, provider and sampling.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"kvoracle"
)

// codes are those of zerfoo's errors, by words in them.
var codes = []struct{ words, code string }{
	{"out of range", "out_of_range"},
	{"must be positive", "out_of_range"},
	{"too small for one block", "other:budget_too_small"},
	{"expected 3D", "bad_shape"},
	{"mismatch", "bad_shape"},
	{"cache overflow", "full"},
	{"block pool exhausted", "exhausted"},
	{"GPU counter not allocated", "not_supported"},
	{"requires GPU-resident source", "not_supported"},
	{"kernel failed", "other:kernel_failed"},
}

func code(err error) error {
	var refused *kvoracle.Refused
	if err == nil || errors.Is(err, kvoracle.ErrUnsupported) || errors.As(err, &refused) {
		return err
	}
	for _, each := range codes {
		if strings.Contains(err.Error(), each.words) {
			return kvoracle.Refuse(each.code, "%v", err)
		}
	}
	return kvoracle.Refuse("other:"+err.Error(), "")
}

// guard makes a call of zerfoo. A panic is a refusal that has changed nothing (ZF-3): restore puts
// back what it has changed.
func guard(restore func(), call func() error) (failed error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			restore()
			failed = kvoracle.Refuse("precondition", "%v", panicked)
		}
	}()
	return code(call())
}

func nothing() {}

func refused(words string) error { return kvoracle.Refuse("precondition", "%s", words) }

// numbers are elements as JSON has them.
func numbers[T float32 | float64](values []T) []kvoracle.Number {
	shown := make([]kvoracle.Number, len(values))
	for i, value := range values {
		shown[i] = kvoracle.Number(value)
	}
	return shown
}

type number struct {
	N int `json:"n"`
}

func version() string {
	built, _ := debug.ReadBuildInfo()
	for _, module := range built.Deps {
		if module.Path == "github.com/zerfoo/zerfoo" {
			return module.Version
		}
	}
	return "unknown"
}

// kind makes the cases of one kind from their configs.
func kind[Config any](name string, open func(Config) (any, error)) kvoracle.Kind {
	return kvoracle.Kind{Name: name, Open: func(text json.RawMessage, _ string) (any, error) {
		var config Config
		if err := json.Unmarshal(text, &config); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		return open(config)
	}}
}

// rows is the part of a config that says how rows are stored.
type rows struct{ Storage string }

func (r rows) check() error {
	if r.Storage != "" && r.Storage != "f32" {
		return errors.New("rows are f32")
	}
	return nil
}

func main() {
	kvoracle.Serve("zerfoo", version(),
		kind("block_pool.stack", func(config rows) (any, error) { return &Stack{}, config.check() }),
		kind("provider.contiguous", func(config rows) (any, error) { return newContiguous(), config.check() }),
		kind("provider.paged", func(config rows) (any, error) { return newPaged(), config.check() }),
		kind("provider.tracing", func(config tracingConfig) (any, error) { return newTracing(config), nil }),
		kind("provider.tensor", func(struct{}) (any, error) { return newTensors(), nil }),
		kind("sampling.pipeline", func(struct{}) (any, error) { return Pipeline{}, nil }))
}
