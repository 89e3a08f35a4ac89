// Package behaviours has what every store has to do, as tests that run on each of them.
package behaviours

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
)

// name has every sign that some format has a meaning for.
const name = `é %25 "x" \\ {a,b} '$1'`

// ttl is short, and long enough for a store on a busy machine: a request may take a sixth of it.
const ttl = 3 * time.Second

// Clients makes clients of one store, each as another process has it.
type Clients func(t testing.TB) *leasehold.Client

// Of makes clients of a store, which are closed when the test ends.
func Of(store func() leasehold.Store) Clients {
	return func(t testing.TB) *leasehold.Client {
		t.Helper()
		client, err := leasehold.Open(store())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		// A login may take longer than one request waits.
		lease, err := client.Lock(t.Context(), fmt.Sprintf("connected/%p", client))
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		return client
	}
}

// All has every one of them by its name.
var All = map[string]func(*testing.T, Clients){
	"a lock is held until it is released":                held,
	"a lease is renewed":                                 renewed,
	"a lease that is not renewed is lost and taken over": lost,
	"a waiter gets the lock":                             waited,
	"a context that is done leaves nothing behind":       abandoned,
	"a run is done once":                                 once,
	"work that always fails is given up":                 givenUp,
	"an election has one leader":                         led,
	"no increment is lost":                               counted,
}

// Run runs all of them at the same time.
func Run(t *testing.T, connect Clients) {
	for name, test := range All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, connect)
		})
	}
}

