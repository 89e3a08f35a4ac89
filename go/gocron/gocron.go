// Package gocron lets one of several processes run each job of github.com/go-co-op/gocron.
//
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locks.Locker(client)))
//
// A locker says *not at the same time*: where the work is shorter than the clocks of two machines are apart, the second one does it
// again. So the lock of a job stays closed for a while after it was granted, [AtLeast]; or a job calls [leasehold.Client.Once]
// by itself, with its date as the key, which says *not twice*.
package gocron

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"

	leasehold "code.invalid/leasehold/go"
)

// usual is how long the lock of a job stays closed.
const usual = 5 * time.Second

// An Option is a setting of a locker.
type Option func(*locker)

// AtLeast is how long the lock of a job stays closed after it was granted, however short the job is: 5 s by default. It is longer than
// clocks are apart, and shorter than the time between two runs.
func AtLeast(least time.Duration) Option { return func(l *locker) { l.least = least } }

// With sets options of the locks.
func With(options ...leasehold.LockOption) Option {
	return func(l *locker) { l.options = append(l.options, options...) }
}

type locker struct {
	client  *leasehold.Client
	least   time.Duration
	options []leasehold.LockOption
}

// Locker takes the lock of each job, by the job's name, and skips the job where another process has it.
func Locker(client *leasehold.Client, options ...Option) gocron.Locker {
	l := &locker{client: client, least: usual}
	for _, option := range options {
		option(l)
	}
	return l
}

func (l *locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	// The scheduler's context may end with the scheduler, and the lease with the job.
	options := append([]leasehold.LockOption{leasehold.Wait(0)}, l.options...)
	lease, err := l.client.Lock(ctx, key, options...)
	if err != nil {
		return nil, err
	}
	return &lock{lease, time.Now().Add(l.least)}, nil
}

// lock is released when it was closed for long enough.
type lock struct {
	lease *leasehold.Lease
	until time.Time
}

func (l *lock) Unlock(ctx context.Context) error {
	left := time.Until(l.until)
	if left <= 0 {
		return l.lease.Release(ctx)
	}
	// The job is over, and the scheduler does not wait: the lease is renewed until then.
	time.AfterFunc(left, func() { _ = l.lease.Release(context.WithoutCancel(ctx)) })
	return nil
}
