package main

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/go-zeromq/zmq4"
)

// publisher has the batches of an engine's life, and the sockets of the router's subscriber. It knows no
// router: subscribers outlive their case for a moment.
type publisher struct {
	config
	engine
	pod     string
	keys    *keys
	batches [][]event
	sockets *zmq4.Publisher // nil: the router has no subscriber
	heard   bool            // whether it ever had one
	asked   *uint64         // what the subscriber has requested since the last delivery
}

func (p *publisher) message(seq int) zmq4.Msg {
	p.keys.note(p.batches[seq], p.Size)
	return zmq4.NewMsgFrom([]byte(topic(p.pod)), numbered(uint64(seq)), p.payload(p.Rank, p.batches[seq]))
}

func numbered(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// answer is a replay: what is in the buffer, and a mark of its end. The first subscriber of an engine comes before
// its first batch.
func (p *publisher) answer(asked zmq4.Msg) []zmq4.Msg {
	answer := []zmq4.Msg{}
	if p.heard {
		from := binary.BigEndian.Uint64(asked.Frames[1])
		p.asked = &from
		for seq := max(int(from), len(p.batches)-p.Buffer); seq < len(p.batches); seq++ {
			answer = append(answer, delimited(p.message(seq).Frames...))
		}
	}
	return append(answer, delimited([]byte{}, numbered(math.MaxUint64), []byte{}))
}

// delimited is a message as a ROUTER socket sends it.
func delimited(frames ...[]byte) zmq4.Msg {
	return zmq4.NewMsgFrom(append([][]byte{{}}, frames...)...)
}

// subscribe makes a subscriber, and waits until it waits for batches.
func (r *router) subscribe(to *publisher) error {
	to.sockets = &zmq4.Publisher{Live: make(chan zmq4.Msg), Waits: make(chan struct{})}
	source, replays := "", ""
	if r.Identity == "endpoint" {
		source = to.pod
		if r.Asks {
			replays = "replays"
		}
	}
	if r.Replay {
		to.sockets.Answer = to.answer
	}
	ctx := zmq4.With(context.Background(), to.sockets)
	if err := r.subscribers.EnsureSubscriber(ctx, to.name(), source, "batches", replays, "kv@", true); err != nil {
		return err
	}
	<-to.sockets.Waits
	to.heard = true
	return nil
}

// hear hands a batch to the subscriber, and waits until all that comes of it is applied.
func (r *router) hear(from *publisher, seq int) (delivered, error) {
	from.asked = nil
	if from.sockets == nil {
		if err := r.subscribe(from); err != nil {
			return delivered{}, err
		}
	}
	live := from.message(seq)
	from.sockets.Live <- live
	<-from.sockets.Waits
	r.flush()
	done := delivered{Asked: from.asked}
	if done.Asked != nil {
		done.Replayed = &[]uint64{}
	}
	for _, message := range *r.applied {
		if &message.Payload[0] == &live.Frames[2][0] {
			done.Applied = true
		} else {
			*done.Replayed = append(*done.Replayed, message.Sequence)
		}
	}
	*r.applied = nil
	return done, r.keys.determined()
}
