package kvoracle

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// Refused is the error of a call that the cache refuses, as its contract allows.
type Refused struct {
	// Code is one of full, not_supported, out_of_range, bad_shape, exhausted, bad_position, closed,
	// precondition, or other:REASON.
	Code   string
	Detail string
}

func (r *Refused) Error() string { return r.Code + ": " + r.Detail }

// Refuse makes a Refused.
func Refuse(code, format string, arguments ...any) error {
	return &Refused{code, fmt.Sprintf(format, arguments...)}
}

// ErrUnsupported is the error of a call that the cache does not offer: the case ends, which is no fault.
var ErrUnsupported = errors.New("not offered")

// Kind is a kind of cache that an adapter has.
type Kind struct {
	Name string // "prefix.blocks"
	// Open makes the caches of a case. An error means that this config is not supported. Operations
	// are methods of the result: with_capacity is WithCapacity(arguments) (results, error), where
	// arguments and results are structs with JSON names. Either may be missing.
	Open        func(config json.RawMessage, profile string) (any, error)
	Operations  []string // those that it has; nil: all
	Conventions []string // rows of a file of conventions
}

var (
	shared []byte // the memory of tensors
	used   int
)

func put(data []byte) (int, bool) {
	if len(data) < 256 || len(data) > len(shared)-used {
		return 0, false
	}
	at := used
	copy(shared[at:], data)
	used += (len(data) + 63) &^ 63
	if used > len(shared) {
		used = len(shared)
	}
	return at, true
}

type request struct {
	ID    int64           `json:"id"`
	Case  int64           `json:"case"`
	Op    string          `json:"op"`
	Args  json.RawMessage `json:"args"`
	Batch []request       `json:"batch"`
	Open  *opening        `json:"open"`
	Close *int64          `json:"close"`
	Hello *hello          `json:"hello"`
}

type opening struct {
	Case    int64           `json:"case"`
	Kind    string          `json:"kind"`
	Profile string          `json:"profile"`
	Config  json.RawMessage `json:"config"`
}

type hello struct {
	Memory *struct {
		File  int `json:"file"`
		Bytes int `json:"bytes"`
	} `json:"memory"`
}

type answer map[string]any

type server struct {
	system, version string
	kinds           []Kind
	cases           map[int64]any
}

// ModuleVersion is the release of a module that the adapter was built with.
func ModuleVersion(path string) string {
	if built, known := debug.ReadBuildInfo(); known {
		for _, module := range built.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "unknown"
}

// Serve answers the harness on standard input until it ends. What the program prints goes to standard
// error: standard output is the harness's.
func Serve(system, version string, kinds ...Kind) {
	file, err := syscall.Dup(1)
	if err != nil {
		panic(err)
	}
	answers := bufio.NewWriter(os.NewFile(uintptr(file), "answers"))
	_ = syscall.Dup3(2, 1, 0)
	dumpStacksOnSignal()
	own := &server{system, version, kinds, map[int64]any{}}
	requests := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		line, err := requests.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked request
		given := answer{"fault": "no JSON object"}
		if err := json.Unmarshal(line, &asked); err == nil {
			given = own.answer(&asked)
		}
		given["id"] = asked.ID
		text, err := json.Marshal(given)
		if err != nil {
			text, _ = json.Marshal(answer{"id": asked.ID, "fault": err.Error()})
		}
		_, _ = answers.Write(append(text, '\n'))
		_ = answers.Flush()
	}
}

func dumpStacksOnSignal() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			stacks := make([]byte, 1<<16)
			_, _ = os.Stderr.Write(stacks[:runtime.Stack(stacks, true)])
		}
	}()
}

func (s *server) answer(asked *request) answer {
	used = len(shared) / 2
	switch {
	case asked.Op != "":
		return s.call(asked.Case, asked)
	case asked.Batch != nil:
		all := make([]answer, 0, len(asked.Batch))
		for i := range asked.Batch {
			all = append(all, s.call(asked.Case, &asked.Batch[i]))
		}
		return answer{"batch": all}
	case asked.Open != nil:
		return s.open(asked.Open)
	case asked.Close != nil:
		delete(s.cases, *asked.Close)
		return answer{}
	case asked.Hello != nil:
		return s.greet(asked.Hello)
	}
	return answer{"fault": "unknown request"}
}

func (s *server) greet(asked *hello) answer {
	if asked.Memory != nil {
		memory, err := syscall.Mmap(asked.Memory.File, 0, asked.Memory.Bytes,
			syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		if err == nil {
			shared = memory
		}
	}
	kinds := []answer{}
	for _, kind := range s.kinds {
		one := answer{"kind": kind.Name}
		if kind.Operations != nil {
			one["operations"] = kind.Operations
		}
		if kind.Conventions != nil {
			one["conventions"] = kind.Conventions
		}
		kinds = append(kinds, one)
	}
	return answer{"hello": answer{"protocol": 1, "system": s.system, "version": s.version,
		"kinds": kinds, "batches": true, "stacks": true, "memory": shared != nil}}
}

func (s *server) open(asked *opening) answer {
	for _, kind := range s.kinds {
		if kind.Name != asked.Kind {
			continue
		}
		cache, err := kind.Open(asked.Config, asked.Profile)
		if err != nil {
			return answer{"error": "not_supported", "detail": err.Error()}
		}
		s.cases[asked.Case] = cache
		return answer{}
	}
	return answer{"fault": "no kind " + asked.Kind}
}

// MethodName is the method of an operation: WithCapacity for with_capacity.
func MethodName(operation string) string {
	name := ""
	for _, word := range strings.Split(operation, "_") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}

func (s *server) call(number int64, asked *request) (given answer) {
	cache, found := s.cases[number]
	if !found {
		return answer{"fault": "no such case"}
	}
	method := reflect.ValueOf(cache).MethodByName(MethodName(asked.Op))
	if !method.IsValid() {
		return answer{"unsupported": true}
	}
	arguments := []reflect.Value{}
	if method.Type().NumIn() == 1 {
		argument := reflect.New(method.Type().In(0))
		if err := json.Unmarshal(asked.Args, argument.Interface()); err != nil {
			return answer{"fault": asked.Op + ": " + err.Error()}
		}
		arguments = append(arguments, argument.Elem())
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			_, _ = os.Stderr.Write(debug.Stack())
			given = answer{"threw": fmt.Sprint(panicked)}
		}
	}()
	begin := time.Now()
	results := method.Call(arguments)
	spent := time.Since(begin).Nanoseconds()
	var ret any = answer{}
	for _, result := range results {
		if result.Type() != reflect.TypeOf((*error)(nil)).Elem() {
			ret = result.Interface()
		} else if !result.IsNil() {
			return refused(result.Interface().(error), spent)
		}
	}
	return answer{"ret": ret, "ns": spent}
}

func refused(err error, spent int64) answer {
	if err == ErrUnsupported {
		return answer{"unsupported": true}
	}
	refusal, known := err.(*Refused)
	if !known {
		return answer{"threw": err.Error()}
	}
	ret := answer{"error": refusal.Code}
	if refusal.Detail != "" {
		ret["detail"] = refusal.Detail
	}
	return answer{"ret": ret, "ns": spent}
}
