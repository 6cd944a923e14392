package main

import (
	"math"
	"slices"

	"adapter/standin"

	"github.com/zerfoo/zerfoo/generate"

	"kvoracle"
)

// Pipeline is a case of sampling.pipeline. Operations are its methods.
type Pipeline struct{}

type step struct {
	Logits      []kvoracle.Number
	Temperature kvoracle.Number
	K           int
	P           kvoracle.Number
	Generated   []int
	Penalty     kvoracle.Number
	Seed        int64
}

func (s step) logits() []float64 {
	own := make([]float64, len(s.Logits))
	for i, value := range s.Logits {
		own[i] = float64(value)
	}
	return own
}

// canonical makes every NaN the one without sign and payload: processors differ in them.
func canonical(values []float64) []kvoracle.Number {
	for i, value := range values {
		if value != value {
			values[i] = math.NaN()
		}
	}
	return numbers(values)
}

type changed struct {
	Logits []kvoracle.Number `json:"logits"`
}

func (s step) changed(apply func(logits []float64)) (done changed, failed error) {
	failed = guard(nothing, func() error {
		own := s.logits()
		apply(own)
		done.Logits = canonical(own)
		return nil
	})
	return
}

// open says whether NaN stands among logits of which the k largest stay: whether it is cut is left
// open (docs/sampling.md).
func open[T float32 | float64](logits []T, k int) bool {
	return k > 0 && k < len(logits) && slices.ContainsFunc(logits, func(value T) bool { return value != value })
}

// ApplyTemperature divides logits.
func (Pipeline) ApplyTemperature(s step) (changed, error) {
	return s.changed(func(own []float64) { generate.ApplyTemperature(own, float64(s.Temperature)) })
}

// ApplyTopK cuts what is below the k-th largest logit.
func (Pipeline) ApplyTopK(s step) (changed, error) {
	if open(s.logits(), s.K) {
		return changed{}, kvoracle.ErrUnsupported
	}
	return s.changed(func(own []float64) { generate.ApplyTopK(own, s.K) })
}

// ApplyTopP cuts what the most probable tokens do not need to reach p.
func (Pipeline) ApplyTopP(s step) (changed, error) {
	return s.changed(func(own []float64) { generate.ApplyTopP(own, float64(s.P)) })
}

// ApplyRepetitionPenalty lessens logits of generated tokens.
func (Pipeline) ApplyRepetitionPenalty(s step) (changed, error) {
	return s.changed(func(own []float64) { generate.ApplyRepetitionPenalty(own, s.Generated, float64(s.Penalty)) })
}

type probabilities struct {
	Probs []kvoracle.Number `json:"probs"`
}

// Softmax has the probabilities of logits.
func (Pipeline) Softmax(s step) probabilities {
	return probabilities{canonical(generate.Softmax(s.logits()))}
}

type token struct {
	Token int `json:"token"`
}

// Argmax is the first of the largest.
func (Pipeline) Argmax(s step) token { return token{generate.Argmax(s.logits())} }

// SampleFromDistribution draws an index.
func (Pipeline) SampleFromDistribution(s step) (drawn token, failed error) {
	standin.Seed(uint64(s.Seed))
	failed = guard(nothing, func() error {
		drawn.Token = generate.SampleFromDistribution(s.logits())
		return nil
	})
	return
}

type config struct {
	Temperature kvoracle.Number `json:"temperature"`
	TopK        int             `json:"top_k"`
	TopP        kvoracle.Number `json:"top_p"`
	Penalty     kvoracle.Number `json:"repetition_penalty"`
	Most        int             `json:"max_new_tokens"`
	StopIDs     []int           `json:"stop_token_ids"`
	StopStrings []string        `json:"stop_strings"`
}

// Sample chooses the next token.
func (Pipeline) Sample(given struct {
	Logits    kvoracle.Tensor
	Sampling  config
	Generated []int
	Seed      int64
}) (chosen token, failed error) {
	if given.Logits.DType == "i32" && len(given.Logits.Shape) == 3 {
		return chosen, kvoracle.Refuse("not_supported", "a Generator[float32] takes no tensor of integers")
	}
	if given.Sampling.Temperature > 0 && open(given.Logits.Floats(), given.Sampling.TopK) {
		return chosen, kvoracle.ErrUnsupported
	}
	standin.Seed(uint64(given.Seed))
	failed = guard(nothing, func() error {
		logits, err := newValues(given.Logits.Shape, given.Logits.Floats())
		if err != nil {
			return err
		}
		chosen.Token, err = generate.SampleFromLogits(logits, generate.SamplingConfig{
			Temperature: float64(given.Sampling.Temperature), TopK: given.Sampling.TopK, TopP: float64(given.Sampling.TopP),
			RepetitionPenalty: float64(given.Sampling.Penalty)}, given.Generated)
		return err
	})
	return
}

// DefaultSamplingConfig is how tokens are chosen by default.
func (Pipeline) DefaultSamplingConfig() config {
	from := generate.DefaultSamplingConfig()
	return config{kvoracle.Number(from.Temperature), from.TopK, kvoracle.Number(from.TopP), kvoracle.Number(from.RepetitionPenalty),
		from.MaxNewTokens, append([]int{}, from.StopTokenIDs...), append([]string{}, from.StopStrings...)}
}