func lock(t *testing.T, client *leasehold.Client, name string, options ...leasehold.LockOption) *leasehold.Lease {
	t.Helper()
	lease, err := client.Lock(t.Context(), name, options...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t *testing.T, lease *leasehold.Lease) {
	t.Helper()
	if err := lease.Release(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func held(t *testing.T, connect Clients) {
	first, second := connect(t), connect(t)
	lease := lock(t, first, name, leasehold.TTL(20*time.Second), leasehold.Owner("first"), leasehold.Data([]byte{0, 255}))
	_, err := second.Lock(t.Context(), name, leasehold.Wait(0))
	var busy *leasehold.Error
	if !errors.As(err, &busy) || busy.Kind != leasehold.ErrBusy {
		t.Fatalf("the error is %v, not busy", err)
	}
	if who := busy.Holder; who == nil || who.Owner != "first" || string(who.Data) != "\x00\xff" || who.Foreign {
		t.Errorf("held by %+v", busy.Holder)
	}
	if err := lease.Check(time.Second); err != nil {
		t.Error(err)
	}
	release(t, lease)
	if err := lease.Check(0); !errors.Is(err, leasehold.ErrReleased) {
		t.Errorf("%v", err)
	}
	next := lock(t, second, name, leasehold.Wait(0))
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	release(t, next)
}

func renewed(t *testing.T, connect Clients) {
	first, second := connect(t), connect(t)
	// Two of them, since renewals may share a request.
	leases := []*leasehold.Lease{lock(t, first, "long", leasehold.TTL(ttl)), lock(t, first, "longer/"+name, leasehold.TTL(ttl))}
	for deadline := time.Now().Add(2 * ttl); time.Now().Before(deadline); time.Sleep(ttl / 4) {
		for _, lease := range leases {
			if err := lease.Check(0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := second.Lock(t.Context(), "long", leasehold.Wait(0)); !errors.Is(err, leasehold.ErrBusy) {
		t.Errorf("%v", err)
	}
	for _, lease := range leases {
		release(t, lease)
	}
}

func lost(t *testing.T, connect Clients) {
	first, second := connect(t), connect(t)
	lease := lock(t, first, "lost", leasehold.TTL(ttl), leasehold.RenewEvery(0))
	next := lock(t, second, "lost")
	// A holder stops believing before anybody else may begin.
	if lease.Remaining() != 0 {
		t.Error("two at once")
	}
	<-lease.Context().Done()
	var why *leasehold.Error
	if !errors.As(context.Cause(lease.Context()), &why) || why.Kind != leasehold.ErrLost || why.Reason != "expired" {
		t.Errorf("%v", context.Cause(lease.Context()))
	}
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	release(t, next)
}

func waited(t *testing.T, connect Clients) {
	first, second := connect(t), connect(t)
	lease := lock(t, first, "handed on")
	waiting := make(chan *leasehold.Lease)
	go func() {
		next, err := second.Lock(t.Context(), "handed on")
		if err != nil {
			t.Error(err)
		}
		waiting <- next
	}()
	if _, err := second.Lock(t.Context(), "handed on", leasehold.Wait(10*time.Millisecond)); !errors.Is(err, leasehold.ErrTimeout) {
		t.Errorf("%v", err)
	}
	release(t, lease)
	if next := <-waiting; next != nil {
		release(t, next)
	}
}

func abandoned(t *testing.T, connect Clients) {
	client, other := connect(t), connect(t)
	// Before the first request, during one, and whenever else.
	for n := range 12 {
		name := fmt.Sprint("abandoned/", n)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*time.Millisecond)
		lease, err := client.Lock(ctx, name)
		cancel()
		switch {
		case err == nil:
			release(t, lease)
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("%v", err)
		}
		// Long before its 30 s.
		next := lock(t, other, name, leasehold.Wait(15*time.Second))
		release(t, next)
	}
}

func once(t *testing.T, connect Clients) {
	first, second := connect(t), connect(t)
	failure := errors.New("no paper")
	ran := 0
	work := func(err error) func(context.Context, *leasehold.Run) error {
		return func(_ context.Context, run *leasehold.Run) error {
			ran++
			run.SetResult(leasehold.RunResult{Kind: leasehold.ResultJSON, Bytes: []byte(`"é"`)})
			return err
		}
	}
	if _, err := first.Once(t.Context(), "report", "2026-11-24", work(failure)); !errors.Is(err, failure) {
		t.Errorf("%v", err)
	}
	outcome, err := second.Once(t.Context(), "report", "2026-11-24", work(nil), leasehold.Owner("second"), leasehold.Wait(10*time.Second))
	if err != nil || !outcome.Ran {
		t.Fatalf("%+v, %v", outcome, err)
	}
	outcome, err = first.Once(t.Context(), "report", "2026-11-24", work(nil))
	if err != nil || outcome.Ran || outcome.Done == nil || outcome.Done.Owner != "second" || ran != 2 {
		t.Errorf("%+v, %v, %d times", outcome, err, ran)
	}
	if done := outcome.Done; done != nil && (done.Result == nil || string(done.Result.Bytes) != `"é"`) {
		t.Errorf("%+v", done.Result)
	}
	if outcome.Done != nil && (outcome.Done.Left <= 6*24*time.Hour || time.Since(outcome.Done.At).Abs() > time.Hour) {
		t.Errorf("%+v", outcome.Done)
	}
}

func givenUp(t *testing.T, connect Clients) {
	first, second := connect(t), connect(t)
	failure := errors.New("no paper")
	options := []leasehold.OnceOption{leasehold.MaxAttempts(2), leasehold.Wait(10 * time.Second)}
	for n, client := range []*leasehold.Client{first, second} {
		_, err := client.Once(t.Context(), "print", "1", func(_ context.Context, run *leasehold.Run) error {
			if got := run.Attempts(); got == nil || got.Count != uint32(n)+1 {
				t.Errorf("%+v", got)
			}
			return failure
		}, options...)
		if !errors.Is(err, failure) {
			t.Errorf("%v", err)
		}
	}
	_, err := first.Once(t.Context(), "print", "1", nil, options...)
	var why *leasehold.Error
	if !errors.As(err, &why) || why.Kind != leasehold.ErrGivenUp || why.Attempts.Count != 2 || why.Attempts.Reason != "no paper" {
		t.Fatalf("%v", err)
	}
	if _, err := second.ForgetRun(t.Context(), "print", "1"); err != nil {
		t.Fatal(err)
	}
	work := func(context.Context, *leasehold.Run) error { return nil }
	if outcome, err := first.Once(t.Context(), "print", "1", work, options...); err != nil || !outcome.Ran {
		t.Errorf("%+v, %v", outcome, err)
	}
	if done, err := second.ForgetRun(t.Context(), "print", "1"); err != nil || done == nil {
		t.Errorf("%+v, %v", done, err)
	}
	if outcome, err := first.Once(t.Context(), "print", "1", work, options...); err != nil || !outcome.Ran {
		t.Errorf("%+v, %v", outcome, err)
	}
}

func led(t *testing.T, connect Clients) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var leading, terms sync.Mutex
	count := 0
	var candidates sync.WaitGroup
	for range 3 {
		client := connect(t)
		candidates.Go(func() {
			err := client.Lead(ctx, "leader", func(context.Context, *leasehold.Lease) error {
				if !leading.TryLock() {
					t.Error("two lead at once")
					return nil
				}
				defer leading.Unlock()
				terms.Lock()
				defer terms.Unlock()
				count++
				return nil
			}, leasehold.TTL(ttl))
			if err != nil {
				t.Error(err)
			}
		})
	}
	candidates.Wait()
	if count != 3 {
		t.Errorf("%d terms", count)
	}
}

// counted has workers of two clients add one to a number, with a read and a write of their own.
func counted(t *testing.T, connect Clients) {
	const workers, rounds = 3, 5
	count := 0
	var all sync.WaitGroup
	for range 2 {
		client := connect(t)
		for range workers {
			all.Go(func() {
				for range rounds {
					lease, err := client.Lock(t.Context(), "counter")
					if err != nil {
						t.Error(err)
						return
					}
					// The race detector sees two at once.
					count++
					release(t, lease)
				}
			})
		}
	}
	all.Wait()
	if count != 2*workers*rounds {
		t.Errorf("%d increments", count)
	}
}
