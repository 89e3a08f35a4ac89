package idempotency_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/idempotency"
	"code.invalid/leasehold/go/internal/testserver"
	"code.invalid/leasehold/go/leaseholdtest"
)

func TestALostLeaseIsNotAnsweredWithSuccess(t *testing.T) {
	shop, redis := shopOnRedis(t, idempotency.Options{TTL: 300 * time.Millisecond})
	first := shop.async(t.Context(), asked{path: "/slow"})
	ctx := <-shop.begun
	redis.Do("FLUSHALL")
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Error("the context of the request goes on")
	}
	if why := context.Cause(ctx); !errors.Is(why, leasehold.ErrLost) {
		t.Error(why)
	}
	close(shop.may)
	got := <-first
	if got.is(t, 503, "not certain", true); got.header.Get("X-Outer") != "outer" {
		t.Errorf("%v", got.header)
	}
	if again := shop.ask(asked{path: "/charge"}); again.status != 201 {
		t.Errorf("%+v", again)
	}
}

func TestAStoreThatDoesNotAnswerIsUncertain(t *testing.T) {
	redis := testserver.StartRedis(t)
	proxy := testserver.StartProxy(t, redis.Address())
	client := connect(t, proxy.URL(), leasehold.RequestTimeout(100*time.Millisecond))
	shop := open(t, client, idempotency.Options{TTL: time.Second})
	proxy.Block(true)
	shop.ask(asked{}).is(t, 503, "send the same request again", true)
	shop.did(0)
	proxy.Block(false)
	proxy.Reset()
	if got := shop.ask(asked{}); got.status != 201 {
		t.Errorf("%+v", got)
	}
	redis.Obey("kill")
	shop.ask(asked{}).is(t, 503, "send the same request again", true)
	shop.did(1)
}

func TestAStoreThatIsGoneAfterTheWorkIsUncertain(t *testing.T) {
	redis := testserver.StartRedis(t)
	proxy := testserver.StartProxy(t, redis.Address())
	client := connect(t, proxy.URL(), leasehold.RequestTimeout(100*time.Millisecond))
	shop := open(t, client, idempotency.Options{TTL: time.Second})
	first := shop.async(t.Context(), asked{path: "/slow"})
	<-shop.begun
	proxy.Block(true)
	close(shop.may)
	(<-first).is(t, 503, "send the same request again", true)
}

func TestAClientThatWasClosedIsUncertain(t *testing.T) {
	client := leaseholdtest.New(t).Connect()
	shop := open(t, client, idempotency.Options{})
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	shop.ask(asked{}).is(t, 503, "not certain", true)
}

func TestAQuorumKeepsResponsesForAWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stores []leasehold.Store
		for range 3 {
			stores = append(stores, leaseholdtest.New(t))
		}
		client, err := leasehold.Open(leasehold.Quorum{ID: "00112233445566778899aabbccddeeff", Nodes: stores})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		// Nodes that are new grant nothing at first, since they may have forgotten a lease.
		ask(t.Context(), middleware(t, client, idempotency.Options{})(http.NotFoundHandler())).is(t, 503, "not certain", true)
		if _, err := client.Lock(t.Context(), "first", leasehold.Wait(time.Hour)); err != nil {
			t.Fatal(err)
		}
		var reported error
		failed := func(w http.ResponseWriter, _ *http.Request, err error) {
			reported = err
			w.WriteHeader(http.StatusInternalServerError)
		}
		long := middleware(t, client, idempotency.Options{Keep: 8 * 24 * time.Hour, ErrorHandler: failed})(http.NotFoundHandler())
		if got := ask(t.Context(), long); got.status != 500 || !errors.Is(reported, leasehold.ErrConfig) {
			t.Errorf("%+v, %v", got, reported)
		}
		once := middleware(t, client, idempotency.Options{Keep: 7 * 24 * time.Hour})(http.NotFoundHandler())
		for _, replayed := range []string{"", "true"} {
			if got := ask(t.Context(), once); got.status != 404 || got.header.Get("Idempotency-Replayed") != replayed {
				t.Errorf("%+v", got)
			}
		}
	})
}

