// Package web sends the protocol's requests over HTTP, each once.
package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"

	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

const (
	// mostBytes is one more than the longest body that is understood.
	mostBytes = 1<<20 + 1
	// credentialsTime is how long credentials may take to come.
	credentialsTime = 10 * time.Second
	// pause is between attempts to get credentials.
	pause = time.Second
)

// Credentials get those for further requests.
type Credentials func(context.Context) (core.Credentials, error)

// Link sends each request by a goroutine of its own.
type Link struct {
	node.Deaf
	client *http.Client
	// isOwn: nobody else uses its connections.
	isOwn       bool
	credentials Credentials
	events      node.Events
	// ctx ends with the link.
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	asking bool
}

// NewLink makes a link that is not open yet. Without a client, there is one of its own; without credentials, the store needs none.
func NewLink(client *http.Client, credentials Credentials) *Link {
	ctx, cancel := context.WithCancel(context.Background())
	own, isOwn := once(client)
	return &Link{client: own, isOwn: isOwn, credentials: credentials, ctx: ctx, cancel: cancel}
}

// once is a client that follows nothing and remembers nothing, and tells if its connections are its own.
func once(given *http.Client) (client *http.Client, isOwn bool) {
	transport := http.DefaultTransport
	if given != nil && given.Transport != nil {
		transport = given.Transport
	} else if usual, is := transport.(*http.Transport); is {
		own := usual.Clone()
		own.DisableCompression = true
		own.MaxIdleConnsPerHost = 32
		transport, isOwn = own, true
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: refuse}, isOwn
}

// Open tells where answers go.
func (l *Link) Open(events node.Events) { l.events = events }

// Close ends requests that are under way, and connections of its own.
func (l *Link) Close() {
	l.cancel()
	if l.isOwn {
		l.client.CloseIdleConnections()
	}
}

// Send sends a request.
func (l *Link) Send(output core.Output) {
	request := core.HTTPRequest(output.(core.OutputHTTPRequest))
	go func() {
		response := l.perform(request)
		l.events.Answer([]core.Input{core.InputResponse{ID: request.ID, Response: response}})
	}()
}

func (l *Link) perform(request core.HTTPRequest) core.Response {
	ctx, cancel := context.WithTimeout(l.ctx, node.Left(request.DeadlineNs))
	defer cancel()
	response, sent, err := exchange(ctx, l.client, request)
	switch {
	case err == nil:
		return response
	case !sent:
		return core.ResponseNotSent(fault(core.FaultKindUnreachable, err))
	case ctx.Err() != nil:
		return core.ResponseUnknown(fault(core.FaultKindTimeout, ctx.Err()))
	default:
		return core.ResponseUnknown(fault(core.FaultKindReset, err))
	}
}

// exchange sends a request and reads the whole response. `sent` is false if nothing of it can have left.
func exchange(ctx context.Context, client *http.Client, request core.HTTPRequest) (_ core.Response, sent bool, _ error) {
	// Another transport need not say when it has a connection.
	_, says := client.Transport.(*http.Transport)
	sent = !says && client.Transport != nil
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }}
	var body io.Reader
	if request.Method != http.MethodGet {
		body = bytes.NewReader(request.Body)
	}
	made, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), request.Method, request.URL, body)
	if err != nil {
		return nil, false, bare(err)
	}
	// Nothing is sent twice.
	made.GetBody = nil
	for _, header := range request.Headers {
		made.Header.Set(header.Name, header.Value)
	}
	answer, err := client.Do(made)
	if err != nil {
		return nil, sent, bare(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, mostBytes))
	if err != nil {
		return nil, true, bare(err)
	}
	var headers []core.HTTPHeader
	for name, values := range answer.Header {
		for _, value := range values {
			headers = append(headers, core.HTTPHeader{Name: name, Value: value})
		}
	}
	return core.ResponseHTTPResponse{Status: uint16(answer.StatusCode), Headers: headers, Body: content}, true, nil
}

// bare is an error without the url, which may be a secret.
func bare(err error) error {
	var with *url.Error
	if errors.As(err, &with) {
		return with.Err
	}
	return err
}

func fault(kind core.FaultKind, err error) core.Fault {
	detail := err.Error()
	return core.Fault{Kind: kind, Detail: &detail}
}

// NeedCredentials gets fresh ones in the background, until it has them.
func (l *Link) NeedCredentials() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking || l.credentials == nil {
		return
	}
	l.asking = true
	go func() {
		fresh, err := l.ask()
		for err != nil && l.ctx.Err() == nil {
			l.events.NoCredentials(err)
			select {
			case <-time.After(pause):
				fresh, err = l.ask()
			case <-l.ctx.Done():
			}
		}
		l.mu.Lock()
		l.asking = false
		l.mu.Unlock()
		if err == nil {
			l.events.Credentials(fresh)
		}
	}()
}

func (l *Link) ask() (core.Credentials, error) {
	ctx, cancel := context.WithTimeout(l.ctx, credentialsTime)
	defer cancel()
	return l.credentials(ctx)
}

// Post sends a JSON and returns the status and the body of the response, for logins.
func Post(ctx context.Context, client *http.Client, address string, body []byte) (int, []byte, error) {
	headers := []core.HTTPHeader{{Name: "content-type", Value: "application/json"}}
	request := core.HTTPRequest{Method: http.MethodPost, URL: address, Headers: headers, Body: body}
	once, isOwn := once(client)
	if isOwn {
		defer once.CloseIdleConnections()
	}
	response, _, err := exchange(ctx, once, request)
	if err != nil {
		return 0, nil, fmt.Errorf("no login: %w", err)
	}
	said := response.(core.ResponseHTTPResponse)
	return int(said.Status), said.Body, nil
}
