package leasehold_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
)

func TestALeaseIsRenewedForAsLongAsItIsHeld(t *testing.T) {
	redis := testserver.StartRedis(t)
	client := connect(t, redis.URL)
	lease := lock(t, client, "long", leasehold.TTL(300*time.Millisecond))
	// Three times its ttl.
	for range 9 {
		time.Sleep(100 * time.Millisecond)
		if err := lease.Check(0); err != nil {
			t.Fatal(err)
		}
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestALeaseThatIsNotRenewedEndsAtItsDeadline(t *testing.T) {
	client := connect(t, testserver.StartRedis(t).URL)
	lease := lock(t, client, "once", leasehold.TTL(200*time.Millisecond), leasehold.RenewEvery(0))
	lost := ended(t, lease, leasehold.ErrLost)
	if lost.Reason != "expired" || lease.Remaining() != 0 {
		t.Errorf("%v, %v left", lost, lease.Remaining())
	}
	wants(t, lease.Release(t.Context()), leasehold.ErrLost)
}

func TestMaxHoldEndsALease(t *testing.T) {
	client := connect(t, testserver.StartRedis(t).URL)
	lease := lock(t, client, "stuck", leasehold.TTL(200*time.Millisecond), leasehold.MaxHold(300*time.Millisecond))
	if lost := ended(t, lease, leasehold.ErrLost); lost.Reason != "max_hold" {
		t.Error(lost)
	}
}

func TestTheHolderLearnsThatSomebodyHasTakenTheLockAway(t *testing.T) {
	redis := testserver.StartRedis(t)
	var log safeBuffer
	client := connect(t, redis.URL, leasehold.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	lease := lock(t, client, "taken", leasehold.TTL(300*time.Millisecond))
	redis.Do("DEL", "taken")
	ended(t, lease, leasehold.ErrLost)
	eventually(t, "the log tells of it", func() bool {
		text := log.String()
		return strings.Contains(text, "the lease is lost") && strings.Contains(text, "lock=taken")
	})
}

// eventually waits for a condition, for as long as tests may take.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("this does not come: ", what)
		}
	}
}

