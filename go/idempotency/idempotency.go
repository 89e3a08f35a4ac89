// Package idempotency is middleware for net/http that answers requests with an Idempotency-Key once.
//
//	once, err := idempotency.Middleware(client, idempotency.Options{
//		Principal: func(r *http.Request) (string, error) { return userOf(r.Context()) },
//	})
//	if err != nil {
//		return err
//	}
//	mux.Handle("POST /charge", once(charge)) // or router.Use(once) of chi
//
// The first request with a key does the work; later ones get its response, with Idempotency-Replayed: true. The promises, and the
// answers to all other requests, are in the guide: docs/idempotency.md. Place it inside of authentication, and outside of all that reads
// bodies.
//
// The response of a handler is held back in memory until it is written down that its work is done, so it cannot be streamed: a Flush does
// nothing, and a Hijack is refused. Once the request is over, a Write to a response that is too long to be kept fails. Informational responses (1xx) are sent at once, and trailers to the first caller alone. Headers that were set
// before the middleware was reached, as by CORS or compression, are not kept: they are those of each request. The Content-Type is kept
// all the same.
//
// The context of the request ends when its lease is lost, or its client has gone. A handler that answers all the same is done. One that
// returns without an answer then, or has written less than its Content-Length says, leaves the work to the next request, as one that
// panics does.
package idempotency

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	leasehold "code.invalid/leasehold/go"
)

const (
	header  = "Idempotency-Key"
	differs = "this Idempotency-Key was used for another request: use a new key for each operation"
	tooLong = "this was done, and the response is not kept, since it was too long"
)

// Options are the settings of [Middleware]. All but Principal may be left out.
type Options struct {
	// Principal returns who asks: for example the id of the user. Two of them never share a response. It is required, since without it
	// one user would get what another one has asked for. Return an error for requests without a user.
	Principal func(*http.Request) (string, error)
	// Keep is how long a response is kept: a day by default, at least the TTL, at most 100 years, and 7 days on a quorum.
	Keep time.Duration
	// TTL is the time after which another process may do the work of one that died: 100 ms to 24 h, 30 s by default; on a quorum at most
	// the longest ttl that it was set up for.
	TTL time.Duration
	// Methods are those to which it applies; POST and PATCH by default.
	Methods []string
	// Required answers 400 to requests of these methods that have no key; without it they pass.
	Required bool
	// MaxBody is the longest body of a request with a key, in bytes, 1 MiB by default; a longer one is answered 413.
	MaxBody int64
	// ErrorHandler answers requests for which Principal returns an error, that the store refuses, or whose body was read before. The work
	// of none of them is begun. By default such an error is logged by [slog.Default], and the answer is 500 without its text.
	ErrorHandler func(http.ResponseWriter, *http.Request, error)
}

// Errors end runs whose work is left to the next request.
var (
	errNotKept    = errors.New("the response leaves the work to the next request")
	errUnfinished = errors.New("the response was left unfinished")
)

// Middleware makes middleware that answers each request with an Idempotency-Key once, by runs of this client. Wrong settings are errors of
// the kind [leasehold.ErrConfig].
func Middleware(client *leasehold.Client, options Options) (func(http.Handler) http.Handler, error) {
	if client == nil {
		return nil, wrong("there is no client: give the one of leasehold.Connect or leasehold.Open")
	}
	if err := options.complete(); err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		return &handler{client: client, Options: options, next: next}
	}, nil
}

func wrong(format string, parts ...any) error {
	return fmt.Errorf("leasehold: idempotency: %w: %s", leasehold.ErrConfig, fmt.Sprintf(format, parts...))
}

// The bounds are those of runs, which would refuse each request otherwise.
const (
	shortestTTL = 100 * time.Millisecond
	longestTTL  = 24 * time.Hour
	longestKeep = 100 * 365 * 24 * time.Hour
)

