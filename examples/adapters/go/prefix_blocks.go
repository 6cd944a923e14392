package main

import (
	"container/list"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"kvoracle"
)

// A block manager with full attention. The least recently used block goes first.
type manager struct {
	size, longest int64
	caching       bool
	free          *list.List // the next block to be handed out comes first
	place         []*list.Element
	users         []int64
	keyOf         []int64 // by block; -1: none
	holders       map[int64][]int64
	numbers       map[string]int64 // of keys
	depths        map[int64]int64  // of keys, in blocks
	requests      map[int64]*own
}

type own struct {
	tokens     []int64
	salt, lora string
	skips      bool
	keys       []int64
	table      []int64
	computed   int64
	registered int64 // blocks that were looked at for keys; -1: none were
}

var prefixBlocks = kvoracle.Kind{
	Name:       "prefix.blocks",
	Open:       openManager,
	Operations: strings.Fields("request append set match allocate cache free table usage cached_tokens take release touch"),
	Conventions: []string{"own_blocks", "config attention only default", "config eagle only default",
		"config hash_lookahead only default", "config watermark only default"},
}

func openManager(text json.RawMessage, _ string) (any, error) {
	config := struct {
		Blocks    int64            `json:"num_blocks"`
		Size      int64            `json:"block_size"`
		Longest   int64            `json:"max_model_len"`
		Caching   bool             `json:"enable_caching"`
		Attention string           `json:"attention"`
		Eagle     bool             `json:"eagle"`
		Lookahead int64            `json:"hash_lookahead"`
		Watermark float64          `json:"watermark"`
		Retention *json.RawMessage `json:"retention"`
	}{Blocks: 1, Size: 1, Caching: true, Attention: "full"}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	if config.Attention != "full" || config.Eagle || config.Lookahead != 0 || config.Watermark != 0 ||
		config.Retention != nil {
		return nil, errors.New("full attention alone")
	}
	m := &manager{size: config.Size, longest: config.Longest, caching: config.Caching,
		free: list.New(), place: make([]*list.Element, config.Blocks),
		users: make([]int64, config.Blocks), keyOf: make([]int64, config.Blocks),
		holders: map[int64][]int64{}, numbers: map[string]int64{}, depths: map[int64]int64{},
		requests: map[int64]*own{}}
	for block := config.Blocks - 1; block > 0; block-- {
		m.place[block] = m.free.PushBack(block)
	}
	for block := range m.keyOf {
		m.keyOf[block] = -1
	}
	return m, nil
}

type keysOnly struct {
	Keys []int64 `json:"keys"`
}
type ofRequest struct {
	Request int64 `json:"request"`
}

func (m *manager) Request(a struct {
	Request int64   `json:"request"`
	Tokens  []int64 `json:"tokens"`
	Salt    string  `json:"salt"`
	Lora    *string `json:"lora"`
	Path    string  `json:"lora_path"`
	Skips   bool    `json:"skip_reading"`
}) keysOnly {
	made := &own{tokens: a.Tokens, salt: a.Salt, skips: a.Skips, registered: -1}
	if a.Lora != nil {
		made.lora = fmt.Sprintf("%q %q", *a.Lora, a.Path)
	}
	if before, found := m.requests[a.Request]; found {
		made.table, made.registered = before.table, before.registered
	}
	m.requests[a.Request] = made
	return m.addKeys(made)
}

func (m *manager) Append(a struct {
	Request int64   `json:"request"`
	Tokens  []int64 `json:"tokens"`
}) (keysOnly, error) {
	request, err := m.find(a.Request)
	if err != nil {
		return keysOnly{}, err
	}
	request.tokens = append(request.tokens, a.Tokens...)
	return m.addKeys(request), nil
}

func (m *manager) Set(a struct {
	Request  int64  `json:"request"`
	Computed *int64 `json:"computed"`
}) error {
	request, err := m.find(a.Request)
	if err == nil && a.Computed != nil {
		request.computed = *a.Computed
	}
	return err
}

func (m *manager) addKeys(request *own) keysOnly {
	added := keysOnly{[]int64{}}
	for m.caching && (int64(len(request.keys))+1)*m.size <= int64(len(request.tokens)) {
		block := int64(len(request.keys))
		parent, salt := int64(-1), request.salt
		if block > 0 {
			parent, salt = request.keys[block-1], ""
		}
		content := fmt.Sprintf("%d %v %q %s", parent, request.tokens[block*m.size:(block+1)*m.size], salt, request.lora)
		key, found := m.numbers[content]
		if !found {
			key = int64(len(m.numbers))
			m.numbers[content] = key
		}
		m.depths[key] = block + 1
		request.keys = append(request.keys, key)
		added.Keys = append(added.Keys, key)
	}
	return added
}

