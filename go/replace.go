package leasehold

import (
	"context"
	"errors"
	"fmt"

	"code.invalid/leasehold/go/internal/core"
)

// replacing is a request for a run that replaces its runner. The protocol says each step, and this does it.
type replacing struct {
	client   *Client
	resource string
	// record is the resource of the newest request.
	record string
	set    *settings
	run    core.RunOptions
	// lease is that of the run.
	lease *Lease
	// seen is what the last look has shown.
	seen core.Seen
	// running is the refusal, and trouble the error, that came last; done is in its place where the work was done meanwhile.
	running Outcome
	trouble error
	done    Outcome
}

// replace acquires a run whose runner is asked to end, and waits until that has let go or its lease has run out. Without a lease, the
// outcome or the error says why.
func (c *Client) replace(
	ctx context.Context, resource string, set *settings, run core.RunOptions, countsAttempts bool,
) (*Lease, Outcome, error) {
	options, err := set.lockOptions(c.label)
	if err != nil {
		return nil, Outcome{}, err
	}
	var wait *uint64
	if given, is := options.Wait.(core.WaitFor); is {
		wait = &given.WaitMs
	}
	record, err := c.machine.newestResource(resource, options, countsAttempts)
	if err != nil {
		return nil, Outcome{}, refused(resource, err)
	}
	if own, is := ctx.Value(leaseOf{}).(*slot); is && own.machine == c.machine && own.resource == resource && own.remaining() > 0 {
		refusal := configError("the caller runs the work itself, and would wait for itself to end: end that run first")
		refusal.Resource = resource
		return nil, Outcome{}, refusal
	}
	var next *core.Replacement
	err = c.machine.turn(func() ([]core.Input, error) {
		next = c.machine.core.ReplacementCreate(run.EvenIfDone, wait, c.machine.now())
		return nil, nil
	})
	if err != nil {
		return nil, Outcome{}, err
	}
	defer func() {
		_ = c.machine.turn(func() ([]core.Input, error) {
			next.Drop()
			return nil, nil
		})
	}()
	request := &replacing{client: c, resource: resource, record: record, set: set, run: run}
	request.trouble = request.unavailable("the runner cannot be replaced")
	return request.acquire(ctx, next)
}

func (r *replacing) unavailable(message string) error {
	return &Error{Kind: ErrUnavailable, Resource: r.resource, message: message}
}

// acquire takes steps until one of them is the end.
func (r *replacing) acquire(ctx context.Context, next *core.Replacement) (*Lease, Outcome, error) {
	machine := r.client.machine
	for step := core.ReplaceStep(core.ReplaceStepLook{}); ; {
		switch step.(type) {
		case core.ReplaceStepTakeNumber, core.ReplaceStepReadNewest, core.ReplaceStepCountNewest, core.ReplaceStepBegin:
		default:
			r.release(ctx)
		}
		var answer core.ReplaceAnswer
		var err error
		switch step := step.(type) {
		case core.ReplaceStepLook:
			r.seen, err = r.client.look(ctx, r.resource)
			answer = core.ReplaceAnswerLooked(r.seen)
		case core.ReplaceStepTakeNumber:
			answer, err = r.take(ctx, core.ReplaceRecord(step), true)
		case core.ReplaceStepReadNewest:
			answer, err = r.take(ctx, core.ReplaceRecord(step), false)
		case core.ReplaceStepCountNewest:
			answer, err = r.count(ctx, core.ReplaceRecord(step))
		case core.ReplaceStepAsk:
			answer, err = r.ask(ctx, core.ReplaceAsk(step))
		case core.ReplaceStepEnd:
			answer, err = r.end(ctx, step.Holder)
		case core.ReplaceStepBegin:
			if err = r.lease.Check(0); err == nil {
				return r.lease, Outcome{}, nil
			}
		case core.ReplaceStepReplaced:
			return nil, Outcome{Replaced: true}, nil
		case core.ReplaceStepDone:
			done, err := r.client.completion(r.seen.Done)
			return nil, Outcome{Done: done}, err
		case core.ReplaceStepRunning:
			return nil, r.running, nil
		case core.ReplaceStepUnsettled:
			return nil, Outcome{}, r.unavailable("too few nodes show which request is the newest")
		default:
			return nil, r.done, r.trouble
		}
		if err != nil {
			if ctx.Err() != nil {
				r.release(ctx)
				return nil, Outcome{}, abandoned(ctx, r.resource)
			}
			r.done, r.trouble = Outcome{}, err
			if answer == nil {
				mayPass := errors.Is(err, ErrUnavailable) || errors.Is(err, ErrLost)
				answer = core.ReplaceAnswerFailed{MayPass: mayPass}
			}
		}
		err = machine.turn(func() ([]core.Input, error) {
			step = next.Next(answer, machine.now())
			return nil, nil
		})
		if err != nil {
			// All leases are lost with the machine.
			return nil, Outcome{}, err
		}
	}
}

