package idempotency

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/leaseholdtest"
)

// vectors are those that Python and Node test as well.
type vectors struct {
	Requests []struct {
		Why, Method, Target, Path, Query, Principal, Key, Body, Name, Occurrence, Fingerprint string
	}
	Responses []struct {
		Why, Kept, Fingerprint, Body string
		Status                       *int
		Headers                      [][2]string
	}
	None  []string
	Again []struct {
		Status  int
		Headers map[string]string
		Again   bool
	}
	NeverKept []string `json:"never_kept"`
}

func shared(t *testing.T) (shared vectors) {
	text, err := os.ReadFile("../../bindings/idempotency.json")
	if err != nil {
		t.Skip("only a checkout has the vectors")
	}
	if err := json.Unmarshal(text, &shared); err != nil || len(shared.Requests) < 8 || len(shared.Responses) < 3 {
		t.Fatalf("%d requests, %d responses, %v", len(shared.Requests), len(shared.Responses), err)
	}
	return shared
}

func TestRequestsAreTheRunsOfOtherLanguages(t *testing.T) {
	for _, of := range shared(t).Requests {
		t.Run(of.Why, func(t *testing.T) {
			client := leaseholdtest.New(t).Connect()
			once, err := Middleware(client, Options{Principal: func(*http.Request) (string, error) { return of.Principal, nil }})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if replaced(r.URL.Path) != of.Path || r.URL.RawQuery != of.Query {
					t.Errorf("%q ? %q", r.URL.Path, r.URL.RawQuery)
				}
				w.WriteHeader(http.StatusCreated)
			})))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), of.Method, server.URL+of.Target, strings.NewReader(of.Body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Idempotency-Key", of.Key)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			seen, err := client.InspectRun(t.Context(), of.Name, of.Occurrence)
			if err != nil || seen.Done == nil {
				t.Fatalf("%+v, %v", seen, err)
			}
			if kept := read(seen.Done.Result); response.StatusCode != 201 || kept == nil || kept.fingerprint != of.Fingerprint {
				t.Errorf("%d, %+v", response.StatusCode, kept)
			}
		})
	}
}

func TestResponsesAreReadAndWrittenAsInOtherLanguages(t *testing.T) {
	for _, of := range shared(t).Responses {
		kept := read(&leasehold.RunResult{Kind: leasehold.ResultBytes, Bytes: []byte(of.Kept)})
		status := 0
		if of.Status != nil {
			status = *of.Status
		}
		for i, header := range of.Headers {
			of.Headers[i] = [2]string{header[0], toLatin1(header[1])}
		}
		if kept == nil || kept.fingerprint != of.Fingerprint || kept.status != status || string(kept.body) != of.Body ||
			!slices.Equal(kept.headers, of.Headers) {
			t.Errorf("%s: %+v", of.Why, kept)
			continue
		}
		body := kept.body
		if of.Status == nil {
			body = make([]byte, most)
		}
		// Python writes the same with escapes.
		if text := string(written(of.Fingerprint, status, kept.headers, body)); text != of.Kept && !strings.Contains(of.Why, "Python") && !strings.Contains(of.Why, "never kept") {
			t.Errorf("%s: %q", of.Why, text)
		}
	}
}

func TestResultsThatOthersTakeForNoResponseAreNone(t *testing.T) {
	for _, text := range shared(t).None {
		if kept := read(&leasehold.RunResult{Kind: leasehold.ResultBytes, Bytes: []byte(text)}); kept != nil {
			t.Errorf("%q: %+v", text, kept)
		}
	}
}

func TestOthersKeepTheSameResponsesAndTheSameHeadersOfThem(t *testing.T) {
	shared := shared(t)
	for _, of := range shared.Again {
		headers := http.Header{}
		for name, value := range of.Headers {
			headers.Set(name, value)
		}
		if isKept(of.Status, headers) == of.Again {
			t.Errorf("%+v", of)
		}
	}
	if never := slices.Sorted(slices.Values(neverKept)); len(shared.Again) < 10 || !slices.Equal(never, shared.NeverKept) {
		t.Errorf("%q", never)
	}
}

