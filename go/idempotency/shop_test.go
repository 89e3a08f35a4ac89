package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/idempotency"
	"code.invalid/leasehold/go/internal/testserver"
)

func connect(t testing.TB, url string, options ...leasehold.ClientOption) *leasehold.Client {
	t.Helper()
	// On a busy machine an answer takes longer than the usual half second.
	client, err := leasehold.Connect(url, append([]leasehold.ClientOption{leasehold.RequestTimeout(5 * time.Second)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func user(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }

// middleware is that of a client, with the principal of these tests.
func middleware(t testing.TB, client *leasehold.Client, options idempotency.Options) func(http.Handler) http.Handler {
	t.Helper()
	if options.Principal == nil {
		options.Principal = user
	}
	made, err := idempotency.Middleware(client, options)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// shop is an application that counts its work.
type shop struct {
	t     *testing.T
	url   string
	calls atomic.Int64
	// begun has the context of each request for /slow, which ends with the next of may.
	begun chan context.Context
	may   chan struct{}
}

// open serves an application, behind the middleware, until the test ends.
func open(t *testing.T, client *leasehold.Client, options idempotency.Options) *shop {
	t.Helper()
	s := &shop{t: t, begun: make(chan context.Context, 1), may: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/charge", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		n := s.calls.Add(1)
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "hunter2"})
		w.Header().Set("X-Charge", strconv.FormatInt(n, 10))
		w.Header()["X-Pair"] = []string{"a", "b"}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"charge":%d,"of":%q,"é":"ü"}`, n, body)
	})
	mux.HandleFunc("/status/{status}", func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.PathValue("status"))
		if r.Header.Get("X-Again") != "" {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "call %d", s.calls.Add(1))
	})
	mux.HandleFunc("/panics", func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		_, _ = io.WriteString(w, "a part")
		if r.Header.Get("X-Abort") != "" {
			panic(http.ErrAbortHandler)
		}
		panic("no paper")
	})
	mux.HandleFunc("/long", func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		_, _ = io.WriteString(w, strings.Repeat("x", 4096))
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		s.begun <- r.Context()
		<-s.may
		_, _ = io.WriteString(w, "slow")
	})
	once := middleware(t, client, options)(mux)
	// A panic is the test's, and aborts the connection as it does in a server.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Outer", "outer")
		defer func() {
			if why := recover(); why != nil {
				if why != "no paper" && why != http.ErrAbortHandler {
					t.Errorf("another panic: %v", why)
				}
				panic(http.ErrAbortHandler)
			}
		}()
		once.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// shopOnRedis returns a shop, and the server that it has for itself.
func shopOnRedis(t *testing.T, options idempotency.Options) (*shop, *testserver.Redis) {
	redis := testserver.StartRedis(t)
	return open(t, connect(t, redis.URL), options), redis
}

// asked is a request: POST /charge with the key k1 and a body, unless it says otherwise.
type asked struct {
	method, path, body string
	// key is left out where it is "-".
	key    string
	header http.Header
}

// answer is what was answered.
type answer struct {
	status int
	header http.Header
	text   string
}

func (s *shop) try(ctx context.Context, of asked) (answer, error) {
	for value, otherwise := range map[*string]string{&of.method: "POST", &of.path: "/charge", &of.body: "9 EUR", &of.key: "k1"} {
		if *value == "" {
			*value = otherwise
		}
	}
	request, err := http.NewRequestWithContext(ctx, of.method, s.url+of.path, strings.NewReader(of.body))
	if err != nil {
		return answer{}, err
	}
	if of.key != "-" {
		request.Header.Set("Idempotency-Key", of.key)
	}
	for name, values := range of.header {
		request.Header[name] = values
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text)}, err
}

func (s *shop) ask(of asked) answer {
	s.t.Helper()
	got, err := s.try(s.t.Context(), of)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// did checks how often the work was done.
func (s *shop) did(times int64) {
	s.t.Helper()
	if n := s.calls.Load(); n != times {
		s.t.Fatalf("done %d times, not %d", n, times)
	}
}

// is checks an answer of the middleware, and that it says this.
func (a answer) is(t *testing.T, status int, says string, again bool) {
	t.Helper()
	retry := ""
	if again {
		retry = "1"
	}
	if a.status != status || !strings.Contains(a.text, says) || a.header.Get("Retry-After") != retry ||
		a.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(a.text, fmt.Sprintf(`"status":%d`, status)) {
		t.Errorf("%d %s %v, not %d %q", a.status, a.text, a.header, status, says)
	}
}

// async asks, and returns where the answer comes.
func (s *shop) async(ctx context.Context, of asked) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		got, err := s.try(ctx, of)
		if err != nil && !errors.Is(err, context.Canceled) {
			s.t.Error(err)
		}
		answers <- got
	}()
	return answers
}