// release lets go of the run, if it is held. The caller gets what was found; this release is not reported.
func (r *replacing) release(ctx context.Context) {
	if r.lease != nil {
		_ = r.lease.Release(context.WithoutCancel(ctx))
		r.lease = nil
	}
}

// ask asks for the run itself.
func (r *replacing) ask(ctx context.Context, how core.ReplaceAsk) (core.ReplaceAnswer, error) {
	set, run, wait := *r.set, r.run, milliseconds(how.WaitMs)
	set.wait, run.EvenIfDone = &wait, how.EvenIfDone
	slot, err := r.client.decided(ctx, r.resource, &set, &run)
	if err != nil {
		return nil, err
	}
	if r.lease, err = slot.lease(ctx); err == nil {
		return core.ReplaceAnswerGranted{}, nil
	}
	outcome, err := r.client.notRun(slot)
	switch {
	case err != nil:
		return nil, err
	case outcome.Running:
		r.running = outcome
		return core.ReplaceAnswerRefused{Holding: slot.holding}, nil
	default:
		r.done, r.trouble = outcome, nil
		return core.ReplaceAnswerFailed{}, nil
	}
}

// lock asks for the lock of the record, which is a run: its completion is the newest request.
func (r *replacing) lock(ctx context.Context, how core.ReplaceRecord, evenIfDone bool) (*slot, error) {
	set := r.client.brief(milliseconds(how.TTLMs), milliseconds(how.WaitMs))
	set.owner = r.set.owner
	return r.client.decided(ctx, r.record, set, &core.RunOptions{EvenIfDone: evenIfDone})
}

// take takes the lock of the record, and finishes it, so that its token is the number of this request. If the record may be done, its
// completion is the answer, and the lock is only granted where the store has forgotten that.
func (r *replacing) take(ctx context.Context, how core.ReplaceRecord, evenIfDone bool) (core.ReplaceAnswer, error) {
	slot, err := r.lock(ctx, how, evenIfDone)
	switch {
	case err != nil:
		return nil, r.notRead(err)
	case slot.completion != nil:
		return core.ReplaceAnswerNewest(*slot.completion), nil
	case slot.token == 0 && evenIfDone:
		return nil, r.notWritten(slot.why())
	case slot.token == 0:
		return nil, r.notRead(slot.why())
	}
	number := core.ReplaceNumber{Token: slot.token}
	if err := slot.finish(ctx, nil); err == nil {
		return core.ReplaceAnswerNumbered(number), nil
	} else if err = r.notWritten(err); errors.Is(err, ErrUnavailable) {
		return core.ReplaceAnswerUnconfirmed(number), err
	} else {
		return nil, err
	}
}

// count reads the record on all nodes while it is locked.
func (r *replacing) count(ctx context.Context, how core.ReplaceRecord) (core.ReplaceAnswer, error) {
	slot, err := r.lock(ctx, how, true)
	if err != nil {
		return nil, r.notRead(err)
	}
	lease, err := slot.lease(ctx)
	if err != nil {
		return nil, r.notRead(slot.why())
	}
	// The caller gets what was found; this release is not reported.
	defer lease.Release(context.WithoutCancel(ctx))
	machine := r.client.machine
	var holder []byte
	err = machine.turn(func() ([]core.Input, error) {
		holder = machine.client.Nonce(slot.lock)
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	nodes, err := machine.read(ctx, r.record)
	if err != nil {
		return nil, r.notRead(err)
	}
	return core.ReplaceAnswerCounted{Read: nodes, Holder: holder}, nil
}

func (r *replacing) notWritten(err error) error {
	return r.notBegun("that this is the newest request cannot be written down", err)
}

func (r *replacing) notRead(err error) error {
	return r.notBegun("which request is the newest cannot be read", err)
}

func (r *replacing) notBegun(why string, err error) error {
	kind := ErrUnavailable
	for _, told := range []error{ErrRefused, ErrClosed, ErrConfig} {
		if errors.Is(err, told) {
			kind = told
		}
	}
	return &Error{Kind: kind, Resource: r.resource, message: fmt.Sprintf("the work is not begun: %s: %v", why, err)}
}

// end asks the runner to end.
func (r *replacing) end(ctx context.Context, nonce []byte) (core.ReplaceAnswer, error) {
	revoked, err := r.client.machine.revoke(ctx, r.resource, nonce)
	if err != nil {
		return nil, err
	}
	if revoked {
		log, name := r.client.machine.log, r.resource
		r.client.machine.note(func() { log.Info("the runner is asked to end, for a newer request", "lock", name) })
	}
	return core.ReplaceAnswerEnded{}, nil
}
