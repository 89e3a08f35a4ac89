// Package redsync has the interface of github.com/go-redsync/redsync over leases: the import and the call of New change, and the
// rest of a program stays.
//
//	rs := redsync.New(client) // in place of redsync.New(pool)
//	mutex := rs.NewMutex("invoice/42")
//	if err := mutex.Lock(); err != nil {
//		return err
//	}
//	defer mutex.Unlock()
//
// Locks of both exclude each other, so processes may change one after the other: on one Redis. What differs: a mutex is renewed in the
// background until it is unlocked, so an Extend is never needed; [Mutex.Context] ends when the lock is lost; and Value is the
// fencing token.
//
// Make a Mutex for each holder, as with the original: Unlock releases whatever the Mutex has locked last. Two goroutines that contend
// for a lock have a Mutex each, of the same name. To lock one that is locked, or is being locked, is an error at once.
package redsync

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync"
	"time"

	leasehold "code.invalid/leasehold/go"
)

var (
	// ErrFailed: the lock was not acquired.
	ErrFailed = errors.New("redsync: failed to acquire lock")
	// errShared is a part of ErrFailed.
	errShared = errors.New("this Mutex is locked already, or is being locked: make one for each holder, by NewMutex with the same name")
	// ErrExtendFailed: the lock is not held any more.
	ErrExtendFailed = errors.New("redsync: failed to extend lock")
	// ErrLockAlreadyExpired: the lock was lost before it was unlocked.
	ErrLockAlreadyExpired = errors.New("redsync: failed to unlock, lock was already expired")
)

// Redsync makes mutexes.
type Redsync struct{ client *leasehold.Client }

// New returns one that takes its locks by a client.
func New(client *leasehold.Client) *Redsync { return &Redsync{client} }

// An Option is a setting of a mutex.
type Option func(*Mutex)

// WithExpiry sets the ttl, 8 s by default.
func WithExpiry(expiry time.Duration) Option { return func(m *Mutex) { m.expiry = expiry } }

// WithTries sets how often to try, 32 times by default and once at least: the wait is the delay between each try and the next one.
func WithTries(tries int) Option { return func(m *Mutex) { m.tries = tries } }

// WithRetryDelay sets the time between tries, 100 ms by default. A release is noticed sooner.
func WithRetryDelay(delay time.Duration) Option { return func(m *Mutex) { m.delay = delay } }

// Mutex is a lock of one holder. Several goroutines may call its methods, unlike those of the original, if they work for that holder.
type Mutex struct {
	client *leasehold.Client
	name   string
	expiry time.Duration
	tries  int
	delay  time.Duration

	mu      sync.Mutex
	lease   *leasehold.Lease
	locking bool
}

// NewMutex returns a mutex of this name.
func (r *Redsync) NewMutex(name string, options ...Option) *Mutex {
	m := &Mutex{client: r.client, name: name, expiry: 8 * time.Second, tries: 32, delay: 100 * time.Millisecond}
	for _, option := range options {
		option(m)
	}
	return m
}

// Name is that of the lock.
func (m *Mutex) Name() string { return m.name }

// Lock acquires it.
func (m *Mutex) Lock() error { return m.LockContext(context.Background()) }

// LockContext acquires it, unless ctx is done before.
func (m *Mutex) LockContext(ctx context.Context) error {
	return m.lock(ctx, m.wait())
}

// wait is the time of all tries, as far as a duration can hold it.
func (m *Mutex) wait() time.Duration {
	pauses, delay := time.Duration(max(m.tries, 1)-1), max(m.delay, 0)
	if delay > 0 && pauses > math.MaxInt64/delay {
		return math.MaxInt64
	}
	return pauses * delay
}

// TryLock tries once.
func (m *Mutex) TryLock() error { return m.TryLockContext(context.Background()) }

// TryLockContext tries once.
func (m *Mutex) TryLockContext(ctx context.Context) error { return m.lock(ctx, 0) }

func (m *Mutex) lock(ctx context.Context, wait time.Duration) error {
	if !m.begins() {
		return errors.Join(ErrFailed, errShared)
	}
	lease, err := m.client.Lock(ctx, m.name, leasehold.TTL(m.expiry), leasehold.Wait(wait))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locking = false
	if err != nil {
		return errors.Join(ErrFailed, err)
	}
	m.lease = lease
	return nil
}

// begins reports if nobody has locked this mutex, or is about to.
func (m *Mutex) begins() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locking || m.lease != nil && m.lease.Remaining() > 0 {
		return false
	}
	m.locking = true
	return true
}

func (m *Mutex) held() *leasehold.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lease
}

// Unlock releases it, and tells if it was held until then.
func (m *Mutex) Unlock() (bool, error) { return m.UnlockContext(context.Background()) }

// UnlockContext releases it, and tells if it was held until then.
func (m *Mutex) UnlockContext(ctx context.Context) (bool, error) {
	lease := m.held()
	if lease == nil {
		return false, ErrLockAlreadyExpired
	}
	switch err := lease.Release(ctx); {
	case err == nil:
		return true, nil
	case errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrReleased):
		return false, errors.Join(ErrLockAlreadyExpired, err)
	default:
		return false, err
	}
}

// Extend tells if the lock is held: it is renewed in the background.
func (m *Mutex) Extend() (bool, error) { return m.ExtendContext(context.Background()) }

// ExtendContext tells if the lock is held.
func (m *Mutex) ExtendContext(context.Context) (bool, error) {
	lease := m.held()
	if lease == nil {
		return false, ErrExtendFailed
	}
	if err := lease.Check(0); err != nil {
		return false, errors.Join(ErrExtendFailed, err)
	}
	return true, nil
}

// Until is when the lock ends unless it is renewed; zero if it is not held.
func (m *Mutex) Until() time.Time {
	lease := m.held()
	if lease == nil || lease.Remaining() == 0 {
		return time.Time{}
	}
	return time.Now().Add(lease.Remaining())
}

// Value is the fencing token of the lease; empty if there is none.
func (m *Mutex) Value() string {
	lease := m.held()
	if lease == nil {
		return ""
	}
	return strconv.FormatUint(lease.Token(), 10)
}

// Context ends when the lock is lost or unlocked. It is done already if the mutex was never locked.
func (m *Mutex) Context() context.Context {
	if lease := m.held(); lease != nil {
		return lease.Context()
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrFailed)
	return ctx
}
