package leasehold_test

import (
	"context"
	"errors"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
)

func TestOneCandidateLeadsAtATime(t *testing.T) {
	redis := testserver.StartRedis(t)
	const terms = 5
	leading := 0
	ended := make(chan error)
	for range 2 {
		client := connect(t, redis.URL)
		go func() {
			for range terms {
				err := client.Lead(t.Context(), "leader", func(context.Context, *leasehold.Lease) error {
					// The race detector sees two at once.
					leading++
					return nil
				})
				if err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if leading != 2*terms {
		t.Errorf("%d terms", leading)
	}
}

func TestACandidateThatHasLostItsTermStandsAgain(t *testing.T) {
	redis := testserver.StartRedis(t)
	client := connect(t, redis.URL)
	var tokens []uint64
	resigned := errors.New("resigned")
	err := client.Lead(t.Context(), "leader", func(ctx context.Context, term *leasehold.Lease) error {
		if tokens = append(tokens, term.Token()); len(tokens) == 2 {
			return resigned
		}
		redis.Do("DEL", "leader")
		<-ctx.Done()
		return context.Cause(ctx)
	}, leasehold.TTL(300*time.Millisecond))
	if !errors.Is(err, resigned) || len(tokens) != 2 || tokens[1] <= tokens[0] {
		t.Errorf("%v after %v", err, tokens)
	}
	lock(t, client, "leader", leasehold.Wait(0))
}

func TestACandidateStandsUntilItsContextIsDone(t *testing.T) {
	redis := testserver.StartRedis(t)
	first, second := connect(t, redis.URL), connect(t, redis.URL)
	ctx, cancel := context.WithCancel(t.Context())
	lock(t, first, "leader")
	ended := make(chan error)
	go func() { ended <- second.Lead(ctx, "leader", unelected(t), leasehold.Wait(0)) }()
	isHeard(redis, "leader")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestALeaderWhoseContextIsDoneResigns(t *testing.T) {
	redis := testserver.StartRedis(t)
	client, other := connect(t, redis.URL), connect(t, redis.URL)
	ctx, cancel := context.WithCancel(t.Context())
	err := client.Lead(ctx, "leader", func(ctx context.Context, _ *leasehold.Lease) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	lock(t, other, "leader")
}

func TestAClosedClientStandsNoMore(t *testing.T) {
	client := connect(t, testserver.StartRedis(t).URL)
	err := client.Lead(t.Context(), "leader", func(ctx context.Context, _ *leasehold.Lease) error {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, leasehold.ErrReleased) {
		t.Error(err)
	}
	if err := client.Lead(t.Context(), "leader", unelected(t)); !errors.Is(err, leasehold.ErrClosed) {
		t.Error(err)
	}
}

func unelected(t *testing.T) func(context.Context, *leasehold.Lease) error {
	return func(context.Context, *leasehold.Lease) error {
		t.Error("it must not lead")
		return nil
	}
}
