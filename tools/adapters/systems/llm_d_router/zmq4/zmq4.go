// Package zmq4 is in the place of the package of this name: the sockets of llm-d-router's subscriber are
// those of a publisher in the same process, and nothing takes time.
package zmq4

import (
	"context"
	"errors"
	"io"
	"time"
)

const OptionSubscribe = "SUBSCRIBE"

// Msg is a message.
type Msg struct{ Frames [][]byte }

func NewMsgFrom(frames ...[]byte) Msg { return Msg{frames} }

// Publisher is what the sockets of one subscriber connect to.
type Publisher struct {
	Live   chan Msg              // what a SUB socket receives
	Waits  chan struct{}         // has a value whenever a SUB socket begins to wait
	Answer func(asked Msg) []Msg // what a DEALER socket receives for a message; nil: it cannot connect
}

type key struct{}

// With is the context of a subscriber of a publisher.
func With(ctx context.Context, publisher *Publisher) context.Context {
	return context.WithValue(ctx, key{}, publisher)
}

// Socket is one of either kind.
type Socket struct {
	ctx       context.Context
	publisher *Publisher
	dealer    bool
	answer    []Msg
}

type Option struct{}

func WithTimeout(time.Duration) Option { return Option{} }

func NewSub(ctx context.Context) *Socket {
	return &Socket{ctx: ctx, publisher: ctx.Value(key{}).(*Publisher)}
}

func NewDealer(ctx context.Context, _ Option) *Socket {
	return &Socket{ctx: ctx, publisher: ctx.Value(key{}).(*Publisher), dealer: true}
}

func (s *Socket) Listen(string) error { return nil }

func (s *Socket) Dial(string) error {
	if s.dealer && s.publisher.Answer == nil {
		return errors.New("nothing listens")
	}
	return nil
}

func (s *Socket) SetOption(string, any) error { return nil }

func (s *Socket) SendMulti(asked Msg) error {
	s.answer = s.publisher.Answer(asked)
	return nil
}

func (s *Socket) Recv() (message Msg, err error) {
	if s.dealer {
		if len(s.answer) == 0 {
			return Msg{}, io.EOF
		}
		message, s.answer = s.answer[0], s.answer[1:]
		return message, nil
	}
	select {
	case s.publisher.Waits <- struct{}{}:
	case <-s.ctx.Done():
		return Msg{}, s.ctx.Err()
	}
	select {
	case message = <-s.publisher.Live:
		return message, nil
	case <-s.ctx.Done():
		return Msg{}, s.ctx.Err()
	}
}

func (s *Socket) Close() error { return nil }
