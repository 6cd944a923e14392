package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"runtime"

	"github.com/llm-d/llm-d-router/pkg/kvcache"
	"github.com/llm-d/llm-d-router/pkg/kvcache/kvblock"
	"github.com/llm-d/llm-d-router/pkg/kvevents"
	"github.com/llm-d/llm-d-router/pkg/kvevents/engineadapter"
	"github.com/vmihailenco/msgpack/v5"
	"k8s.io/apimachinery/pkg/util/sets"

	"kvoracle"
)

type config struct {
	BlockSize  int    `json:"block_size"`
	Adapter    string `json:"adapter"`
	Wire       string `json:"wire"`
	Identity   string `json:"identity"`
	ExtraKeys  bool   `json:"extra_keys"`
	PodsPerKey int    `json:"pods_per_key"`
	Size       int    `json:"size"`
	Buffer     int    `json:"buffer"`
	Replay     bool   `json:"replay"`
	Asks       bool   `json:"asks"`
}

const model = "model"

// router is made of what its producer of precise prefixes makes (preciseprefixcache/producer.go): an
// indexer, a pool with the adapter of an engine, its subscribers, and scorers. Events outside of a stream go to
// the pool as a subscriber hands them over.
type router struct {
	config
	indexer *kvcache.Indexer
	pool    *kvevents.Pool
	done    chan struct{}
	weighed kvcache.KVBlockScorer
	counted kvcache.KVBlockScorer
	pods    map[string]engine
	keys    *keys

	subscribers *kvevents.SubscriberManager
	applied     *[]*kvevents.RawMessage // since the last delivery
}

// keys are those that were stored. An event's keys go into a map that forgets the least recently used, in
// the order of a Go map: which are forgotten is not determined.
type keys struct {
	stored  map[int64]bool
	several bool // whether an event had more than one
	unclear bool // whether an answer depends on which keys are forgotten
}

// note looks at events that may be applied.
func (k *keys) note(events []event, most int) {
	for _, e := range events {
		asks := e.Kind == "removed" || e.Kind == "stored" && (e.Parent != nil || len(e.Tokens) == 0)
		k.unclear = k.unclear || asks && k.several && len(k.stored) > most
		if e.Kind == "stored" {
			for _, key := range e.Keys {
				k.stored[key] = true
			}
			k.several = k.several || len(e.Keys) > 1
		}
	}
}

// determined ends a case whose answers are not.
func (k *keys) determined() error {
	if k.unclear {
		return kvoracle.ErrUnsupported
	}
	return nil
}

// marked is the adapter of an engine. A message without a topic says that all before it are applied.
type marked struct {
	kvevents.EngineAdapter
	done    chan struct{}
	applied *[]*kvevents.RawMessage
}

func (m marked) ParseMessage(message *kvevents.RawMessage) (pod, model string, events kvevents.EventBatch, err error) {
	if message.Topic == "" {
		m.done <- struct{}{}
		return "", "", kvevents.EventBatch{}, nil
	}
	*m.applied = append(*m.applied, message)
	return m.EngineAdapter.ParseMessage(message)
}

func newRouter(given config) (*router, error) {
	ctx, made := context.Background(), &router{config: given, done: make(chan struct{}), pods: map[string]engine{}}
	made.keys, made.applied = &keys{stored: map[int64]bool{}}, &[]*kvevents.RawMessage{}
	tokens, err := kvblock.NewChunkedTokenDatabase(&kvblock.TokenProcessorConfig{BlockSizeTokens: given.BlockSize})
	if err != nil {
		return nil, err
	}
	settings, err := kvcache.NewDefaultConfig()
	if err != nil {
		return nil, err
	}
	settings.KVBlockIndexConfig.InMemoryConfig = &kvblock.InMemoryIndexConfig{Size: given.Size, PodCacheSize: given.PodsPerKey}
	if made.indexer, err = kvcache.NewKVCacheIndexer(ctx, settings, tokens); err != nil {
		return nil, err
	}
	if made.weighed, err = kvcache.NewKVBlockScorer(kvcache.DefaultKVBlockScorerConfig()); err != nil {
		return nil, err
	}
	made.counted, err = kvcache.NewKVBlockScorer(&kvcache.KVBlockScorerConfig{ScoringStrategy: kvcache.LongestPrefixMatch})
	if err != nil {
		return nil, err
	}
	adapter, err := engineadapter.NewAdapter(given.Adapter)
	if err != nil {
		return nil, err
	}
	events := kvevents.DefaultConfig()
	events.Concurrency, events.EngineType = 1, given.Adapter
	made.pool = kvevents.NewPool(events, made.indexer.KVBlockIndex(), tokens, marked{adapter, made.done, made.applied})
	made.pool.Start(ctx)
	made.subscribers = kvevents.NewSubscriberManager(made.pool)
	runtime.AddCleanup(made, func(pool *kvevents.Pool) { go pool.Shutdown(ctx) }, made.pool)
	runtime.AddCleanup(made, func(of *kvevents.SubscriberManager) { of.Shutdown(ctx) }, made.subscribers)
	return made, nil
}

