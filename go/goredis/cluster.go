package goredis

import (
	"bytes"
	"context"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	leasehold "code.invalid/leasehold/go"
)

// mostRedirections is how often commands are sent on. Each node that does so has refused them.
const mostRedirections = 3

// cluster is a client of go-redis for clusters that finds nodes, and sends nothing by itself.
type cluster struct{ client *redis.ClusterClient }

// OfCluster makes a connection to a Redis Cluster with the options of a client. It has pools of its own, as that of [Of] has.
func OfCluster(client *redis.ClusterClient) leasehold.RedisClusterConn {
	options := *client.Options()
	options.MaxRedirects, options.MaxRetries = -1, -1
	options.ContextTimeoutEnabled = true
	options.Protocol = 2
	// Replicas take no locks.
	options.ReadOnly, options.RouteByLatency, options.RouteRandomly = false, false, false
	return &cluster{client: redis.NewClusterClient(&options)}
}

// ToCluster tells that this is one.
func (c *cluster) ToCluster() {}

func (c *cluster) Close() error { return c.client.Close() }

func (c *cluster) Do(ctx context.Context, commands [][][]byte) ([]byte, bool, error) {
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	node, err := c.client.MasterForKey(ctx, firstKey(commands))
	if err != nil {
		// Only the map of the slots was asked for.
		return nil, false, err
	}
	replies, sent, err := send(ctx, node, false, commands)
	for range mostRedirections {
		to, asking := redirection(replies)
		// Of several commands, others may have been carried out.
		if to == "" || len(commands) > 1 {
			break
		}
		if node = c.node(ctx, to); node == nil {
			break
		}
		replies, sent, err = send(ctx, node, asking, commands)
	}
	if err != nil || isElsewhere(replies) {
		c.client.ReloadState(ctx)
	}
	return replies, sent, err
}

// firstKey is that of a script call, which has the number of its keys before them.
func firstKey(commands [][][]byte) string {
	if len(commands) == 0 || len(commands[0]) < 4 {
		return ""
	}
	return string(commands[0][3])
}

// redirection is the node to which the commands are to be sent instead; asking, as long as it is still given their slot.
func redirection(replies []byte) (to string, asking bool) {
	line, _, _ := strings.Cut(string(replies), "\r\n")
	words := strings.Fields(line)
	if len(words) != 3 || words[0] != "-MOVED" && words[0] != "-ASK" {
		return "", false
	}
	return words[2], words[0] == "-ASK"
}

// isElsewhere: the map of the slots is old.
func isElsewhere(replies []byte) bool {
	for _, code := range []string{"-MOVED ", "-ASK ", "-READONLY ", "-CLUSTERDOWN "} {
		if bytes.HasPrefix(replies, []byte(code)) {
			return true
		}
	}
	return false
}

// node is the client for a master, by what the nodes say now; nil where they name none at this address.
func (c *cluster) node(ctx context.Context, address string) (found *redis.Client) {
	var mu sync.Mutex
	_ = c.client.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		if node.Options().Addr == address {
			found = node
		}
		return nil
	})
	return found
}

func (c *cluster) Subscribe(ctx context.Context, channel string, ready func(), message func([]byte)) error {
	return hear(ctx, c.client.Subscribe(ctx, channel), ready, message)
}