// complete checks settings, and sets those that were left out.
func (o *Options) complete() error {
	if o.Principal == nil {
		return wrong("Principal is missing: give a function of the request that returns who asks")
	}
	if o.Keep == 0 {
		o.Keep = 24 * time.Hour
	}
	if o.TTL == 0 {
		o.TTL = 30 * time.Second
	}
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if len(o.Methods) == 0 {
		o.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	if o.ErrorHandler == nil {
		o.ErrorHandler = failed
	}
	switch {
	case o.TTL < shortestTTL || o.TTL > longestTTL:
		return wrong("TTL is %v: give %v to %v", o.TTL, shortestTTL, longestTTL)
	case o.Keep < o.TTL || o.Keep > longestKeep:
		return wrong("Keep is %v: give at least the TTL, %v, and at most 100 years", o.Keep, o.TTL)
	case o.MaxBody < 0:
		return wrong("MaxBody is %d: give a number of bytes above 0", o.MaxBody)
	}
	// A copy, since those who have given it may change theirs.
	methods := make([]string, len(o.Methods))
	for i, method := range o.Methods {
		if !isToken(method) {
			return wrong("Methods has %q, which is no method of HTTP: give such as PUT", method)
		}
		methods[i] = strings.ToUpper(method)
	}
	o.Methods = methods
	return nil
}

type (
	// leaseKey is the key of the lease in the context of a request.
	leaseKey struct{}
	// runKey is the key of the run's name there.
	runKey struct{}
)

// Lease returns the lease under which a request is handled, by the context of the request. Its token is for guards, which reject the
// writes of a process that was stopped past its ttl. It is nil in requests without a key.
func Lease(ctx context.Context) *leasehold.Lease {
	lease, _ := ctx.Value(leaseKey{}).(*leasehold.Lease)
	return lease
}

type handler struct {
	client *leasehold.Client
	Options
	next http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	keys := r.Header.Values(header)
	switch {
	case !slices.Contains(h.Methods, r.Method), len(keys) == 0 && !h.Required:
		h.next.ServeHTTP(w, r)
	case len(keys) == 0:
		problem(w, http.StatusBadRequest, "this request needs the header Idempotency-Key: a text of your own, new for each operation", false)
	case len(keys) > 1 || !isKey(strings.Trim(keys[0], " \t")):
		problem(w, http.StatusBadRequest,
			"Idempotency-Key has to be one text of 1 to 255 printable ASCII characters, such as a UUID", false)
	default:
		h.once(w, r, strings.Trim(keys[0], " \t"))
	}
}

// once answers a request with a key.
func (h *handler) once(w http.ResponseWriter, r *http.Request, key string) {
	principal, err := h.Principal(r)
	if err != nil {
		h.ErrorHandler(w, r, err)
		return
	}
	asked := target(r)
	name, occurrence := occurrenceOf(r.Method, asked.Path, principal, key)
	if r.Context().Value(runKey{}) == name+occurrence {
		// The middleware stands twice: the outer one does all that this one would.
		h.next.ServeHTTP(w, r)
		return
	}
	body, ok := h.body(w, r)
	if !ok {
		return
	}
	fingerprint := hash(asked.RawQuery, string(body))
	var work *held
	outcome, err := h.client.Once(r.Context(), name, occurrence, func(ctx context.Context, run *leasehold.Run) error {
		work = hold(ctx, w, r.Method)
		ctx = context.WithValue(context.WithValue(ctx, leaseKey{}, run.Lease), runKey{}, name+occurrence)
		h.work(ctx, work, r, body)
		if !work.end(ctx.Err() != nil) {
			return errUnfinished
		}
		if !isKept(work.status, work.sent) {
			return errNotKept
		}
		run.SetResult(leasehold.RunResult{Kind: leasehold.ResultBytes, Bytes: work.written(fingerprint)})
		return nil
	}, leasehold.Keep(h.Keep), leasehold.TTL(h.TTL), leasehold.Data([]byte(fingerprint)))
	switch {
	case work != nil && !work.isCut && (err == nil || errors.Is(err, errNotKept) || errors.Is(err, leasehold.ErrResultNotKept)):
		// The store may have had no room for the response. The work is done, and this caller gets it.
		work.send()
	case work != nil:
		uncertain(w, r, err)
	case err != nil:
		h.notBegun(w, r, err)
	default:
		h.other(w, r, name, occurrence, outcome, fingerprint)
	}
}

// work has the next handler answer a request, whose body was read already.
func (h *handler) work(ctx context.Context, w http.ResponseWriter, r *http.Request, body []byte) {
	again := r.WithContext(ctx)
	again.Body = io.NopCloser(bytes.NewReader(body))
	defer func() {
		// Middleware outside reads the one afterwards, and the server removes the files of the other.
		r.Pattern, r.MultipartForm = again.Pattern, again.MultipartForm
	}()
	h.next.ServeHTTP(w, again)
}

// body reads the body of a request. It reports false if it has answered the request.
func (h *handler) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if r.Body == nil {
		return nil, true
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxBody))
	var long *http.MaxBytesError
	switch wasParsed := r.PostForm != nil || r.MultipartForm != nil; {
	case errors.As(err, &long):
		detail := fmt.Sprintf("a request with an Idempotency-Key has at most %d bytes", long.Limit)
		problem(w, http.StatusRequestEntityTooLarge, detail, false)
	case err != nil && !errors.Is(err, http.ErrBodyReadAfterClose):
		problem(w, http.StatusBadRequest, "the body of this request did not arrive as a whole", false)
	case err != nil, len(body) == 0 && (r.ContentLength > 0 || r.ContentLength < 0 && wasParsed):
		// All bodies would be the same.
		h.ErrorHandler(w, r, wrong("the body of the request was read before: place the middleware outside of what reads it"))
	default:
		return body, true
	}
	return nil, false
}