func (m *manager) find(number int64) (*own, error) {
	if request, found := m.requests[number]; found {
		return request, nil
	}
	return nil, kvoracle.Refuse("precondition", "request %d", number)
}

func (m *manager) check(blocks []int64) error {
	for _, block := range blocks {
		if block < 0 || block >= int64(len(m.users)) {
			return kvoracle.Refuse("out_of_range", "block %d", block)
		}
	}
	return nil
}

func (m *manager) Match(a struct {
	Request int64  `json:"request"`
	Most    *int64 `json:"max_length"`
}) (any, error) {
	request, err := m.find(a.Request)
	if err != nil {
		return nil, err
	}
	most := int64(len(request.tokens)) - 1
	if fault == "whole_prompt_is_hit" {
		most++
	}
	if a.Most != nil {
		most = *a.Most
	}
	hits := []int64{}
	for _, key := range request.keys {
		holders := m.holders[key]
		if !m.caching || request.skips || int64(len(hits)) >= most/m.size || len(holders) == 0 {
			break
		}
		hits = append(hits, holders[len(holders)-1])
	}
	return map[string]any{"blocks": hits, "length": int64(len(hits)) * m.size}, nil
}

type handedOut struct {
	Blocks  []int64 `json:"blocks"`
	Evicted []int64 `json:"evicted"`
}

