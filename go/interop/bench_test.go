package interop

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsm/redislock"
	goredis "github.com/redis/go-redis/v9"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
)

// A pair is an acquire and a release of a free lock. Beside each other: go test -run - -bench Pair -count 5
func BenchmarkPair(b *testing.B) {
	server := testserver.StartRedis(b)
	client, err := leasehold.Connect(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	redis := goredis.NewClient(&goredis.Options{Addr: server.Address(), PoolSize: 64})
	defer redis.Close()
	locker := redislock.New(redis)
	var last atomic.Int64
	ours := func(name string) error {
		lease, err := client.Lock(b.Context(), name)
		if err != nil {
			return err
		}
		return lease.Release(b.Context())
	}
	theirs := func(name string) error {
		lock, err := locker.Obtain(b.Context(), name, 30*time.Second, nil)
		if err != nil {
			return err
		}
		return lock.Release(b.Context())
	}
	for _, peer := range []struct {
		name string
		pair func(string) error
	}{{"leasehold", ours}, {"redislock", theirs}} {
		b.Run(peer.name+"/one", func(b *testing.B) {
			for b.Loop() {
				if err := peer.pair("alone"); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(peer.name+"/64", func(b *testing.B) {
			b.SetParallelism(32) // For each of two cores.
			b.RunParallel(func(pb *testing.PB) {
				name := fmt.Sprint("worker/", last.Add(1))
				for pb.Next() {
					if err := peer.pair(name); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