// target is the address of a request as it was sent: [http.StripPrefix] and the like must not make two addresses one.
func target(r *http.Request) *url.URL {
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil {
		return asked
	}
	return r.URL
}

// notBegun answers a request whose work was not begun.
func (h *handler) notBegun(w http.ResponseWriter, r *http.Request, err error) {
	for _, passes := range []error{
		leasehold.ErrUnavailable, leasehold.ErrLost, leasehold.ErrReleased, leasehold.ErrClosed, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, passes) {
			uncertain(w, r, err)
			return
		}
	}
	h.ErrorHandler(w, r, err)
}

// other answers a request whose work another one has done, or does.
func (h *handler) other(w http.ResponseWriter, r *http.Request, name, occurrence string, outcome leasehold.Outcome, fingerprint string) {
	done, holder := outcome.Done, outcome.Holder
	if done == nil && (holder == nil || holder.Data == nil) {
		// A client does not ask the store while it holds the lock itself, or asks for another request already.
		seen, err := h.client.InspectRun(r.Context(), name, occurrence)
		if err != nil {
			h.notBegun(w, r, err)
			return
		}
		done, holder = seen.Done, seen.Holder
	}
	switch {
	case done == nil && holder != nil && holder.Data != nil && string(holder.Data) != fingerprint:
		problem(w, http.StatusUnprocessableEntity, differs, false)
	case done == nil:
		problem(w, http.StatusConflict, "the first request with this Idempotency-Key is still at work: ask again", true)
	case done.Unsettled:
		problem(w, http.StatusConflict, "this was done, and the response is not settled yet: ask again", true)
	default:
		switch kept := read(done.Result); {
		case kept == nil:
			problem(w, http.StatusConflict, tooLong, false)
		case kept.fingerprint != fingerprint:
			problem(w, http.StatusUnprocessableEntity, differs, false)
		case kept.status == 0:
			problem(w, http.StatusConflict, tooLong, false)
		default:
			kept.replay(w)
		}
	}
}

// uncertain answers a request whose work is done, perhaps.
func uncertain(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil {
		slog.WarnContext(r.Context(), "a request with an Idempotency-Key is answered 503", "error", err)
	}
	problem(w, http.StatusServiceUnavailable, "it is not certain that this was done: send the same request again", true)
}

// failed is the ErrorHandler of those who give none.
func failed(w http.ResponseWriter, r *http.Request, err error) {
	slog.ErrorContext(r.Context(), "a request with an Idempotency-Key is answered 500, and its work not begun", "error", err)
	problem(w, http.StatusInternalServerError, "this cannot be answered: the log of the server says why", false)
}

// problem is an answer that is ours, and not the handler's.
func problem(w http.ResponseWriter, status int, detail string, again bool) {
	body, _ := json.Marshal(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{header, status, detail})
	w.Header().Set("Content-Type", "application/problem+json")
	if again {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	// That the client has gone is of no interest any more.
	_, _ = w.Write(body)
}
