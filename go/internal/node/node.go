// Package node is what a client needs to know of a store: its settings, and what carries requests to it.
package node

import (
	"context"
	"time"

	"code.invalid/leasehold/go/internal/clock"
	"code.invalid/leasehold/go/internal/core"
)

// Node is one store.
type Node struct {
	Config core.NodeConfig
	Store  core.Store
	Link   Link
	// Takes tells why a name cannot be locked in it; nil where all can.
	Takes func(name string) error
	// IsCluster: what it would have to remember as a node of a quorum has no place in it.
	IsCluster bool
	// World is that of a test; nil otherwise.
	World *World
}

// Link carries requests. Its methods are called under the lock of the client, so none of them waits but Flush.
type Link interface {
	// Open tells where answers go, before anything is sent.
	Open(Events)
	// Send sends one request, and has it answered; of what the protocol has given up, an answer is not needed. It may put that off
	// until Flush.
	Send(core.Output)
	// Flush is called after requests were sent, without the lock of the client. It may wait for the waiter, if there is one.
	Flush(waiter *Waiter)
	// Subscribe listens for releases of a resource, if the store tells them.
	Subscribe(resource string, channel []byte)
	// Unsubscribe listens no longer.
	Unsubscribe(resource string)
	// NeedCredentials asks for fresh ones.
	NeedCredentials()
	// Close ends everything. What is queued is not sent.
	Close()
}

// Events are called from goroutines of a link.
type Events struct {
	// Answer takes responses to requests.
	Answer func([]core.Input)
	// Subscribed takes a resource whose releases will be heard from now on.
	Subscribed func(resource string)
	// Released takes a resource that may be free.
	Released func(resource string)
	// Message takes what a channel tells.
	Message func(channel, message []byte)
	// Credentials takes those for further requests.
	Credentials func(core.Credentials)
	// NoCredentials takes the reason why there are none.
	NoCredentials func(error)
}

// Waiter is a caller who waits for what becomes of its request, and so may carry it.
type Waiter struct {
	Ctx context.Context
	// Done is closed when it need not wait any longer.
	Done <-chan struct{}
}

// IsDone tells if it need not wait any longer.
func (w *Waiter) IsDone() bool {
	select {
	case <-w.Done:
		return true
	case <-w.Ctx.Done():
		return true
	default:
		return false
	}
}

// World is what a client otherwise asks the machine for.
type World struct {
	// Clock is the time from an arbitrary start; it never runs backwards.
	Clock func() time.Duration
	// Fresh draws random bytes.
	Fresh func(n int) []byte
}

// Left is the time until a deadline of the protocol, 0 if that has passed.
func Left(deadline uint64) time.Duration {
	return time.Duration(deadline - min(uint64(clock.Now()), deadline))
}

// Deaf is the part of a link whose store tells nothing and wants no credentials.
type Deaf struct{}

// Subscribe does nothing: waiters poll.
func (Deaf) Subscribe(string, []byte) {}

// Unsubscribe does nothing.
func (Deaf) Unsubscribe(string) {}

// Flush does nothing: what is sent has a goroutine of its own.
func (Deaf) Flush(*Waiter) {}

// NeedCredentials does nothing: nobody asks.
func (Deaf) NeedCredentials() {}