func TestWorkWhoseClientHasGoneIsDone(t *testing.T) {
	shop, _ := shopOnRedis(t, idempotency.Options{})
	patience, leave := context.WithCancel(t.Context())
	first := shop.async(patience, asked{path: "/slow"})
	ctx := <-shop.begun
	leave()
	<-first
	<-ctx.Done()
	if why := context.Cause(ctx); why != context.Canceled {
		t.Error(why)
	}
	close(shop.may)
	for {
		switch got := shop.ask(asked{path: "/slow"}); {
		case got.status == 409:
			time.Sleep(5 * time.Millisecond)
		case got.status != 200 || got.text != "slow" || got.header.Get("Idempotency-Replayed") != "true":
			t.Fatalf("%+v", got)
		default:
			shop.did(1)
			return
		}
	}
}

// bubble runs a test with a clock that takes no time, and two handlers as in two processes, whose requests do work.
func bubble(t *testing.T, work http.HandlerFunc, test func(t *testing.T, store *leaseholdtest.Store, one, two http.Handler)) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		one := middleware(t, store.Connect(), idempotency.Options{})(work)
		test(t, store, one, middleware(t, store.Connect(), idempotency.Options{})(work))
	})
}

// ask asks a handler without a server.
func ask(ctx context.Context, handler http.Handler) answer {
	request := httptest.NewRequestWithContext(ctx, "POST", "/charge", strings.NewReader("9 EUR"))
	request.Header.Set("Idempotency-Key", "k1")
	said := httptest.NewRecorder()
	handler.ServeHTTP(said, request)
	return answer{said.Code, said.Header(), said.Body.String()}
}

func TestARequestThatIsOverWithoutAnAnswerLeavesTheWorkToTheNext(t *testing.T) {
	calls := 0
	work := func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, "done")
	}
	bubble(t, work, func(t *testing.T, _ *leaseholdtest.Store, one, two http.Handler) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ask(ctx, one).is(t, 503, "not certain", true)
		if got := ask(t.Context(), two); got.text != "done" || calls != 2 {
			t.Errorf("%+v after %d calls", got, calls)
		}
	})
}

func TestAResponseWithoutEndEndsWithTheRequest(t *testing.T) {
	calls := 0
	work := func(w http.ResponseWriter, r *http.Request) {
		calls++
		for n := 0; ; n++ {
			if n == 10 {
				<-r.Context().Done()
			}
			if _, err := w.Write(make([]byte, 1024)); err != nil {
				return
			}
		}
	}
	bubble(t, work, func(t *testing.T, _ *leaseholdtest.Store, one, two http.Handler) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ask(ctx, one).is(t, 503, "not certain", true)
		// A handler that has begun to answer has done its work.
		if ask(t.Context(), two).is(t, 409, "not kept", false); calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
}

func TestWorkMayTakeLongerThanTheTTL(t *testing.T) {
	work := func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Hour)
		_, _ = io.WriteString(w, "done")
	}
	bubble(t, work, func(t *testing.T, _ *leaseholdtest.Store, one, two http.Handler) {
		go func() {
			time.Sleep(30 * time.Minute)
			ask(t.Context(), two).is(t, 409, "still at work", true)
		}()
		if got := ask(t.Context(), one); got.text != "done" {
			t.Errorf("%+v", got)
		}
		time.Sleep(22 * time.Hour)
		if got := ask(t.Context(), two); got.text != "done" || got.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%+v", got)
		}
		// After a day it is a new request.
		time.Sleep(3 * time.Hour)
		if got := ask(t.Context(), two); got.text != "done" || got.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%+v", got)
		}
	})
}

func TestALeaseThatIsTakenAwayEndsTheContextOfTheHandler(t *testing.T) {
	var why error
	work := func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		why = context.Cause(r.Context())
		_, _ = io.WriteString(w, "done")
	}
	bubble(t, work, func(t *testing.T, store *leaseholdtest.Store, one, _ http.Handler) {
		go func() {
			time.Sleep(time.Minute)
			store.Down()
		}()
		ask(t.Context(), one).is(t, 503, "not certain", true)
		if !errors.Is(why, leasehold.ErrLost) {
			t.Error(why)
		}
	})
}

func TestAFailureOfTheHandlersAnswerNeedsNoLease(t *testing.T) {
	work := func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		http.Error(w, "stopped", http.StatusServiceUnavailable)
	}
	bubble(t, work, func(t *testing.T, store *leaseholdtest.Store, one, _ http.Handler) {
		go func() {
			time.Sleep(time.Minute)
			store.Down()
		}()
		if got := ask(t.Context(), one); got.status != 503 || got.text != "stopped\n" {
			t.Errorf("%+v", got)
		}
	})
}
