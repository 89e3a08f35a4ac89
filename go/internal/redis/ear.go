package redis

import (
	"context"
	"sync"
	"time"

	"code.invalid/leasehold/go/internal/node"
)

const (
	// confirmation is how long a subscription may take.
	confirmation = 2 * time.Second
	// Pauses between attempts to connect; waiters poll meanwhile.
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// ear listens on a connection of its own, from the first waiter on.
type ear struct {
	place  Place
	events node.Events
	ctx    context.Context
	// changed tells that other resources are wanted.
	changed chan struct{}

	mu      sync.Mutex
	started bool
	// wanted has the channel of each resource.
	wanted map[string][]byte
}

func (e *ear) subscribe(resource string, channel []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wanted[resource] = channel
	if !e.started {
		e.started = true
		go e.run()
	}
	e.change()
}

func (e *ear) unsubscribe(resource string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.wanted, resource)
	e.change()
}

func (e *ear) change() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

func (e *ear) run() {
	pause := firstPause
	for e.ctx.Err() == nil {
		if e.listen() {
			pause = firstPause
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, lastPause)
		case <-e.ctx.Done():
		}
	}
}

// listen listens on one connection until that breaks, and tells if it ever worked.
func (e *ear) listen() bool {
	ctx, cancel := context.WithTimeout(e.ctx, confirmation)
	w, err := e.place.greet(ctx)
	cancel()
	if err != nil {
		return false
	}
	defer w.Close()
	broken := make(chan struct{})
	heard := &heard{asked: map[string]string{}}
	go func() {
		defer close(broken)
		e.read(w, heard)
	}()
	for {
		bytes := heard.differences(e)
		if len(bytes) > 0 {
			_ = w.SetWriteDeadline(time.Now().Add(confirmation))
			if _, err := w.Write(bytes); err != nil {
				return true
			}
		}
		select {
		case <-e.changed:
		case <-broken:
			return true
		case <-e.ctx.Done():
			return true
		}
	}
}

// heard is what one connection listens to.
type heard struct {
	mu sync.Mutex
	// asked has the resource of each channel.
	asked map[string]string
}

// differences are the commands that make it listen to what is wanted.
func (h *heard) differences(e *ear) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	var bytes []byte
	for resource, channel := range e.wanted {
		if _, is := h.asked[string(channel)]; !is {
			h.asked[string(channel)] = resource
			bytes = encode(bytes, []string{"SUBSCRIBE", string(channel)})
		}
	}
	for channel, resource := range h.asked {
		if _, is := e.wanted[resource]; !is {
			delete(h.asked, channel)
			bytes = encode(bytes, []string{"UNSUBSCRIBE", channel})
		}
	}
	return bytes
}

func (e *ear) read(w *wire, heard *heard) {
	for {
		reply, err := w.reply()
		if err != nil {
			return
		}
		switch said := texts(reply); {
		case len(said) == 2 && string(said[0]) == "subscribe":
			heard.mu.Lock()
			resource, is := heard.asked[string(said[1])]
			heard.mu.Unlock()
			if is {
				e.events.Subscribed(resource)
			}
		case len(said) == 3 && string(said[0]) == "message":
			e.events.Message(said[1], said[2])
		}
	}
}