func (m *manager) Allocate(a struct {
	Request   int64   `json:"request"`
	Tokens    int64   `json:"tokens"`
	Hits      []int64 `json:"hit_blocks"`
	HitTokens int64   `json:"hit_tokens"`
	External  int64   `json:"external"`
	Lookahead int64   `json:"lookahead"`
	Delays    bool    `json:"delay_caching"`
	Whole     bool    `json:"full_sequence"`
	Reserved  int64   `json:"reserved"`
}) (*handedOut, error) {
	request, err := m.find(a.Request)
	if err == nil {
		err = m.check(a.Hits)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case a.Tokens == 0 && a.HitTokens == 0 && a.External == 0,
		a.HitTokens != int64(len(a.Hits))*m.size,
		len(a.Hits) > 0 && (!m.caching || request.registered >= 0),
		(len(a.Hits) > 0 || a.External > 0) && request.registered < 0 && len(request.table) > 0:
		return nil, kvoracle.Refuse("precondition", "tokens or hits")
	}
	for i, block := range a.Hits {
		if block != 0 && (i >= len(request.keys) || m.keyOf[block] != request.keys[i]) {
			return nil, kvoracle.Refuse("precondition", "stale hits")
		}
	}
	computed := request.computed + a.HitTokens + a.External
	slots := least(least(computed, m.longest)+a.Tokens+a.Lookahead, m.longest)
	if a.Whole && !m.fits(request, a.Hits, least(int64(len(request.tokens)), m.longest), 0) ||
		!m.fits(request, a.Hits, slots, a.Reserved) {
		return nil, kvoracle.Refuse("exhausted", "%d blocks are free", m.free.Len())
	}
	answer := &handedOut{[]int64{}, []int64{}}
	if request.registered < 0 && (len(a.Hits) > 0 || a.External > 0) {
		m.pin(a.Hits)
		request.table = append([]int64{}, a.Hits...)
		request.registered = int64(len(a.Hits))
		if a.External > 0 {
			request.table = append(request.table, m.handOut(m.ceil(computed)-int64(len(request.table)), answer)...)
		}
	}
	answer.Blocks = m.handOut(m.ceil(slots)-int64(len(request.table)), answer)
	request.table = append(request.table, answer.Blocks...)
	if !a.Delays {
		if err := m.hold(request, least(computed, m.longest)+a.Tokens); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

func least(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}

func (m *manager) ceil(tokens int64) int64 { return (tokens + m.size - 1) / m.size }

func (m *manager) fits(request *own, hits []int64, tokens, reserved int64) bool {
	need := m.ceil(tokens) - int64(len(request.table))
	if request.registered < 0 {
		need -= int64(len(hits))
		if need < 0 {
			need = 0
		}
		for _, block := range hits {
			if block != 0 && m.users[block] == 0 {
				need++
			}
		}
	}
	if need < 0 {
		need = 0
	}
	return need <= int64(m.free.Len())-reserved
}

func (m *manager) pin(blocks []int64) {
	for _, block := range blocks {
		if block == 0 {
			continue
		}
		if m.users[block] == 0 {
			m.free.Remove(m.place[block])
		}
		m.users[block]++
	}
}

func without(blocks []int64, block int64) []int64 {
	for i, one := range blocks {
		if one == block {
			return append(append([]int64{}, blocks[:i]...), blocks[i+1:]...)
		}
	}
	return blocks
}

func (m *manager) handOut(count int64, answer *handedOut) []int64 {
	blocks := []int64{}
	for ; count > 0; count-- {
		block := m.free.Remove(m.free.Front()).(int64)
		if key := m.keyOf[block]; key >= 0 {
			m.holders[key] = without(m.holders[key], block)
			m.keyOf[block] = -1
			answer.Evicted = append(answer.Evicted, block)
		}
		m.users[block] = 1
		blocks = append(blocks, block)
	}
	return blocks
}

func (m *manager) hold(request *own, tokens int64) error {
	end := least(least(tokens, int64(len(request.tokens)))/m.size, int64(len(request.keys)))
	begin := request.registered
	if begin < 0 {
		begin = 0
	}
	if end <= begin {
		return nil
	}
	if end > int64(len(request.table)) {
		return kvoracle.Refuse("precondition", "slots")
	}
	request.registered = end
	for i := begin; i < end; i++ {
		if block := request.table[i]; block != 0 && m.keyOf[block] < 0 {
			m.keyOf[block] = request.keys[i]
			m.holders[request.keys[i]] = append(m.holders[request.keys[i]], block)
		}
	}
	return nil
}

func (m *manager) Cache(a struct {
	Request int64 `json:"request"`
	Tokens  int64 `json:"tokens"`
}) error {
	request, err := m.find(a.Request)
	if err != nil {
		return err
	}
	return m.hold(request, a.Tokens)
}

func (m *manager) Free(a ofRequest) {
	request, found := m.requests[a.Request]
	if !found {
		return
	}
	for i := len(request.table) - 1; i >= 0; i-- {
		m.drop(request.table[i])
	}
	request.table, request.registered = nil, -1
}

func (m *manager) drop(block int64) {
	if block == 0 {
		return
	}
	m.users[block]--
	if m.users[block] > 0 {
		return
	}
	if m.keyOf[block] >= 0 && m.caching {
		m.place[block] = m.free.PushBack(block)
	} else {
		m.place[block] = m.free.PushFront(block) // of no use: it goes first
	}
}

type blocksOnly struct {
	Blocks []int64 `json:"blocks"`
}

func (m *manager) Release(a blocksOnly) error {
	if err := m.check(a.Blocks); err != nil {
		return err
	}
	times := map[int64]int64{}
	for _, block := range a.Blocks {
		times[block]++
		if block != 0 && times[block] > m.users[block] {
			return kvoracle.Refuse("precondition", "users")
		}
	}
	for _, block := range a.Blocks {
		m.drop(block)
	}
	return nil
}

func (m *manager) Touch(a blocksOnly) error {
	if err := m.check(a.Blocks); err != nil {
		return err
	}
	m.pin(a.Blocks)
	return nil
}

func (m *manager) Take(a struct {
	Count int64 `json:"count"`
}) (*handedOut, error) {
	if a.Count > int64(m.free.Len()) {
		return nil, kvoracle.Refuse("exhausted", "%d blocks are free", m.free.Len())
	}
	answer := &handedOut{[]int64{}, []int64{}}
	answer.Blocks = m.handOut(a.Count, answer)
	return answer, nil
}

func (m *manager) Table(a ofRequest) blocksOnly {
	if request, found := m.requests[a.Request]; found && request.table != nil {
		return blocksOnly{request.table}
	}
	return blocksOnly{[]int64{}}
}

func (m *manager) CachedTokens(a ofRequest) any {
	depth := int64(0)
	for _, block := range m.Table(a).Blocks {
		if key := m.keyOf[block]; key >= 0 && m.depths[key] > depth {
			depth = m.depths[key]
		}
	}
	return map[string]any{"tokens": depth * m.size}
}

func (m *manager) Usage() any {
	if len(m.users) < 2 {
		return map[string]any{"usage": 0}
	}
	return map[string]any{"usage": 1 - float64(m.free.Len())/float64(len(m.users)-1)}
}
