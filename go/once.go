package leasehold

import (
	"context"
	"errors"
	"time"

	"code.invalid/leasehold/go/internal/core"
)

// Outcome is what has become of a run. At most one of Ran, Done, Running, Later and Replaced is set.
type Outcome struct {
	// Ran: the work was done here, now, and its completion stands.
	Ran bool
	// Done is the completion of work that was done before; nil otherwise.
	Done *Completion
	// Running: somebody else is at it, as far as the store shows in Holder.
	Running bool
	Holder  *Holder
	// Later are the attempts at work that has failed, and whose pause before the next one is not over ([RetryAfter]); nil otherwise.
	Later *Attempts
	// Replaced: a newer request has taken the place of this one ([Replace]).
	Replaced bool
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
	// Result is what the run left for later callers; nil where it left nothing, and where that is not known.
	Result *RunResult
	// Unsettled: on a quorum, the work is done, and no majority shows the same completion yet. Ask again for its result.
	Unsettled bool
	// Began is when the run began, by the wall clock of its holder; zero where it left no result.
	Began time.Time
}

// Run is work that is done once: the lease under which it is done. It is safe for concurrent use, but for SetResult.
type Run struct {
	*Lease
	counting *counting
	result   *RunResult
	// unfit is why there is no result that can be kept.
	unfit error
}

// SetResult leaves a result for later callers, once the work has ended without an error: it is the Result of their Completion.
// If it cannot be kept, [Client.Once] returns an error of the kind [ErrResultNotKept], and the work counts as done. [OnceWithResult]
// does this for a value.
func (r *Run) SetResult(result RunResult) { r.result, r.unfit = &result, nil }

// Attempts are those at the work with this one, where [MaxAttempts] has them counted; nil otherwise.
func (r *Run) Attempts() *Attempts {
	if r.counting == nil {
		return nil
	}
	return attempts(r.counting.attempts)
}

// Fail releases the run, as [Lease.Release] does, and says why its work has failed, in one line that is cut after 256 bytes. Where attempts
// are counted, the reason is kept beside their number, for people who look at the run or are notified that it was given up. Others can
// read it in the store, so leave secrets out. An error that the work returns does the same; what it returns after Fail is returned by
// [Client.Once], which has nothing left to finish.
func (r *Run) Fail(ctx context.Context, reason string) error {
	r.counting.note(ctx, r.Lease, reason)
	// The context of the lease ends here, and is often the one that is given.
	return r.Release(context.WithoutCancel(ctx))
}

// Once calls fn if the work of this name and key was not done yet, and nobody is at it; its success is written down, so that
// nobody does it again while the completion stands. The key names the occurrence of the job: a date, an invoice. It is empty where
// [Every] or [Cron] names the occurrence, and where the job as a whole has a [Cooldown].
//
// The context of fn is that of the lease under which it works. If fn returns an error, which Once returns, or panics, the work
// stays undone and the next one may try at once, or as [MaxAttempts] and [RetryAfter] say. The work is done again if its process dies
// before the completion is written.
func (c *Client) Once(
	ctx context.Context, name, key string, fn func(ctx context.Context, run *Run) error, options ...OnceOption,
) (Outcome, error) {
	outcome, _, err := c.once(ctx, name, key, fn, options)
	return outcome, err
}

// once also returns the resource of the run.
func (c *Client) once(
	ctx context.Context, name, key string, fn func(ctx context.Context, run *Run) error, options []OnceOption,
) (Outcome, string, error) {
	var set settings
	for _, option := range options {
		option.once(&set)
	}
	if set.wait == nil && !set.replace {
		// A second worker learns at once that somebody is at it.
		set.wait = new(time.Duration)
	}
	plan, err := c.plan(name, key, &set)
	if err != nil {
		return Outcome{}, "", refused(name, err)
	}
	resource, wanted := plan.Resource, core.RunOptions{KeepMs: &plan.KeepMs, EvenIfDone: set.evenIfDone}
	limit, err := c.limit(resource, &set, wanted)
	if err != nil {
		return Outcome{}, "", refused(name, err)
	}
	var lease *Lease
	var outcome Outcome
	if set.replace {
		lease, outcome, err = c.replace(ctx, resource, &set, wanted, limit != nil)
	} else {
		lease, outcome, err = c.granted(ctx, resource, &set, wanted)
	}
	if lease != nil {
		outcome, err = c.begun(ctx, lease, &set, wanted, limit, fn)
	}
	return outcome, resource, err
}

// granted acquires a run. Without a lease, the outcome or the error says why.
func (c *Client) granted(ctx context.Context, resource string, set *settings, wanted core.RunOptions) (*Lease, Outcome, error) {
	slot, err := c.decided(ctx, resource, set, &wanted)
	if err != nil {
		return nil, Outcome{}, err
	}
	lease, err := slot.lease(ctx)
	if err != nil {
		outcome, err := c.notRun(slot)
		return nil, outcome, err
	}
	return lease, Outcome{}, nil
}

