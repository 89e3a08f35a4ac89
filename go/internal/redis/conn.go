package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"code.invalid/leasehold/go/internal/clock"
	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

const (
	// slack is how much longer than its deadline a write may take.
	slack = 500 * time.Millisecond
	// aside is how long the reader of a connection leaves it to callers.
	aside = 5 * time.Millisecond
)

// Version is what the server shows of its clients.
const Version = "0.1.0"

// refusal is what a server says that does not let us in, as a whole reply.
type refusal []byte

func (r refusal) Error() string { return string(bytes.TrimSpace(r[1:])) }

// wire is a connection with what was received on it, and was not taken yet: the end of a buffer.
type wire struct {
	net.Conn
	buffer   []byte
	received []byte
}

// reply waits for one reply, which is valid until more is received.
func (w *wire) reply() ([]byte, error) {
	for {
		length, err := scan(w.received)
		if err != nil {
			return nil, err
		}
		if length > 0 {
			reply := w.received[:length]
			w.received = w.received[length:]
			return reply, nil
		}
		if err := w.receive(); err != nil {
			return nil, err
		}
	}
}

// receive waits for more. What was taken before is overwritten.
func (w *wire) receive() error {
	left := copy(w.buffer, w.received)
	if left == len(w.buffer) {
		grown := make([]byte, max(2*left, 4096))
		copy(grown, w.received)
		w.buffer = grown
	}
	n, err := w.Read(w.buffer[left:])
	w.received = w.buffer[:left+n]
	if n > 0 {
		return nil
	}
	return err
}

// greet opens a connection to a server that may be used: it lets us in, and is no replica.
func (p Place) greet(ctx context.Context) (*wire, error) {
	conn, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn}
	if until, bounded := ctx.Deadline(); bounded {
		_ = w.SetDeadline(until)
	}
	if err := p.login(w); err != nil {
		_ = w.Close()
		return nil, err
	}
	return w, w.SetDeadline(time.Time{})
}

func (p Place) login(w *wire) error {
	auth := []string{"AUTH", p.user, p.password}
	if p.user == "" {
		auth = []string{"AUTH", p.password}
	}
	commands := []struct {
		args []string
		// Older servers, and users with few rights, may be refused the rest.
		needed bool
	}{
		{auth, true},
		{[]string{"SELECT", strconv.Itoa(p.database)}, true},
		{[]string{"CLIENT", "SETINFO", "LIB-NAME", "leasehold-go"}, false},
		{[]string{"CLIENT", "SETINFO", "LIB-VER", Version}, false},
		{[]string{"ROLE"}, false},
	}
	if p.database == 0 {
		commands = slices.Delete(commands, 1, 2)
	}
	if p.password == "" {
		commands = commands[1:]
	}
	var bytes []byte
	for _, command := range commands {
		bytes = encode(bytes, command.args)
	}
	if _, err := w.Write(bytes); err != nil {
		return err
	}
	var refused error
	for _, command := range commands {
		reply, err := w.reply()
		switch {
		case err != nil:
			return err
		case reply[0] == '-' && command.needed && refused == nil:
			refused = refusal(append([]byte{}, reply...))
		case command.args[0] == "ROLE" && refused == nil:
			refused = role(reply)
		}
	}
	return refused
}

// role fails for a server that must not keep locks.
func role(reply []byte) error {
	said := texts(reply)
	switch {
	case len(said) == 0 || string(said[0]) == "master":
		return nil
	case string(said[0]) == "sentinel":
		return errors.New("this server is a Sentinel: name the master in the store url, or ask Sentinels for it by package goredis or rueidis")
	}
	return fmt.Errorf("this server is a %s: name the master in the store url", said[0])
}

// request was written, and its replies are missing.
type request struct {
	id       uint64
	replies  int
	deadline uint64
}

// conn is a connection in use. Replies are read by a goroutine of its own, or by a caller who is the only one to wait for any.
type conn struct {
	wire   *wire
	answer func([]core.Input)

	// reading is held by who reads.
	reading sync.Mutex
	// called wakes the reader of its own, and callers tells it that some have read by themselves.
	called  chan struct{}
	callers atomic.Bool

	mu      sync.Mutex
	waiting []request
	broken  bool
	// armed: a deadline of reads is set, no later than that of any request that waits.
	armed    bool
	armedFor uint64

	// writable is the deadline of writes that is set. It belongs to who writes.
	writable uint64
}

// start begins to read replies.
func start(w *wire, answer func([]core.Input)) *conn {
	c := &conn{wire: w, answer: answer, called: make(chan struct{}, 1)}
	go c.read()
	return c
}

// begin takes requests that are about to be written, unless the connection is broken, or a reply is missing that is overdue. Who may
// read becomes the reader if nobody else waits.
func (c *conn) begin(requests []core.RedisCommands, mayRead bool) (begun, isReader bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		return false, false
	}
	if len(c.waiting) > 0 && c.first() <= uint64(clock.Now()) {
		// The reader is about to notice, too.
		_ = c.wire.Close()
		return false, false
	}
	isReader = mayRead && len(c.waiting) == 0 && len(requests) == 1 && c.reading.TryLock()
	if !isReader {
		c.call()
	}
	for _, r := range requests {
		c.waiting = append(c.waiting, request{r.ID, len(r.Commands), r.DeadlineNs})
		if !c.armed || r.DeadlineNs < c.armedFor {
			c.arm(r.DeadlineNs)
		}
	}
	return true, isReader
}

