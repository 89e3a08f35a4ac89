// Package gocron lets one of several processes run each job of github.com/go-co-op/gocron.
//
//	import (
//		"github.com/go-co-op/gocron/v2"
//
//		leasehold "code.invalid/leasehold/go"
//		locks "code.invalid/leasehold/go/gocron"
//	)
//
//	client, err := leasehold.Connect("redis://localhost")
//	// ...
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locks.Locker(client)))
//	// ...
//	_, err = scheduler.NewJob(gocron.CronJob("0 2 * * *", false), gocron.NewTask(report), gocron.WithName("nightly-report"))
//
// The lock of a job has the job's name, so give each job one by gocron.WithName, the same in all processes. Without it, gocron takes the
// name of the function: two jobs with one function exclude each other.
//
// Where another process has the lock, the job is skipped, and so it is where the store cannot be reached: gocron reports such errors to the
// listener gocron.AfterLockError. The lease is renewed while the job runs. gocron gives a job no context of the lease, so a job that must
// stop when its lock is lost takes a lock by itself.
//
// A locker says *not at the same time*: where the work is shorter than the clocks of two machines are apart, the second one does it
// again. So the lock of a job stays closed for a while after it was granted, [AtLeast]; or a job calls [leasehold.Client.Once]
// by itself, with its date as the key, which says *not twice*. Then it needs no locker.
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

// With sets options of the locks, such as [leasehold.TTL]: how long others skip the job after its process has died. A
// [leasehold.Wait] has the job run later, one process after the other, where it is otherwise skipped.
func With(options ...leasehold.LockOption) Option {
	return func(l *locker) { l.options = append(l.options, options...) }
}

type locker struct {
	client  *leasehold.Client
	least   time.Duration
	options []leasehold.LockOption
}

// Locker takes the lock of each job, by the job's name, and skips the job where another process has it. It is for
// gocron.WithDistributedLocker, or gocron.WithDistributedJobLocker for one job. Close the client after the scheduler was shut down: that
// frees locks that are still closed.
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
