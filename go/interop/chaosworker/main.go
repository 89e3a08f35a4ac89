// The worker of `cargo xtask chaos` in Go; those in Rust, Python and JavaScript do the same.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/core"
)

const (
	look      = 5 * time.Millisecond
	stall     = 10 * time.Millisecond
	patience  = 10 * time.Second
	bareWork  = 20 * time.Millisecond
	work      = 3 * time.Millisecond
	slip      = time.Millisecond
	long      = 4
	maxRounds = 6
	unwatched = 4
)

var task struct {
	Name         string
	Stores       []string
	MaxTTLMs     *int64 `json:"max_ttl_ms"`
	QuorumID     string `json:"quorum_id"`
	Lock         string
	TTLMs        int64 `json:"ttl_ms"`
	Counters     string
	Mark         string
	Write        string
	GuardedWrite string `json:"guarded_write"`
}

var (
	server *redis.Client
	guards = core.New().FenceRedis()
	held   atomic.Pointer[leasehold.Lease]
)

// now is the clock that all journals share.
func now() int64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		panic(err)
	}
	return at.Nano()
}

type more map[string]any

func say(what string, and more) { sayAt(now(), what, and) }

func sayAt(at int64, what string, and more) {
	line := more{"at": at, "what": what}
	for name, value := range and {
		line[name] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	// One write, so that a line is there whole or not at all.
	_, _ = os.Stdout.Write(append(text, '\n'))
}

// endOf is when a lease ends. The clock comes first: whatever comes between makes the end look earlier, never later.
func endOf(lease *leasehold.Lease) (at, until int64) {
	at = now()
	return at, at + int64(lease.Remaining())
}

func pause(most time.Duration) { time.Sleep(rand.N(most)) }

func watch() {
	var knownToken uint64
	var knownUntil int64
	last := now()
	for {
		time.Sleep(look)
		at := now()
		if at-last > int64(look+stall) {
			say("stalled", more{"from": last})
		}
		last = at
		lease := held.Load()
		if lease == nil {
			continue
		}
		token := lease.Token()
		at, until := endOf(lease)
		if (token != knownToken || until > knownUntil+1_000_000) && until > at {
			knownToken, knownUntil = token, until
			sayAt(at, "valid", more{"token": token, "until": until})
		}
	}
}

func isLost(lease *leasehold.Lease) bool { return errors.Is(lease.Check(0), leasehold.ErrLost) }

// accepted judges the reply of a guard: the token, or a higher one of a later holder.
func accepted(lease *leasehold.Lease, reply any) bool {
	if reply == int64(lease.Token()) {
		return true
	}
	if n, is := reply.(int64); !is || n < 0 {
		panic("the guard has answered with something else")
	}
	say("refused", more{"token": lease.Token(), "valid": lease.Remaining() > 0})
	return false
}

func ask(script string, keys []string, args ...any) any {
	reply, err := server.Eval(context.Background(), script, keys, args...).Result()
	if err != nil {
		panic(err)
	}
	return reply
}

func number(counter string) int {
	value, err := server.Get(context.Background(), counter).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		panic(err)
	}
	return value
}

func write(counter string, value int, token uint64) {
	ask(task.Write, []string{counter, counter + "-log"}, value, token)
}

// use writes under the lock, and tells if the lease lasted.
func use(lease *leasehold.Lease) bool {
	token := strconv.FormatUint(lease.Token(), 10)
	if !accepted(lease, ask(guards.Claim, []string{task.Mark}, token)) {
		return !isLost(lease)
	}
	isLong := rand.IntN(long) == 0
	for range 1 + rand.IntN(maxRounds) {
		locked, guarded := number("locked"), number("guarded")
		pause(work)
		at := now()
		if err := lease.Check(0); err != nil {
			say("lost", more{"token": lease.Token()})
			return false
		}
		sayAt(at, "checked", more{"token": lease.Token()})
		pause(slip)
		write("locked", locked+1, lease.Token())
		reply := ask(guards.Function+task.GuardedWrite, []string{task.Mark, "guarded", "guarded-log"}, token, guarded+1, token)
		if !accepted(lease, reply) {
			return !isLost(lease)
		}
		if isLong {
			pause(time.Duration(task.TTLMs) * time.Millisecond / 2)
		}
	}
	return true
}

func hold(lease *leasehold.Lease) {
	notified := make(chan struct{})
	context.AfterFunc(lease.Context(), func() {
		if errors.Is(context.Cause(lease.Context()), leasehold.ErrLost) {
			say("notified", more{"token": lease.Token()})
			close(notified)
		}
	})
	lost := true
	if use(lease) {
		say("releasing", more{"token": lease.Token()})
		err := lease.Release(context.Background())
		lost = errors.Is(err, leasehold.ErrLost)
		switch {
		case err == nil:
			say("released", more{"token": lease.Token()})
		case lost:
			say("lost", more{"token": lease.Token()})
		default:
			say("failed", more{"kind": kind(err)})
		}
	}
	if lost {
		select {
		case <-notified:
		case <-time.After(patience):
			say("not_notified", more{"token": lease.Token()})
		}
	}
}

// kind is an error's name in other languages.
func kind(err error) string {
	for of, name := range map[error]string{
		leasehold.ErrBusy: "lock_busy", leasehold.ErrTimeout: "lock_timeout", leasehold.ErrUnavailable: "store_unavailable",
	} {
		if errors.Is(err, of) {
			return name
		}
	}
	panic(err)
}

func store() leasehold.Store {
	nodes := make([]leasehold.Store, len(task.Stores))
	for i, url := range task.Stores {
		nodes[i] = leasehold.Redis{URL: url}
	}
	if task.MaxTTLMs == nil {
		return nodes[0]
	}
	maxTTL := time.Duration(*task.MaxTTLMs) * time.Millisecond
	return leasehold.Quorum{ID: task.QuorumID, Nodes: nodes, MaxTTL: maxTTL}
}

func main() {
	if err := json.Unmarshal([]byte(os.Args[1]), &task); err != nil {
		panic(err)
	}
	server = redis.NewClient(&redis.Options{Network: "unix", Addr: task.Counters})
	client, err := leasehold.Open(store(), leasehold.Label(task.Name))
	if err != nil {
		panic(err)
	}
	ttl := time.Duration(task.TTLMs) * time.Millisecond
	say("started", nil)
	go watch()
	for {
		bare := number("bare")
		pause(bareWork)
		write("bare", bare+1, 0)
		say("asked", nil)
		lease, err := client.Lock(context.Background(), task.Lock, leasehold.TTL(ttl), leasehold.Wait(5*ttl))
		if err != nil {
			say("failed", more{"kind": kind(err)})
		} else {
			isWatched := rand.IntN(unwatched) > 0
			_, until := endOf(lease)
			say("granted", more{"token": lease.Token(), "until": until, "watched": isWatched})
			if isWatched {
				held.Store(lease)
			}
			hold(lease)
			held.Store(nil)
		}
		pause(ttl / 10)
	}
}
