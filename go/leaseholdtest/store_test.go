package leaseholdtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/leaseholdtest"
)

// settle is code under test.
func settle(ctx context.Context, client *leasehold.Client) string {
	lease, err := client.Lock(ctx, "invoice/42", leasehold.Wait(5*time.Second))
	switch {
	case errors.Is(err, leasehold.ErrTimeout):
		return "later"
	case errors.Is(err, leasehold.ErrUnavailable):
		return "down"
	case err != nil:
		return err.Error()
	}
	defer lease.Release(ctx)
	if err := lease.Check(10 * time.Second); err != nil {
		return err.Error()
	}
	return "settled"
}

// world runs a test in a bubble, with a store and two clients of it.
func world(t *testing.T, test func(t *testing.T, store *leaseholdtest.Store, client, rival *leasehold.Client)) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		test(t, store, store.Connect(), store.Connect())
	})
}

func held(t *testing.T, client *leasehold.Client, options ...leasehold.LockOption) *leasehold.Lease {
	t.Helper()
	lease, err := client.Lock(t.Context(), "invoice/42", options...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func is(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestWaitingTakesNoTime(t *testing.T) {
	began := time.Now()
	world(t, func(t *testing.T, store *leaseholdtest.Store, client, rival *leasehold.Client) {
		is(t, settle(t.Context(), client), "settled")
		lease := held(t, rival)
		at := time.Now()
		is(t, settle(t.Context(), client), "later")
		if waited := time.Since(at); waited < 5*time.Second || waited > 6*time.Second {
			t.Errorf("it has waited for %v", waited)
		}
		time.Sleep(24 * time.Hour)
		if err := lease.Check(time.Second); err != nil {
			t.Errorf("it was renewed on the way: %v", err)
		}
		store.Lose("invoice/42")
		<-lease.Context().Done()
		if why := context.Cause(lease.Context()); !errors.Is(why, leasehold.ErrLost) {
			t.Error(why)
		}
		is(t, settle(t.Context(), client), "settled")
	})
	if took := time.Since(began); took > time.Minute {
		t.Errorf("a day has taken %v", took)
	}
}

func TestAStoreThatIsDownLosesLeases(t *testing.T) {
	world(t, func(t *testing.T, store *leaseholdtest.Store, client, rival *leasehold.Client) {
		lease := held(t, rival, leasehold.TTL(30*time.Second))
		store.Down()
		at := time.Now()
		is(t, settle(t.Context(), client), "down")
		<-lease.Context().Done()
		if took := time.Since(at); took < 15*time.Second || took > 30*time.Second {
			t.Errorf("lost after %v", took)
		}
		var why *leasehold.Error
		if !errors.As(context.Cause(lease.Context()), &why) || why.Reason != "expired" {
			t.Errorf("%v", why)
		}
		store.Up()
		is(t, settle(t.Context(), client), "settled")
	})
}

func TestALostReplyIsRecovered(t *testing.T) {
	world(t, func(t *testing.T, store *leaseholdtest.Store, client, rival *leasehold.Client) {
		store.LoseReplies(1)
		lease := held(t, client)
		if _, err := rival.Lock(t.Context(), "invoice/42", leasehold.Wait(0)); !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("%v", err)
		}
		store.LoseReplies(1)
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		is(t, settle(t.Context(), rival), "settled")
	})
}

func TestALateStoreShortensWhatIsLeft(t *testing.T) {
	world(t, func(t *testing.T, store *leaseholdtest.Store, client, _ *leasehold.Client) {
		prompt := held(t, client)
		left := prompt.Remaining()
		if err := prompt.Release(t.Context()); err != nil {
			t.Error(err)
		}
		store.Late(300 * time.Millisecond)
		at := time.Now()
		late := held(t, client)
		// It counts from before the request.
		if took := time.Since(at); took < 300*time.Millisecond || late.Remaining() > left-took {
			t.Errorf("%v are left after %v", late.Remaining(), took)
		}
		// Later than a request waits.
		store.Late(time.Minute)
		<-late.Context().Done()
	})
}

func TestTheSameTestTakesTheSameCourse(t *testing.T) {
	var courses [2]time.Duration
	for i := range courses {
		world(t, func(t *testing.T, store *leaseholdtest.Store, client, rival *leasehold.Client) {
			lease := held(t, rival, leasehold.RenewEvery(0))
			began := time.Now()
			store.LoseReplies(2)
			next := held(t, client)
			if next.Token() <= lease.Token() {
				t.Errorf("token %d after %d", next.Token(), lease.Token())
			}
			courses[i] = time.Since(began)
		})
	}
	if courses[0] != courses[1] {
		t.Errorf("%v and %v", courses[0], courses[1])
	}
}

func TestItWorksInRealTime(t *testing.T) {
	store := leaseholdtest.New(t)
	client := store.Connect()
	is(t, settle(t.Context(), client), "settled")
}