// begun does the work of a run, unless there were too many attempts.
func (c *Client) begun(
	ctx context.Context, lease *Lease, set *settings, wanted core.RunOptions, limit *core.AttemptLimit,
	fn func(ctx context.Context, run *Run) error,
) (Outcome, error) {
	run := &Run{Lease: lease}
	if limit != nil {
		// Nobody else begins before this one has ended.
		counting, otherwise, err := c.begin(ctx, lease, wanted, *limit)
		if counting == nil {
			_ = lease.Release(ctx)
			return otherwise, err
		}
		run.counting = counting
	}
	err := perform(run, fn)
	if set.evenIfDone && (err == nil || errors.Is(err, ErrResultNotKept)) {
		// The work is done, whatever becomes of its attempts.
		if record, err := c.machine.attemptsResource(lease.Name()); err == nil {
			_, _ = c.forget(context.WithoutCancel(ctx), record)
		}
	}
	return Outcome{Ran: err == nil || errors.Is(err, ErrResultNotKept)}, err
}

func (c *Client) notRun(slot *slot) (Outcome, error) {
	switch why := slot.why(); {
	case slot.completion != nil:
		done, err := c.completion(slot.completion)
		if err != nil {
			return Outcome{}, err
		}
		return Outcome{Done: done}, nil
	case why.Kind == ErrBusy || why.Kind == ErrTimeout:
		return Outcome{Running: true, Holder: why.Holder}, nil
	default:
		return Outcome{}, why
	}
}

// completion is one as users see it.
func (c *Client) completion(done *core.Completion) (*Completion, error) {
	made := &Completion{
		Token: done.Token, Owner: done.Owner, At: time.UnixMilli(int64(done.AtUnixMs)), Left: milliseconds(done.LeftMs),
		Unsettled: done.Unsettled,
	}
	if done.About == nil {
		return made, nil
	}
	var about *core.RunRecord
	err := c.machine.turn(func() ([]core.Input, error) {
		about = c.machine.core.RunsReadAbout(done.About)
		return nil, nil
	})
	if about != nil {
		made.Began, made.Result = time.UnixMilli(int64(about.BeganUnixMs)), lifted(about.RunResult)
	}
	return made, err
}

// perform does the work of a run, and finishes it.
func perform(run *Run, fn func(ctx context.Context, run *Run) error) error {
	reason, finished := "the work has panicked", false
	defer func() {
		if !finished {
			// Of a lease that was lost, fn has been told.
			_ = run.Fail(run.ctx, reason)
		}
	}()
	if err := fn(run.ctx, run); err != nil {
		reason = err.Error()
		return err
	}
	finished = true
	result, unfit := (*core.RunResult)(nil), run.unfit
	if run.result != nil {
		result, unfit = run.result.lowered()
	}
	// Whatever the caller's context says by now: the work is done.
	err := run.slot.finish(context.WithoutCancel(run.ctx), result)
	if err == nil && unfit != nil {
		return resultNotKept(run.Name(), unfit.Error())
	}
	return err
}

// RunInfo is the state of one occurrence of a job. It is out of date when it arrives.
type RunInfo struct {
	// Resource stands for it in the store.
	Resource string
	// Holder runs it now; nil if nobody does.
	Holder *Holder
	// Done is the completion; nil if the work is not done.
	Done *Completion
	// Attempts say how often the work was begun, where [MaxAttempts] has them counted; nil otherwise.
	Attempts *Attempts
}

// InspectRun returns the runner and the completion of one occurrence of a job, and how often it was begun. Without a key it is the job
// as a whole. The periods of [Every] and the times of [Cron] have keys as well, at the end of [Lease.Name]. On a quorum a majority of the
// nodes has to answer.
func (c *Client) InspectRun(ctx context.Context, name, key string) (RunInfo, error) {
	resource, err := c.machine.runResource(name, key)
	if err != nil {
		return RunInfo{}, refused(name, err)
	}
	seen, err := c.look(ctx, resource)
	if err != nil {
		return RunInfo{}, err
	}
	info := RunInfo{Resource: resource, Holder: holder(seen.Holding)}
	if seen.Done != nil {
		if info.Done, err = c.completion(seen.Done); err != nil {
			return RunInfo{}, err
		}
	}
	// Where the name is too long, none were counted.
	if record, err := c.machine.attemptsResource(resource); err == nil {
		if info.Attempts, err = c.attempts(ctx, record); err != nil {
			return RunInfo{}, err
		}
	}
	return info, nil
}

// attempts are those that a record has; nil if it has none.
func (c *Client) attempts(ctx context.Context, record string) (*Attempts, error) {
	nodes, err := c.answered(ctx, record)
	if err != nil {
		return nil, err
	}
	var shown *core.Attempts
	err = c.machine.turn(func() ([]core.Input, error) {
		shown = c.machine.core.RunsReadAttempts(nodes, nil)
		return nil, nil
	})
	if err != nil || shown == nil {
		return nil, err
	}
	return attempts(*shown), nil
}

