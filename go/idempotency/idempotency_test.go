package idempotency_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/idempotency"
	"code.invalid/leasehold/go/leaseholdtest"
)

func TestTheSecondRequestGetsTheFirstResponse(t *testing.T) {
	first, redis := shopOnRedis(t, idempotency.Options{})
	one, two := first.ask(asked{}), first.ask(asked{key: `"k1"`})
	other := open(t, connect(t, redis.URL), idempotency.Options{})
	for _, again := range []answer{two, other.ask(asked{})} {
		if one.status != 201 || again.status != 201 || again.text != one.text || one.text != `{"charge":1,"of":"9 EUR","é":"ü"}` {
			t.Errorf("%+v, and then %+v", one, again)
		}
		for _, name := range []string{"X-Charge", "Content-Type", "Content-Length", "X-Outer", "X-Pair"} {
			if fmt.Sprint(again.header[name]) != fmt.Sprint(one.header[name]) || again.header[name] == nil {
				t.Errorf("%s: %q and %q", name, one.header[name], again.header[name])
			}
		}
		if one.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%v, %v", one.header, again.header)
		}
		if one.header.Get("Set-Cookie") == "" || again.header.Get("Set-Cookie") != "" {
			t.Errorf("%v, %v", one.header, again.header)
		}
	}
	first.did(1)
	other.did(0)
}

func TestOtherKeysUsersPathsAndMethodsAreOtherRequests(t *testing.T) {
	shop, _ := shopOnRedis(t, idempotency.Options{})
	for n, of := range []asked{
		{}, {key: "k2"}, {header: http.Header{"X-User": {"ann"}}}, {header: http.Header{"X-User": {"bob"}}}, {path: "/status/200"}, {method: "PATCH"},
		{method: "GET"}, {method: "GET"}, {method: "PUT"}, {method: "PUT"}, {key: "-"}, {key: "-"},
	} {
		if got := shop.ask(of); got.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%+v", got)
		}
		shop.did(int64(n + 1))
	}
}

func TestAnotherBodyUnderTheSameKeyIsRefused(t *testing.T) {
	shop, _ := shopOnRedis(t, idempotency.Options{})
	shop.ask(asked{})
	for _, of := range []asked{{body: "10 EUR"}, {path: "/charge?x=1"}} {
		shop.ask(of).is(t, 422, "another request", false)
	}
	shop.did(1)
}

func TestAnswersAboutTheRequestAreKept(t *testing.T) {
	shop, _ := shopOnRedis(t, idempotency.Options{})
	for n, status := range []int{200, 202, 303, 400, 404, 409, 499} {
		of := asked{path: fmt.Sprintf("/status/%d", status)}
		one, two := shop.ask(of), shop.ask(of)
		if one.status != status || two.status != status || one.text != two.text || two.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%+v, and then %+v", one, two)
		}
		shop.did(int64(n + 1))
	}
}

func TestAnswersThatAskForAnotherTryAreNotKept(t *testing.T) {
	shop, _ := shopOnRedis(t, idempotency.Options{})
	for n, status := range []int{408, 425, 429, 500, 503, 599, 409} {
		header := http.Header{}
		if status == 409 {
			header.Set("X-Again", "yes")
		}
		for again := range 2 {
			got := shop.ask(asked{path: fmt.Sprintf("/status/%d", status), header: header})
			if call := 2*n + again + 1; got.status != status || got.text != fmt.Sprintf("call %d", call) {
				t.Errorf("%+v, not call %d", got, call)
			}
		}
	}
}

func TestAPanicLeavesTheWorkToTheNextRequest(t *testing.T) {
	shop, _ := shopOnRedis(t, idempotency.Options{})
	for n, header := range []http.Header{nil, nil, {"X-Abort": {"yes"}}, {"X-Abort": {"yes"}}} {
		if got, err := shop.try(t.Context(), asked{path: "/panics", header: header}); err == nil {
			t.Errorf("%+v", got)
		}
		shop.did(int64(n + 1))
	}
}

func TestAPanicIsTheOneOfTheHandler(t *testing.T) {
	handler := middleware(t, leaseholdtest.New(t).Connect(), idempotency.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	defer func() {
		if why := recover(); why != http.ErrAbortHandler {
			t.Errorf("%v", why)
		}
	}()
	request := httptest.NewRequest("POST", "/", nil)
	request.Header.Set("Idempotency-Key", "k1")
	handler.ServeHTTP(httptest.NewRecorder(), request)
}

func TestAResponseThatIsTooLongIsNotKept(t *testing.T) {
	shop, _ := shopOnRedis(t, idempotency.Options{})
	if got := shop.ask(asked{path: "/long"}); got.status != 200 || len(got.text) != 4096 {
		t.Errorf("%+v", got)
	}
	shop.ask(asked{path: "/long"}).is(t, 409, "not kept", false)
	shop.ask(asked{path: "/long", body: "another"}).is(t, 422, "another request", false)
	shop.did(1)
}

func TestARequestThatComesMeanwhileIsToldSo(t *testing.T) {
	here, redis := shopOnRedis(t, idempotency.Options{})
	there := open(t, connect(t, redis.URL), idempotency.Options{})
	first := here.async(t.Context(), asked{path: "/slow"})
	<-here.begun
	// The first one asks by the same client, which knows of it, and the other one as another process does.
	for _, at := range []*shop{here, there} {
		at.ask(asked{path: "/slow"}).is(t, 409, "still at work", true)
		at.ask(asked{path: "/slow", body: "another"}).is(t, 422, "another request", false)
	}
	close(here.may)
	if got := <-first; got.status != 200 || got.text != "slow" {
		t.Errorf("%+v", got)
	}
	if got := there.ask(asked{path: "/slow"}); got.text != "slow" || got.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%+v", got)
	}
	here.did(1)
	there.did(0)
}

