package redis

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"code.invalid/leasehold/go/internal/clock"
	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

// mostKept is the largest buffer that is kept for the next requests.
const mostKept = 64 << 10

// Link sends requests to one Redis. They are queued, and written by the caller who asks for them, or by a goroutine of its own
// where there is no connection yet, somebody else writes, or nobody may be kept waiting.
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

	// writing is held by who writes, and has the connection and what it needs.
	writing sync.Mutex
	open    *conn
	bytes   []byte

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
}

// Flush has what is queued written: by the waiter, if there is one. If nobody else waits for replies, it reads its own as well: each
// goroutine that a request has to go through costs more than the rest of it.
func (l *Link) Flush(waiter *node.Waiter) {
	if waiter != nil && l.writing.TryLock() {
		// Without a connection there is none to write on, and making one takes time.
		isReader := false
		open := l.open
		if open != nil {
			isReader = l.writeAll(true)
		}
		l.writing.Unlock()
		if isReader {
			open.readFor(waiter)
		}
	}
	l.mu.Lock()
	left := len(l.queue)
	l.mu.Unlock()
	if left > 0 {
		select {
		case l.ready <- struct{}{}:
		default:
		}
	}
}

// Subscribe listens for releases of a resource.
func (l *Link) Subscribe(resource string, channel []byte) { l.ear.subscribe(resource, channel) }

// Unsubscribe listens no longer.
func (l *Link) Unsubscribe(resource string) { l.ear.unsubscribe(resource) }

// NeedCredentials does nothing: the login belongs to the connection.
func (l *Link) NeedCredentials() {}

// write is the goroutine that writes what no caller does.
func (l *Link) write() {
	defer func() {
		l.writing.Lock()
		defer l.writing.Unlock()
		if l.open != nil {
			l.open.fail(errors.New("the client was closed"))
		}
	}()
	for {
		select {
		case <-l.ready:
			l.writing.Lock()
			l.writeAll(false)
			l.writing.Unlock()
		case <-l.ctx.Done():
			return
		}
	}
}

// writeAll writes what is queued, in order. Only one at a time may do so. A caller leaves everything in the queue where there is no
// connection, since making one takes time; otherwise it is told whether it has to read the replies, and nobody else may.
func (l *Link) writeAll(isCaller bool) (isReader bool) {
	l.mu.Lock()
	requests := current(l.queue)
	l.queue = nil
	l.mu.Unlock()
	if len(requests) == 0 || l.ctx.Err() != nil {
		return false
	}
	begun := false
	if l.open != nil {
		begun, isReader = l.open.begin(requests, isCaller)
	}
	if !begun {
		if isCaller {
			l.mu.Lock()
			l.queue = append(requests, l.queue...)
			l.mu.Unlock()
			return false
		}
		if requests = l.beginAnew(requests); len(requests) == 0 {
			return false
		}
	}
	l.bytes = l.bytes[:0]
	for _, request := range requests {
		l.bytes = encodeAll(l.bytes, request.Commands)
	}
	if err := l.open.write(l.bytes, until(requests)); err != nil {
		// Ends the reader as well, which notices.
		l.open.fail(err)
		l.open = nil
	}
	// They name attempts, and are large after many requests at once.
	if clear(l.bytes); cap(l.bytes) > mostKept {
		l.bytes = nil
	}
	return isReader
}

// beginAnew connects, and begins the requests that are not given up meanwhile.
func (l *Link) beginAnew(requests []core.RedisCommands) []core.RedisCommands {
	l.open = nil
	wire, err := l.connect(requests)
	if err != nil {
		l.notSent(requests, err)
		return nil
	}
	l.open = start(wire, l.events.Answer)
	requests = current(requests)
	if len(requests) == 0 {
		return nil
	}
	if begun, _ := l.open.begin(requests, false); !begun {
		l.open = nil
		l.notSent(requests, errors.New("the server has closed the connection at once"))
		return nil
	}
	return requests
}

// current are the requests whose deadline has not passed; the protocol has given up the others.
func current(requests []core.RedisCommands) []core.RedisCommands {
	at := uint64(clock.Now())
	return slices.DeleteFunc(requests, func(request core.RedisCommands) bool { return request.DeadlineNs <= at })
}

// until is the last deadline.
func until(requests []core.RedisCommands) (last uint64) {
	for _, request := range requests {
		last = max(last, request.DeadlineNs)
	}
	return last
}

func (l *Link) connect(requests []core.RedisCommands) (*wire, error) {
	ctx, cancel := context.WithTimeout(l.ctx, node.Left(until(requests)))
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
