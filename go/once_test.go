package leasehold_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
)

func TestWorkIsDoneOnce(t *testing.T) {
	redis := testserver.StartRedis(t)
	first, second := connect(t, redis.URL, leasehold.Label("first")), connect(t, redis.URL)
	times := 0
	var token uint64
	work := func(_ context.Context, run *leasehold.Run) error {
		times++
		token = run.Token()
		return nil
	}
	outcome, err := first.Once(t.Context(), "report", "2026-11-24", work)
	if err != nil || !outcome.Ran {
		t.Fatalf("%+v, %v", outcome, err)
	}
	outcome, err = second.Once(t.Context(), "report", "2026-11-24", work, leasehold.Keep(time.Hour))
	done := outcome.Done
	if err != nil || outcome.Ran || done == nil || done.Owner != "first" || done.Token != token {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if week := 7 * 24 * time.Hour; done.Left <= week-time.Hour || done.Left > week || done.At.IsZero() {
		t.Errorf("%+v", done)
	}
	if _, err := second.Once(t.Context(), "report", "2026-11-25", work); err != nil {
		t.Error(err)
	}
	if _, err := second.Once(t.Context(), "report", "2026-11-24", work, leasehold.EvenIfDone()); err != nil {
		t.Error(err)
	}
	if times != 3 {
		t.Errorf("done %d times", times)
	}
}

func TestASecondWorkerLearnsWhoIsAtIt(t *testing.T) {
	redis := testserver.StartRedis(t)
	first, second := connect(t, redis.URL, leasehold.Label("first")), connect(t, redis.URL)
	outcome, err := first.Once(t.Context(), "bill", "42", func(ctx context.Context, _ *leasehold.Run) error {
		outcome, err := second.Once(ctx, "bill", "42", never(t))
		if err != nil || !outcome.Running || outcome.Holder == nil || outcome.Holder.Owner != "first" {
			t.Errorf("%+v, %v", outcome, err)
		}
		return nil
	})
	if err != nil || !outcome.Ran {
		t.Errorf("%+v, %v", outcome, err)
	}
}

func TestWorkThatFailsIsLeftToTheNextOne(t *testing.T) {
	client := connect(t, testserver.StartRedis(t).URL)
	broken := errors.New("the printer is on fire")
	outcome, err := client.Once(t.Context(), "print", "1", func(context.Context, *leasehold.Run) error { return broken })
	if outcome.Ran || !errors.Is(err, broken) {
		t.Errorf("%+v, %v", outcome, err)
	}
	func() {
		defer func() {
			if recover() != "ouch" {
				t.Error("the panic is gone")
			}
		}()
		_, _ = client.Once(t.Context(), "print", "1", func(context.Context, *leasehold.Run) error { panic("ouch") })
	}()
	outcome, err = client.Once(t.Context(), "print", "1", func(context.Context, *leasehold.Run) error { return nil })
	if err != nil || !outcome.Ran {
		t.Errorf("%+v, %v", outcome, err)
	}
}

func TestWorkUnderALostLeaseHasNoCompletion(t *testing.T) {
	redis := testserver.StartRedis(t)
	client := connect(t, redis.URL)
	outcome, err := client.Once(t.Context(), "slow", "1", func(ctx context.Context, run *leasehold.Run) error {
		redis.Do("DEL", "slow@1")
		<-ctx.Done()
		return nil
	}, leasehold.TTL(300*time.Millisecond))
	if outcome.Ran || !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("%+v, %v", outcome, err)
	}
}

func TestAFinishWhoseReplyIsLostIsConfirmed(t *testing.T) {
	redis := testserver.StartRedis(t)
	proxy := testserver.StartProxy(t, redis.Address())
	client := connect(t, proxy.URL(), leasehold.RequestTimeout(50*time.Millisecond))
	// The server gets to know the scripts.
	if _, err := client.Once(t.Context(), "warm", "1", func(context.Context, *leasehold.Run) error { return nil }); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := client.Once(t.Context(), "lossy", "1", func(context.Context, *leasehold.Run) error {
			proxy.LoseReplies(true)
			return nil
		})
		ended <- err
	}()
	// The completion stands before anybody here knows.
	for redis.Do("EXISTS", `"{lossy@1}\x1fdone of name"`) != ":1" {
		time.Sleep(time.Millisecond)
	}
	proxy.LoseReplies(false)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestARunWithoutAKeyIsRefused(t *testing.T) {
	client := connect(t, testserver.StartRedis(t).URL)
	if _, err := client.Once(t.Context(), "job", "", never(t)); !errors.Is(err, leasehold.ErrConfig) {
		t.Error(err)
	}
	_, err := client.Once(t.Context(), "job", "1", never(t), leasehold.Keep(time.Second))
	if !errors.Is(err, leasehold.ErrConfig) || !strings.Contains(err.Error(), "keep") {
		t.Error(err)
	}
}

func never(t *testing.T) func(context.Context, *leasehold.Run) error {
	return func(context.Context, *leasehold.Run) error {
		t.Error("this work must not be done")
		return nil
	}
}
