package leasehold

import (
	"context"
	"time"

	"code.invalid/leasehold/go/internal/core"
)

// Outcome is what has become of a run.
type Outcome struct {
	// Ran: the work was done here, now, and its completion stands.
	Ran bool
	// Done is the completion of work that was done before; nil otherwise.
	Done *Completion
	// Running: somebody else is at it, as far as the store shows in Holder.
	Running bool
	Holder  *Holder
}

// Completion says that the work of a run is done. While it stands, nobody does the work again.
type Completion struct {
	// Token is the fencing token under which the work was done.
	Token uint64
	// Owner is the label of who did it; it may be empty.
	Owner string
	// At is when, by the wall clock of the holder or the store.
	At time.Time
	// Left is how much longer it stands.
	Left time.Duration
}

// Once calls fn if the work of this name and key was not done yet, and nobody is at it; its success is written down, so that
// nobody does it again while the completion stands. The key names the occurrence of the job: a date, an invoice.
//
// The context of fn is that of the lease under which it works. If fn returns an error, which Once returns, or panics, the work
// stays undone and the next one may try at once. The work is done again if its process dies before the completion is written.
func (c *Client) Once(
	ctx context.Context, name, key string, fn func(ctx context.Context, run *Lease) error, options ...OnceOption,
) (Outcome, error) {
	var set settings
	// A second worker learns at once that somebody is at it.
	for _, option := range append([]OnceOption{Wait(0)}, options...) {
		option.once(&set)
	}
	keep, err := whole("keep", set.keep)
	if err != nil {
		return Outcome{}, err
	}
	resource, err := c.machine.runResource(name, &key)
	if err != nil {
		return Outcome{}, refused(name, err)
	}
	slot, err := c.decided(ctx, resource, &set, &core.RunOptions{KeepMs: keep, EvenIfDone: set.evenIfDone})
	if err != nil {
		return Outcome{}, err
	}
	run, err := slot.lease(ctx)
	if err != nil {
		return notRun(slot)
	}
	return Outcome{Ran: true}.unless(perform(run, fn))
}

// unless is the outcome if there is no error.
func (o Outcome) unless(err error) (Outcome, error) {
	if err != nil {
		return Outcome{}, err
	}
	return o, nil
}

func notRun(slot *slot) (Outcome, error) {
	switch why := slot.why(); {
	case slot.completion != nil:
		done := slot.completion
		return Outcome{Done: &Completion{
			Token: done.Token, Owner: done.Owner,
			At: time.UnixMilli(int64(done.AtUnixMs)), Left: milliseconds(done.LeftMs),
		}}, nil
	case why.Kind == ErrBusy || why.Kind == ErrTimeout:
		return Outcome{Running: true, Holder: why.Holder}, nil
	default:
		return Outcome{}, why
	}
}

// perform does the work of a run, and finishes it.
func perform(run *Lease, fn func(ctx context.Context, run *Lease) error) error {
	finished := false
	defer func() {
		if !finished {
			// Of a lease that was lost, fn has been told.
			_ = run.Release(run.ctx)
		}
	}()
	if err := fn(run.ctx, run); err != nil {
		return err
	}
	finished = true
	// Whatever the caller's context says by now: the work is done.
	return run.slot.finish(context.WithoutCancel(run.ctx))
}