// call wakes the reader of its own.
func (c *conn) call() {
	select {
	case c.called <- struct{}{}:
	default:
	}
}

// arm wakes the reader at a deadline. It is not set again for each request, since that costs more than to look again when it passes.
func (c *conn) arm(deadline uint64) {
	c.armed, c.armedFor = true, deadline
	_ = c.wire.SetReadDeadline(time.Now().Add(node.Left(deadline)))
}

// overdue tells if a reply is missing whose deadline has passed, and otherwise waits for the next deadline.
func (c *conn) overdue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.waiting) == 0:
		c.armed = false
		_ = c.wire.SetReadDeadline(time.Time{})
	case node.Left(c.first()) == 0:
		return true
	default:
		c.arm(c.first())
	}
	return false
}

// first is the first deadline of those that wait.
func (c *conn) first() uint64 {
	first := c.waiting[0].deadline
	for _, r := range c.waiting[1:] {
		first = min(first, r.deadline)
	}
	return first
}

// write writes until a deadline, or a little longer: that of writes is not set again for each of them.
func (c *conn) write(bytes []byte, deadline uint64) error {
	if deadline > c.writable {
		c.writable = deadline + uint64(slack)
		_ = c.wire.SetWriteDeadline(time.Now().Add(node.Left(c.writable)))
	}
	_, err := c.wire.Write(bytes)
	return err
}

// read is the reader of its own. When nobody waits for a reply it steps aside for a moment, so that callers may read. Without them it
// reads on, since it has to notice when the server closes the connection.
func (c *conn) read() {
	timer := time.NewTimer(aside)
	defer timer.Stop()
	for {
		c.reading.Lock()
		err := c.readOnce()
		c.reading.Unlock()
		if err != nil {
			c.fail(err)
			return
		}
		for isAside := c.mayRest(); isAside; {
			timer.Reset(aside)
			select {
			case <-timer.C:
				isAside = c.callers.Swap(false)
			case <-c.called:
				isAside = false
			}
		}
	}
}

// mayRest tells if nobody waits for a reply. Calls for those that have come do not count any more.
func (c *conn) mayRest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) > 0 {
		return false
	}
	select {
	case <-c.called:
	default:
	}
	return true
}

// readFor reads for a caller, who has become the reader, until it need not wait any longer.
func (c *conn) readFor(waiter *node.Waiter) {
	stop := context.AfterFunc(waiter.Ctx, func() { _ = c.wire.SetReadDeadline(time.Unix(1, 0)) })
	var err error
	for err == nil && !waiter.IsDone() && !c.isIdle() {
		err = c.readOnce()
	}
	stop()
	c.callers.Store(true)
	c.reading.Unlock()
	if err != nil {
		c.fail(err)
	}
	if !c.isIdle() {
		c.call()
	}
}

// readOnce waits for bytes, and hands on the replies that are complete by then.
func (c *conn) readOnce() error {
	err := c.wire.receive()
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.overdue() {
		err = nil
	}
	if err != nil {
		return err
	}
	answers, err := c.complete()
	if len(answers) > 0 {
		c.answer(answers)
	}
	return err
}

func (c *conn) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) == 0
}

// complete takes the requests whose replies have all arrived.
func (c *conn) complete() ([]core.Input, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var answers []core.Input
	for len(c.wire.received) > 0 {
		if len(c.waiting) == 0 {
			return answers, errMalformed
		}
		whole := 0
		for range c.waiting[0].replies {
			length, err := scan(c.wire.received[whole:])
			if length == 0 || err != nil {
				return answers, err
			}
			whole += length
		}
		replies := core.ResponseRedisReplies{Replies: c.wire.received[:whole]}
		answers = append(answers, core.InputResponse{ID: c.waiting[0].id, Response: replies})
		c.wire.received = c.wire.received[whole:]
		c.waiting = c.waiting[1:]
	}
	return answers, nil
}

// fail ends the connection: everything that was sent may have happened.
func (c *conn) fail(err error) {
	_ = c.wire.Close()
	c.mu.Lock()
	c.broken = true
	lost := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	var answers []core.Input
	for _, r := range lost {
		answers = append(answers, core.InputResponse{ID: r.id, Response: core.ResponseUnknown(faultOf(err))})
	}
	if len(answers) > 0 {
		c.answer(answers)
	}
}

func faultOf(err error) core.Fault {
	kind := core.FaultKindReset
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		kind = core.FaultKindTimeout
	case errors.Is(err, errMalformed):
		kind = core.FaultKindProtocol
	case errors.Is(err, io.EOF):
		err = errors.New("the server has closed the connection")
	}
	detail := err.Error()
	return core.Fault{Kind: kind, Detail: &detail}
}
