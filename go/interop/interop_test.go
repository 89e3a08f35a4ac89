// Package interop holds locks beside other libraries for Go, on the same keys of one Redis.
package interop

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	goredispool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
)

const name = "invoice/42"

// peer takes a lock of another library once, and returns what frees it.
type peer struct {
	name string
	take func(ctx context.Context) (release func() error, err error)
}

func start(t *testing.T) (*leasehold.Client, *goredis.Client, []peer) {
	server := testserver.StartRedis(t)
	client, err := leasehold.Connect(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	redis := goredis.NewClient(&goredis.Options{Addr: server.Address()})
	t.Cleanup(func() {
		_ = client.Close()
		_ = redis.Close()
	})
	locker, sync := redislock.New(redis), redsync.New(goredispool.NewPool(redis))
	return client, redis, []peer{
		{"redsync", func(ctx context.Context) (func() error, error) {
			mutex := sync.NewMutex(name, redsync.WithExpiry(30*time.Second), redsync.WithTries(1))
			release := func() error {
				_, err := mutex.UnlockContext(context.WithoutCancel(ctx))
				return err
			}
			return release, mutex.LockContext(ctx)
		}},
		{"redislock", func(ctx context.Context) (func() error, error) {
			lock, err := locker.Obtain(ctx, name, 30*time.Second, nil)
			return func() error { return lock.Release(context.WithoutCancel(ctx)) }, err
		}},
	}
}

func TestALockOfAnotherLibraryIsRespected(t *testing.T) {
	client, _, peers := start(t)
	for _, peer := range peers {
		release, err := peer.take(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", peer.name, err)
		}
		_, err = client.Lock(t.Context(), name, leasehold.Wait(0))
		var busy *leasehold.Error
		if !errors.As(err, &busy) || busy.Kind != leasehold.ErrBusy || busy.Holder == nil || !busy.Holder.Foreign {
			t.Errorf("%s: %v", peer.name, err)
		}
		if err := release(); err != nil {
			t.Errorf("%s: %v", peer.name, err)
		}
		lease, err := client.Lock(t.Context(), name)
		if err != nil {
			t.Fatalf("%s: %v", peer.name, err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestALockOfOursIsRespectedByOtherLibraries(t *testing.T) {
	client, redis, peers := start(t)
	lease, err := client.Lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, peer := range peers {
		if _, err := peer.take(t.Context()); err == nil {
			t.Errorf("%s has a lock of ours", peer.name)
		}
	}
	if held := redis.Exists(t.Context(), name).Val(); held != 1 || lease.Check(0) != nil {
		t.Error("it is gone")
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, peer := range peers {
		release, err := peer.take(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", peer.name, err)
		}
		if err := release(); err != nil {
			t.Errorf("%s: %v", peer.name, err)
		}
	}
}

// Contended increments: a read, and a write of one more, under the lock of any of the libraries.
func TestNoIncrementIsLost(t *testing.T) {
	client, redis, peers := start(t)
	ours := peer{"ours", func(ctx context.Context) (func() error, error) {
		lease, err := client.Lock(ctx, name)
		if err != nil {
			return nil, err
		}
		return func() error { return lease.Release(ctx) }, nil
	}}
	const workers, rounds = 3, 20
	var all sync.WaitGroup
	for _, peer := range append(peers, ours) {
		for range workers {
			all.Go(func() {
				for range rounds {
					release, err := peer.take(t.Context())
					for err != nil {
						time.Sleep(time.Millisecond)
						release, err = peer.take(t.Context())
					}
					count, _ := redis.Get(t.Context(), "count").Int()
					redis.Set(t.Context(), "count", count+1, 0)
					if err := release(); err != nil {
						t.Errorf("%s: %v", peer.name, err)
					}
				}
			})
		}
	}
	all.Wait()
	if count, _ := redis.Get(t.Context(), "count").Int(); count != 3*workers*rounds {
		t.Errorf("%d increments", count)
	}
}
