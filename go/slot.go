package leasehold

import (
	"context"
	"sync/atomic"
	"time"

	"code.invalid/leasehold/go/internal/core"
)

type phase uint8

const (
	pending phase = iota
	held
	// releasing: released or finished here, and the store has not answered yet.
	releasing
	// over: nothing more will come.
	over
)

// slot is one acquisition as its caller sees it. All of it belongs to the machine's lock, but for the deadline and the channels.
type slot struct {
	machine  *machine
	lock     uint64
	resource string
	owner    string

	// deadline of the lease on the monotonic clock; 0 while it is not held.
	deadline atomic.Uint64
	// decided is closed when it is no longer pending, ended when it is over.
	decided, ended chan struct{}

	phase phase
	token uint64
	// failure is the error of a lease that ended without a release, or of an acquisition that was not granted.
	failure *Error
	// completion of work that was done before, and holding of a lock that somebody else has, as far as it is known.
	completion *core.Completion
	holding    *core.Holding
	// confirmed: the store has answered the release or the finish as hoped; dropped: without the result, for which it had no room.
	confirmed bool
	dropped   bool
	revoked   bool
	trouble   *core.Fault
	// cancel ends the context of the lease.
	cancel context.CancelCauseFunc
	// began and granted are when it was asked for and granted.
	began, granted uint64
}

func newSlot(m *machine, lock uint64, resource, owner string) *slot {
	return &slot{
		machine: m, lock: lock, resource: resource, owner: owner,
		decided: make(chan struct{}), ended: make(chan struct{}), began: m.clock(),
	}
}

func (s *slot) become(next phase) {
	if s.phase == pending {
		close(s.decided)
	}
	if next == over && s.phase != over {
		close(s.ended)
	}
	if next != held {
		s.deadline.Store(0)
	}
	s.phase = next
}

// apply takes an event of the protocol.
func (s *slot) apply(event core.Event) {
	switch event := event.(type) {
	case core.EventAcquired:
		s.token, s.granted = event.Token, s.machine.clock()
		s.observeDecision(nil)
		s.deadline.Store(event.DeadlineNs)
		s.become(held)
	case core.EventRenewed:
		s.trouble = nil
		s.prolong(event.DeadlineNs)
	case core.EventShortened:
		s.prolong(event.DeadlineNs)
	case core.EventRenewDelayed:
		s.trouble = &event.Fault
		why, late := fault(event.Fault), s.machine.observer.Late
		s.machine.note(func() {
			s.machine.log.Warn("a renewal was not confirmed, and is repeated", "lock", s.resource, "why", why)
			if late != nil {
				late(s.resource, why)
			}
		})
	case core.EventLost:
		_, s.revoked = event.Reason.(core.LostReasonRevoked)
		s.lose(lost(s.resource, event.Reason, s.trouble))
		s.gone()
	case core.EventFailed:
		s.failure = failed(s.resource, event.Failure)
		s.observeDecision(s.failure)
		switch why := event.Failure.(type) {
		case core.FailureDone:
			completion := core.Completion(why)
			s.completion = &completion
		case core.FailureBusy:
			s.holding = why.Holding
		case core.FailureTimedOut:
			s.holding = why.Holding
		}
		s.become(over)
		s.gone()
	case core.EventReleased:
		// Also where an answer was lost: the record is not ours any more, so the lock is free.
		s.confirmed = true
		s.become(over)
		s.gone()
	case core.EventFinished:
		s.confirmed, s.dropped = event.Confirmed, event.ResultDropped
		s.become(over)
		s.gone()
	}
}

// prolong moves the deadline, unless it has passed: then the holder may have been told so.
func (s *slot) prolong(deadline uint64) {
	old := s.deadline.Load()
	if old == 0 || s.machine.clock() >= old {
		return
	}
	s.deadline.Store(deadline)
}

func (s *slot) gone() { delete(s.machine.slots, s.lock) }

// lose ends a lease, and tells its holder. A release may find, too, that the lock was no longer ours.
func (s *slot) lose(why *Error) {
	if s.phase != held && s.phase != releasing {
		return
	}
	if s.phase == held {
		s.observeEnd(why)
	}
	s.failure = why
	s.become(over)
	s.tell(why)
	token := s.token
	s.machine.note(func() { s.machine.log.Warn(why.Error(), "lock", s.resource, "token", token) })
}

// tell cancels the context of the lease, when the machine's lock is no longer held.
func (s *slot) tell(why error) {
	if cancel := s.cancel; cancel != nil {
		s.machine.later(func() { cancel(why) })
	}
}

// observeDecision is for an acquisition that is still pending.
func (s *slot) observeDecision(err error) {
	if decided := s.machine.observer.Decided; decided != nil && s.phase == pending {
		took := time.Duration(s.machine.clock() - s.began)
		s.machine.note(func() { decided(s.resource, took, err) })
	}
}

// observeEnd is for a lease that is still held.
func (s *slot) observeEnd(err error) {
	if ended := s.machine.observer.Ended; ended != nil {
		lasted := time.Duration(s.machine.clock() - s.granted)
		s.machine.note(func() { ended(s.resource, lasted, err) })
	}
}

// endLocally ends the lease here, whatever the store will answer.
func (s *slot) endLocally() {
	if s.phase == held {
		s.observeEnd(nil)
		s.become(releasing)
		s.tell(releasedError(s.resource))
	}
}

// abandon ends an acquisition for which nobody waits any more, or the lease that it became at that moment.
func (s *slot) abandon(err error) {
	if s.phase == pending {
		s.observeDecision(err)
		s.become(over)
		return
	}
	s.endLocally()
}

func (s *slot) endByClosing() {
	if s.phase == held {
		message := "the client was closed, and the lease was released; the work under the lock must stop"
		s.failure = &Error{Kind: ErrReleased, Resource: s.resource, message: message}
		s.observeEnd(s.failure)
		s.become(over)
		s.tell(s.failure)
	}
}

// breaks ends it because the machine has failed.
func (s *slot) breaks(err error) {
	s.failure = &Error{Kind: ErrLost, Resource: s.resource, message: "the lease is lost: " + err.Error() + advice}
	switch s.phase {
	case pending:
		s.failure = &Error{Kind: ErrUnavailable, Resource: s.resource, message: err.Error()}
		s.observeDecision(s.failure)
	case held:
		s.observeEnd(s.failure)
	}
	s.become(over)
	s.tell(s.failure)
}

// remaining is the validity that is left. A look after the deadline ends the lease for good, so that no later renewal revokes a
// reported loss.
func (s *slot) remaining() time.Duration {
	deadline := s.deadline.Load()
	if deadline == 0 {
		return 0
	}
	if at := s.machine.clock(); at < deadline {
		return time.Duration(deadline - at)
	}
	_ = s.machine.command(core.InputDeclareLost{Lock: s.lock}, func() {
		s.lose(lost(s.resource, core.LostReasonExpired{}, s.trouble))
	}, nil)
	return 0
}

// why tells what has become of a lease that is no longer held.
func (s *slot) why() *Error {
	why, _ := s.end()
	return why
}

// end is why, and whether the lease was revoked.
func (s *slot) end() (*Error, bool) {
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	if s.failure != nil {
		return s.failure, s.revoked
	}
	return releasedError(s.resource), false
}
