package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/leaseholdtest"
)

// failing is work that fails for this reason.
func failing(reason string) func(context.Context, *leasehold.Run) error {
	return func(context.Context, *leasehold.Run) error { return errors.New(reason) }
}

// isGivenUp reports if this is the error of work that was begun so often.
func isGivenUp(t *testing.T, err error, count uint32, reason string) {
	t.Helper()
	var why *leasehold.Error
	if !errors.As(err, &why) || why.Kind != leasehold.ErrGivenUp || why.Attempts == nil {
		t.Fatalf("%v", err)
	}
	if got := why.Attempts; got.Count != count || got.Max != count || got.Reason != reason {
		t.Errorf("%+v", got)
	}
}

func TestWorkThatAlwaysFailsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		first, second := store.Connect(), store.Connect()
		began := time.Now()
		for n, client := range []*leasehold.Client{first, second} {
			_, err := client.Once(t.Context(), "upload", "1", func(_ context.Context, run *leasehold.Run) error {
				if got := run.Attempts(); got == nil || got.Count != uint32(n)+1 || got.Max != 2 || got.Reason != "" {
					t.Errorf("%+v", got)
				}
				return fmt.Errorf("no file\nnumber %d", n)
			}, leasehold.MaxAttempts(2))
			if err == nil || errors.Is(err, leasehold.ErrGivenUp) {
				t.Error(err)
			}
			time.Sleep(time.Minute)
		}
		for range 2 {
			_, err := first.Once(t.Context(), "upload", "1", never(t), leasehold.MaxAttempts(2))
			isGivenUp(t, err, 2, "no file number 1")
			var why *leasehold.Error
			if errors.As(err, &why); why.Attempts.Since.Sub(began).Abs() > time.Second || why.Resource != "upload@1" {
				t.Errorf("%+v", why)
			}
			want := `leasehold: "upload@1": given up after 2 attempts without a finish; the last one failed: no file number 1. ` +
				"Mend it, and forget the run to have it tried again"
			if err.Error() != want {
				t.Error(err)
			}
		}
		if _, err := second.Once(t.Context(), "upload", "2", failing("once")); errors.Is(err, leasehold.ErrGivenUp) {
			t.Error("another occurrence", err)
		}
		if done, err := second.ForgetRun(t.Context(), "upload", "1"); err != nil || done != nil {
			t.Errorf("%+v, %v", done, err)
		}
		outcome, err := first.Once(t.Context(), "upload", "1", func(_ context.Context, run *leasehold.Run) error {
			if count := run.Attempts().Count; count != 1 {
				t.Errorf("%d attempts", count)
			}
			return nil
		}, leasehold.MaxAttempts(2))
		if err != nil || !outcome.Ran {
			t.Errorf("%+v, %v", outcome, err)
		}
	})
}

func TestAnAttemptCountsHoweverItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		first, second := store.Connect(), store.Connect()
		most := leasehold.MaxAttempts(3)
		// Its process hangs, or is dead: its lease runs out.
		hangs, goesOn := make(chan struct{}), make(chan struct{})
		var ended sync.WaitGroup
		ended.Go(func() {
			_, err := first.Once(t.Context(), "a", "1", func(context.Context, *leasehold.Run) error {
				close(hangs)
				<-goesOn
				return nil
			}, most, leasehold.TTL(time.Second), leasehold.RenewEvery(0))
			if !errors.Is(err, leasehold.ErrLost) {
				t.Error(err)
			}
		})
		<-hangs
		outcome, err := second.Once(t.Context(), "a", "1", never(t), most)
		if err != nil || !outcome.Running {
			t.Errorf("%+v, %v", outcome, err)
		}
		time.Sleep(2 * time.Second)
		func() {
			defer func() { _ = recover() }()
			_, _ = second.Once(t.Context(), "a", "1", func(_ context.Context, run *leasehold.Run) error {
				if got := run.Attempts(); got.Count != 2 || got.Reason != "" {
					t.Errorf("%+v", got)
				}
				panic("ouch")
			}, most)
		}()
		_, err = second.Once(t.Context(), "a", "1", func(ctx context.Context, run *leasehold.Run) error {
			if err := run.Fail(ctx, "the printer is on fire"); err != nil {
				t.Error(err)
			}
			return nil
		}, most)
		if !errors.Is(err, leasehold.ErrReleased) {
			t.Error(err)
		}
		close(goesOn)
		ended.Wait()
		_, err = second.Once(t.Context(), "a", "1", never(t), most)
		isGivenUp(t, err, 3, "the printer is on fire")
	})
}

// A worker whose lease an operator has ended does not know it yet, and fails after another one has begun.
func TestALateFailureLeavesTheCountOfTheNextOneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		first, second := store.Connect(), store.Connect()
		most := leasehold.MaxAttempts(2)
		_, err := first.Once(t.Context(), "a", "1", func(context.Context, *leasehold.Run) error {
			store.Lose("a@1")
			if _, err := second.Once(t.Context(), "a", "1", failing("of the second"), most); err == nil {
				t.Error("it fails")
			}
			return errors.New("of the first")
		}, most)
		if err == nil {
			t.Error("it fails")
		}
		_, err = second.Once(t.Context(), "a", "1", never(t), most)
		isGivenUp(t, err, 2, "of the second")
	})
}

