package interop

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	cron "github.com/go-co-op/gocron/v2"
	goredis "github.com/redis/go-redis/v9"
	theirs "github.com/redis/rueidis"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/gocron"
	ours "code.invalid/leasehold/go/goredis"
	"code.invalid/leasehold/go/internal/behaviours"
	"code.invalid/leasehold/go/internal/testserver"
	"code.invalid/leasehold/go/leaseholdtest"
	"code.invalid/leasehold/go/otel"
	"code.invalid/leasehold/go/rueidis"
)

func TestARedisBehavesByGoRedis(t *testing.T) {
	redis := goredis.NewClient(&goredis.Options{Addr: testserver.StartRedis(t).Address()})
	t.Cleanup(func() { _ = redis.Close() })
	behaviours.Run(t, behaviours.Of(func() leasehold.Store { return leasehold.RedisOver{Conn: ours.Of(redis)} }))
}

func TestARedisBehavesByRueidis(t *testing.T) {
	option := theirs.ClientOption{InitAddress: []string{testserver.StartRedis(t).Address()}}
	behaviours.Run(t, behaviours.Of(func() leasehold.Store { return leasehold.RedisOver{Conn: rueidis.With(option)} }))
}

// Where nothing has left, the protocol may say so: nobody listens, the connection was closed, or nobody waits any more.
func TestAnAdapterTellsWhatWasNotSent(t *testing.T) {
	const nobody = "127.0.0.1:1"
	for name, connect := range map[string]func(address string) leasehold.RedisConn{
		"go-redis": func(address string) leasehold.RedisConn {
			redis := goredis.NewClient(&goredis.Options{Addr: address})
			t.Cleanup(func() { _ = redis.Close() })
			return ours.Of(redis)
		},
		"rueidis": func(address string) leasehold.RedisConn {
			return rueidis.With(theirs.ClientOption{InitAddress: []string{address}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ping := [][][]byte{{[]byte("PING")}}
			done, cancel := context.WithCancel(t.Context())
			cancel()
			unreachable, closed, working := connect(nobody), connect(testserver.StartRedis(t).Address()), connect(testserver.StartRedis(t).Address())
			for _, conn := range []leasehold.RedisConn{closed, working} {
				if _, sent, err := conn.Do(t.Context(), ping); err != nil || !sent {
					t.Fatalf("sent %v, %v", sent, err)
				}
			}
			if err := closed.Close(); err != nil {
				t.Error(err)
			}
			for why, of := range map[string]struct {
				conn leasehold.RedisConn
				ctx  context.Context
			}{
				"nobody listens": {unreachable, t.Context()}, "closed": {closed, t.Context()}, "nobody waits": {working, done},
			} {
				// The second time, a pool may remember the first.
				for range 2 {
					if replies, sent, err := of.conn.Do(of.ctx, ping); err == nil || sent || replies != nil {
						t.Errorf("%s: sent %v, %q, %v", why, sent, replies, err)
					}
				}
			}
			// It closes the connection, too.
			_, err := client(t, leasehold.RedisOver{Conn: unreachable}).Lock(t.Context(), "a", leasehold.Wait(0))
			if !errors.Is(err, leasehold.ErrUnavailable) {
				t.Errorf("%v", err)
			}
			_ = working.Close()
		})
	}
}

// A request whose answer is lost may have happened.
func TestAnAdapterTellsWhatMayHaveBeenSent(t *testing.T) {
	proxy := testserver.StartProxy(t, testserver.StartRedis(t).Address())
	at := strings.TrimPrefix(proxy.URL(), "redis://")
	redis := goredis.NewClient(&goredis.Options{Addr: at})
	defer redis.Close()
	for name, conn := range map[string]leasehold.RedisConn{
		"go-redis": ours.Of(redis), "rueidis": rueidis.With(theirs.ClientOption{InitAddress: []string{at}}),
	} {
		t.Run(name, func(t *testing.T) {
			defer conn.Close()
			proxy.LoseReplies(false)
			replies, sent, err := conn.Do(t.Context(), [][][]byte{{[]byte("ECHO"), []byte("a")}, {[]byte("NOTHING")}, {[]byte("TIME")}})
			if err != nil || !sent || !strings.HasPrefix(string(replies), "$1\r\na\r\n-ERR unknown command") {
				t.Errorf("%q, %v, %v", replies, sent, err)
			}
			proxy.LoseReplies(true)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, sent, err := conn.Do(ctx, [][][]byte{{[]byte("PING")}}); err == nil || !sent {
				t.Errorf("sent %v, %v", sent, err)
			}
		})
	}
}

func TestGoRedisSurvivesAServerThatHangs(t *testing.T) {
	server := testserver.StartRedis(t)
	redis := goredis.NewClient(&goredis.Options{Addr: server.Address()})
	defer redis.Close()
	locks := client(t, leasehold.RedisOver{Conn: ours.Of(redis)}, leasehold.RequestTimeout(100*time.Millisecond))
	lease, err := locks.Lock(t.Context(), "a", leasehold.TTL(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	server.Obey("freeze")
	<-lease.Context().Done()
	if why := context.Cause(lease.Context()); !errors.Is(why, leasehold.ErrLost) {
		t.Error(why)
	}
	server.Obey("continue")
	if lease, err = locks.Lock(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A job that is due on two machines at the same moment.
func TestOneOfTwoSchedulersRunsAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		var runs atomic.Int64
		for range 2 {
			scheduler, err := cron.NewScheduler(cron.WithDistributedLocker(gocron.Locker(store.Connect())))
			if err != nil {
				t.Fatal(err)
			}
			job := cron.NewTask(func() { runs.Add(1) })
			if _, err := scheduler.NewJob(cron.DurationJob(time.Minute), job, cron.WithName("report")); err != nil {
				t.Fatal(err)
			}
			scheduler.Start()
			defer scheduler.Shutdown()
			// As far as the clocks of two machines are apart.
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(10*time.Minute + time.Second)
		if n := runs.Load(); n != 10 {
			t.Errorf("%d runs in ten minutes", n)
		}
	})
}

func TestLocksAreCounted(t *testing.T) {
	reader := metric.NewManualReader()
	observer, err := otel.Metrics(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		first, second := store.Connect(leasehold.Observe(observer)), store.Connect(leasehold.Observe(observer))
		lease, err := first.Lock(t.Context(), "a", leasehold.TTL(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := second.Lock(t.Context(), "a", leasehold.Wait(0)); !errors.Is(err, leasehold.ErrBusy) {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := second.Lock(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if lease, err = first.Lock(t.Context(), "b", leasehold.TTL(10*time.Second)); err != nil {
			t.Fatal(err)
		}
		store.Down()
		<-lease.Context().Done()
		store.Up()
		work := func(context.Context, *leasehold.Run) error { return nil }
		for range 2 {
			if _, err := first.Once(t.Context(), "report", "today", work); err != nil {
				t.Error(err)
			}
		}
	})
	var counted metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &counted); err != nil {
		t.Fatal(err)
	}
	found := map[string]uint64{}
	for _, m := range counted.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				key := m.Name
				for _, attribute := range point.Attributes.ToSlice() {
					key += " " + attribute.Value.AsString()
				}
				found[key] = uint64(point.Value)
			}
		case metricdata.Histogram[float64]:
			found[m.Name] = data.DataPoints[0].Count
		}
	}
	for name, want := range map[string]uint64{
		"leasehold.acquire acquired": 3, "leasehold.acquire busy": 1, "leasehold.acquire cancelled": 1, "leasehold.acquire done": 1,
		"leasehold.wait": 6, "leasehold.hold": 3, "leasehold.lost expired": 1,
	} {
		if found[name] != want {
			t.Errorf("%s: %d, not %d", name, found[name], want)
		}
	}
	if found["leasehold.renew.late"] == 0 {
		t.Errorf("%v", found)
	}
}
