// Package rueidis reaches a Redis by github.com/redis/rueidis: with its options, its dialer and its TLS.
//
//	client, err := leasehold.Open(leasehold.RedisOver{Conn: rueidis.With(option)})
//
// With Sentinels, the option has their addresses, and Sentinel.MasterSet. For a Redis Cluster there is [WithCluster].
package rueidis

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	leasehold "code.invalid/leasehold/go"
)

// pause is between attempts to subscribe again; waiters poll meanwhile.
const pause = 100 * time.Millisecond

// conn is a client of rueidis that repeats nothing. It connects when it is first used.
type conn struct {
	option rueidis.ClientOption
	// isCluster: commands go by their keys.
	isCluster bool

	mu     sync.Mutex
	client rueidis.Client
	// making is closed when the attempt to connect that is under way has ended, and failed is why it has made no client.
	making chan struct{}
	failed error
	closed bool
}

// With makes a connection with the options of a client. It is one of its own, since a client of rueidis sends failed commands again,
// which is for the protocol to decide. The option has one address, that of the primary, or those of Sentinels and the name of their
// master.
func With(option rueidis.ClientOption) leasehold.RedisConn {
	option = once(option)
	// Sentinels count before that.
	option.ForceSingleClient = true
	return &conn{option: option}
}

// WithCluster makes a connection to a Redis Cluster with the options of a client: the addresses of some of its nodes. It is one of its
// own, as that of [With] is.
func WithCluster(option rueidis.ClientOption) leasehold.RedisClusterConn {
	return &clusterConn{conn{option: once(option), isCluster: true}}
}

// clusterConn is a connection to a cluster.
type clusterConn struct{ conn }

// ToCluster tells that this is one.
func (*clusterConn) ToCluster() {}

// once are options by which everything is sent once, and to the primary.
func once(option rueidis.ClientOption) rueidis.ClientOption {
	option.DisableRetry = true
	option.DisableCache = true
	option.AlwaysRESP2 = true
	option.SendToReplicas, option.ReadNodeSelector, option.ReplicaOnly, option.Standalone.ReplicaAddress = nil, nil, false, nil
	//lint:ignore SA1019 programs may still set it
	option.ReplicaSelector = nil
	return option
}

// connected is the client. Making it waits for the server, for as long as the dialer of the options does, or until the context is done.
func (c *conn) connected(ctx context.Context) (rueidis.Client, error) {
	c.mu.Lock()
	if c.closed || c.client != nil {
		defer c.mu.Unlock()
		return c.made()
	}
	if c.making == nil {
		c.making = make(chan struct{})
		go c.make(c.making)
	}
	making := c.making
	c.mu.Unlock()
	select {
	case <-making:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made()
}

func (c *conn) made() (rueidis.Client, error) {
	switch {
	case c.closed:
		return nil, rueidis.ErrClosing
	case c.client == nil:
		return nil, c.failed
	}
	return c.client, nil
}

func (c *conn) make(making chan struct{}) {
	made, err := rueidis.NewClient(c.option)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(making)
	c.making, c.failed = nil, err
	switch {
	case err != nil:
	case c.closed:
		made.Close()
	default:
		c.client = made
	}
}

func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil && !c.closed {
		c.client.Close()
	}
	c.closed = true
	return nil
}

func (c *conn) Do(ctx context.Context, commands [][][]byte) ([]byte, bool, error) {
	client, err := c.connected(ctx)
	if err != nil {
		return nil, false, err
	}
	// The error of rueidis for a context that is done does not show if anything was sent.
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	made := make([]rueidis.Completed, len(commands))
	for i, command := range commands {
		words := make([]string, len(command))
		for j, word := range command {
			words[j] = string(word)
		}
		made[i] = c.command(client, words)
	}
	var replies []byte
	for _, result := range client.DoMulti(ctx, made...) {
		if err := result.NonRedisError(); err != nil {
			return nil, !notSent(err), err
		}
		reply, err := result.ToMessage()
		if said, is := rueidis.IsRedisErr(err); is && !said.IsNil() {
			replies = append(replies, "-"+asSent(said.Error())+"\r\n"...)
			continue
		}
		replies = encode(replies, reply)
	}
	return replies, true, nil
}

// command is one that goes to the node of its first key, if it is a script call to a cluster. More keys would not be allowed to be in
// other slots, which is for the server to say.
func (c *conn) command(client rueidis.Client, words []string) rueidis.Completed {
	if !c.isCluster || len(words) < 4 || words[2] == "0" {
		return client.B().Arbitrary(words...).Build()
	}
	return client.B().Arbitrary(words[:3]...).Keys(words[3]).Args(words[4:]...).Build()
}

// notSent: there was no connection to send anything on.
func notSent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.Is(err, rueidis.ErrClosing) || errors.Is(err, rueidis.ErrNoSlot)
}

// asSent is an error as Redis has sent it: rueidis leaves out ERR, the most common code.
func asSent(said string) string {
	said = strings.NewReplacer("\r", " ", "\n", " ").Replace(said)
	if code, _, _ := strings.Cut(said, " "); code == "" || strings.ToUpper(code) != code {
		return "ERR " + said
	}
	return said
}

// encode appends a message as Redis has sent it.
func encode(to []byte, message rueidis.RedisMessage) []byte {
	if message.IsNil() {
		return append(to, "$-1\r\n"...)
	}
	if n, err := message.ToInt64(); err == nil {
		return append(to, ":"+strconv.FormatInt(n, 10)+"\r\n"...)
	}
	if items, err := message.ToArray(); err == nil {
		to = append(to, "*"+strconv.Itoa(len(items))+"\r\n"...)
		for _, item := range items {
			to = encode(to, item)
		}
		return to
	}
	text, err := message.ToString()
	if err != nil {
		return append(to, "-"+asSent(err.Error())+"\r\n"...)
	}
	return append(to, "$"+strconv.Itoa(len(text))+"\r\n"+text+"\r\n"...)
}

func (c *conn) Subscribe(ctx context.Context, channel string, ready func(), message func([]byte)) error {
	stands := rueidis.WithOnSubscriptionHook(ctx, func(of rueidis.PubSubSubscription) {
		if of.Kind == "subscribe" {
			ready()
		}
	})
	for ctx.Err() == nil {
		client, err := c.connected(ctx)
		if errors.Is(err, rueidis.ErrClosing) {
			return err
		}
		if err == nil {
			subscribe := client.B().Subscribe().Channel(channel).Build()
			_ = client.Receive(stands, subscribe, func(said rueidis.PubSubMessage) { message([]byte(said.Message)) })
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
