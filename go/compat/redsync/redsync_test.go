package redsync_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/compat/redsync"
	"code.invalid/leasehold/go/leaseholdtest"
)

func TestAMutexIsHeldUntilItIsUnlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		first := redsync.New(store.Connect()).NewMutex("a")
		second := redsync.New(store.Connect()).NewMutex("a", redsync.WithTries(3), redsync.WithRetryDelay(time.Second))
		if first.Value() != "" || !first.Until().IsZero() || first.Context().Err() == nil {
			t.Error("it is not locked yet")
		}
		if err := first.Lock(); err != nil {
			t.Fatal(err)
		}
		// Far beyond its 8 s.
		time.Sleep(time.Minute)
		began := time.Now()
		if err := second.Lock(); !errors.Is(err, redsync.ErrFailed) || !errors.Is(err, leasehold.ErrTimeout) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("three tries have taken %v", took)
		}
		if err := second.TryLock(); !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("%v", err)
		}
		if is, err := first.Extend(); !is || err != nil || first.Value() == "" || first.Until().IsZero() {
			t.Errorf("%v, %v, %q, %v", is, err, first.Value(), first.Until())
		}
		if was, err := first.Unlock(); !was || err != nil {
			t.Errorf("%v, %v", was, err)
		}
		if was, err := first.Unlock(); was || !errors.Is(err, redsync.ErrLockAlreadyExpired) {
			t.Errorf("%v, %v", was, err)
		}
		if err := second.TryLock(); err != nil {
			t.Error(err)
		}
	})
}

func TestALockThatIsLostIsToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		mutex := redsync.New(store.Connect()).NewMutex("a", redsync.WithExpiry(10*time.Second))
		if err := mutex.Lock(); err != nil {
			t.Fatal(err)
		}
		store.Down()
		<-mutex.Context().Done()
		if is, err := mutex.Extend(); is || !errors.Is(err, redsync.ErrExtendFailed) {
			t.Errorf("%v, %v", is, err)
		}
		if was, err := mutex.Unlock(); was || !errors.Is(err, redsync.ErrLockAlreadyExpired) || !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("%v, %v", was, err)
		}
	})
}

func TestAMutexHasOneHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rs := redsync.New(leaseholdtest.New(t).Connect())
		mutex, other := rs.NewMutex("a"), rs.NewMutex("a", redsync.WithTries(100))
		if err := mutex.Lock(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, lock := range []func() error{mutex.Lock, mutex.TryLock} {
			if err := lock(); !errors.Is(err, redsync.ErrFailed) || !strings.Contains(err.Error(), "make one for each holder") {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it has waited for %v", took)
		}
		locked := make(chan error)
		go func() { locked <- other.Lock() }()
		synctest.Wait()
		if err := other.Lock(); !errors.Is(err, redsync.ErrFailed) || !strings.Contains(err.Error(), "is being locked") {
			t.Error(err)
		}
		if was, err := mutex.Unlock(); !was || err != nil {
			t.Errorf("%v, %v", was, err)
		}
		if err := <-locked; err != nil {
			t.Error(err)
		}
		// One that has failed, or was unlocked, can be locked again.
		if err := mutex.TryLock(); !errors.Is(err, leasehold.ErrBusy) {
			t.Error(err)
		}
		if was, err := other.Unlock(); !was || err != nil {
			t.Errorf("%v, %v", was, err)
		}
		if err := mutex.Lock(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnyNumberOfTriesHasAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		held := redsync.New(store.Connect()).NewMutex("a")
		if err := held.Lock(); err != nil {
			t.Fatal(err)
		}
		rs := redsync.New(store.Connect())
		for _, options := range [][]redsync.Option{
			{redsync.WithTries(0)}, {redsync.WithTries(-1)}, {redsync.WithTries(1)}, {redsync.WithTries(math.MinInt)},
			{redsync.WithTries(10), redsync.WithRetryDelay(-time.Second)}, {redsync.WithTries(10), redsync.WithRetryDelay(0)},
		} {
			if err := rs.NewMutex("a", options...).Lock(); !errors.Is(err, leasehold.ErrBusy) {
				t.Errorf("%v", err)
			}
		}
		time.AfterFunc(time.Minute, func() { _, _ = held.Unlock() })
		mutex := rs.NewMutex("a", redsync.WithTries(math.MaxInt), redsync.WithRetryDelay(time.Hour))
		if err := mutex.Lock(); err != nil {
			t.Error(err)
		}
	})
}