func TestOfManyAtOnceOneDoesTheWork(t *testing.T) {
	one, redis := shopOnRedis(t, idempotency.Options{})
	two := open(t, connect(t, redis.URL), idempotency.Options{})
	var answers []<-chan answer
	for range 20 {
		for _, shop := range []*shop{one, two} {
			answers = append(answers, shop.async(t.Context(), asked{}))
		}
	}
	fresh := 0
	for _, of := range answers {
		switch got := <-of; {
		case got.status == 201 && got.header.Get("Idempotency-Replayed") == "":
			fresh++
		case got.status != 201 && got.status != 409:
			t.Errorf("%+v", got)
		}
	}
	if fresh != 1 || one.calls.Load()+two.calls.Load() != 1 {
		t.Errorf("%d are the first, %d and %d times done", fresh, one.calls.Load(), two.calls.Load())
	}
	// Afterwards each gets the response, also where several ask by one client.
	for range 20 {
		answers = append(answers, one.async(t.Context(), asked{}))
	}
	for _, of := range answers[40:] {
		if got := <-of; got.status != 201 || got.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%+v", got)
		}
	}
}

func TestKeysThatCannotBeAreRefused(t *testing.T) {
	shop, _ := shopOnRedis(t, idempotency.Options{})
	for _, key := range []string{`""`, strings.Repeat("x", 256), `"open`, "a b", `a"b`, "ü"} {
		shop.ask(asked{key: key}).is(t, 400, "printable ASCII", false)
	}
	for _, values := range [][]string{{""}, {"k1", "k1"}, {"k1", "k2"}} {
		shop.ask(asked{header: http.Header{"Idempotency-Key": values}}).is(t, 400, "printable ASCII", false)
	}
	shop.did(0)
	for n, key := range []string{strings.Repeat("x", 255), `"a b"`, " k2\t", `"` + strings.Repeat("y", 255) + `"`} {
		if got := shop.ask(asked{key: key}); got.status != 201 {
			t.Errorf("%q: %+v", key, got)
		}
		shop.did(int64(n + 1))
	}
}

func TestAKeyCanBeRequiredAndBodiesAreBounded(t *testing.T) {
	shop, _ := shopOnRedis(t, idempotency.Options{Required: true, MaxBody: 10, Methods: []string{"put"}})
	shop.ask(asked{method: "PUT", key: "-"}).is(t, 400, "needs the header", false)
	shop.ask(asked{method: "PUT", body: strings.Repeat("x", 11)}).is(t, 413, "at most 10 bytes", false)
	shop.did(0)
	if got := shop.ask(asked{method: "PUT", body: strings.Repeat("x", 10)}); got.status != 201 {
		t.Errorf("%+v", got)
	}
	if got := shop.ask(asked{method: "POST", key: "-", body: strings.Repeat("x", 11)}); got.status != 201 {
		t.Errorf("%+v", got)
	}
}

func TestWrongSettingsAreErrors(t *testing.T) {
	client := leaseholdtest.New(t).Connect()
	for says, options := range map[string]idempotency.Options{
		"Principal is missing":                 {},
		"TTL is -1s: give 100ms to 24h":        {Principal: user, TTL: -time.Second},
		"TTL is 25h0m0s: give 100ms to 24h":    {Principal: user, TTL: 25 * time.Hour},
		"Keep is -1s":                          {Principal: user, Keep: -time.Second},
		"Keep is 1s: give at least the TTL":    {Principal: user, Keep: time.Second},
		"and at most 100 years":                {Principal: user, Keep: 101 * 365 * 24 * time.Hour},
		"MaxBody is -1: give a number of byte": {Principal: user, MaxBody: -1},
		`Methods has "A B"`:                    {Principal: user, Methods: []string{"POST", "A B"}},
		`Methods has ""`:                       {Principal: user, Methods: []string{""}},
	} {
		made, err := idempotency.Middleware(client, options)
		if made != nil || !errors.Is(err, leasehold.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, not %q", err, says)
		}
	}
	if _, err := idempotency.Middleware(nil, idempotency.Options{Principal: user}); !errors.Is(err, leasehold.ErrConfig) {
		t.Error(err)
	}
	// These are the bounds, which a run takes.
	for _, options := range []idempotency.Options{
		{TTL: 100 * time.Millisecond, Keep: 100 * time.Millisecond}, {TTL: 24 * time.Hour}, {Keep: 100 * 365 * 24 * time.Hour},
	} {
		if got := open(t, client, options).ask(asked{key: fmt.Sprint(options.Keep)}); got.status != 201 {
			t.Errorf("%+v", got)
		}
	}
}

