package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
)

func connect(t testing.TB, url string, options ...leasehold.ClientOption) *leasehold.Client {
	t.Helper()
	client, err := leasehold.Connect(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func lock(t testing.TB, client *leasehold.Client, name string, options ...leasehold.LockOption) *leasehold.Lease {
	t.Helper()
	lease, err := client.Lock(t.Context(), name, options...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func wants(t testing.TB, err, kind error) *leasehold.Error {
	t.Helper()
	var made *leasehold.Error
	if !errors.Is(err, kind) || !errors.As(err, &made) {
		t.Fatalf("the error is %v, not of the kind %v", err, kind)
	}
	return made
}

func ended(t testing.TB, lease *leasehold.Lease, kind error) *leasehold.Error {
	t.Helper()
	<-lease.Context().Done()
	return wants(t, context.Cause(lease.Context()), kind)
}

func TestALockIsHeldUntilItIsReleased(t *testing.T) {
	redis := testserver.StartRedis(t)
	first, second := connect(t, redis.URL, leasehold.Label("first")), connect(t, redis.URL)
	lease := lock(t, first, "invoice/42", leasehold.TTL(20*time.Second), leasehold.Data([]byte("page 7")))
	if lease.Name() != "invoice/42" || lease.Owner() != "first" || lease.Token() == 0 {
		t.Errorf("%q of %q with %d", lease.Name(), lease.Owner(), lease.Token())
	}
	if left := lease.Remaining(); left <= 0 || left > 20*time.Second {
		t.Errorf("%v are left", left)
	}
	if err := lease.Check(time.Second); err != nil {
		t.Error(err)
	}

	_, err := second.Lock(t.Context(), "invoice/42", leasehold.Wait(0))
	busy := wants(t, err, leasehold.ErrBusy)
	who := busy.Holder
	if who == nil || who.Owner != "first" || who.Token < lease.Token() || string(who.Data) != "page 7" || who.Foreign {
		t.Errorf("held by %+v", who)
	}
	if text := busy.Error(); !strings.HasPrefix(text, `leasehold: "invoice/42": busy: held by first, token `) {
		t.Error(text)
	}
	_, err = second.Lock(t.Context(), "invoice/42", leasehold.Wait(time.Millisecond))
	wants(t, err, leasehold.ErrTimeout)

	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended(t, lease, leasehold.ErrReleased)
	wants(t, lease.Release(t.Context()), leasehold.ErrReleased)
	wants(t, lease.Check(0), leasehold.ErrReleased)
	if next := lock(t, second, "invoice/42", leasehold.Wait(0)); next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
}

func TestCheckRefusesALeaseThatEndsTooSoon(t *testing.T) {
	client := connect(t, testserver.StartRedis(t).URL)
	lease := lock(t, client, "short", leasehold.TTL(time.Minute))
	wants(t, lease.Check(time.Hour), leasehold.ErrLost)
	if err := lease.Check(0); err != nil {
		t.Errorf("it is still held: %v", err)
	}
}

func TestAWaiterGetsTheLockThatIsReleased(t *testing.T) {
	redis := testserver.StartRedis(t)
	first, second := connect(t, redis.URL), connect(t, redis.URL)
	lease := lock(t, first, "handed on")
	granted := make(chan *leasehold.Lease)
	go func() {
		next, err := second.Lock(t.Context(), "handed on")
		if err != nil {
			t.Error(err)
		}
		granted <- next
	}()
	// It listens on a connection of its own.
	isHeard(redis, "handed on")
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next := <-granted; next != nil && next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
}

// isHeard waits until somebody listens for releases of a lock.
func isHeard(redis *testserver.Redis, name string) {
	channel := fmt.Sprintf(`"{%s}\x1fwake of name"`, name)
	for redis.Do("PUBLISH", channel, "nothing") != ":1" {
		time.Sleep(time.Millisecond)
	}
}

func TestManyWorkersOfManyClientsTakeTurns(t *testing.T) {
	redis := testserver.StartRedis(t)
	const clients, workers, rounds = 3, 5, 8
	count := 0
	var all sync.WaitGroup
	for range clients {
		client := connect(t, redis.URL)
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
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if count != clients*workers*rounds {
		t.Errorf("%d turns", count)
	}
}

func TestAContextThatIsDoneEndsTheWait(t *testing.T) {
	redis := testserver.StartRedis(t)
	first, second := connect(t, redis.URL), connect(t, redis.URL)
	lease := lock(t, first, "a")
	why := errors.New("the user has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	waiting := make(chan error)
	go func() {
		_, err := second.Lock(ctx, "a")
		waiting <- err
	}()
	cancel(why)
	if err := <-waiting; !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if _, err := second.Lock(ctx, "free"); !errors.Is(err, why) {
		t.Errorf("a context that was done before: %v", err)
	}
	if err := lease.Release(ctx); err != nil && !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("a release is begun whatever its context says: %v", err)
	}
	lock(t, first, "a")
}

func TestAContextThatWasDoneBeforeSendsNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client := connect(t, "redis://"+listener.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Lock(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	// Only what is there already.
	_ = listener.(*net.TCPListener).SetDeadline(time.Now())
	if conn, err := listener.Accept(); err == nil {
		_ = conn.Close()
		t.Error("it has connected")
	}
}

func TestTheContextOfALeaseIsThatOfItsCaller(t *testing.T) {
	type key struct{}
	client := connect(t, testserver.StartRedis(t).URL)
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	lease, err := client.Lock(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if lease.Context().Value(key{}) != "value" {
		t.Error("it has lost its values")
	}
	cancel()
	<-lease.Context().Done()
	if err := lease.Check(0); err != nil {
		t.Errorf("the lease is held until it is released: %v", err)
	}
}

func TestAReleaseIsConfirmedThroughTheContextOfItsLease(t *testing.T) {
	redis := testserver.StartRedis(t)
	client, next := connect(t, redis.URL), connect(t, redis.URL)
	for range 20 {
		lease := lock(t, client, "a")
		within, cancel := context.WithTimeout(lease.Context(), time.Hour)
		if err := lease.Release(within); err != nil {
			t.Fatalf("it ends with the release, and does not end the wait for it: %v", err)
		}
		cancel()
		taken, err := next.Lock(t.Context(), "a", leasehold.Wait(0))
		if err != nil {
			t.Fatalf("what was confirmed is free: %v", err)
		}
		if err := taken.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClosingReleasesEverything(t *testing.T) {
	redis := testserver.StartRedis(t)
	first, second := connect(t, redis.URL), connect(t, redis.URL)
	lease := lock(t, first, "a")
	waiting := make(chan error)
	taken := lock(t, second, "b")
	go func() {
		_, err := first.Lock(t.Context(), "b")
		waiting <- err
	}()
	isHeard(redis, "b")
	closing := make(chan error)
	go func() { closing <- first.Close() }()
	if err := errors.Join(first.Close(), <-closing); err != nil {
		t.Fatal(err)
	}
	wants(t, <-waiting, leasehold.ErrClosed)
	ended(t, lease, leasehold.ErrReleased)
	if _, err := first.Lock(t.Context(), "c"); !errors.Is(err, leasehold.ErrClosed) {
		t.Errorf("%v", err)
	}
	if err := first.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	lock(t, second, "a", leasehold.Wait(0))
	if err := taken.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	client := connect(t, "redis://127.0.0.1:1")
	for want, options := range map[string][]leasehold.LockOption{
		"ttl is 1 ms, but must be at least": {leasehold.TTL(time.Millisecond)},
		"ttl: -1s is not a duration":        {leasehold.TTL(-time.Second)},
		"wait: -1ns is not a duration":      {leasehold.Wait(-1)},
		"but must be at most":               {leasehold.TTL(25 * time.Hour)},
		"has the control character U+000":   {leasehold.Owner("a\x00b")},
	} {
		_, err := client.Lock(t.Context(), "a", options...)
		if !errors.Is(err, leasehold.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	if _, err := client.Lock(t.Context(), ""); !errors.Is(err, leasehold.ErrConfig) {
		t.Errorf("%v", err)
	}
	_, lock := client.Lock(t.Context(), "a\xff")
	_, owner := client.Lock(t.Context(), "a", leasehold.Owner("\xff"))
	_, run := client.Once(t.Context(), "a", "\xff", nil)
	for _, err := range []error{lock, owner, run} {
		if !errors.Is(err, leasehold.ErrConfig) || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%v", err)
		}
	}
	for _, url := range []string{
		"", "sqlite:locks.db", "redis://", "redis://host/x", "redis://host?wait_replicas=1", "redis://host?user=x", "redis://user@host",
		"redis://:secret#@host", "redis+cluster://host", "redis+unix://host/path", "redis://host?ca=x", "redis://host?db=1&db=2",
	} {
		if _, err := leasehold.Connect(url); !errors.Is(err, leasehold.ErrConfig) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