func TestWorkDoesNotBeginIfItsLeaseEndsWhileItIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(resource string, _ core.OpFinish) core.Response {
			time.Sleep(450 * time.Millisecond)
			return nil
		}
		client, err := leasehold.Open(odd{leaseholdtest.New(t), slow})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		outcome, err := client.Once(t.Context(), "a", "1", never(t),
			leasehold.MaxAttempts(2), leasehold.TTL(400*time.Millisecond), leasehold.RenewEvery(0))
		if err != nil || !outcome.Running {
			t.Errorf("%+v, %v", outcome, err)
		}
	})
}

func TestAFailureWaitsForItsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := leaseholdtest.New(t).Connect()
		options := []leasehold.OnceOption{leasehold.MaxAttempts(2), leasehold.RetryAfter(10 * time.Minute)}
		began := time.Now()
		if _, err := client.Once(t.Context(), "a", "1", failing("no disk"), options...); err == nil {
			t.Error("it fails")
		}
		time.Sleep(9 * time.Minute)
		outcome, err := client.Once(t.Context(), "a", "1", never(t), options...)
		later := outcome.Later
		if err != nil || later == nil || later.Count != 1 || later.Reason != "no disk" || outcome.Ran || outcome.Running {
			t.Fatalf("%+v, %v", outcome, err)
		}
		if wait := later.RetryAt.Sub(began); wait < 599*time.Second || wait > 601*time.Second {
			t.Errorf("%v", wait)
		}
		time.Sleep(time.Minute + time.Second)
		outcome, err = client.Once(t.Context(), "a", "1", func(context.Context, *leasehold.Run) error { return nil }, options...)
		if err != nil || !outcome.Ran {
			t.Errorf("%+v, %v", outcome, err)
		}
		outcome, err = client.Once(t.Context(), "a", "1", never(t), options...)
		if err != nil || outcome.Done == nil {
			t.Errorf("%+v, %v", outcome, err)
		}
	})
}

// Many clients at once begin no more often than allowed.
func TestNoMoreAttemptsBeginThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		var mu sync.Mutex
		begun := 0
		var all sync.WaitGroup
		for n := range 8 {
			client := store.Connect()
			all.Go(func() {
				time.Sleep(time.Duration(n) * time.Millisecond)
				for {
					_, err := client.Once(t.Context(), "a", "1", func(context.Context, *leasehold.Run) error {
						mu.Lock()
						defer mu.Unlock()
						begun++
						return errors.New("no")
					}, leasehold.MaxAttempts(5), leasehold.Wait(time.Second))
					if errors.Is(err, leasehold.ErrGivenUp) {
						return
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		all.Wait()
		if begun != 5 {
			t.Errorf("%d have begun", begun)
		}
	})
}

func TestAttemptsOnAQuorumOutliveANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nodes []*leaseholdtest.Store
		var stores []leasehold.Store
		for range 3 {
			nodes = append(nodes, leaseholdtest.New(t))
			stores = append(stores, nodes[len(nodes)-1])
		}
		client, err := leasehold.Open(leasehold.Quorum{ID: "00112233445566778899aabbccddeeff", Nodes: stores, MaxTTL: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		// A quorum is born on all of its nodes.
		if err := lock(t, client, "first", leasehold.TTL(3*time.Second)).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		options := []leasehold.OnceOption{leasehold.MaxAttempts(3), leasehold.TTL(3 * time.Second), leasehold.Wait(time.Minute)}
		for down := range 3 {
			nodes[down].Down()
			_, err := client.Once(t.Context(), "a", "1", failing(fmt.Sprint("without ", down)), options...)
			if err == nil || err.Error() != fmt.Sprint("without ", down) {
				t.Error(err)
			}
			nodes[down].Up()
			time.Sleep(time.Minute)
		}
		_, err = client.Once(t.Context(), "a", "1", never(t), options...)
		isGivenUp(t, err, 3, "without 2")
		if _, err := client.ForgetRun(t.Context(), "a", "1"); err != nil {
			t.Error(err)
		}
		if outcome, err := client.Once(t.Context(), "a", "1", func(context.Context, *leasehold.Run) error { return nil }, options...); err != nil || !outcome.Ran {
			t.Errorf("%+v, %v", outcome, err)
		}
		nodes[0].Down()
		if _, err := client.ForgetRun(t.Context(), "a", "1"); !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), "forget it again") {
			t.Error(err)
		}
		nodes[0].Up()
		if _, err := client.ForgetRun(t.Context(), "a", "1"); err != nil {
			t.Error(err)
		}
	})
}

func TestARunIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		first, second := store.Connect(leasehold.Label("first")), store.Connect()
		work := func(context.Context, *leasehold.Run) error { return nil }
		if done, err := second.ForgetRun(t.Context(), "a", "1"); done != nil || err != nil {
			t.Errorf("%+v, %v", done, err)
		}
		for range 2 {
			if outcome, err := first.Once(t.Context(), "a", "1", work); err != nil || !outcome.Ran {
				t.Errorf("%+v, %v", outcome, err)
			}
			if done, err := second.ForgetRun(t.Context(), "a", "1"); err != nil || done == nil || done.Owner != "first" {
				t.Errorf("%+v, %v", done, err)
			}
		}
		// Work that is under way is waited for.
		_, err := first.Once(t.Context(), "b", "1", func(context.Context, *leasehold.Run) error {
			if _, err := second.ForgetRun(t.Context(), "b", "1"); !errors.Is(err, leasehold.ErrTimeout) {
				t.Error(err)
			}
			return nil
		}, leasehold.MaxAttempts(1))
		if err != nil {
			t.Error(err)
		}
		store.Down()
		if _, err := second.ForgetRun(t.Context(), "b", "1"); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Error(err)
		}
	})
}

// A node that has missed the removal, and answers, is asked again.
func TestARunIsForgottenByAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		removed := 0
		deaf := func(_ string, finish core.OpFinish) core.Response {
			if finish.KeepMs != 0 {
				return nil
			}
			if removed++; removed > 1 {
				return nil
			}
			return core.ResponseUnknown{Kind: core.FaultKindReset}
		}
		slow, other := leaseholdtest.New(t), leaseholdtest.New(t)
		stores := []leasehold.Store{slow, other, odd{leaseholdtest.New(t), deaf}}
		slow.Late(100 * time.Millisecond)
		other.Late(100 * time.Millisecond)
		client, err := leasehold.Open(leasehold.Quorum{ID: "00112233445566778899aabbccddeeff", Nodes: stores})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if err := lock(t, client, "first").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		outcome, err := client.Once(t.Context(), "a", "1", func(context.Context, *leasehold.Run) error { return nil })
		if err != nil || !outcome.Ran {
			t.Fatalf("%+v, %v", outcome, err)
		}
		if done, err := client.ForgetRun(t.Context(), "a", "1"); err != nil || done == nil || removed < 2 {
			t.Errorf("%+v, %v, after %d tries", done, err, removed)
		}
	})
}

// Work that is repeated by hand has no attempts from before.
func TestWorkThatIsDoneAgainHasItsAttemptsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := leaseholdtest.New(t).Connect()
		if _, err := client.Once(t.Context(), "a", "1", failing("no"), leasehold.MaxAttempts(1)); err == nil {
			t.Error("it fails")
		}
		work := func(context.Context, *leasehold.Run) error { return nil }
		if outcome, err := client.Once(t.Context(), "a", "1", work, leasehold.EvenIfDone(), leasehold.Keep(time.Minute)); err != nil || !outcome.Ran {
			t.Errorf("%+v, %v", outcome, err)
		}
		time.Sleep(2 * time.Minute)
		if outcome, err := client.Once(t.Context(), "a", "1", work, leasehold.MaxAttempts(1)); err != nil || !outcome.Ran {
			t.Errorf("%+v, %v", outcome, err)
		}
	})
}

func TestLimitsThatCannotBeAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := leaseholdtest.New(t).Connect()
		for why, options := range map[string][]leasehold.OnceOption{
			"a pause between attempts needs a number of attempts": {leasehold.RetryAfter(time.Second)},
			"with 0 attempts the work would never begin":          {leasehold.MaxAttempts(0)},
			"allow 1 or more": {leasehold.MaxAttempts(-1)},
			"and this request does it although it is done":       {leasehold.MaxAttempts(1), leasehold.EvenIfDone()},
			"has to be shorter than the time for which they are": {leasehold.MaxAttempts(1), leasehold.Keep(time.Hour), leasehold.RetryAfter(time.Hour)},
			"retry after: -1s is not a duration":                 {leasehold.MaxAttempts(1), leasehold.RetryAfter(-time.Second)},
		} {
			if _, err := client.Once(t.Context(), "a", "1", never(t), options...); !errors.Is(err, leasehold.ErrConfig) || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v", why, err)
			}
		}
		_, err := client.Once(t.Context(), strings.Repeat("n", 1014), "1", never(t), leasehold.MaxAttempts(1))
		if want := "the name with its key, for attempts to be counted, has 1016 bytes; at most 1015 are allowed"; err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
		outcome, err := client.Once(t.Context(), strings.Repeat("n", 1013), "1", failing("\xff"+strings.Repeat("é", 300)), leasehold.MaxAttempts(1))
		if outcome.Ran || err == nil {
			t.Errorf("%+v, %v", outcome, err)
		}
		_, err = client.Once(t.Context(), strings.Repeat("n", 1013), "1", never(t), leasehold.MaxAttempts(1))
		isGivenUp(t, err, 1, "\uFFFD"+strings.Repeat("é", 126))
	})
}