func TestAnObserverThatHangsDelaysNothing(t *testing.T) {
	redis := testserver.StartRedis(t)
	hang, seen := make(chan struct{}), make(chan string, 8)
	client := connect(t, redis.URL, leasehold.Observe(leasehold.Observer{
		Decided: func(name string, _ time.Duration, _ error) {
			<-hang
			seen <- "decided " + name
		},
		Ended: func(name string, _ time.Duration, _ error) { seen <- "ended " + name },
	}))
	first, second := lock(t, client, "first"), lock(t, client, "second", leasehold.TTL(300*time.Millisecond))
	redis.Do("DEL", "second")
	ended(t, second, leasehold.ErrLost)
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(hang)
	for _, want := range []string{"decided first", "decided second", "ended second", "ended first"} {
		if got := <-seen; got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestALeaseIsLostWhenTheServerHangs(t *testing.T) {
	redis := testserver.StartRedis(t)
	client := connect(t, redis.URL)
	lease := lock(t, client, "hung", leasehold.TTL(400*time.Millisecond))
	redis.Obey("freeze")
	ended(t, lease, leasehold.ErrLost)
	_, err := client.Lock(t.Context(), "other", leasehold.Wait(0))
	wants(t, err, leasehold.ErrUnavailable)
	redis.Obey("continue")
	lock(t, client, "other")
}

func TestALeaseSurvivesBrokenConnections(t *testing.T) {
	redis := testserver.StartRedis(t)
	proxy := testserver.StartProxy(t, redis.Address())
	client := connect(t, proxy.URL())
	lease := lock(t, client, "broken", leasehold.TTL(600*time.Millisecond))
	for range 8 {
		proxy.Reset()
		time.Sleep(100 * time.Millisecond)
	}
	if err := lease.Check(0); err != nil {
		t.Error(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestALostReplyIsNoLostLock(t *testing.T) {
	redis := testserver.StartRedis(t)
	proxy := testserver.StartProxy(t, redis.Address())
	client := connect(t, proxy.URL(), leasehold.RequestTimeout(50*time.Millisecond))
	// The server gets to know the scripts.
	if err := lock(t, client, "warm").Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.LoseReplies(true)
	granted := make(chan *leasehold.Lease)
	go func() {
		lease, err := client.Lock(t.Context(), "asked")
		if err != nil {
			t.Error(err)
		}
		granted <- lease
	}()
	// The server has granted it, and the answer is lost.
	for redis.Do("EXISTS", "asked") != ":1" {
		time.Sleep(time.Millisecond)
	}
	proxy.LoseReplies(false)
	lease := <-granted
	if lease == nil {
		return
	}
	// It is the grant that was lost, recognised: nobody waited for its record to expire.
	if err := lease.Check(20 * time.Second); err != nil {
		t.Error(err)
	}
	proxy.LoseReplies(true)
	released := make(chan error)
	go func() { released <- lease.Release(t.Context()) }()
	for redis.Do("EXISTS", "asked") != ":0" {
		time.Sleep(time.Millisecond)
	}
	proxy.LoseReplies(false)
	if err := <-released; err != nil {
		t.Error(err)
	}
}

func TestAContextThatIsDoneAtAnyAwaitLeavesNothingBehind(t *testing.T) {
	redis := testserver.StartRedis(t)
	proxy := testserver.StartProxy(t, redis.Address())
	client, other := connect(t, proxy.URL(), leasehold.RequestTimeout(50*time.Millisecond)), connect(t, redis.URL)
	if err := lock(t, client, "warm").Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"the first request", "a lost reply"} {
		proxy.LoseReplies(at == "a lost reply")
		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error)
		go func() {
			_, err := client.Lock(ctx, at)
			waiting <- err
		}()
		if at == "a lost reply" {
			for redis.Do("EXISTS", `"`+at+`"`) != ":1" {
				time.Sleep(time.Millisecond)
			}
		}
		cancel()
		if err := <-waiting; err != nil && ctx.Err() == nil {
			t.Errorf("at %s: %v", at, err)
		}
		proxy.LoseReplies(false)
		// What was granted all the same is released in the background, long before its 30 s.
		lease := lock(t, other, at, leasehold.Wait(10*time.Second))
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestAServerThatCannotBeReached(t *testing.T) {
	client := connect(t, "redis://127.0.0.1:1")
	_, err := client.Lock(t.Context(), "a", leasehold.Wait(0))
	if unreachable := wants(t, err, leasehold.ErrUnavailable); !strings.Contains(unreachable.Error(), "refused") {
		t.Error(unreachable)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

func TestAServerThatDoesNotLetUsIn(t *testing.T) {
	redis := testserver.StartRedis(t)
	redis.Do("CONFIG", "SET", "requirepass", "hunter2")
	for url, want := range map[string]error{
		redis.URL: leasehold.ErrRefused,
		strings.Replace(redis.URL, "redis://", "redis://:wrong@", 1):   leasehold.ErrRefused,
		strings.Replace(redis.URL, "redis://", "redis://:hunter2@", 1): nil,
	} {
		_, err := connect(t, url).Lock(t.Context(), "a", leasehold.Wait(0))
		if !errors.Is(err, want) {
			t.Errorf("%v, not %v", err, want)
		}
	}
}

func TestAReplicaIsRefused(t *testing.T) {
	redis := testserver.StartRedis(t)
	redis.Do("REPLICAOF", "127.0.0.1", "1")
	redis.Do("CONFIG", "SET", "replica-read-only", "no")
	_, err := connect(t, redis.URL).Lock(t.Context(), "a", leasehold.Wait(0))
	if !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), "slave") {
		t.Errorf("%v", err)
	}
}

// safeBuffer is a buffer that a goroutine writes and a test reads.
type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