func TestSettingsAreThoseOfTheRun(t *testing.T) {
	store := leaseholdtest.New(t)
	client := store.Connect()
	shop := open(t, client, idempotency.Options{Keep: time.Hour, TTL: time.Minute})
	defer close(shop.may)
	shop.async(t.Context(), asked{path: "/slow"})
	if lease := idempotency.Lease(<-shop.begun); lease == nil || lease.Token() == 0 || lease.Remaining() < 31*time.Second || lease.Remaining() > time.Minute {
		t.Errorf("%v", lease)
	}
	if lease := idempotency.Lease(t.Context()); lease != nil {
		t.Error(lease)
	}
}

func TestErrorsHaveAHandler(t *testing.T) {
	stranger := errors.New("who is that?")
	principal := func(*http.Request) (string, error) { return "", stranger }
	client := leaseholdtest.New(t).Connect()
	got := open(t, client, idempotency.Options{Principal: principal}).ask(asked{})
	if got.is(t, 500, "the log of the server says why", false); strings.Contains(got.text, "who") {
		t.Error(got.text)
	}
	handled := open(t, client, idempotency.Options{
		Principal: principal,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, stranger) {
				t.Error(err)
			}
			w.WriteHeader(http.StatusUnauthorized)
		},
	})
	if got := handled.ask(asked{}); got.status != 401 {
		t.Errorf("%+v", got)
	}
	handled.did(0)
}

func TestABodyThatWasReadBeforeIsAnError(t *testing.T) {
	var reported error
	client := leaseholdtest.New(t).Connect()
	once := middleware(t, client, idempotency.Options{ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
		reported = err
		w.WriteHeader(http.StatusInternalServerError)
	}})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it must not be done") }))
	for _, length := range []int64{7, -1, 0} {
		request := httptest.NewRequest("POST", "/", strings.NewReader("eur=900"))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Idempotency-Key", "k1")
		request.ContentLength, reported = length, nil
		if length == 0 {
			// As the server's body is once a layer outside has closed it.
			request.Body = closed{}
		} else if request.FormValue("eur") != "900" {
			t.Error("this does not read the body")
		}
		once.ServeHTTP(httptest.NewRecorder(), request)
		if !errors.Is(reported, leasehold.ErrConfig) || !strings.Contains(reported.Error(), "was read before") {
			t.Error(reported)
		}
	}
}

type closed struct{}

func (closed) Read([]byte) (int, error) { return 0, http.ErrBodyReadAfterClose }
func (closed) Close() error             { return nil }

func TestMiddlewareThatStandsTwiceDoesTheWorkOnce(t *testing.T) {
	client, calls := leaseholdtest.New(t).Connect(), 0
	once := middleware(t, client, idempotency.Options{})
	twice := once(once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { calls++; _, _ = io.WriteString(w, "done") })))
	for range 2 {
		request, said := httptest.NewRequest("POST", "/", nil), httptest.NewRecorder()
		request.Header.Set("Idempotency-Key", "k1")
		if twice.ServeHTTP(said, request); said.Code != 200 || said.Body.String() != "done" || calls != 1 {
			t.Errorf("%d %q after %d calls", said.Code, said.Body, calls)
		}
	}
}

func TestARequestWithinAnotherIsOneOfItsOwn(t *testing.T) {
	client, calls := leaseholdtest.New(t).Connect(), 0
	once := middleware(t, client, idempotency.Options{})
	item := once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { calls++ }))
	batch := once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		within := httptest.NewRequest("POST", "/item", nil).WithContext(r.Context())
		within.Header.Set("Idempotency-Key", "item")
		item.ServeHTTP(httptest.NewRecorder(), within)
	}))
	for _, key := range []string{"a", "b"} {
		request := httptest.NewRequest("POST", "/batch", nil)
		request.Header.Set("Idempotency-Key", key)
		batch.ServeHTTP(httptest.NewRecorder(), request)
	}
	if calls != 1 {
		t.Errorf("done %d times", calls)
	}
}

func TestAPathIsTheOneThatWasAskedFor(t *testing.T) {
	client, calls := leaseholdtest.New(t).Connect(), 0
	once := middleware(t, client, idempotency.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	mux := http.NewServeMux()
	for _, version := range []string{"/v1", "/v2"} {
		mux.Handle(version+"/", http.StripPrefix(version, once))
	}
	for n, path := range []string{"/v1/charge", "/v2/charge"} {
		request := httptest.NewRequest("POST", path, nil)
		request.Header.Set("Idempotency-Key", "k1")
		mux.ServeHTTP(httptest.NewRecorder(), request)
		if calls != n+1 {
			t.Errorf("%s was answered by %d calls", path, calls)
		}
	}
}
