package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
	"code.invalid/leasehold/go/leaseholdtest"
)

// deployed is the resource of the run in these tests.
const deployed = "deploy@live"

// result is what [leasehold.Client.Once] returns.
type result struct {
	outcome leasehold.Outcome
	err     error
}

// deploy begins a run, and returns where its end is told.
func deploy(
	ctx context.Context, client *leasehold.Client, work func(context.Context, *leasehold.Run) error, options ...leasehold.OnceOption,
) <-chan result {
	ended := make(chan result, 1)
	go func() {
		// It learns fast that its lease was revoked, which keeps others out for long.
		options = append(options, leasehold.RenewEvery(50*time.Millisecond), leasehold.TTL(50*time.Second))
		outcome, err := client.Once(ctx, "deploy", "live", work, options...)
		ended <- result{outcome, err}
	}()
	return ended
}

// asking makes a client tell what has come of each time that it has asked for the run. Before the first time it has taken its number.
func asking() (leasehold.ClientOption, <-chan error) {
	asked := make(chan error, 1000)
	return leasehold.Observe(leasehold.Observer{Decided: func(name string, _ time.Duration, err error) {
		if name == deployed {
			asked <- err
		}
	}}), asked
}

// busy is work that goes on after its lease was lost, until it is let go.
type busy struct {
	begun, told, letGo chan struct{}
	cause              error
	// working is how many work at this moment.
	working atomic.Int32
}

func newBusy() *busy {
	return &busy{begun: make(chan struct{}), told: make(chan struct{}), letGo: make(chan struct{})}
}

func (b *busy) work(ctx context.Context, _ *leasehold.Run) error {
	b.working.Add(1)
	defer b.working.Add(-1)
	close(b.begun)
	<-ctx.Done()
	b.cause = context.Cause(ctx)
	close(b.told)
	<-b.letGo
	return nil
}

// alone is work that nobody else may be at.
func (b *busy) alone(t *testing.T) func(context.Context, *leasehold.Run) error {
	return func(context.Context, *leasehold.Run) error {
		if others := b.working.Add(1) - 1; others != 0 {
			t.Errorf("%d others are at work", others)
		}
		b.working.Add(-1)
		return nil
	}
}

// isRevoked reports if a runner was told that it was revoked, and if nothing it did counts.
func (b *busy) isRevoked(t *testing.T, ended result) {
	t.Helper()
	if why := wants(t, b.cause, leasehold.ErrLost); why.Reason != "revoked" {
		t.Errorf("%+v", why)
	}
	if ended.outcome.Ran || !errors.Is(ended.err, leasehold.ErrLost) {
		t.Errorf("%+v, %v", ended.outcome, ended.err)
	}
}

func TestARequestThatFindsNobodyToReplaceRuns(t *testing.T) {
	redis := testserver.StartRedis(t)
	client := connect(t, redis.URL)
	got := <-deploy(t.Context(), client, func(context.Context, *leasehold.Run) error { return nil }, leasehold.Replace())
	if got.err != nil || !got.outcome.Ran {
		t.Errorf("%+v, %v", got.outcome, got.err)
	}
	for name, want := range map[string]string{
		deployed: ":0", deployed + "@newest": ":0",
		`"{deploy@live}\x1fdone of name"`: ":1", `"{deploy@live@newest}\x1fdone of name"`: ":1",
	} {
		if got := redis.Do("EXISTS", name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestARunnerIsReplacedOnceItHasEnded(t *testing.T) {
	redis := testserver.StartRedis(t)
	replaces(t, func(options ...leasehold.ClientOption) *leasehold.Client { return connect(t, redis.URL, options...) })
}

// Its lease is revoked, and it ends its work before it knows.
func TestWhatARunnerFinishesLateIsOlderWork(t *testing.T) {
	redis := testserver.StartRedis(t)
	begun, letGo, old := make(chan struct{}), make(chan struct{}), make(chan result, 1)
	client := connect(t, redis.URL)
	go func() {
		outcome, err := client.Once(t.Context(), "deploy", "live", func(context.Context, *leasehold.Run) error {
			close(begun)
			<-letGo
			return nil
		}, leasehold.TTL(time.Hour))
		old <- result{outcome, err}
	}()
	<-begun
	observed, asked := asking()
	newer := deploy(t.Context(), connect(t, redis.URL, observed), func(context.Context, *leasehold.Run) error { return nil }, leasehold.Replace())
	// Between these two it revokes the lease.
	<-asked
	<-asked
	close(letGo)
	for _, ended := range []<-chan result{old, newer} {
		if got := <-ended; got.err != nil || !got.outcome.Ran {
			t.Errorf("%+v, %v", got.outcome, got.err)
		}
	}
}

func TestARunnerOfTheSameClientIsReplaced(t *testing.T) {
	client := connect(t, testserver.StartRedis(t).URL)
	runner := newBusy()
	old := deploy(t.Context(), client, runner.work)
	<-runner.begun
	newer := deploy(t.Context(), client, runner.alone(t), leasehold.Replace(), leasehold.Wait(40*time.Second))
	<-runner.told
	close(runner.letGo)
	runner.isRevoked(t, <-old)
	if got := <-newer; got.err != nil || !got.outcome.Ran {
		t.Errorf("%+v, %v", got.outcome, got.err)
	}
}

// quorumOfThree is a quorum that was born.
func quorumOfThree(t *testing.T) (func(options ...leasehold.ClientOption) *leasehold.Client, []*leaseholdtest.Store) {
	t.Helper()
	var nodes []*leaseholdtest.Store
	var stores []leasehold.Store
	for range 3 {
		nodes = append(nodes, leaseholdtest.New(t))
		stores = append(stores, nodes[len(nodes)-1])
	}
	open := func(options ...leasehold.ClientOption) *leasehold.Client {
		client, err := leasehold.Open(leasehold.Quorum{ID: "00112233445566778899aabbccddeeff", Nodes: stores}, options...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	// A quorum is born on all of its nodes.
	if err := lock(t, open(), "first").Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	return open, nodes
}

func TestARunnerOnAQuorumIsReplacedWhileANodeIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, nodes := quorumOfThree(t)
		nodes[1].Down()
		replaces(t, open)
		// The number is not that of a minority.
		nodes[2].Down()
		got := <-deploy(t.Context(), open(), never(t), leasehold.Replace(), leasehold.EvenIfDone())
		wants(t, got.err, leasehold.ErrUnavailable)
	})
}

func TestTheNewestRequestIsKnownWhileOtherNodesAreDownThanWhenItTookItsNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, nodes := quorumOfThree(t)
		runner := newBusy()
		old := deploy(t.Context(), open(), runner.work)
		<-runner.begun
		nodes[2].Down()
		newer := deploy(t.Context(), open(), runner.alone(t), leasehold.Replace(), leasehold.Wait(time.Hour))
		<-runner.told
		// Of the nodes that show its number only one is left.
		nodes[2].Up()
		nodes[1].Down()
		close(runner.letGo)
		runner.isRevoked(t, <-old)
		if got := <-newer; got.err != nil || !got.outcome.Ran {
			t.Errorf("%+v, %v", got.outcome, got.err)
		}
	})
}

