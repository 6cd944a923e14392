// What llm-d-router says of its index of KV events, as tests of the package: copy this file into
// pkg/kvevents/. Each fails at ebab687927f5.
package kvevents

import (
	"context"
	"testing"

	"github.com/llm-d/llm-d-router/pkg/kvcache/kvblock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	promisedPod   = "10.0.0.1:8000"
	promisedModel = "model"
)

type promises struct {
	*testing.T
	pool   *Pool
	index  kvblock.Index
	tokens kvblock.TokenProcessor
}

// newPromises makes a pool over an index of at most size keys, whose blocks have so many tokens.
func newPromises(t *testing.T, size, blockSize int) promises {
	t.Helper()
	index, err := kvblock.NewInMemoryIndex(&kvblock.InMemoryIndexConfig{Size: size, PodCacheSize: 10})
	require.NoError(t, err)
	tokens, err := kvblock.NewChunkedTokenDatabase(&kvblock.TokenProcessorConfig{BlockSizeTokens: blockSize})
	require.NoError(t, err)
	return promises{t, NewPool(DefaultConfig(), index, tokens, nil), index, tokens}
}

func (p promises) announce(events ...GenericEvent) {
	p.pool.processEventBatch(context.Background(), &EventBatch{Events: events}, promisedPod, promisedModel)
}

// blocks counts the leading blocks of a prompt that the index has of the pod, with their tiers.
func (p promises) blocks(tokens ...uint32) []string {
	p.Helper()
	keys, err := p.tokens.TokensToKVBlockKeys(kvblock.EmptyBlockHash, tokens, promisedModel, nil)
	require.NoError(p, err)
	pods, err := p.index.Lookup(context.Background(), keys, nil)
	require.NoError(p, err)
	tiers := []string{}
	for _, key := range keys {
		if len(pods[key]) == 0 {
			break
		}
		tiers = append(tiers, pods[key][0].DeviceTier)
	}
	return tiers
}

// "It resolves existing request keys from the engine→request mapping and adds the new PodEntry so the EPP
// tracks which device tiers hold each block" (handleDeviceTierUpdate). Of an engine whose blocks are larger
// than the index's ("1:many"), the tier is added to the last part of each block.
func TestOffloadedBlocksAreTrackedInAllTheirParts(t *testing.T) {
	p := newPromises(t, 100, 1)
	p.announce(
		&BlockStoredEvent{BlockHashes: []uint64{1}, Tokens: []uint32{11, 12}, BlockSize: 2},
		&BlockStoredEvent{BlockHashes: []uint64{1}, BlockSize: 2, DeviceTier: "CPU"},
		&BlockRemovedEvent{BlockHashes: []uint64{1}},
	)
	assert.Equal(t, []string{"cpu", "cpu"}, p.blocks(11, 12), "a block of the engine on the host")
}

// "Size is the maximum number of keys that can be stored in the index" (InMemoryIndexConfig). "Evict removes a
// key and its associated pod entries from the index backend" (Index). The names that engines give to blocks
// are in a second cache of this size, in which a lookup is no use.
func TestRemovedBlocksLeaveAFullIndex(t *testing.T) {
	p := newPromises(t, 2, 1)
	p.announce(&BlockStoredEvent{BlockHashes: []uint64{1}, Tokens: []uint32{11}, BlockSize: 1})
	p.announce(&BlockStoredEvent{BlockHashes: []uint64{2}, Tokens: []uint32{12}, BlockSize: 1})
	p.blocks(11) // a use of the block
	p.announce(&BlockStoredEvent{BlockHashes: []uint64{3}, Tokens: []uint32{13}, BlockSize: 1})
	p.announce(&BlockRemovedEvent{BlockHashes: []uint64{1}})
	assert.Empty(t, p.blocks(11), "a block that the pod has removed")
}

// The same of an engine whose blocks are smaller than the index's ("many:1"): their names fill the second cache
// first.
func TestRemovedBlocksLeaveAnIndexWithSpace(t *testing.T) {
	p := newPromises(t, 4, 2)
	p.announce(&BlockStoredEvent{BlockHashes: []uint64{1, 2}, Tokens: []uint32{11, 12}, BlockSize: 1})
	p.announce(&BlockStoredEvent{BlockHashes: []uint64{3, 4}, Tokens: []uint32{13, 14}, BlockSize: 1})
	p.announce(&BlockStoredEvent{BlockHashes: []uint64{5, 6}, Tokens: []uint32{15, 16}, BlockSize: 1})
	p.announce(&BlockRemovedEvent{BlockHashes: []uint64{1, 2}})
	assert.Empty(t, p.blocks(11, 12), "a block that the pod has removed; the index has 3 keys of 4")
}

// "It is invoked on AllBlocksCleared, in lockstep with the index's pod-wide eager clear, so the filter does not
// retain stale references" (eventDedupFilter.clear). Producer.Extract clears the index alone when an endpoint is
// deleted. An endpoint that comes back under its address has its removals swallowed.
func TestReferencesEndWithTheEndpoint(t *testing.T) {
	p := newPromises(t, 100, 1)
	p.announce(&BlockStoredEvent{BlockHashes: []uint64{1}, Tokens: []uint32{11}, BlockSize: 1})
	require.NoError(t, p.index.Clear(context.Background(), promisedPod)) // as Extract does
	p.announce(&BlockStoredEvent{BlockHashes: []uint64{1}, Tokens: []uint32{11}, BlockSize: 1})
	p.announce(&BlockRemovedEvent{BlockHashes: []uint64{1}})
	assert.Empty(t, p.blocks(11), "a block that the endpoint has removed")
}
