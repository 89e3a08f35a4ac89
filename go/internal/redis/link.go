package redis

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"code.invalid/leasehold/go/internal/clock"
	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

// Link sends requests to one Redis. Nobody waits for it: requests are queued, and written by a goroutine of its own.
type Link struct {
	place  Place
	events node.Events
	// ctx ends with the link.
	ctx    context.Context
	cancel context.CancelFunc
	// ready tells that something is queued.
	ready chan struct{}

	mu    sync.Mutex
	queue []core.RedisCommands

	ear ear
}

// NewLink makes a link that is not open yet.
func NewLink(place Place) *Link {
	ctx, cancel := context.WithCancel(context.Background())
	return &Link{place: place, ctx: ctx, cancel: cancel, ready: make(chan struct{}, 1)}
}

// Open tells where answers go, before anything is sent.
func (l *Link) Open(events node.Events) {
	l.events = events
	l.ear = ear{place: l.place, events: events, ctx: l.ctx, wanted: map[string][]byte{}, changed: make(chan struct{}, 1)}
	go l.write()
}

// Close ends all connections. What is queued is not sent.
func (l *Link) Close() { l.cancel() }

// Send queues a request.
func (l *Link) Send(request core.Output) {
	l.mu.Lock()
	l.queue = append(l.queue, core.RedisCommands(request.(core.OutputRedisCommands)))
	l.mu.Unlock()
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// Subscribe listens for releases of a resource.
func (l *Link) Subscribe(resource string, channel []byte) { l.ear.subscribe(resource, channel) }

// Unsubscribe listens no longer.
func (l *Link) Unsubscribe(resource string) { l.ear.unsubscribe(resource) }

// NeedCredentials does nothing: the login belongs to the connection.
func (l *Link) NeedCredentials() {}

// write writes what is queued, in order, and connects where there is no connection.
func (l *Link) write() {
	var open *conn
	defer func() {
		if open != nil {
			open.fail(errors.New("the client was closed"))
		}
	}()
	for {
		select {
		case <-l.ready:
		case <-l.ctx.Done():
			return
		}
		l.mu.Lock()
		requests := current(l.queue)
		l.queue = nil
		l.mu.Unlock()
		if len(requests) == 0 {
			continue
		}
		if open == nil || !open.begin(requests) {
			wire, err := l.connect(requests)
			if err != nil {
				open = nil
				l.notSent(requests, err)
				continue
			}
			open = start(wire, l.events.Answer)
			open.begin(requests)
		}
		var bytes []byte
		for _, request := range requests {
			bytes = encodeAll(bytes, request.Commands)
		}
		_ = open.wire.SetWriteDeadline(until(requests))
		if _, err := open.wire.Write(bytes); err != nil {
			// Ends the reader as well.
			open.fail(err)
			open = nil
		}
	}
}

// current are the requests whose deadline has not passed; the protocol has given up the others.
func current(requests []core.RedisCommands) []core.RedisCommands {
	at := uint64(clock.Now())
	var kept []core.RedisCommands
	for _, request := range requests {
		if request.DeadlineNs > at {
			kept = append(kept, request)
		}
	}
	return kept
}

// until is the last deadline.
func until(requests []core.RedisCommands) time.Time {
	var last uint64
	for _, request := range requests {
		last = max(last, request.DeadlineNs)
	}
	return time.Now().Add(node.Left(last))
}

func (l *Link) connect(requests []core.RedisCommands) (*wire, error) {
	ctx, cancel := context.WithDeadline(l.ctx, until(requests))
	defer cancel()
	return l.place.greet(ctx)
}

// notSent answers requests of which nothing has left.
func (l *Link) notSent(requests []core.RedisCommands, err error) {
	var answers []core.Input
	var refused refusal
	for _, request := range requests {
		fault := faultOf(err)
		fault.Kind = core.FaultKindUnreachable
		var response core.Response = core.ResponseNotSent(fault)
		if errors.As(err, &refused) {
			// As if the server had said it to each command, so that the protocol knows its errors.
			replies := bytes.Repeat(refused, len(request.Commands))
			response = core.ResponseRedisReplies{Replies: replies}
		}
		answers = append(answers, core.InputResponse{ID: request.ID, Response: response})
	}
	l.events.Answer(answers)
}