// replaces has a runner replaced, who goes on for a while.
func replaces(t *testing.T, connect func(options ...leasehold.ClientOption) *leasehold.Client) {
	t.Helper()
	observed, asked := asking()
	runner := newBusy()
	old := deploy(t.Context(), connect(), runner.work)
	<-runner.begun
	// Far longer than it takes, and shorter than the lease.
	newer := deploy(t.Context(), connect(observed), runner.alone(t), leasehold.Replace(), leasehold.Wait(40*time.Second))
	<-runner.told
	// It is told while the newer request asks for the second time.
	for range 2 {
		if err := <-asked; err == nil {
			t.Fatal("it is granted while its runner is at work")
		}
	}
	close(runner.letGo)
	runner.isRevoked(t, <-old)
	if got := <-newer; got.err != nil || !got.outcome.Ran {
		t.Errorf("%+v, %v", got.outcome, got.err)
	}
}

func TestTheNewestOfThreeRequestsRuns(t *testing.T) {
	redis := testserver.StartRedis(t)
	runner := newBusy()
	old := deploy(t.Context(), connect(t, redis.URL), runner.work)
	<-runner.begun
	var requests []<-chan result
	for range 3 {
		observed, asked := asking()
		requests = append(requests, deploy(t.Context(), connect(t, redis.URL, observed), runner.alone(t), leasehold.Replace()))
		<-asked
	}
	close(runner.letGo)
	runner.isRevoked(t, <-old)
	for n, request := range requests {
		got := <-request
		want := leasehold.Outcome{Replaced: n < 2, Ran: n == 2}
		if got.err != nil || got.outcome != want {
			t.Errorf("request %d: %+v, %v", n, got.outcome, got.err)
		}
	}
}

func TestWorkThatWasDoneBeforeTheRequestIsNotDoneAgain(t *testing.T) {
	client := connect(t, testserver.StartRedis(t).URL, leasehold.Label("first"))
	work := func(context.Context, *leasehold.Run) error { return nil }
	if got := <-deploy(t.Context(), client, work); got.err != nil || !got.outcome.Ran {
		t.Fatalf("%+v, %v", got.outcome, got.err)
	}
	got := <-deploy(t.Context(), client, never(t), leasehold.Replace())
	if got.err != nil || got.outcome.Done == nil || got.outcome.Done.Owner != "first" || got.outcome.Ran {
		t.Errorf("%+v, %v", got.outcome, got.err)
	}
	got = <-deploy(t.Context(), client, work, leasehold.Replace(), leasehold.EvenIfDone())
	if got.err != nil || !got.outcome.Ran {
		t.Errorf("%+v, %v", got.outcome, got.err)
	}
}

