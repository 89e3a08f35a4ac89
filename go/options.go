package leasehold

import (
	"log/slog"
	"math"
	"time"

	"code.invalid/leasehold/go/internal/clock"
	"code.invalid/leasehold/go/internal/core"
)

// A LockOption is a setting of a lock. Each is one of a run as well.
type LockOption interface {
	OnceOption
	lock(*settings)
}

// An OnceOption is a setting of a run, for [Client.Once].
type OnceOption interface{ once(*settings) }

type lockOption func(*settings)

func (set lockOption) lock(s *settings) { set(s) }
func (set lockOption) once(s *settings) { set(s) }

type onceOption func(*settings)

func (set onceOption) once(s *settings) { set(s) }

// settings has durations as they were given; nil where they were not.
type settings struct {
	ttl, wait, lockDelay, maxHold, renewEvery, keep *time.Duration

	every, offset, cooldown *time.Duration
	at, tz, cron            *string

	noRenewal, evenIfDone, replace bool

	maxAttempts *int
	retryAfter  *time.Duration

	owner *string
	data  []byte
}

// TTL is how long a lease lasts if this process dies: 100 ms to 24 h, 30 s by default. While the process lives, the lease is
// renewed, so the work may take longer.
func TTL(ttl time.Duration) LockOption { return lockOption(func(s *settings) { s.ttl = &ttl }) }

// Wait is how long to try; 0 tries once. Without it, [Client.Lock] tries until its context is done, and [Client.Once] once; with
// [Replace] it waits until the runner has ended.
func Wait(wait time.Duration) LockOption { return lockOption(func(s *settings) { s.wait = &wait }) }

// Owner is a label for people who look at the lock, host:pid by default. It proves nothing.
func Owner(owner string) LockOption { return lockOption(func(s *settings) { s.owner = &owner }) }

// Data is what others can read while the lease lasts, up to 4,096 bytes.
func Data(data []byte) LockOption {
	return lockOption(func(s *settings) { s.data = append([]byte{}, data...) })
}

// LockDelay is how long the lock stays closed after a lease has expired. A released lock is free at once.
func LockDelay(delay time.Duration) LockOption {
	return lockOption(func(s *settings) { s.lockDelay = &delay })
}

// MaxHold ends the renewals this long after the grant, so that work that hangs cannot hold a lock forever.
func MaxHold(hold time.Duration) LockOption {
	return lockOption(func(s *settings) { s.maxHold = &hold })
}

// RenewEvery is the time between renewals, a third of the ttl by default. With 0 there are none, and the lease ends at its first
// deadline.
func RenewEvery(interval time.Duration) LockOption {
	return lockOption(func(s *settings) {
		s.renewEvery, s.noRenewal = &interval, interval == 0
	})
}

// Every gives a job one occurrence in each period, from 1 s on (7 days at most on a quorum), by this machine's clock. Its key is the
// start of the period in UTC, or by the clocks of [TZ]. Machines whose clocks differ agree on all but the moments in which a period
// begins. In place of a key.
func Every(period time.Duration) OnceOption {
	return onceOption(func(s *settings) { s.every = &period })
}

// Offset is how long after the start of 1970, a Thursday, the periods of [Every] begin, in UTC or by the clocks of [TZ]: less than a
// period, 0 by default.
func Offset(offset time.Duration) OnceOption {
	return onceOption(func(s *settings) { s.offset = &offset })
}

// At is the time of day at which the periods of [Every] begin, from 00:00 to 23:59 by the clocks of [TZ]. They are whole days then.
func At(timeOfDay string) OnceOption { return onceOption(func(s *settings) { s.at = &timeOfDay }) }

// TZ is the zone by whose clocks [Every] and [Cron] count, by its name in the IANA database, such as Europe/Berlin or UTC. The key is
// the local time with the zone as it is written here, 2026-10-25T02:30[Europe/Berlin]: a time that comes twice when clocks are set back
// is done once, and so is one that clocks leave out, as soon as they are past it. Zones are those of [time.LoadLocation]: programs for
// machines that have none import time/tzdata.
func TZ(zone string) OnceOption { return onceOption(func(s *settings) { s.tz = &zone }) }

// Cron gives a job one occurrence for each time of a cron expression by the clocks of [TZ], which has to be given: minute, hour, day of
// the month, month and day of the week, such as 0 2 * * 1-5. It is the latest one until now, so a machine that comes late does it.
// In place of a key.
func Cron(expression string) OnceOption {
	return onceOption(func(s *settings) { s.cron = &expression })
}

// Cooldown is how long the job as a whole is not done again, counted from the end of its work. In place of a key.
func Cooldown(cooldown time.Duration) OnceOption {
	return onceOption(func(s *settings) { s.cooldown = &cooldown })
}

// Keep is how long the completion of a run stands: at least the ttl and the period, at most 100 years (7 days on a quorum). By default
// 7 days, or two periods of [Every] if those are longer. With [TZ] it stands until a day after the next time at least.
func Keep(keep time.Duration) OnceOption { return onceOption(func(s *settings) { s.keep = &keep }) }

// EvenIfDone does the work of a run even if a completion says that it is done, but not while somebody else does it. Its completion
// replaces the old one, and its end removes the count of attempts. If the work fails, the old completion stands. For people who
// repeat work: in a program that always asks for it, the work is done each time. It cannot be had together with [MaxAttempts].
func EvenIfDone() OnceOption { return onceOption(func(s *settings) { s.evenIfDone = true }) }

