package leasehold

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"code.invalid/leasehold/go/internal/clock"
	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

// Client takes locks in one store. It is safe for concurrent use: make one for a process, and keep it.
type Client struct {
	machine *machine
	label   string
	// longest is what a quorum allows a lock to last; 0 where it allows a minute, or there is none.
	longest time.Duration
}

// Connect makes a client of the Redis with this url: redis://, rediss:// or redis+unix:// as in docs/redis.md. It connects when a
// lock is first wanted. [Open] is for other stores.
func Connect(url string, options ...ClientOption) (*Client, error) {
	return Open(Redis{URL: url}, options...)
}

// Open makes a client of a store. It connects when a lock is first wanted.
func Open(store Store, options ...ClientOption) (*Client, error) {
	set := clientSettings{owner: label(), log: slog.New(slog.DiscardHandler)}
	for _, option := range options {
		option(&set)
	}
	timeout, err := whole("request timeout", set.requestTimeout)
	if err != nil {
		return nil, err
	}
	config := core.Config{DriftPPM: set.drift, RequestTimeoutMs: timeout}
	stores := []Store{store}
	if quorum, is := store.(Quorum); is {
		stores = quorum.Nodes
		if config.Quorum, err = quorum.settings(); err != nil {
			return nil, err
		}
	}
	var nodes []node.Node
	for _, store := range stores {
		node, err := store.Node()
		if err != nil {
			return nil, err
		}
		if node.IsCluster && config.Quorum != nil {
			return nil, configError("a Redis Cluster cannot be a node of a quorum: name single servers, or use the cluster alone")
		}
		nodes = append(nodes, node)
	}
	machine, err := start(config, nodes, set.log, set.observer)
	if err != nil {
		return nil, err
	}
	client := &Client{machine: machine, label: set.owner}
	if config.Quorum != nil && config.Quorum.MaxTTLMs != nil {
		client.longest = milliseconds(*config.Quorum.MaxTTLMs) - clock.Missed
	}
	return client, nil
}

func label() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// Lock acquires a lock. It tries until the lock is free or ctx is done, or for as long as [Wait] says. If it returns an error,
// nothing is held.
func (c *Client) Lock(ctx context.Context, name string, options ...LockOption) (*Lease, error) {
	var set settings
	for _, option := range options {
		option.lock(&set)
	}
	return c.acquire(ctx, name, &set, nil)
}

// Close releases all leases and stops the client. It waits for the store to confirm the releases, for at most 2 s; what is not
// confirmed by then expires.
func (c *Client) Close() error {
	if c.machine.close(patience) {
		return nil
	}
	return &Error{Kind: ErrUnavailable, message: "some releases are not confirmed: these locks expire after their ttl"}
}

// acquire takes a lock, or the lease of a run.
func (c *Client) acquire(ctx context.Context, name string, set *settings, run *core.RunOptions) (*Lease, error) {
	slot, err := c.decided(ctx, name, set, run)
	if err != nil {
		return nil, err
	}
	return slot.lease(ctx)
}

// decided begins an acquisition, and waits for its end.
func (c *Client) decided(ctx context.Context, name string, set *settings, run *core.RunOptions) (*slot, error) {
	if ctx.Err() != nil {
		return nil, abandoned(ctx, name)
	}
	options, err := set.lockOptions(c.label)
	if err != nil {
		return nil, err
	}
	options.Run = run
	slot, err := c.machine.acquire(ctx, name, options.Owner, options)
	if err != nil {
		return nil, err
	}
	select {
	case <-slot.decided:
		return slot, nil
	case <-ctx.Done():
		err := abandoned(ctx, name)
		// It may have been granted at this very moment; then it is released.
		_ = c.machine.command(core.InputRelease{Lock: slot.lock}, func() { slot.abandon(err) }, nil)
		return nil, err
	}
}

// lease is the lease of a slot that was granted. If it is over already, its holder finds out.
func (s *slot) lease(ctx context.Context) (*Lease, error) {
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	if s.token == 0 {
		return nil, s.failure
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, leaseOf{}, s))
	s.cancel = cancel
	if s.phase == over {
		cancel(s.failure)
	}
	return &Lease{s, ctx}, nil
}

func abandoned(ctx context.Context, name string) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return fmt.Errorf("leasehold: %q: nothing was acquired: %w", name, err)
	}
	return fmt.Errorf("leasehold: %q: nothing was acquired: %w: %w", name, err, cause)
}
