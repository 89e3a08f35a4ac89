package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	theirs "github.com/redis/rueidis"

	leasehold "code.invalid/leasehold/go"
	ours "code.invalid/leasehold/go/goredis"
	"code.invalid/leasehold/go/internal/behaviours"
	"code.invalid/leasehold/go/internal/testserver"
	"code.invalid/leasehold/go/rueidis"
)

// A group is a Redis Cluster, or servers under Sentinels.
type group struct {
	// kind is that of the servers of tests.
	kind string
	// of makes a connection of the addresses of nodes, or of Sentinels.
	of func(t testing.TB, addresses []string) leasehold.RedisConn
}

var groups = map[string]group{
	"a cluster, by go-redis": {"cluster", func(t testing.TB, addresses []string) leasehold.RedisConn {
		client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: addresses})
		t.Cleanup(func() { _ = client.Close() })
		return ours.OfCluster(client)
	}},
	"a cluster, by rueidis": {"cluster", func(_ testing.TB, addresses []string) leasehold.RedisConn {
		return rueidis.WithCluster(theirs.ClientOption{InitAddress: addresses})
	}},
	"Sentinels, by go-redis": {"sentinel", func(_ testing.TB, addresses []string) leasehold.RedisConn {
		return ours.WithSentinels(&goredis.FailoverOptions{MasterName: "main", SentinelAddrs: addresses})
	}},
	"Sentinels, by rueidis": {"sentinel", func(_ testing.TB, addresses []string) leasehold.RedisConn {
		return rueidis.With(theirs.ClientOption{InitAddress: addresses, Sentinel: theirs.SentinelOption{MasterSet: "main"}})
	}},
}

// servers is a group that was started.
type servers struct {
	// first has the addresses that a client is given.
	first []string
	// master is the server that is killed in a failover, and replica the one that takes over.
	master, replica string
	obey            func(order string)
}

func startGroup(t *testing.T, kind string) servers {
	t.Helper()
	facts, obey := testserver.StartToObey(t, kind)
	at := func(of string) (addresses []string) {
		for _, port := range facts[of].([]any) {
			addresses = append(addresses, fmt.Sprintf("127.0.0.1:%v", port))
		}
		return addresses
	}
	nodes := at("ports")
	if kind == "cluster" {
		return servers{nodes, nodes[0], nodes[3], obey}
	}
	pair := at("servers")
	return servers{nodes, pair[0], pair[1], obey}
}

// alone is a client of one server of a group.
func alone(t *testing.T, address string) *goredis.Client {
	redis := goredis.NewClient(&goredis.Options{Addr: address})
	t.Cleanup(func() { _ = redis.Close() })
	return redis
}

// nameOn is a name that a server keeps, and elsewhere one that it does not, if there is one.
func nameOn(t *testing.T, redis *goredis.Client) (name, elsewhere string) {
	t.Helper()
	for n := 0; name == "" || elsewhere == ""; n++ {
		tried := fmt.Sprint("name ", n)
		switch err := redis.Exists(t.Context(), tried).Err(); {
		case err == nil:
			name = tried
		case strings.HasPrefix(err.Error(), "MOVED "):
			elsewhere = tried
		default:
			t.Fatal(err)
		}
		if n == 1000 {
			break
		}
	}
	return name, elsewhere
}

// isRenewed waits until a renewal reaches a server.
func isRenewed(t *testing.T, lease *leasehold.Lease, redis *goredis.Client, name string) {
	t.Helper()
	left := func() time.Duration {
		// It changes nothing where no slot is being moved.
		pipe := redis.Pipeline()
		pipe.Do(t.Context(), "ASKING")
		found := pipe.PTTL(t.Context(), name)
		_, _ = pipe.Exec(t.Context())
		return found.Val()
	}
	// Less and less is left, until it is renewed.
	for before, now := left(), left(); before <= 0 || now <= before; before, now = now, left() {
		if err := lease.Check(0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestGroupsOfRedisBehave(t *testing.T) {
	for name, group := range groups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := startGroup(t, group.kind).first
			behaviours.Run(t, behaviours.Of(func() leasehold.Store { return leasehold.RedisOver{Conn: group.of(t, at)} }))
		})
	}
}

// Holders go on, and waiters wait until they are done.
func TestAGroupOfRedisFailsOver(t *testing.T) {
	for name, group := range groups {
		t.Run("when the master is killed, "+name, func(t *testing.T) { failOver(t, group, "failover") })
		t.Run("when the master becomes a replica, "+name, func(t *testing.T) { failOver(t, group, "switch") })
	}
}