func TestAResponseIsKeptWithoutItsConnection(t *testing.T) {
	for _, of := range []struct{ name, value, want string }{
		{"X-A", "a", `[["x-a","a"]]`},
		{"x-a", " J\xfcrgen\r\n<&>\t", `[["x-a","Jürgen  <&>"]]`},
		{"X-A", "größe", `[["x-a","grÃ¶Ã\u009fe"]]`},
		{"X-A", "\x01", "[]"}, {"X-A", "\x7f", "[]"}, {"X A", "a", "[]"}, {"Trailer:X-A", "a", "[]"}, {"Set-Cookie", "a", "[]"},
		{"Connection", "close", "[]"}, {"Keep-Alive", "5", "[]"}, {"Transfer-Encoding", "a", "[]"}, {"Content-Length", "1", "[]"},
		{"Date", "a", "[]"}, {"Upgrade", "a", "[]"}, {"Trailer", "a", "[]"}, {"TE", "a", "[]"}, {"Proxy-Authenticate", "a", "[]"},
		{"Proxy-Authorization", "a", "[]"}, {"Proxy-Connection", "a", "[]"},
	} {
		want := strings.ReplaceAll(`{"fingerprint":"f","status":201,"headers":`+of.want+"}\nbody", `\u009f`, "\u009f")
		if got := string(written("f", 201, [][2]string{{of.name, of.value}}, []byte("body"))); got != want {
			t.Errorf("%s: %q\n%s\n%s", of.name, of.value, got, want)
		}
	}
	head := len(written("f", 200, nil, nil))
	if got := written("f", 200, nil, make([]byte, most-head)); len(got) != most {
		t.Errorf("%d bytes", len(got))
	}
	if got := string(written("f", 200, nil, make([]byte, most-head+1))); got != `{"fingerprint":"f","status":null}`+"\n" {
		t.Error(got)
	}
}

// hostile are results that others may have written, and that are no responses.
var hostile = []string{
	"", "\n", "[]\n", "{}\n", "\xff\n", "null\n", strings.Repeat("[", 4000), strings.Repeat("[", 4000) + "\n",
	`{"fingerprint":"f","status":200}`,
	`{"fingerprint":"f","status":200} {}` + "\n",
	`{"fingerprint":1,"status":200}` + "\n",
	`{"fingerprint":null,"status":200}` + "\n",
	`{"Fingerprint":"f","Status":200}` + "\n",
	`{"fingerprint":"f"}` + "\n",
	`{"fingerprint":"f","status":"200"}` + "\n",
	`{"fingerprint":"f","status":true}` + "\n",
	`{"fingerprint":"f","status":200.5}` + "\n",
	`{"fingerprint":"f","status":99}` + "\n",
	`{"fingerprint":"f","status":0}` + "\n",
	`{"fingerprint":"f","status":101}` + "\n",
	`{"fingerprint":"f","status":500}` + "\n",
	`{"fingerprint":"f","status":1e9}` + "\n",
	`{"fingerprint":"f","status":200,"headers":null}` + "\n",
	`{"fingerprint":"f","status":200,"headers":{}}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[null]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["a"]]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["a","b","c"]]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["a",null]]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["a",1]]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["a b","c"]]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["","c"]]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["a\r\nx","c"]]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["a","b\r\nx: y"]]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["a","b\u0000"]]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["a","b\u007f"]]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["a","b\u0394"]]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["\u0394","b"]]}` + "\n",
	`{"fingerprint":"f","status":200,"headers":[["a","\ud800"]]}` + "\n",
}

func TestResultsThatOthersHaveWrittenAreNoResponses(t *testing.T) {
	for _, result := range hostile {
		if kept := read(&leasehold.RunResult{Kind: leasehold.ResultBytes, Bytes: []byte(result)}); kept != nil {
			t.Errorf("%q: %+v", result, kept)
		}
	}
	whole := []byte(`{"fingerprint":"f","status":200}` + "\n")
	for _, kind := range []leasehold.ResultKind{leasehold.ResultJSON, leasehold.ResultOutput} {
		if kept := read(&leasehold.RunResult{Kind: kind, Bytes: whole}); kept != nil {
			t.Errorf("%s: %+v", kind, kept)
		}
	}
	if read(nil) != nil || read(&leasehold.RunResult{Kind: leasehold.ResultBytes, Bytes: whole}) == nil {
		t.Error("this is no response, and that is one")
	}
}

