package leasehold

import (
	"context"
	"errors"
	"time"

	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

// patience is the longest wait for the confirmation of a release.
const patience = 2 * time.Second

// Lease is a lock that is held. It is safe for concurrent use.
type Lease struct {
	slot *slot
	ctx  context.Context
}

// Name is the name of the lock.
func (l *Lease) Name() string { return l.slot.resource }

// Owner is the label of this lease.
func (l *Lease) Owner() string { return l.slot.owner }

// Token is the fencing token: larger than that of every earlier grant of this name.
func (l *Lease) Token() uint64 { return l.slot.token }

// Context is that of the call that acquired the lease, and is cancelled when the lease ends: at its deadline unless it was
// renewed, when somebody takes the lock away, and by a release. [context.Cause] tells why, as an [*Error].
func (l *Lease) Context() context.Context { return l.ctx }

// Remaining is the time for which the lease is valid unless it is renewed; 0 when it is over.
func (l *Lease) Remaining() time.Duration { return l.slot.remaining() }

// Check returns an error of the kind [ErrLost] or [ErrReleased] unless the lease is valid for at least so much longer. Call it
// before each step of the work.
func (l *Lease) Check(atLeast time.Duration) error {
	left := l.slot.remaining()
	switch {
	case left == 0:
		return l.slot.why()
	case left < atLeast:
		l.slot.machine.mu.Lock()
		defer l.slot.machine.mu.Unlock()
		return tooShort(l.slot.resource, left, atLeast, l.slot.trouble)
	default:
		return nil
	}
}

// leaseOf is the key under which the context of a lease, and all contexts made of it, have the slot of that lease.
type leaseOf struct{}

// Release frees the lock, and waits for the store to confirm that: for at most 2 s, and no longer than ctx lasts. The context of the lease
// itself ends with this call, and does not cut the wait short. The release is begun and goes on whatever ctx says, so that it can be
// deferred with a context that is done. If the lease was lost, the error says so.
func (l *Lease) Release(ctx context.Context) error { return l.slot.release(ctx) }

func (s *slot) release(ctx context.Context) error {
	if ctx.Value(leaseOf{}) == s {
		ctx = context.WithoutCancel(ctx)
	}
	if s.remaining() == 0 {
		return s.workEnded()
	}
	_ = s.machine.command(core.InputRelease{Lock: s.lock}, s.endLocally, &node.Waiter{Ctx: ctx, Done: s.ended})
	return s.wait(ctx, patience, unconfirmedError)
}

// workEnded is about work that has ended after its lease, and tells why that is over. A record that was revoked protects nothing any more.
func (s *slot) workEnded() error {
	why, revoked := s.end()
	if revoked {
		_ = s.machine.command(core.InputRelease{Lock: s.lock}, func() {}, nil)
	}
	return why
}

// finish writes the completion of a run, and releases it in the same step. A result that cannot be kept is an error once the completion
// stands: the work is done.
func (s *slot) finish(ctx context.Context, result *core.RunResult) error {
	left := s.remaining()
	if left == 0 {
		return s.workEnded()
	}
	waiter := &node.Waiter{Ctx: ctx, Done: s.ended}
	var unfit *core.Refused[core.CommandError]
	err := s.machine.command(core.InputFinish{Lock: s.lock, RunResult: result}, s.endLocally, waiter)
	if errors.As(err, &unfit) && result != nil {
		_ = s.machine.command(core.InputFinish{Lock: s.lock}, func() {}, waiter)
	}
	if err := s.wait(ctx, left+patience, finishUnconfirmedError); err != nil {
		return err
	}
	switch {
	case unfit != nil:
		return resultNotKept(s.resource, refusedCommand("", unfit.Reason).message)
	case s.dropped:
		return resultNotKept(s.resource, "the store had no room for it")
	default:
		return nil
	}
}

// wait waits for the end of a lease that was released or finished.
func (s *slot) wait(ctx context.Context, patience time.Duration, unconfirmed func(string) *Error) error {
	select {
	case <-s.ended:
	default:
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-s.ended:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	switch {
	case s.failure != nil:
		return s.failure
	case s.confirmed:
		return nil
	default:
		return unconfirmed(s.resource)
	}
}
