// Package goredis reaches a Redis by go-redis: with its options, its dialer and its TLS.
//
//	client, err := leasehold.Open(leasehold.RedisOver{Conn: goredis.Of(rdb)})
//
// For Sentinels there is [WithSentinels], and for a Redis Cluster [OfCluster].
package goredis

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	leasehold "code.invalid/leasehold/go"
)

// pause is between attempts to subscribe again; waiters poll meanwhile.
const pause = 100 * time.Millisecond

// conn is a client of go-redis that repeats nothing.
type conn struct{ client *redis.Client }

// Of makes a connection with the options of a client. It has a pool of its own, since a client of go-redis sends failed commands again,
// which is for the protocol to decide. Of a client of redis.NewFailoverClient it would go on to use a master that has been replaced
// until Sentinels make that a replica: [WithSentinels] does not.
func Of(client *redis.Client) leasehold.RedisConn {
	options := *client.Options()
	options.MaxRetries = -1
	options.ContextTimeoutEnabled = true
	options.Protocol = 2
	return &conn{client: redis.NewClient(&options)}
}

// WithSentinels makes a connection to the master that Sentinels name, with options as for redis.NewFailoverClient. When they name
// another one, the connections to the old one are closed.
func WithSentinels(options *redis.FailoverOptions) leasehold.RedisConn {
	own := *options
	own.MaxRetries = -1
	own.ContextTimeoutEnabled = true
	own.Protocol = 2
	// Replicas take no locks.
	own.ReplicaOnly, own.RouteByLatency, own.RouteRandomly = false, false, false
	return &conn{client: redis.NewFailoverClient(&own)}
}

func (c *conn) Close() error { return c.client.Close() }

func (c *conn) Do(ctx context.Context, commands [][][]byte) ([]byte, bool, error) {
	return send(ctx, c.client, false, commands)
}

// send sends commands to one server, whose client repeats nothing. A node of a cluster that is still given their slot has to be asked to
// take them.
func send(ctx context.Context, to *redis.Client, asking bool, commands [][][]byte) ([]byte, bool, error) {
	// The error of go-redis for a context that is done does not show if anything was sent.
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	pipe := to.Pipeline()
	if asking {
		pipe.Do(ctx, "ASKING")
	}
	made := make([]*redis.Cmd, len(commands))
	for i, command := range commands {
		args := make([]any, len(command))
		for j, arg := range command {
			args[j] = arg
		}
		made[i] = pipe.Do(ctx, args...)
	}
	_, _ = pipe.Exec(ctx)
	var replies []byte
	for _, command := range made {
		value, err := command.Result()
		var said redis.Error
		switch {
		case err == nil || errors.Is(err, redis.Nil):
			replies = encode(replies, value)
		case errors.As(err, &said):
			replies = append(replies, "-"+strings.ReplaceAll(said.Error(), "\r\n", " ")+"\r\n"...)
		default:
			return nil, !notSent(err), err
		}
	}
	return replies, true, nil
}

// notSent: there was no connection to send anything on.
func notSent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed)
}

// encode appends a value as Redis has sent it.
func encode(to []byte, value any) []byte {
	switch value := value.(type) {
	case string:
		return append(to, "$"+strconv.Itoa(len(value))+"\r\n"+value+"\r\n"...)
	case int64:
		return append(to, ":"+strconv.FormatInt(value, 10)+"\r\n"...)
	case []any:
		to = append(to, "*"+strconv.Itoa(len(value))+"\r\n"...)
		for _, item := range value {
			to = encode(to, item)
		}
		return to
	case error:
		return append(to, "-"+value.Error()+"\r\n"...)
	default:
		return append(to, "$-1\r\n"...)
	}
}

func (c *conn) Subscribe(ctx context.Context, channel string, ready func(), message func([]byte)) error {
	return hear(ctx, c.client.Subscribe(ctx, channel), ready, message)
}

// hear hands on what a subscription tells until ctx is done.
func hear(ctx context.Context, ear *redis.PubSub, ready func(), message func([]byte)) error {
	defer ear.Close()
	// It waits for messages without looking at ctx.
	stop := context.AfterFunc(ctx, func() { _ = ear.Close() })
	defer stop()
	for {
		// It connects again by itself.
		said, err := ear.Receive(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, redis.ErrClosed) {
			return err
		}
		if err != nil {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		switch said := said.(type) {
		case *redis.Subscription:
			ready()
		case *redis.Message:
			message([]byte(said.Payload))
		}
	}
}
