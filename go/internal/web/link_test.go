package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"code.invalid/leasehold/go/internal/clock"
	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

// ask sends one request to this address, and returns its answer.
func ask(t *testing.T, method, at string, patience time.Duration) core.Response {
	t.Helper()
	link := NewLink(nil, nil)
	defer link.Close()
	answers := make(chan core.Response, 1)
	link.Open(node.Events{Answer: func(inputs []core.Input) {
		for _, input := range inputs {
			answers <- input.(core.InputResponse).Response
		}
	}})
	link.Send(core.OutputHTTPRequest{
		ID: 7, Method: method, URL: at, Body: []byte("asked"), DeadlineNs: uint64(clock.Now() + patience),
		Headers: []core.HTTPHeader{{Name: "x-amz-date", Value: "today"}},
	})
	return <-answers
}

func serve(t *testing.T, handle http.HandlerFunc) string {
	server := httptest.NewServer(handle)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func kind(t *testing.T, response core.Response) core.FaultKind {
	t.Helper()
	switch response := response.(type) {
	case core.ResponseUnknown:
		return response.Kind
	case core.ResponseNotSent:
		t.Errorf("not sent: %v", *response.Detail)
	default:
		t.Errorf("%T", response)
	}
	return core.FaultKindServer
}

func TestARequestIsSentAsItIsWritten(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Told", "yes")
		w.WriteHeader(http.StatusTeapot)
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("X-Amz-Date"), body)
	})
	for method, want := range map[string]string{"POST": "POST /a today asked", "PUT": "PUT /a today asked", "GET": "GET /a today "} {
		said, is := ask(t, method, at+"/a", time.Minute).(core.ResponseHTTPResponse)
		if !is || said.Status != http.StatusTeapot || string(said.Body) != want {
			t.Errorf("%v %q", said.Status, said.Body)
		}
		found := false
		for _, header := range said.Headers {
			found = found || header.Name == "X-Told" && header.Value == "yes"
		}
		if !found {
			t.Errorf("%v", said.Headers)
		}
	}
}

func TestARedirectionIsNotFollowed(t *testing.T) {
	var asked atomic.Int64
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	for _, method := range []string{"GET", "POST", "PUT"} {
		said, is := ask(t, method, at, time.Minute).(core.ResponseHTTPResponse)
		if !is || said.Status != http.StatusTemporaryRedirect || asked.Swap(0) != 1 {
			t.Errorf("%s: %v", method, said.Status)
		}
	}
}

func TestAResponseWithoutItsEndIsUnknown(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	if of := kind(t, ask(t, "POST", at, time.Minute)); of != core.FaultKindReset {
		t.Error(of)
	}
}

func TestAResponseThatIsTooLongIsCut(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 2<<20))
	})
	if said := ask(t, "POST", at, time.Minute).(core.ResponseHTTPResponse); len(said.Body) != mostBytes {
		t.Errorf("%d bytes", len(said.Body))
	}
}

func TestASilentServerIsGivenUpAtTheDeadline(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		// A server sees the end of a connection only while it reads.
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	if of := kind(t, ask(t, "POST", at, 50*time.Millisecond)); of != core.FaultKindTimeout {
		t.Error(of)
	}
}

func TestAServerThatIsNotThereWasSentNothing(t *testing.T) {
	response := ask(t, "POST", "http://127.0.0.1:1/?sig=secret", time.Minute)
	if said, is := response.(core.ResponseNotSent); !is || strings.Contains(*said.Detail, "secret") {
		t.Errorf("%T", response)
	}
}

// A connection that the server has closed looks like one of which it has read the request.
func TestWhatMayHaveArrivedIsSentOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var requests atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			piece := make([]byte, 4096)
			if n, _ := conn.Read(piece); n > 0 {
				requests.Add(1)
			}
			_ = conn.Close()
		}
	}()
	for _, method := range []string{"GET", "POST", "PUT"} {
		if of := kind(t, ask(t, method, "http://"+listener.Addr().String(), time.Minute)); of != core.FaultKindReset {
			t.Errorf("%s: %v", method, of)
		}
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("%d requests have arrived", n)
	}
}

func TestCredentialsAreAskedForUntilTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		link := NewLink(nil, func(context.Context) (core.Credentials, error) {
			if asked++; asked < 3 {
				return nil, errors.New("the vault sleeps")
			}
			return core.CredentialsToken{Token: "t"}, nil
		})
		var given []core.Credentials
		failures := 0
		link.Open(node.Events{
			Credentials:   func(fresh core.Credentials) { given = append(given, fresh) },
			NoCredentials: func(error) { failures++ },
		})
		link.NeedCredentials()
		link.NeedCredentials()
		time.Sleep(time.Minute)
		synctest.Wait()
		if asked != 3 || failures != 2 || len(given) != 1 {
			t.Errorf("asked %d times, %d failures, given %d times", asked, failures, len(given))
		}
		link.Close()
	})
}
