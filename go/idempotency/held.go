package idempotency

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// held is a response that is held back, and does what the server would do with it.
type held struct {
	w      http.ResponseWriter
	method string
	// header is the handler's, and sent is as it was when the response began; nil before.
	header, sent http.Header
	// status is 0 before the response has begun.
	status int
	// ctx is the one of the request, and isCut is true once a Write has failed since it was over.
	ctx   context.Context
	isCut bool
	// length is the Content-Length that the handler has declared; below 0 without one.
	length int64
	body   bytes.Buffer
}

func hold(ctx context.Context, w http.ResponseWriter, method string) *held {
	header := http.Header{}
	maps.Copy(header, w.Header().Clone())
	return &held{w: w, method: method, header: header, length: -1, ctx: ctx}
}

// Header returns the handler's headers, which begin as those that were set outside.
func (h *held) Header() http.Header { return h.header }

// WriteHeader begins the response. Informational ones are sent at once.
func (h *held) WriteHeader(status int) {
	switch {
	case h.status != 0:
	case status < 100 || status > 999:
		// The server would panic later, when it is written down that the work is done.
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	case status < 200 && status != http.StatusSwitchingProtocols:
		before := maps.Clone(h.w.Header())
		replace(h.w.Header(), h.header)
		h.w.WriteHeader(status)
		replace(h.w.Header(), before)
	default:
		h.status, h.sent = status, h.header.Clone()
		if text := h.sent.Get("Content-Length"); text != "" {
			length, err := strconv.ParseInt(text, 10, 64)
			if err != nil || length < 0 {
				h.sent.Del("Content-Length")
				return
			}
			h.length = length
		}
	}
}

func (h *held) Write(part []byte) (int, error) {
	h.begin()
	switch {
	case len(part) == 0:
		return 0, nil
	case !h.hasBody():
		return 0, http.ErrBodyNotAllowed
	case h.length >= 0 && int64(h.body.Len()+len(part)) > h.length:
		return 0, http.ErrContentLength
	case h.body.Len() > most && h.ctx.Err() != nil:
		// Handlers that write without end stop by such an error.
		h.isCut = true
		return 0, context.Cause(h.ctx)
	default:
		return h.body.Write(part)
	}
}

// Flush begins the response, and sends nothing.
func (h *held) Flush() { h.begin() }

// FlushError is Flush, for [http.ResponseController], which would flush what is behind otherwise.
func (h *held) FlushError() error {
	h.begin()
	return nil
}

// Hijack is refused: the response would go past what is written down of it.
func (h *held) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, http.ErrNotSupported }

// Unwrap is for deadlines, which [http.ResponseController] sets on what is behind.
func (h *held) Unwrap() http.ResponseWriter { return h.w }

func (h *held) begin() {
	if h.status == 0 {
		h.WriteHeader(http.StatusOK)
	}
}

// hasBody: responses of this status have one.
func (h *held) hasBody() bool {
	return h.status >= 200 && h.status != http.StatusNoContent && h.status != http.StatusNotModified
}

// end completes a response whose handler has returned. It reports false for one that the handler has left unfinished: of a request that
// is over, also one that was not begun.
func (h *held) end(isOver bool) bool {
	if h.status == 0 && isOver {
		return false
	}
	h.begin()
	// All that is kept of one that was cut is that it was too long.
	if !h.isCut && h.length >= 0 && h.length != int64(h.body.Len()) && h.method != http.MethodHead && h.hasBody() {
		return false
	}
	// As the server does it, so that the type is kept as well.
	if _, hasType := h.sent["Content-Type"]; !hasType && h.body.Len() > 0 &&
		h.sent.Get("Content-Encoding") == "" && h.sent.Get("Transfer-Encoding") == "" {
		h.sent.Set("Content-Type", http.DetectContentType(h.body.Bytes()))
	}
	return true
}

// send answers with the response, and with the trailers that the handler has set.
func (h *held) send() {
	out := h.w.Header()
	replace(out, h.sent)
	h.w.WriteHeader(h.status)
	if h.body.Len() > 0 {
		// That the client has gone is of no interest any more.
		_, _ = h.w.Write(h.body.Bytes())
	}
	for name, values := range h.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			out[name] = values
		}
	}
	for _, names := range h.sent["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if values, is := h.header[name]; is {
				out[name] = values
			}
		}
	}
}

// written is the response as it is kept. Headers that were set outside are left out: the next request has its own.
func (h *held) written(fingerprint string) []byte {
	outside := h.w.Header()
	var headers [][2]string
	for _, name := range slices.Sorted(maps.Keys(h.sent)) {
		if name != "Content-Type" && slices.Equal(outside[name], h.sent[name]) {
			continue
		}
		for _, value := range h.sent[name] {
			headers = append(headers, [2]string{name, value})
		}
	}
	return written(fingerprint, h.status, headers, h.body.Bytes())
}

// replace gives a map the entries of another one, and no others.
func replace(headers, with http.Header) {
	clear(headers)
	maps.Copy(headers, with)
}
