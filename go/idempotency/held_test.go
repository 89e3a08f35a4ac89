package idempotency_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"code.invalid/leasehold/go/idempotency"
	"code.invalid/leasehold/go/leaseholdtest"
)

// compared is the part of a response that has to be the same with and without the middleware.
func compared(response *http.Response) (string, error) {
	body, err := io.ReadAll(response.Body)
	header := response.Header.Clone()
	header.Del("Date")
	header.Del("Idempotency-Replayed")
	return fmt.Sprintf("%d %v %q trailer %v", response.StatusCode, header, body, response.Trailer), err
}

// do is a request with the key k1 to a server.
func do(t *testing.T, method, url string, ctx context.Context) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Idempotency-Key", "k1")
	// Each has its own connection, since a handler may spoil it.
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// serve serves a handler without the middleware, and behind it.
func serve(t *testing.T, handler http.HandlerFunc, options idempotency.Options) (plain, once string) {
	behind := middleware(t, leaseholdtest.New(t).Connect(), options)(handler)
	one, two := httptest.NewServer(handler), httptest.NewServer(behind)
	t.Cleanup(one.Close)
	t.Cleanup(two.Close)
	return one.URL, two.URL
}

func TestAResponseIsTheOneThatTheServerMakesOfIt(t *testing.T) {
	text := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for name, handler := range map[string]http.HandlerFunc{
		"nothing":  func(http.ResponseWriter, *http.Request) {},
		"a text":   text("a text"),
		"HTML":     text("<html><body>"),
		"an image": text("\x89PNG\x0D\x0A\x1A\x0A"),
		"long":     text(strings.Repeat("x", 3000)),
		"in parts": func(w http.ResponseWriter, _ *http.Request) {
			text("<ht")(w, nil)
			text("ml>")(w, nil)
			text("")(w, nil)
		},
		"an empty write": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(nil)
			w.Header().Set("X-A", "late")
		},
		"no type": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			text("<html>")(w, nil)
		},
		"an encoding": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			text("<html>")(w, nil)
		},
		"headers that come late": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-A", "a")
			w.WriteHeader(201)
			w.Header().Set("X-A", "b")
			w.Header().Set("X-B", "b")
		},
		"204": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			if _, err := w.Write([]byte("a")); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Error(err)
			}
		},
		"304": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"a"`)
			w.WriteHeader(304)
			if _, err := w.Write([]byte("a")); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Error(err)
			}
		},
		"a length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			text("abc")(w, nil)
			if _, err := w.Write([]byte("d")); !errors.Is(err, http.ErrContentLength) {
				t.Error(err)
			}
		},
		"odd headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Lines", "a\r\nX-B: b")
			w.Header()["X-Odd Name"] = []string{"a"}
			w.Header().Set("X-Name", "J\xfcrgen")
			w.Header().Set("X-Text", " Jürgen & <Söhne> ")
		},
		"an error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) },
	} {
		for _, method := range []string{"POST", "HEAD"} {
			plain, once := serve(t, handler, idempotency.Options{Methods: []string{"POST", "HEAD"}})
			want, err := compared(do(t, method, plain, t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			for _, replayed := range []string{"", "true"} {
				response := do(t, method, once, t.Context())
				if is := response.Header.Get("Idempotency-Replayed"); is != replayed {
					t.Errorf("%s: replayed %q, not %q", name, is, replayed)
				}
				got, err := compared(response)
				if got != want || err != nil {
					t.Errorf("%s, %s, replayed %q\n%s\n%s, %v", method, name, replayed, want, got, err)
				}
			}
		}
	}
}

func TestTheHeadersOutsideAreThoseOfEachRequest(t *testing.T) {
	once := middleware(t, leaseholdtest.New(t).Connect(), idempotency.Options{})(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			if w.Header().Get("X-Request-Id") != "1" {
				t.Errorf("%v", w.Header())
			}
			w.Header().Add("Vary", "Accept")
			w.Header().Del("X-Powered-By")
			w.WriteHeader(201)
		}))
	for n, want := range []string{
		"map[Content-Type:[text/x] Vary:[Origin Accept] X-Request-Id:[1]]",
		"map[Content-Type:[text/x] Idempotency-Replayed:[true] Vary:[Origin Accept] X-Powered-By:[Go] X-Request-Id:[2]]",
	} {
		said := httptest.NewRecorder()
		for name, value := range map[string]string{
			"X-Request-Id": fmt.Sprint(n + 1), "Vary": "Origin", "X-Powered-By": "Go", "Content-Type": []string{"text/x", "text/y"}[n],
		} {
			said.Header().Set(name, value)
		}
		request := httptest.NewRequest("POST", "/", nil)
		request.Header.Set("Idempotency-Key", "k1")
		once.ServeHTTP(said, request)
		if got := fmt.Sprint(said.Header()); got != want {
			t.Errorf("%s\n%s", got, want)
		}
	}
}

func TestALengthThatIsNoNumberIsNone(t *testing.T) {
	_, once := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "-4")
		_, _ = io.WriteString(w, "done")
	}, idempotency.Options{})
	for range 2 {
		response := do(t, "POST", once, t.Context())
		if body, err := io.ReadAll(response.Body); response.StatusCode != 200 || string(body) != "done" || err != nil {
			t.Errorf("%d %s, %v", response.StatusCode, body, err)
		}
	}
}

func TestAnUnfinishedResponseLeavesTheWorkToTheNext(t *testing.T) {
	calls := 0
	_, once := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "done"[:2*calls])
	}, idempotency.Options{})
	for n, status := range []int{503, 200, 200} {
		response := do(t, "POST", once, t.Context())
		body, err := io.ReadAll(response.Body)
		if response.StatusCode != status || err != nil || status == 200 && string(body) != "done" || calls > 2 {
			t.Errorf("%d: %d %s, %v", n, response.StatusCode, body, err)
		}
	}
}

func TestNothingGoesPastTheRun(t *testing.T) {
	said := httptest.NewRecorder()
	outside := &deadline{ResponseRecorder: said}
	once := middleware(t, leaseholdtest.New(t).Connect(), idempotency.Options{})(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			control := http.NewResponseController(w)
			if _, _, err := control.Hijack(); !errors.Is(err, http.ErrNotSupported) {
				t.Error(err)
			}
			w.Header().Set("X-Before", "a")
			if err := control.Flush(); err != nil {
				t.Error(err)
			}
			w.(http.Flusher).Flush()
			w.Header().Set("X-After", "a")
			w.WriteHeader(404)
			_, _ = io.WriteString(w, "done")
			if said.Flushed || said.Body.Len() > 0 || len(said.Header()) > 0 {
				t.Errorf("%+v", said)
			}
			if err := control.SetWriteDeadline(time.Now()); err != nil || !outside.set {
				t.Error(err)
			}
		}))
	request := httptest.NewRequest("POST", "/", nil)
	request.Header.Set("Idempotency-Key", "k1")
	once.ServeHTTP(outside, request)
	if said.Code != 200 || said.Body.String() != "done" || said.Header().Get("X-Before") == "" || said.Header().Get("X-After") != "" {
		t.Errorf("%+v", said)
	}
}

// deadline is a writer that could be hijacked, and has deadlines.
type deadline struct {
	*httptest.ResponseRecorder
	http.Hijacker
	set bool
}

func (d *deadline) SetWriteDeadline(time.Time) error {
	d.set = true
	return nil
}

func TestInformationIsSentAtOnce(t *testing.T) {
	told := make(chan string, 1)
	calls := 0
	_, once := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(http.StatusEarlyHints)
		select {
		case link := <-told:
			if link != "</a.css>" {
				t.Error(link)
			}
		case <-time.After(10 * time.Second):
			t.Error("it was held back")
		}
		w.Header().Del("Link")
		w.WriteHeader(201)
	}, idempotency.Options{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
		if code != http.StatusEarlyHints {
			t.Error(code)
		}
		told <- header.Get("Link")
		return nil
	}})
	for range 2 {
		if response := do(t, "POST", once, ctx); response.StatusCode != 201 || response.Header.Get("Link") != "" || calls != 1 {
			t.Errorf("%+v after %d calls", response, calls)
		}
	}
}

func TestAStatusAfterTheResponseHasBegunIsOfNoAccount(t *testing.T) {
	calls := 0
	once := middleware(t, leaseholdtest.New(t).Connect(), idempotency.Options{})(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			calls++
			w.WriteHeader(http.StatusCreated)
			w.WriteHeader(0)
		}))
	for range 2 {
		request, said := httptest.NewRequest("POST", "/", nil), httptest.NewRecorder()
		request.Header.Set("Idempotency-Key", "k1")
		if once.ServeHTTP(said, request); said.Code != http.StatusCreated || calls != 1 {
			t.Errorf("%d after %d calls", said.Code, calls)
		}
	}
}

func TestAStatusThatCannotBeIsAPanicBeforeTheWorkIsDone(t *testing.T) {
	calls := 0
	once := middleware(t, leaseholdtest.New(t).Connect(), idempotency.Options{})(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			calls++
			w.WriteHeader(7)
		}))
	for range 2 {
		func() {
			defer func() {
				if why := recover(); why != "invalid WriteHeader code 7" {
					t.Errorf("%v", why)
				}
			}()
			request := httptest.NewRequest("POST", "/", nil)
			request.Header.Set("Idempotency-Key", "k1")
			once.ServeHTTP(httptest.NewRecorder(), request)
		}()
	}
	if calls != 2 {
		t.Error(calls)
	}
}

func TestTrailersAreForTheFirstCaller(t *testing.T) {
	plain, once := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum, X-None")
		_, _ = io.WriteString(w, "done")
		w.Header().Set("X-Sum", "7")
		w.Header().Set("X-Other", "8")
		w.Header().Set(http.TrailerPrefix+"X-Late", "9")
	}, idempotency.Options{})
	want, err := compared(do(t, "POST", plain, t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := compared(do(t, "POST", once, t.Context())); got != want || err != nil {
		t.Errorf("%s\n%s, %v", want, got, err)
	}
	response := do(t, "POST", once, t.Context())
	body, err := io.ReadAll(response.Body)
	if string(body) != "done" || err != nil || len(response.Trailer) > 0 || response.Header.Get("Idempotency-Replayed") == "" {
		t.Errorf("%+v", response)
	}
}

func TestTheServerSeesTheRequestThatWasHandled(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /files/{name}", func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
	})
	once := middleware(t, leaseholdtest.New(t).Connect(), idempotency.Options{})(mux)
	body := "--x\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a\"\r\n\r\nabc\r\n--x--\r\n"
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(fmt.Appendf(nil,
		"POST /files/a HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k1\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body))))
	if err != nil {
		t.Fatal(err)
	}
	once.ServeHTTP(httptest.NewRecorder(), request)
	if request.MultipartForm == nil || request.Pattern != "POST /files/{name}" {
		t.Fatalf("%+v", request)
	}
	if err := request.MultipartForm.RemoveAll(); err != nil {
		t.Error(err)
	}
}
