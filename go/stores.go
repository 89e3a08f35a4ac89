package leasehold

import (
	"context"
	"database/sql"
	"encoding/hex"
	"net/http"
	"time"

	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
	"code.invalid/leasehold/go/internal/postgres"
	"code.invalid/leasehold/go/internal/redis"
	"code.invalid/leasehold/go/internal/web"
)

// A Store keeps locks: a [Redis], [RedisOver], [Postgres], [DynamoDB], [Etcd], [S3], [AzureBlob] or [GoogleStorage], or a [Quorum] of them.
// Clients of every language share locks in it.
type Store interface {
	// Node is for this module itself.
	Node() (node.Node, error)
}

// Redis is one Redis or Valkey.
type Redis struct {
	// URL is redis://, rediss:// or redis+unix:// as in docs/redis.md. With durable=yes, a restart alone does not keep it from
	// voting in a quorum.
	URL string
}

// Node is for this module itself.
func (r Redis) Node() (node.Node, error) {
	place, err := redis.Parse(r.URL)
	if err != nil {
		return node.Node{}, configError("%v", err)
	}
	config := core.NodeConfig{Poll: core.PollAcquire, Watch: true, Durability: durability(place.Durable)}
	return node.Node{Config: config, Store: core.StoreRedis{}, Link: redis.NewLink(place)}, nil
}

// A RedisConn carries commands to a Redis by another library; packages goredis and rueidis have one. It is closed with its client.
type RedisConn interface {
	// Do sends commands, each once, at once and in order. It returns a reply to each in RESP 2, errors of the server included. If it
	// fails, sent tells if any of them may have left. What another server than the primary refuses to do may be sent to that one.
	Do(ctx context.Context, commands [][][]byte) (replies []byte, sent bool, err error)
	// Subscribe hands on what a channel tells until ctx is done. It calls ready each time the subscription stands.
	Subscribe(ctx context.Context, channel string, ready func(), message func(payload []byte)) error
	// Close ends it.
	Close() error
}

// A RedisClusterConn is a RedisConn to a Redis Cluster. The commands of one call are script calls, whose keys are all in one slot; they
// go to the node that serves the first of these keys, and are sent on if it redirects.
type RedisClusterConn interface {
	RedisConn
	// ToCluster does nothing: it tells that this is one.
	ToCluster()
}

// RedisOver is one Redis or Valkey, or a Redis Cluster, reached by another library. It has to be the primary: Sentinels may name it.
type RedisOver struct {
	// Conn is a [RedisClusterConn] for a cluster. A name with a } cannot be locked there, unless it has a hash tag.
	Conn RedisConn
	// Durable: in a quorum, a restart alone loses no acknowledged write.
	Durable bool
}

// Node is for this module itself.
func (r RedisOver) Node() (node.Node, error) {
	if r.Conn == nil {
		return node.Node{}, configError("RedisOver has no Conn: package goredis makes one of a client of go-redis, package rueidis one of the options of rueidis")
	}
	config := core.NodeConfig{Poll: core.PollAcquire, Watch: true, Durability: durability(r.Durable)}
	_, isCluster := r.Conn.(RedisClusterConn)
	if isCluster {
		// Otherwise one call renews names of several slots.
		one := uint32(1)
		config.Batch = &one
	}
	made := node.Node{Config: config, Store: core.StoreRedis{}, Link: redis.NewOver(r.Conn, isCluster)}
	if isCluster {
		made.Takes, made.IsCluster = redis.InOneSlot, true
	}
	return made, nil
}

// Postgres is a table in a PostgreSQL, which `leasehold store create` makes: docs/postgres.md. Waiters poll, and stand in no queue.
type Postgres struct {
	// DB has the connections, by pgx or any other driver of PostgreSQL. Each request takes one while it lasts, for at most a sixth
	// of the ttl: leave room for renewals in its pool. Its statements take part in no transaction of yours.
	DB *sql.DB
	// Schema of the table leasehold; "public" if it is empty.
	Schema string
	// Notify tells clients of other languages of releases, if they listen.
	Notify bool
	// Durable: in a quorum, a failover loses no acknowledged write.
	Durable bool
}

// Node is for this module itself.
func (p Postgres) Node() (node.Node, error) {
	if p.DB == nil {
		return node.Node{}, configError("Postgres has no DB: open one with sql.Open")
	}
	store := core.PostgresStore{Schema: unless(p.Schema, "")}
	if p.Notify {
		on := core.NotifyOn
		store.Notify = &on
	}
	config := core.NodeConfig{Poll: core.PollAcquire, Durability: durability(p.Durable)}
	return node.Node{Config: config, Store: core.StorePostgres(store), Link: postgres.NewLink(p.DB)}, nil
}

// Quorum is several stores, of which more than half have to grant a lock: docs/quorum.md.
type Quorum struct {
	// ID is what `leasehold quorum init` and `leasehold quorum status` show: 32 hexadecimal digits.
	ID string
	// Nodes are the same for all clients.
	Nodes []Store
	// MaxTTL bounds ttl and lock delay of each lock together, and is the same for all clients; 60 s if it is 0.
	MaxTTL time.Duration
}

// Node is for this module itself.
func (Quorum) Node() (node.Node, error) {
	return node.Node{}, configError("a quorum cannot be a node of another one: name its nodes instead")
}

func (q Quorum) settings() (*core.Quorum, error) {
	id, err := hex.DecodeString(q.ID)
	if err != nil || len(id) != 16 {
		return nil, configError("the ID of a quorum is the 32 hexadecimal digits that `leasehold quorum status` shows")
	}
	if len(q.Nodes) < 2 {
		return nil, configError("a quorum has at least two nodes, better three or five: open a single store by itself")
	}
	set := &core.Quorum{ID: id}
	if q.MaxTTL != 0 {
		set.MaxTTLMs, err = whole("max ttl", &q.MaxTTL)
	}
	return set, err
}

// web is a node behind HTTP.
func webNode(store core.Store, durable bool, client *http.Client, credentials web.Credentials) node.Node {
	config := core.NodeConfig{Poll: core.PollRead, Durability: durability(durable)}
	return node.Node{Config: config, Store: store, Link: web.NewLink(client, credentials)}
}

func durability(declared bool) *core.Durability {
	is := core.DurabilityNotDeclared
	if declared {
		is = core.DurabilityDeclared
	}
	return &is
}

// unless is a value, or nothing where it is the usual one.
func unless[T comparable](value, usual T) *T {
	if value == usual {
		return nil
	}
	return &value
}