// pod is the name of an engine in the index (EV-71).
func (r *router) pod(of engine) string {
	if r.Identity != "endpoint" {
		of.Rank = 0
	}
	name := fmt.Sprintf("10.0.%d.%d:8000", of.Worker, of.Rank)
	r.pods[name] = of
	return name
}

func topic(pod string) string { return "kv@" + pod + "@" + model }

// deliver hands a message to the pool, and waits until it is applied.
func (r *router) deliver(from engine, events []event) error {
	r.keys.note(events, r.Size)
	message := &kvevents.RawMessage{Topic: topic(r.pod(from)), Payload: r.payload(from.Rank, events)}
	if r.Identity == "endpoint" {
		message.SourceEndpoint = r.pod(from)
	}
	r.pool.AddTask(message)
	r.flush()
	*r.applied = nil
	return r.keys.determined()
}

// flush waits until the pool has applied all messages.
func (r *router) flush() {
	r.pool.AddTask(&kvevents.RawMessage{})
	<-r.done
}

func (r *router) clear(of engine) error {
	return r.indexer.KVBlockIndex().Clear(context.Background(), r.pod(of))
}

func (r *router) scores(asked prompt) ([]match, error) {
	ctx, name := context.Background(), model
	if asked.Lora != nil {
		name = *asked.Lora
	}
	keys, err := r.indexer.ComputeBlockKeysFromTokens(ctx, asked.Tokens, name, nil)
	if err != nil || len(keys) == 0 {
		return []match{}, err
	}
	pods, err := r.indexer.KVBlockIndex().Lookup(ctx, keys, sets.New[string]())
	if err != nil {
		return nil, err
	}
	counts, err := r.counted.Score(ctx, keys, pods)
	if err != nil {
		return nil, err
	}
	scores, err := r.weighed.Score(ctx, keys, pods)
	if err != nil {
		return nil, err
	}
	found := []match{}
	for name, count := range counts {
		of := r.pods[name]
		one := match{Worker: of.Worker, Blocks: int(count)}
		if r.Identity == "endpoint" {
			one.Rank = &of.Rank
		}
		if score := scores[name]; score != count {
			one.Score = &score
		}
		found = append(found, one)
	}
	return found, nil
}

// payload is a batch as engines publish it (EV-25).
func (c config) payload(rank int, events []event) []byte {
	written := make([]any, 0, len(events))
	for _, each := range events {
		written = append(written, c.written(each))
	}
	var payload bytes.Buffer
	if err := msgpack.NewEncoder(&payload).Encode([]any{0.0, written, rank}); err != nil {
		panic(err)
	}
	return payload.Bytes()
}

// field is a member of a map, or an element of an array.
type field struct {
	name  string
	value any
}

func (c config) written(e event) any {
	tag, fields := "AllBlocksCleared", []field{}
	switch e.Kind {
	case "stored":
		tag, fields = "BlockStored", []field{
			{"block_hashes", hashes(e.Keys)},
			{"parent_block_hash", parent(e.Parent)},
			{"token_ids", append([]uint32{}, e.Tokens...)},
			{"block_size", *cmp.Or(e.BlockSize, &c.BlockSize)},
			{"lora_id", nil},
			{"medium", e.Medium},
			{"lora_name", e.Lora},
			{"extra_keys", c.extraKeys(e)},
			{"group_idx", e.Group},
			{"kv_cache_spec_kind", e.Spec},
		}
	case "removed":
		tag, fields = "BlockRemoved", []field{
			{"block_hashes", hashes(e.Keys)},
			{"medium", e.Medium},
			{"group_idx", e.Group},
		}
	}
	if c.Wire == "map" {
		event := map[string]any{"type": tag}
		for _, each := range fields {
			event[each.name] = each.value
		}
		return event
	}
	event := []any{tag}
	for _, each := range fields {
		if c.Adapter == "sglang" && each.name == "group_idx" {
			break // it has no groups
		}
		event = append(event, each.value)
	}
	return event
}

// extraKeys of the blocks, as vLLM has them: the adapter in each, the salt in the first of a prompt.
func (c config) extraKeys(e event) any {
	if !c.ExtraKeys || len(e.Keys) == 0 {
		return nil
	}
	keys := make([]any, len(e.Keys))
	for i := range keys {
		of := []any{}
		if e.Lora != nil {
			of = append(of, *e.Lora)
		}
		if e.Salt != nil && e.Parent == nil && i == 0 {
			of = append(of, *e.Salt)
		}
		if len(of) > 0 {
			keys[i] = of
		}
	}
	return keys
}

// hash is the 64 bits of a key: distinct, never 0.
func hash(key int64) uint64 {
	mixed := uint64(key) + 0x9e3779b97f4a7c15
	mixed = (mixed ^ mixed>>30) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ mixed>>27) * 0x94d049bb133111eb
	return max(mixed^mixed>>31, 1)
}

func hashes(keys []int64) []uint64 {
	all := make([]uint64, 0, len(keys))
	for _, key := range keys {
		all = append(all, hash(key))
	}
	return all
}

func parent(key *int64) any {
	if key == nil {
		return nil
	}
	return hash(*key)
}