func TestARunnerThatDoesNotEndIsRunning(t *testing.T) {
	redis := testserver.StartRedis(t)
	runner := newBusy()
	old := deploy(t.Context(), connect(t, redis.URL, leasehold.Label("first")), runner.work)
	<-runner.begun
	got := <-deploy(t.Context(), connect(t, redis.URL), never(t), leasehold.Replace(), leasehold.Wait(300*time.Millisecond))
	if who := got.outcome.Holder; got.err != nil || !got.outcome.Running || who == nil || who.Owner != "first" {
		t.Errorf("%+v, %v", got.outcome, got.err)
	}
	close(runner.letGo)
	runner.isRevoked(t, <-old)
}

func TestWhatCannotReplaceIsRefused(t *testing.T) {
	redis := testserver.StartRedis(t)
	client := connect(t, redis.URL)
	for why, options := range map[string][]leasehold.OnceOption{
		"ttl is 1 ms":                                 {leasehold.TTL(time.Millisecond)},
		"cannot also count attempts":                  {leasehold.MaxAttempts(3)},
		"waits for it to end: give a wait above zero": {leasehold.Wait(0)},
		"wait: -1s is not a duration: give 0 or more": {leasehold.Wait(-time.Second)},
	} {
		_, err := client.Once(t.Context(), "a", "1", never(t), append(options, leasehold.Replace())...)
		if refused := wants(t, err, leasehold.ErrConfig); !strings.Contains(refused.Error(), why) {
			t.Errorf("%v, not %q", refused, why)
		}
	}
	if found := redis.Do("DBSIZE"); found != ":0" {
		t.Errorf("a request that is wrong has taken the place of others: %s records", found)
	}
	_, err := client.Once(t.Context(), strings.Repeat("n", 1016), "1", never(t), leasehold.Replace())
	if want := "for a runner to be replaced, has 1018 bytes; at most 1017 are allowed"; !strings.Contains(wants(t, err, leasehold.ErrConfig).Error(), want) {
		t.Error(err)
	}
	outcome, err := client.Once(t.Context(), "a", "1", func(ctx context.Context, run *leasehold.Run) error {
		_, err := client.Once(ctx, "a", "1", never(t), leasehold.Replace())
		if refused := wants(t, err, leasehold.ErrConfig); !strings.Contains(refused.Error(), `"a@1": the caller runs the work itself`) {
			t.Error(refused)
		}
		return run.Check(0)
	})
	if err != nil || !outcome.Ran {
		t.Errorf("%+v, %v", outcome, err)
	}
}

func TestARequestThatIsCancelledWhileItWaitsLeavesNothingLocked(t *testing.T) {
	redis := testserver.StartRedis(t)
	runner := newBusy()
	old := deploy(t.Context(), connect(t, redis.URL), runner.work)
	<-runner.begun
	ctx, cancel := context.WithCancelCause(t.Context())
	newer := deploy(ctx, connect(t, redis.URL), never(t), leasehold.Replace())
	<-runner.told
	tired := errors.New("tired")
	cancel(tired)
	got := <-newer
	if !errors.Is(got.err, context.Canceled) || !errors.Is(got.err, tired) || got.outcome != (leasehold.Outcome{}) {
		t.Errorf("%+v, %v", got.outcome, got.err)
	}
	close(runner.letGo)
	runner.isRevoked(t, <-old)
	// Sent in the background, so it may take a moment.
	for redis.Do("EXISTS", deployed, deployed+"@newest") != ":0" {
		time.Sleep(time.Millisecond)
	}
}

// Each answer takes 100 ms: the context ends during each of the steps, also with the run in hand.
func TestWhereverTheContextEndsNothingStaysLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		client, rival := store.Connect(), store.Connect()
		for steps := range 6 {
			name := fmt.Sprint("deploy", steps)
			store.Late(100 * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(steps)*100*time.Millisecond+50*time.Millisecond)
			outcome, err := client.Once(ctx, name, "1", func(context.Context, *leasehold.Run) error { return nil }, leasehold.Replace())
			cancel()
			if is := errors.Is(err, context.DeadlineExceeded); is != (steps < 5) || outcome.Ran == is {
				t.Errorf("after %d steps: %+v, %v", steps, outcome, err)
			}
			store.Late(0)
			time.Sleep(time.Second)
			for _, resource := range []string{name + "@1", name + "@1@newest"} {
				lock(t, rival, resource, leasehold.Wait(0))
			}
		}
	})
}

func TestARequestGoesOnWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		runner := newBusy()
		old := deploy(t.Context(), store.Connect(), runner.work)
		<-runner.begun
		newer := deploy(t.Context(), store.Connect(), runner.alone(t), leasehold.Replace())
		<-runner.told
		store.Down()
		time.Sleep(10 * time.Minute)
		close(runner.letGo)
		runner.isRevoked(t, <-old)
		store.Up()
		if got := <-newer; got.err != nil || !got.outcome.Ran {
			t.Errorf("%+v, %v", got.outcome, got.err)
		}
		// Before it has a number, it has taken nobody's place.
		store.Down()
		got := <-deploy(t.Context(), store.Connect(), never(t), leasehold.Replace(), leasehold.EvenIfDone())
		wants(t, got.err, leasehold.ErrUnavailable)
	})
}
