package redis

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

// moved begins the reply of a node that does not serve a slot any more, and again that of a cluster in which that will pass.
var moved, again = []byte("-MOVED "), []byte("-TRYAGAIN ")

// Conn is the connection of another library; leasehold.RedisConn says more.
type Conn interface {
	Do(ctx context.Context, commands [][][]byte) (replies []byte, sent bool, err error)
	Subscribe(ctx context.Context, channel string, ready func(), message func(payload []byte)) error
	Close() error
}

// Over is a link over the connection of another library.
type Over struct {
	conn Conn
	// isCluster: it leads to a Redis Cluster.
	isCluster bool
	events    node.Events
	// ctx ends with the link.
	ctx    context.Context
	cancel context.CancelFunc

	mu sync.Mutex
	// heard ends the subscription of each resource.
	heard map[string]context.CancelFunc
}

// NewOver makes a link that is not open yet.
func NewOver(conn Conn, isCluster bool) *Over {
	ctx, cancel := context.WithCancel(context.Background())
	return &Over{conn: conn, isCluster: isCluster, ctx: ctx, cancel: cancel, heard: map[string]context.CancelFunc{}}
}

// InOneSlot fails for a name whose keys a cluster would have in different slots, as the protocol writes them: it puts braces around a
// name without a hash tag, and they are none where the name has a closing one.
func InOneSlot(name string) error {
	if !strings.Contains(name, "}") {
		return nil
	}
	if _, rest, opened := strings.Cut(name, "{"); opened {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			return nil
		}
	}
	return errors.New("this name cannot be locked on a Redis Cluster: it has a } but no hash tag, as {a} is; choose another one")
}

// Open tells where answers go.
func (o *Over) Open(events node.Events) { o.events = events }

// Close ends requests and subscriptions.
func (o *Over) Close() {
	o.cancel()
	_ = o.conn.Close()
}

// NeedCredentials does nothing: the login belongs to the connection.
func (o *Over) NeedCredentials() {}

// Send sends a request by a goroutine of its own, since the other library waits.
func (o *Over) Send(output core.Output) {
	request := core.RedisCommands(output.(core.OutputRedisCommands))
	go func() {
		response := o.perform(request)
		o.events.Answer([]core.Input{core.InputResponse{ID: request.ID, Response: response}})
	}()
}

func (o *Over) perform(request core.RedisCommands) core.Response {
	ctx, cancel := context.WithTimeout(o.ctx, node.Left(request.DeadlineNs))
	defer cancel()
	commands := make([][][]byte, len(request.Commands))
	for i, command := range request.Commands {
		commands[i] = command.Args
	}
	replies, sent, err := o.conn.Do(ctx, commands)
	switch {
	case err == nil:
		if o.isCluster && bytes.HasPrefix(replies, moved) {
			// To a single server that is the end. Here the slot has moved again, or nobody knows its new master yet.
			replies = slices.Concat(again, replies[1:])
		}
		return core.ResponseRedisReplies{Replies: replies}
	case !sent:
		fault := faultOf(err)
		fault.Kind = core.FaultKindUnreachable
		return core.ResponseNotSent(fault)
	default:
		return core.ResponseUnknown(faultOf(err))
	}
}

// Flush does nothing: what is sent has a goroutine of its own.
func (o *Over) Flush(*node.Waiter) {}

// Subscribe listens for releases of a resource.
func (o *Over) Subscribe(resource string, channel []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ctx, cancel := context.WithCancel(o.ctx)
	o.heard[resource] = cancel
	go func() {
		defer cancel()
		ready := func() { o.events.Subscribed(resource) }
		// Without it, waiters poll.
		_ = o.conn.Subscribe(ctx, string(channel), ready, func(payload []byte) { o.events.Message(channel, payload) })
	}()
}

// Unsubscribe listens no longer.
func (o *Over) Unsubscribe(resource string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cancel := o.heard[resource]; cancel != nil {
		cancel()
		delete(o.heard, resource)
	}
}
