package leasehold

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"code.invalid/leasehold/go/internal/core"
)

// Attempts say how often the work of a run was begun, where [MaxAttempts] has them counted.
type Attempts struct {
	// Count is the number of attempts that were begun.
	Count uint32
	// Max is how many were allowed when the last one began.
	Max uint32
	// Since is when the first of them began, by the wall clock of the one that began it.
	Since time.Time
	// RetryAt is when the next one may begin, by the wall clock of the one that began the last.
	RetryAt time.Time
	// Reason is why the last one failed, in one line; empty where it did not say so, or is still under way.
	Reason string
}

func attempts(of core.Attempts) *Attempts {
	return &Attempts{
		Count: of.Count, Max: of.Max, Reason: value(of.Reason),
		Since: time.UnixMilli(int64(of.SinceUnixMs)), RetryAt: time.UnixMilli(int64(of.RetryUnixMs)),
	}
}

const (
	// recordTTL is how long a record beside a run is locked without renewal: it is read and written at once.
	recordTTL = 10 * time.Second
	// recordWait: somebody may have died with the lock of the record.
	recordWait = 20 * time.Second
	// reasonWait is how long a failure waits to say why, as a release does for its answer.
	reasonWait = 2 * time.Second
	// looks is how often the nodes are asked for the count, where too few have answered as they must.
	looks = 5
)

// counting is an attempt that counts. The count has its own lock: what a former runner still sends when its lease is over does not
// change one that a later runner has written.
type counting struct {
	client   *Client
	attempts core.Attempts
	record   string
	owner    string
	run      core.RunOptions
}

// limit is how often the work of this run may be begun; nil where attempts are not counted.
func (c *Client) limit(resource string, set *settings, run core.RunOptions) (limit *core.AttemptLimit, err error) {
	pause, err := whole("retry after", set.retryAfter)
	if err != nil {
		return nil, err
	}
	var most *uint32
	if set.maxAttempts != nil {
		given := uint32(min(max(int64(*set.maxAttempts), 0), math.MaxUint32))
		most = &given
	}
	err = c.machine.turn(func() ([]core.Input, error) {
		limit, err = c.machine.core.RunsLimitAttempts(most, pause, run)
		return nil, err
	})
	if err == nil && limit != nil {
		_, err = c.machine.attemptsResource(resource)
	}
	return limit, err
}

// brief are settings of a lock that is held for a moment, also where a quorum allows less.
func (c *Client) brief(ttl, wait time.Duration) *settings {
	if c.longest != 0 {
		ttl = min(ttl, c.longest)
	}
	return &settings{ttl: &ttl, wait: &wait}
}

// begin counts an attempt at the work of this lease. If it may not begin, there is no counting, and the outcome or the error says why.
func (c *Client) begin(
	ctx context.Context, lease *Lease, run core.RunOptions, limit core.AttemptLimit,
) (*counting, Outcome, error) {
	record, err := c.machine.attemptsResource(lease.Name())
	if err != nil {
		return nil, Outcome{}, refused(lease.Name(), err)
	}
	run.EvenIfDone = true
	made := &counting{client: c, record: record, owner: lease.Owner(), run: run}
	switch next, err := made.count(ctx, lease, limit); next := next.(type) {
	case core.NextAttemptBegin:
		if err != nil {
			return nil, Outcome{}, err
		}
		made.attempts = core.Attempts(next)
		return made, Outcome{}, nil
	case core.NextAttemptLater:
		return nil, Outcome{Later: attempts(core.Attempts(next))}, err
	case core.NextAttemptGivenUp:
		why := givenUp(lease.Name(), attempts(core.Attempts(next)))
		c.machine.note(func() { c.machine.log.Warn(why.Error(), "lock", why.Resource, "attempts", why.Attempts.Count) })
		return nil, Outcome{}, why
	default:
		// Somebody else has begun meanwhile, or is about to.
		var why *Error
		if errors.As(err, &why) && (why.Kind == ErrTimeout || why.Kind == ErrLost) {
			return nil, Outcome{Running: true, Holder: why.Holder}, nil
		}
		return nil, Outcome{}, err
	}
}

