// The index of llm-d-router and the pool that feeds it, unchanged, for kvoracle: kind llmd of contract
// events.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"kvoracle"
)

// event is what an engine announces (EV-10 to EV-12).
type event struct {
	Kind      string   `json:"kind"`
	Worker    int      `json:"worker"`
	Rank      int      `json:"rank"`
	Keys      []int64  `json:"keys"`
	Parent    *int64   `json:"parent"`
	Tokens    []uint32 `json:"tokens"`
	BlockSize *int     `json:"block_size"`
	Lora      *string  `json:"lora"`
	Salt      *string  `json:"salt"`
	Medium    *string  `json:"medium"`
	Group     *int     `json:"group"`
	Spec      *string  `json:"spec"`
}

func (e event) engine() engine { return engine{e.Worker, e.Rank} }

type engine struct {
	Worker int `json:"worker"`
	Rank   int `json:"rank"`
}

func (e engine) name() string { return fmt.Sprintf("%d/%d", e.Worker, e.Rank) }

type batch struct {
	engine
	Events []event `json:"events"`
}

type delivery struct {
	engine
	Seq int `json:"seq"`
}

type prompt struct {
	Tokens []uint32 `json:"tokens"`
	Lora   *string  `json:"lora"`
}

type published struct {
	Seq int `json:"seq"`
}

type delivered struct {
	Applied  bool      `json:"applied"`
	Asked    *uint64   `json:"asked,omitempty"`
	Replayed *[]uint64 `json:"replayed,omitempty"`
}

// match is what the index has of a pod. Score is left out where it is the number of blocks (EV-77).
type match struct {
	Worker int      `json:"worker"`
	Rank   *int     `json:"rank,omitempty"`
	Blocks int      `json:"blocks"`
	Score  *float64 `json:"score,omitempty"`
}

type matches struct {
	Matches []match `json:"matches"`
}

// Follower is one case. Operations are its methods.
type Follower struct {
	*router
	publishers map[engine]*publisher
}

func open(text json.RawMessage, _ string) (any, error) {
	given := config{
		Adapter: "vllm", Wire: "map", Identity: "topic", PodsPerKey: 10, Size: 1_000_000, Buffer: 10_000, Replay: true,
	}
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	made, err := newRouter(given)
	if err != nil {
		return nil, err
	}
	return &Follower{made, map[engine]*publisher{}}, nil
}

func (f *Follower) now(kind string, e event) error {
	e.Kind = kind
	return f.deliver(e.engine(), []event{e})
}

func (f *Follower) Stored(e event) error  { return f.now("stored", e) }
func (f *Follower) Removed(e event) error { return f.now("removed", e) }
func (f *Follower) Cleared(e event) error { return f.now("cleared", e) }

func (f *Follower) publisher(of engine) *publisher {
	if f.publishers[of] == nil {
		f.publishers[of] = &publisher{config: f.config, engine: of, pod: f.pod(of), keys: f.keys}
	}
	return f.publishers[of]
}

func (f *Follower) Publish(b batch) published {
	of := f.publisher(b.engine)
	of.batches = append(of.batches, b.Events)
	return published{len(of.batches) - 1}
}

func (f *Follower) Deliver(d delivery) (delivered, error) {
	from := f.publisher(d.engine)
	if d.Seq < 0 || d.Seq >= len(from.batches) {
		return delivered{}, kvoracle.Refuse("out_of_range", "seq: %d", d.Seq)
	}
	return f.hear(from, d.Seq)
}

func (f *Follower) Restart(e engine) { f.publisher(e).batches = nil }

// Leave is what the producer of the router does where an endpoint is deleted.
func (f *Follower) Leave(e engine) error {
	for _, each := range f.publishers {
		if each.pod == f.pod(e) && each.sockets != nil {
			f.subscribers.RemoveSubscriber(context.Background(), each.name())
			each.sockets = nil
		}
	}
	return f.clear(e)
}

// Resubscribe is the same, and what the pool does for a subscriber that begins anew.
func (f *Follower) Resubscribe(e engine) error {
	return errors.Join(f.Leave(e), f.now("cleared", event{Worker: e.Worker, Rank: e.Rank}))
}

func (f *Follower) Query(p prompt) (matches, error) {
	found, err := f.scores(p)
	slices.SortFunc(found, func(a, b match) int {
		if a.Worker != b.Worker || a.Rank == nil {
			return a.Worker - b.Worker
		}
		return *a.Rank - *b.Rank
	})
	return matches{found}, err
}

// Size is no part of the index's interface.
func (f *Follower) Size() error { return kvoracle.Refuse("not_supported", "the index has no size") }

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: adapter VERSION (python3 -m kvoracle.systems.install writes this command)")
		os.Exit(2)
	}
	log.SetLogger(logr.Discard())
	kvoracle.Serve("llm-d-router", os.Args[1], kvoracle.Kind{
		Name: "events.llmd",
		Open: open,
		Operations: []string{
			"stored", "removed", "cleared", "leave", "query", "size", "publish", "deliver", "restart", "resubscribe",
		},
	})
}