// Replace ends the runner, if there is one, and does the work once that has let go: for work that is only right for the newest request,
// such as a deployment. The runner is told at its next renewal, at most a third of its ttl away, that its lease is lost, with the Reason
// "revoked"; if it does not hear, its lease runs out within its ttl. Two never work at once. Of several requests that wait, the newest one
// works, and the others get Outcome.Replaced. They should not ask again, since that would make them the newest. Work that was done before
// the request is not done again, unless it has [EvenIfDone].
//
// [Wait] is the longest wait for the runner in all, and above 0; by default it lasts until the runner has ended, or the context. A
// client of another library cannot be asked to end: the outcome has Running. It costs a read, two writes and an attempt that is refused
// before the work begins, and cannot be had together with [MaxAttempts]. The name with its key has 1,017 bytes at most.
//
// Do not replace the run that the caller is in itself: it would revoke its own lease, and wait for itself until that has run out, the Wait
// is over or the context has ended. A call with the context of that run is refused.
func Replace() OnceOption { return onceOption(func(s *settings) { s.replace = true }) }

// MaxAttempts is how often the work of a run may be begun, 1 or more. Each attempt counts, also one whose process dies. Once so many have
// begun and none has finished, the error is of the kind [ErrGivenUp], until somebody forgets the run ([Client.ForgetRun]).
// Attempts are remembered for as long as the completion is kept, from the start of the latest one. Without it, failed work is begun
// again without end.
//
// It costs two more writes and a read when the work begins, and when it fails. The name with its key has 1,015 bytes at most.
func MaxAttempts(attempts int) OnceOption {
	return onceOption(func(s *settings) { s.maxAttempts = &attempts })
}

// RetryAfter is the pause from the start of an attempt to the start of the next one, by this machine's clock: until then the outcome has
// Later. By default there is none. It needs [MaxAttempts], and is shorter than [Keep].
func RetryAfter(pause time.Duration) OnceOption {
	return onceOption(func(s *settings) { s.retryAfter = &pause })
}

// A ClientOption is a setting of a client.
type ClientOption func(*clientSettings)

type clientSettings struct {
	owner          string
	log            *slog.Logger
	observer       Observer
	requestTimeout *time.Duration
	drift          *uint32
}

// Label is the owner of locks without one of their own; host:pid by default.
func Label(owner string) ClientOption { return func(s *clientSettings) { s.owner = owner } }

// Logger hears of lost leases and late renewals. By default nothing is logged.
func Logger(log *slog.Logger) ClientOption { return func(s *clientSettings) { s.log = log } }

// Observer hears what happens to locks, for metrics and traces. Its functions are called in order, on one goroutine that is theirs and
// the log's; at most 1,024 calls wait for it, and more are left out. Those that are nil are not called.
type Observer struct {
	// Decided: an acquisition has ended after so long; it was granted if err is nil.
	Decided func(name string, took time.Duration, err error)
	// Ended: a lease is over after so long; it was released if err is nil.
	Ended func(name string, lasted time.Duration, err error)
	// Late: a renewal was not confirmed, and is repeated.
	Late func(name string, why string)
}

// Observe has an observer told.
func Observe(observer Observer) ClientOption {
	return func(s *clientSettings) { s.observer = observer }
}

// RequestTimeout is the longest wait for one reply of the store: 10 ms to 60 s, 500 ms by default; never more than a sixth of
// the ttl of a lock.
func RequestTimeout(timeout time.Duration) ClientOption {
	return func(s *clientSettings) { s.requestTimeout = &timeout }
}

// Drift is how far the rates of clocks may be off, in parts per million: 100 to 100,000, by default 10,000, which is 1%. Every
// client of a store should use the same value.
func Drift(ppm uint32) ClientOption { return func(s *clientSettings) { s.drift = &ppm } }

// whole is a duration in milliseconds, without its fraction.
func whole(name string, d *time.Duration) (*uint64, error) {
	if d == nil {
		return nil, nil
	}
	if *d < 0 {
		return nil, configError("%s: %v is not a duration: give 0 or more", name, *d)
	}
	ms := uint64(*d / time.Millisecond)
	return &ms, nil
}

// lockOptions are the settings as the protocol takes them; it checks their bounds. A wait that was not given is forever.
func (s *settings) lockOptions(label string) (core.LockOptions, error) {
	made := core.LockOptions{Wait: core.WaitForever{}, Renewal: core.RenewalAutomatic{}, Owner: label, Data: s.data}
	if s.owner != nil {
		made.Owner = *s.owner
	}
	var first error
	take := func(name string, d *time.Duration) *uint64 {
		ms, err := whole(name, d)
		if first == nil {
			first = err
		}
		return ms
	}
	made.TTLMs = take("ttl", s.ttl)
	made.MaxHoldMs = take("max hold", s.maxHold)
	// Where the clock may have missed time, the lock stays closed for so much longer.
	made.LockDelayMs = value(take("lock delay", s.lockDelay)) + uint64(clock.Missed/time.Millisecond)
	if s.wait != nil {
		// A fraction of a millisecond must not mean a single try.
		up := *s.wait
		if up > 0 && up < math.MaxInt64-time.Millisecond {
			up += time.Millisecond - 1
		}
		if ms := take("wait", &up); up == 0 {
			made.Wait = core.WaitOnce{}
		} else {
			made.Wait = core.WaitFor{WaitMs: value(ms)}
		}
	}
	if s.noRenewal {
		made.Renewal = core.RenewalOff{}
	} else if s.renewEvery != nil {
		made.Renewal = core.RenewalEvery{IntervalMs: value(take("renew every", s.renewEvery))}
	}
	return made, first
}