func failOver(t *testing.T, group group, order string) {
	t.Parallel()
	at := startGroup(t, group.kind)
	name, _ := nameOn(t, alone(t, at.master))
	holder := client(t, leasehold.RedisOver{Conn: group.of(t, at.first)})
	other := client(t, leasehold.RedisOver{Conn: group.of(t, at.first)})
	lease, err := holder.Lock(t.Context(), name, leasehold.TTL(30*time.Second), leasehold.RenewEvery(200*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		next, err := other.Lock(t.Context(), name)
		if err == nil && next.Token() <= lease.Token() {
			err = fmt.Errorf("token %d after %d", next.Token(), lease.Token())
		}
		waiting <- err
	}()
	at.obey(order)
	isRenewed(t, lease, alone(t, at.replica), name)
	if role := alone(t, at.master).Do(t.Context(), "ROLE"); group.kind == "sentinel" && order == "switch" && !strings.Contains(role.String(), "master") {
		// It takes what it is sent until Sentinels make it a replica, 8 s later, and loses it then.
		t.Errorf("the old master was used until it was none: %v", role)
	}
	select {
	case err := <-waiting:
		t.Errorf("it is held: %v", err)
	default:
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}

// First the old node answers for the slot, and sends on what it has no longer; then it sends everything on.
func TestASlotThatMovesTakesItsLocksAlong(t *testing.T) {
	for name, group := range groups {
		if group.kind != "cluster" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := startGroup(t, group.kind)
			name, _ := nameOn(t, alone(t, at.master))
			// That is where the first master's names go.
			to := alone(t, at.first[1])
			holder := client(t, leasehold.RedisOver{Conn: group.of(t, at.first)})
			other := client(t, leasehold.RedisOver{Conn: group.of(t, at.first)})
			lease, err := holder.Lock(t.Context(), name, leasehold.TTL(time.Minute), leasehold.RenewEvery(100*time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			for _, order := range []string{"move ", "moved "} {
				at.obey(order + name)
				isRenewed(t, lease, to, name)
				if _, err := other.Lock(t.Context(), name, leasehold.Wait(0)); !errors.Is(err, leasehold.ErrBusy) {
					t.Errorf("%s: %v", order, err)
				}
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := other.Lock(t.Context(), name); err != nil {
				t.Error(err)
			}
		})
	}
}

// A server of a group by itself, a name that a cluster cannot keep: nobody is kept waiting for what will never be.
func TestWhatAGroupOfRedisCannotDoIsRefused(t *testing.T) {
	cluster := startGroup(t, "cluster")
	name, elsewhere := nameOn(t, alone(t, cluster.master))
	for by, store := range map[string]leasehold.Store{
		"our own connection": leasehold.Redis{URL: "redis://" + cluster.master},
		"go-redis":           leasehold.RedisOver{Conn: ours.Of(alone(t, cluster.master))},
		"rueidis":            leasehold.RedisOver{Conn: rueidis.With(theirs.ClientOption{InitAddress: cluster.first})},
	} {
		t.Run(by, func(t *testing.T) {
			locks := client(t, store)
			lease, err := locks.Lock(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := locks.Lock(t.Context(), elsewhere); !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "Redis Cluster") {
				t.Errorf("%v", err)
			}
		})
	}
	for name, group := range groups {
		if group.kind != "cluster" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			locks := client(t, leasehold.RedisOver{Conn: group.of(t, cluster.first)})
			for _, name := range []string{"a}b", "{}x"} {
				if _, err := locks.Lock(t.Context(), name); !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "hash tag") {
					t.Errorf("%s: %v", name, err)
				}
				work := func(context.Context, *leasehold.Run) error { return nil }
				if _, err := locks.Once(t.Context(), name, "1", work); !errors.Is(err, leasehold.ErrRefused) {
					t.Errorf("%s: %v", name, err)
				}
			}
			lease, err := locks.Lock(t.Context(), "{a}b}")
			if err != nil {
				t.Fatal(err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestASentinelByItselfKeepsNoLocks(t *testing.T) {
	at := startGroup(t, "sentinel").first[0]
	for by, given := range map[string]struct {
		store leasehold.Store
		kind  error
		says  string
	}{
		"our own connection": {leasehold.Redis{URL: "redis://" + at}, leasehold.ErrUnavailable, "is a Sentinel"},
		"go-redis":           {leasehold.RedisOver{Conn: ours.Of(alone(t, at))}, leasehold.ErrRefused, "unknown command"},
		"rueidis": {
			leasehold.RedisOver{Conn: rueidis.With(theirs.ClientOption{InitAddress: []string{at}})}, leasehold.ErrRefused, "unknown command",
		},
	} {
		t.Run(by, func(t *testing.T) {
			_, err := client(t, given.store).Lock(t.Context(), name, leasehold.Wait(0))
			if !errors.Is(err, given.kind) || !strings.Contains(err.Error(), given.says) {
				t.Errorf("%v", err)
			}
		})
	}
}