// Removing a completion takes as many tries as the nodes need to answer.
const (
	forgetTTL              = 10 * time.Second
	forgetWait             = 10 * time.Second
	forgetTries            = 3
	forgetTriesOfSlowNodes = 30
	// forgetLooks are more than fit into a millisecond.
	forgetLooks = 100
)

// ForgetRun removes the completion of one occurrence of a job and the number of its attempts, so that it is done again. Without a key it
// is the job as a whole. It returns the completion, nil if there was none. For people: it waits until nobody runs it, up to 10 s. While
// somebody does, the error is of the kind [ErrTimeout].
func (c *Client) ForgetRun(ctx context.Context, name, key string) (*Completion, error) {
	resource, err := c.machine.runResource(name, key)
	if err != nil {
		return nil, refused(name, err)
	}
	done, err := c.stands(ctx, resource)
	if err != nil {
		return nil, err
	}
	// Where the name is too long, none were counted.
	record, err := c.machine.attemptsResource(resource)
	if err != nil {
		return c.forget(ctx, resource)
	}
	var held *Lease
	if counted, err := c.stands(ctx, record); err != nil {
		return nil, err
	} else if counted != nil && done == nil {
		// Work that is under way and was never done is waited for, as other work is by the removal of its completion.
		if held, err = c.forgetting(ctx, resource); err != nil {
			return nil, err
		}
	}
	// Where a node of a quorum does not answer, the others forget all the same.
	_, uncounted := c.forget(ctx, record)
	if held != nil {
		if err := held.Release(ctx); err != nil {
			return nil, err
		}
	}
	if forgotten, err := c.forget(ctx, resource); err != nil || uncounted == nil {
		return forgotten, err
	}
	return nil, uncounted
}

// forgetting holds the run whose finish removes the completion.
func (c *Client) forgetting(ctx context.Context, resource string) (*Lease, error) {
	var none uint64
	set := c.brief(forgetTTL, forgetWait)
	return c.acquire(ctx, resource, set, &core.RunOptions{KeepMs: &none, TrustQuorum: true, EvenIfDone: true})
}

// forget removes a completion, if there is one.
func (c *Client) forget(ctx context.Context, resource string) (*Completion, error) {
	done, err := c.stands(ctx, resource)
	if err != nil || done == nil {
		return nil, err
	}
	// A node of a quorum that has missed the record of this run keeps the completion.
	for tries, most := 1, forgetTriesOfSlowNodes; ; tries++ {
		run, err := c.forgetting(ctx, resource)
		if err != nil {
			return nil, err
		}
		if err := run.slot.finish(context.WithoutCancel(ctx), nil); err != nil {
			return nil, err
		}
		doubtful, ending := false, true
		for look := 0; ending && look < forgetLooks; look++ {
			nodes, err := c.machine.read(ctx, resource)
			if err != nil {
				return nil, err
			}
			doubtful, ending = false, false
			for _, node := range nodes {
				switch seen, err := contents(resource, node); {
				case err != nil:
					doubtful, most = true, forgetTries
				case seen.Done == nil:
				case seen.Done.Token <= done.Token:
					doubtful = true
				case seen.Done.Token == run.Token():
					// The completion of this run, which ends at once, turns others away until then.
					ending = true
				}
			}
		}
		switch {
		case !doubtful:
			return done, nil
		case tries >= most:
			return nil, &Error{Kind: ErrUnavailable, Resource: resource, message: "the completion is removed, but some nodes have kept it " +
				"or do not answer, so other machines may still skip the work: forget it again when all nodes answer"}
		}
	}
}

// stands is the latest completion that the nodes show; nil if there is none.
func (c *Client) stands(ctx context.Context, resource string) (*Completion, error) {
	seen, err := c.look(ctx, resource)
	if err != nil || seen.Done == nil {
		return nil, err
	}
	return c.completion(seen.Done)
}

// look is what the nodes show of a run. A majority has to answer.
func (c *Client) look(ctx context.Context, resource string) (seen core.Seen, err error) {
	nodes, err := c.answered(ctx, resource)
	if err != nil {
		return seen, err
	}
	err = c.machine.turn(func() ([]core.Input, error) {
		seen = c.machine.core.RunsReadRun(nodes)
		return nil, nil
	})
	return seen, err
}

// answered is what each node has of a record. A majority has to answer.
func (c *Client) answered(ctx context.Context, resource string) ([]core.Outcome, error) {
	nodes, err := c.machine.read(ctx, resource)
	if err != nil {
		return nil, err
	}
	var trouble error
	silent := 0
	for _, node := range nodes {
		if _, err := contents(resource, node); err != nil {
			silent, trouble = silent+1, err
		}
	}
	if 2*silent >= len(nodes) {
		return nil, trouble
	}
	return nodes, nil
}