func TestAResultThatAnotherHasWrittenIsAnsweredSafely(t *testing.T) {
	client := leaseholdtest.New(t).Connect()
	once, err := Middleware(client, Options{Principal: func(*http.Request) (string, error) { return "", nil }})
	if err != nil {
		t.Fatal(err)
	}
	fingerprint := hash("", "")
	for n, of := range []struct{ kept, head, text string }{
		{hostile[len(hostile)-1], "409 map[Content-Type:[application/problem+json]]", "not kept"},
		{`{"fingerprint":"other","status":200}` + "\n", "422 map[Content-Type:[application/problem+json]]", "another request"},
		{
			fmt.Sprintf(`{"fingerprint":%q,"status":201,"headers":[["SET-Cookie","a=b"],["Content-Length","2"],["x-a","b"],["X-A","c"]]}`+"\nbody", fingerprint),
			"201 map[Content-Type:[] Idempotency-Replayed:[true] X-A:[b c]]", "body",
		},
		{
			fmt.Sprintf(`{"fingerprint":%q,"status":204,"headers":[["idempotency-replayed","no"]]}`+"\nbody", fingerprint),
			"204 map[Content-Type:[] Idempotency-Replayed:[true]]", "",
		},
	} {
		key := fmt.Sprintf("k%d", n)
		name, occurrence := occurrenceOf("POST", "/", "", key)
		if _, err := leasehold.OnceWithResult(t.Context(), client, name, occurrence, func(context.Context, *leasehold.Run) ([]byte, error) {
			return []byte(of.kept), nil
		}); err != nil {
			t.Fatal(err)
		}
		said := httptest.NewRecorder()
		request := httptest.NewRequest("POST", "/", nil)
		request.Header.Set("Idempotency-Key", key)
		once(http.NotFoundHandler()).ServeHTTP(said, request)
		if got := fmt.Sprintf("%d %v", said.Code, said.Header()); got != of.head || !strings.Contains(said.Body.String(), of.text) {
			t.Errorf("%s: %s %s", of.kept, got, said.Body)
		}
		if said.Code == 204 && said.Body.Len() > 0 {
			t.Error(said.Body)
		}
	}
}

// A result can be anything that others have written. One that is a response is a safe one, and the same when it is written again.
func FuzzRead(f *testing.F) {
	for _, result := range hostile {
		f.Add([]byte(result))
	}
	f.Add([]byte(`{"fingerprint":"f","status":201,"headers":[["X-Name","J\u00fcrgen"],["date","a"]]}` + "\n{}\n"))
	f.Fuzz(func(t *testing.T, result []byte) {
		first := read(&leasehold.RunResult{Kind: leasehold.ResultBytes, Bytes: result})
		if first == nil || first.status == 0 {
			return
		}
		said := httptest.NewRecorder()
		first.replay(said)
		var head strings.Builder
		if err := said.Header().Write(&head); err != nil || said.Code < 200 || said.Code >= 500 || said.Header().Get("Set-Cookie") != "" {
			t.Fatalf("%d %v, %v", said.Code, said.Header(), err)
		}
		lines := 1
		for _, header := range first.headers {
			if header[0] != "idempotency-replayed" {
				lines++
			}
		}
		if strings.Count(head.String(), "\n") != lines {
			t.Fatalf("%d headers are %q", lines, head.String())
		}
		text := written(first.fingerprint, first.status, first.headers, first.body)
		again := read(&leasehold.RunResult{Kind: leasehold.ResultBytes, Bytes: text})
		if again == nil || again.status != first.status && again.status != 0 || again.fingerprint != first.fingerprint {
			t.Fatalf("%+v is written as %q", first, text)
		}
		if again.status != 0 && !bytes.Equal(again.body, first.body) {
			t.Fatalf("%q is another body", text)
		}
	})
}
