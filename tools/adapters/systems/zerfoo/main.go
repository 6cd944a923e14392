// The caches and the sampling of zerfoo's package generate, as published, for kvoracle: contracts
// block_pool, provider and sampling.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/zerfoo/float16"
	"github.com/zerfoo/float8"

	"kvoracle"
)

// codes are those of zerfoo's errors, by words in them.
var codes = []struct{ words, code string }{
	{"allocator must not be nil", "other:nil_allocator"},
	{"must be > 0", "out_of_range"},
	{"out of range", "out_of_range"},
	{"!= current seqLen", "bad_position"},
	{">= maxSeqLen", "full"},
	{"!= expected", "bad_shape"},
	{"gpu_kv_cache: GPU counter not allocated", "closed"},
	{"must be positive", "out_of_range"},
	{"too small for one block", "other:budget_too_small"},
	{"expected 3D", "bad_shape"},
	{"mismatch", "bad_shape"},
	{"cache overflow", "full"},
	{"block pool exhausted", "exhausted"},
	{"GPU counter not allocated", "not_supported"},
	{"requires GPU-resident source", "not_supported"},
	{"kernel failed (cuda error 100)", "not_supported"},
	{"kernel failed (cuda error 700)", "other:bad_pointer"},
	{"kernel failed", "other:kernel_failed"},
}

func code(err error) error {
	if err == nil || errors.Is(err, kvoracle.ErrUnsupported) {
		return err
	}
	if refused := (*kvoracle.Refused)(nil); errors.As(err, &refused) {
		return refused
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
type rows struct {
	Storage string
	Group   int
	Offset  bool
}

// stores makes a case for a type in which zerfoo can store rows: codes in groups (q8, q4) are none.
func stores(name string, f32, f16, bf16, f8, bytes func() any) kvoracle.Kind {
	open := map[string]func() any{"": f32, "f32": f32, "f16": f16, "bf16": bf16, "f8_e4m3": f8, "f8_e5m2": bytes}
	return kind(name, func(config rows) (any, error) {
		made, known := open[config.Storage]
		if !known || config.Group != 0 || config.Offset {
			return nil, errors.New("zerfoo has no codes in groups")
		}
		return made(), nil
	})
}

// Lawful differences.
var (
	// zerfoo has no codes in groups (q8, q4).
	ofRows = []string{`config storage only default "f32" "f16" "bf16" "f8_e4m3" "f8_e5m2"`}
	// ZF-90 and ZF-91 refuse these calls, and docs/sampling.md says that zerfoo leaves them open: it draws
	// token -1 from an empty vocabulary, takes zeros for rows that are not there, and with a penalty
	// chooses token 0 of an empty vocabulary without a position (ZF-92).
	ofSampling = []string{
		"accepts sample precondition: vocab",
		"accepts sample precondition: batch",
		"accepts sample precondition: seq",
		"accepts sample_from_distribution precondition: no logits",
	}
	ofTensors = []string{
		// ZF-57: the increment of kv_seq_len is launched first, and its error returned. ZF-59: rows without
		// cells leave no buffer.
		"accepts update precondition: cells outside of a buffer",
		// ZF-57 and ZF-59: so are errors of K returned before V is looked at.
		"accepts update precondition: v is null",
	}
)

func with(conventions []string, of kvoracle.Kind) kvoracle.Kind {
	of.Conventions = conventions
	return of
}

func main() {
	kvoracle.Serve("zerfoo", kvoracle.ModuleVersion("github.com/zerfoo/zerfoo"),
		with(ofRows, stores("block_pool.stack", newStack[float32], newStack[float16.Float16], newStack[float16.BFloat16], newStack[float8.Float8],
			newStack[uint8])),
		with(ofRows, stores("provider.contiguous", newContiguous[float32], newContiguous[float16.Float16], newContiguous[float16.BFloat16],
			newContiguous[float8.Float8], newContiguous[uint8])),
		with(ofRows, stores("provider.paged", newPaged[float32], newPaged[float16.Float16], newPaged[float16.BFloat16], newPaged[float8.Float8],
			newPaged[uint8])),
		kind("provider.tracing", func(config tracingConfig) (any, error) { return newTracing(config), nil }),
		kind("provider.device", func(struct{}) (any, error) { return &GPU{}, nil }),
		kind("provider.context", func(struct{}) (any, error) { return newContext(), nil }),
		with(ofTensors, kind("provider.tensor", func(struct{}) (any, error) { return newTensors(), nil })),
		with(ofSampling, kind("sampling.pipeline", func(struct{}) (any, error) { return Pipeline{}, nil })))
}
