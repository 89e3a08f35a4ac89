package redsync_test

import (
	"errors"
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
