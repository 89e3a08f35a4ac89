package leasehold

import (
	"context"
	"errors"
	"time"
)

// pauses between campaigns that fail because of the store.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Lead stands in the election of this name until ctx is done, and calls fn each time this candidate is elected. One candidate
// leads at a time.
//
// The context of fn is cancelled when its term ends: then fn has to stop and return, and Lead stands again. If fn returns while it
// leads, Lead resigns and returns what fn returned. While the store cannot be used, Lead goes on trying; an error of another kind
// ends it. A [Wait] has no effect.
func (c *Client) Lead(
	ctx context.Context, name string, fn func(ctx context.Context, term *Lease) error, options ...LockOption,
) error {
	var set settings
	for _, option := range options {
		option.lock(&set)
	}
	set.wait = nil
	pause := firstPause
	for {
		term, err := c.acquire(ctx, name, &set, nil)
		switch {
		case err == nil:
			pause = firstPause
			if over, err := lead(ctx, term, fn); over {
				return err
			}
		case ctx.Err() != nil:
			return err
		case errors.Is(err, ErrUnavailable):
			c.machine.log.Warn("a campaign has failed, and is repeated", "lock", name, "error", err)
			if !sleep(ctx, pause) {
				return abandoned(ctx, name)
			}
			pause = min(2*pause, lastPause)
		default:
			return err
		}
	}
}

// lead runs one term, and tells if it was the last one: this candidate has resigned.
func lead(ctx context.Context, term *Lease, fn func(ctx context.Context, term *Lease) error) (bool, error) {
	// Also where fn panics. Of a term that was lost, there is nothing to release.
	defer func() { _ = term.Release(ctx) }()
	err := fn(term.ctx, term)
	if term.Remaining() == 0 && term.slot.why().Kind == ErrLost {
		return false, nil
	}
	return true, err
}

// sleep tells if the context lasts for so long.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