// count decides about the next attempt, and writes it down if it may begin. Without a decision there is an error.
func (c *counting) count(ctx context.Context, lease *Lease, limit core.AttemptLimit) (core.NextAttempt, error) {
	taken, err := c.take(ctx, recordWait)
	if err != nil {
		return nil, err
	}
	// Unless it was finished.
	defer taken.Release(ctx)
	machine := c.client.machine
	var next core.NextAttempt
	err = c.look(ctx, taken, func(nodes []core.Outcome, holder []byte) (is bool, err error) {
		next, err = machine.core.RunsCountAttempt(nodes, holder, limit, machine.now().UnixMs)
		_, unsure := next.(core.NextAttemptUnsure)
		return !unsure, err
	})
	if err != nil {
		return nil, err
	}
	if begun, is := next.(core.NextAttemptBegin); is {
		if err := c.write(ctx, lease, taken, core.Attempts(begun)); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// take takes the lock of the count. It is acquired as a run that may be done, since the count is its completion.
func (c *counting) take(ctx context.Context, wait time.Duration) (*Lease, error) {
	set, run := c.client.brief(recordTTL, wait), c.run
	set.owner = &c.owner
	if run.KeepMs != nil {
		// A completion stands for the ttl of its lock at least.
		ttl := min(*set.ttl, milliseconds(*run.KeepMs))
		set.ttl = &ttl
	}
	return c.client.acquire(ctx, c.record, set, &run)
}

// look reads the count on all nodes while it is locked, until enough of them show its holder: others may be empty since they have lost
// their data, or behind.
func (c *counting) look(
	ctx context.Context, taken *Lease, enough func(nodes []core.Outcome, holder []byte) (bool, error),
) error {
	machine := c.client.machine
	for range looks {
		nodes, err := machine.read(ctx, c.record)
		if err != nil {
			return err
		}
		var is bool
		err = machine.turn(func() (_ []core.Input, err error) {
			is, err = enough(nodes, machine.client.Nonce(taken.slot.lock))
			return nil, err
		})
		if err != nil {
			return refused(c.record, err)
		}
		if is {
			return nil
		}
		if err := taken.Check(0); err != nil {
			return err
		}
	}
	message := "too few nodes show the attempts at the work, so it is not begun"
	return &Error{Kind: ErrUnavailable, Resource: c.record, message: message}
}

// write writes the attempts while their record is locked. The run must be held before that, or its next runner may have read the record
// already, and after it, or the next runner may begin as well.
func (c *counting) write(ctx context.Context, lease, taken *Lease, attempts core.Attempts) error {
	if err := lease.Check(0); err != nil {
		return err
	}
	var kept core.RunResult
	err := c.client.machine.turn(func() ([]core.Input, error) {
		kept = c.client.machine.core.RunsKeepAttempts(attempts)
		return nil, nil
	})
	if err == nil {
		err = taken.slot.finish(ctx, &kept)
	}
	switch {
	case err == nil:
		return lease.Check(0)
	case ctx.Err() != nil:
		return abandoned(ctx, lease.Name())
	default:
		kind := ErrUnavailable
		if errors.Is(err, ErrRefused) {
			kind = ErrRefused
		}
		message := fmt.Sprintf("this attempt at the work may count, and is not begun: it cannot be written down: %v", err)
		return &Error{Kind: kind, Resource: lease.Name(), message: message}
	}
}

// note writes down why the work has failed, as far as that is possible.
func (c *counting) note(ctx context.Context, lease *Lease, reason string) {
	if c == nil || lease.Check(0) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reasonWait)
	defer cancel()
	if err := c.say(ctx, lease, reason); err != nil {
		log, name := c.client.machine.log, lease.Name()
		c.client.machine.note(func() {
			log.Warn("the attempt counts, and why it failed was not written down", "lock", name, "error", err)
		})
	}
}

func (c *counting) say(ctx context.Context, lease *Lease, reason string) error {
	taken, err := c.take(ctx, reasonWait)
	if err != nil {
		return err
	}
	// Unless it was finished.
	defer taken.Release(ctx)
	machine := c.client.machine
	var failed core.Attempts
	ours := false
	err = c.look(ctx, taken, func(nodes []core.Outcome, holder []byte) (bool, error) {
		shown := machine.core.RunsReadAttempts(nodes, holder)
		// An operator may have ended the lease, which its holder does not know yet: the count is then that of another runner.
		ours = shown != nil && shown.Count == c.attempts.Count
		failed = machine.core.RunsFailAttempt(c.attempts, strings.ToValidUTF8(reason, "\uFFFD"))
		return shown != nil, nil
	})
	if err != nil || !ours {
		return err
	}
	return c.write(ctx, lease, taken, failed)
}
