package leasehold

import (
	"errors"
	"fmt"
	"time"
)

// Kinds of errors, for [errors.Is].
var (
	// ErrBusy: somebody else holds the lock, and [Wait] was 0.
	ErrBusy = errors.New("busy")
	// ErrTimeout: somebody else held the lock for the whole [Wait].
	ErrTimeout = errors.New("not free within the wait")
	// ErrLost: the lease is over and was not released. The work under it must stop.
	ErrLost = errors.New("the lease is lost")
	// ErrReleased: the lease was released before.
	ErrReleased = errors.New("already released")
	// ErrUnavailable: the store cannot be reached, or did not answer. Trying again may help.
	ErrUnavailable = errors.New("the store cannot be used now")
	// ErrRefused: the store refuses, and trying again will not help.
	ErrRefused = errors.New("the store refuses")
	// ErrUnconfirmed: the work of a run was done, but no answer says that its completion stands, so it may be done again.
	ErrUnconfirmed = errors.New("the completion is not confirmed")
	// ErrResultNotKept: the work of a run is done and its completion stands, without the result that was given: it is too long, cannot be
	// written down, or the store has no room for it. Those who come later may find none.
	ErrResultNotKept = errors.New("the result was not kept")
	// ErrGivenUp: the work of a run was begun as often as [MaxAttempts] allows, and never finished. It is not begun again until somebody
	// forgets the run, or no attempt has begun for as long as a completion is kept.
	ErrGivenUp = errors.New("given up")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("the client was closed")
	// ErrConfig: a setting or an argument is wrong.
	ErrConfig = errors.New("wrong setting")
)

// Error is every error of this package, but for those of a context.
type Error struct {
	// Kind is one of ErrBusy, ErrLost and so on; [errors.Is] finds it.
	Kind error
	// Resource is the name of the lock, if the error is about one.
	Resource string
	// Holder has the lock, as far as the store shows it: with ErrBusy and ErrTimeout.
	Holder *Holder
	// Reason tells why a lease is over, with ErrLost: "expired", "max_hold", "taken_over", "released", "record_gone" or "revoked".
	Reason string
	// Attempts are those that were made, with ErrGivenUp.
	Attempts *Attempts

	message string
}

func (e *Error) Error() string {
	if e.Resource == "" {
		return "leasehold: " + e.message
	}
	return fmt.Sprintf("leasehold: %q: %s", e.Resource, e.message)
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// Holder has a lock, as far as a store shows it.
type Holder struct {
	// Owner is the holder's label; it may be empty.
	Owner string
	// Token is the highest that the holder may have; 0 where it is not known.
	Token uint64
	// Left is the time until the record ends unless it is renewed; 0 where the store does not show it.
	Left time.Duration
	// Since is when the lease was granted, by the wall clock of its holder or of the store; zero where it is not known.
	Since time.Time
	// Data is what the holder has put beside its lease.
	Data []byte
	// Foreign tells that a client of another library has it.
	Foreign bool
}

func (h *Holder) String() string {
	if h == nil {
		return "held by somebody else"
	}
	text := "held by " + h.Owner
	switch {
	case h.Owner != "":
	case h.Foreign:
		text = "held by a client of another library"
	default:
		text = "held by a client without a label"
	}
	if h.Token != 0 {
		text += fmt.Sprintf(", token %d", h.Token)
	}
	if h.Left != 0 {
		text += fmt.Sprintf(", %.1f s left unless renewed", h.Left.Seconds())
	}
	return text
}

func configError(format string, parts ...any) *Error {
	return &Error{Kind: ErrConfig, message: fmt.Sprintf(format, parts...)}
}

func closedError(resource string) *Error {
	message := "the client was closed during the call, which has acquired nothing: connect again"
	return &Error{Kind: ErrClosed, Resource: resource, message: message}
}

func releasedError(resource string) *Error {
	return &Error{Kind: ErrReleased, Resource: resource, message: "this lease was already released"}
}

func unconfirmedError(resource string) *Error {
	message := "the release is not confirmed: it is tried again in the background, and otherwise the lock expires after its ttl"
	return &Error{Kind: ErrUnavailable, Resource: resource, message: message}
}

func finishUnconfirmedError(resource string) *Error {
	message := "the work was done, but the store did not confirm its completion: it may be done again"
	return &Error{Kind: ErrUnconfirmed, Resource: resource, message: message}
}

func resultNotKept(resource, why string) *Error {
	message := fmt.Sprintf("the work is done, but its result was not kept: %s; those who come later may find none", why)
	return &Error{Kind: ErrResultNotKept, Resource: resource, message: message}
}

func givenUp(resource string, attempts *Attempts) *Error {
	times, why := fmt.Sprintf("%d attempts", attempts.Count), ""
	if attempts.Count == 1 {
		times = "1 attempt"
	}
	if attempts.Reason != "" {
		why = "; the last one failed: " + attempts.Reason
	}
	message := fmt.Sprintf("given up after %s without a finish%s. Mend it, and forget the run to have it tried again", times, why)
	return &Error{Kind: ErrGivenUp, Resource: resource, Attempts: attempts, message: message}
}
