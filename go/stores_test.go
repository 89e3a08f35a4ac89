package leasehold_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/behaviours"
	"code.invalid/leasehold/go/internal/testserver"
	"code.invalid/leasehold/go/leaseholdtest"
)

// keys are those of servers that take any.
func keys(id string) func(context.Context) (leasehold.AWSCredentials, error) {
	return func(context.Context) (leasehold.AWSCredentials, error) {
		return leasehold.AWSCredentials{AccessKeyID: id, SecretAccessKey: "secret"}, nil
	}
}

// parts are those of the url by which other languages know a store: what it names, and its parameters.
func parts(t *testing.T, text string) ([]string, url.Values) {
	t.Helper()
	at, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return named(at), at.Query()
}

func named(at *url.URL) []string {
	return strings.Split(strings.Trim(path.Join(at.Host, at.Path), "/"), "/")
}

// storeAt is a store that servers of tests name by a url of other languages.
func storeAt(text string) (leasehold.Store, error) {
	at, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	names, given := named(at), at.Query()
	switch at.Scheme {
	case "redis":
		return leasehold.Redis{URL: text}, nil
	case "etcd":
		return leasehold.Etcd{URL: "http://" + at.Host}, nil
	case "dynamodb":
		return leasehold.DynamoDB{
			Table: names[0], Region: given.Get("region"), Endpoint: given.Get("endpoint"),
			// That of the servers: each key has tables of its own.
			Credentials: keys("leaseholdrig"),
		}, nil
	case "s3":
		return leasehold.S3{
			Bucket: names[0], Prefix: names[1] + "/", Region: given.Get("region"), Endpoint: given.Get("endpoint"),
			Credentials: keys("anybody"),
		}, nil
	}
	return nil, fmt.Errorf("no store for %s", at.Scheme)
}

// started is a store on a server of this kind.
func started(t *testing.T, kind ...string) leasehold.Store {
	t.Helper()
	store, err := storeAt(testserver.Start(t, kind...)["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestEveryStoreBehaves(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) leasehold.Store{
		"Redis":             func(t *testing.T) leasehold.Store { return started(t, "redis") },
		"a quorum of Redis": quorumOfRedis,
		"DynamoDB":          func(t *testing.T) leasehold.Store { return started(t, "dynamodb", "table") },
		"etcd":              func(t *testing.T) leasehold.Store { return started(t, "etcd") },
		"etcd with a login": func(t *testing.T) leasehold.Store {
			facts := testserver.Start(t, "etcd", "root", "s3cret")
			return leasehold.Etcd{URL: overHTTP(facts), User: "root", Password: "s3cret"}
		},
		"S3": func(t *testing.T) leasehold.Store { return started(t, "s3") },
		"Azure Blob Storage": func(t *testing.T) leasehold.Store {
			facts := testserver.Start(t, "azure")
			names, given := parts(t, facts["url"].(string))
			// Other languages name the account of an emulator in the path.
			endpoint := strings.TrimSuffix(given.Get("endpoint"), "/"+names[0])
			return leasehold.AzureBlob{
				Account: names[0], Container: names[1], Prefix: names[2] + "/", Endpoint: endpoint, Key: facts["key"].(string),
			}
		},
		"Google Cloud Storage": func(t *testing.T) leasehold.Store {
			names, given := parts(t, testserver.Start(t, "gcs")["url"].(string))
			return leasehold.GoogleStorage{Bucket: names[0], Prefix: names[1] + "/", Endpoint: given.Get("endpoint")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			// They wait for leases to run out, most of the time.
			t.Parallel()
			store := start(t)
			behaviours.Run(t, behaviours.Of(func() leasehold.Store { return store }))
		})
	}
}

func quorumOfRedis(t *testing.T) leasehold.Store {
	quorum, _ := startQuorum(t)
	return quorum
}

// startQuorum starts three servers that `leasehold quorum init` has made nodes.
func startQuorum(t *testing.T) (quorum leasehold.Quorum, nodes []*testserver.Redis) {
	t.Helper()
	command := []string{"quorum", "init"}
	for range 3 {
		redis := testserver.StartRedis(t)
		quorum.Nodes, nodes = append(quorum.Nodes, leasehold.Redis{URL: redis.URL}), append(nodes, redis)
		command = append(command, "--store", redis.URL)
	}
	said := testserver.Command(t, command...)
	found := regexp.MustCompile(`[0-9a-f]{32}`).FindString(said)
	if found == "" {
		t.Fatalf("no id in %q", said)
	}
	quorum.ID = found
	return quorum, nodes
}

func TestTheStoreOfTestsBehaves(t *testing.T) {
	for name, test := range behaviours.All {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := leaseholdtest.New(t)
				test(t, behaviours.Of(func() leasehold.Store { return store }))
			})
		})
		t.Run("in a quorum, "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quorum := leasehold.Quorum{ID: "000102030405060708090a0b0c0d0e0f"}
				for range 3 {
					quorum.Nodes = append(quorum.Nodes, leaseholdtest.New(t))
				}
				connect := behaviours.Of(func() leasehold.Store { return quorum })
				// Nodes without a past do not vote for the first minute.
				lease := lock(t, connect(t), "birth")
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
				test(t, connect)
			})
		})
	}
}

// overHTTP is the address of an etcd.
func overHTTP(facts map[string]any) string {
	return strings.Replace(facts["bare"].(string), "etcd://", "http://", 1)
}

func TestEveryStoreOpensWithoutAServer(t *testing.T) {
	db, err := sql.Open("nothing", "")
	if err != nil {
		t.Fatal(err)
	}
	clients, err := stores(db)
	if err != nil || len(clients) != 6 {
		t.Errorf("%d clients, %v", len(clients), err)
	}
	for _, client := range clients {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestStoresThatMakeNoSenseAreNamed(t *testing.T) {
	redis := leasehold.Redis{URL: "redis://127.0.0.1:1"}
	const id = "00112233445566778899aabbccddeeff"
	for want, store := range map[string]leasehold.Store{
		"has no DB":             leasehold.Postgres{},
		"has no Conn":           leasehold.RedisOver{},
		"32 hexadecimal digits": leasehold.Quorum{ID: "quorum", Nodes: []leasehold.Store{redis, redis}},
		"at least two nodes":    leasehold.Quorum{ID: id, Nodes: []leasehold.Store{redis}},
		"cannot be a node":      leasehold.Quorum{ID: id, Nodes: []leasehold.Store{redis, leasehold.Quorum{}}},
		"max ttl: -1s is not":   leasehold.Quorum{ID: id, Nodes: []leasehold.Store{redis, redis}, MaxTTL: -time.Second},
		"https:// or http://":   leasehold.Etcd{URL: "etcd://host"},
		"the region is not":     leasehold.S3{Bucket: "locks", Endpoint: "https://host"},
		"everybody on the":      leasehold.DynamoDB{Table: "locks", Region: "eu-west-1", Endpoint: "http://host.example"},
		"name of a bucket":      leasehold.GoogleStorage{Bucket: "a/b"},
		"package goredis or":    leasehold.Redis{URL: "redis+cluster://host"},
		"redis+sentinel is":     leasehold.Redis{URL: "redis+sentinel://host/main"},
		"a node of a quorum":    leasehold.Quorum{ID: id, Nodes: []leasehold.Store{redis, leasehold.RedisOver{Conn: aCluster{}}}},
	} {
		_, err := leasehold.Open(store)
		if !errors.Is(err, leasehold.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

// aCluster is one that nobody asks anything.
type aCluster struct{ leasehold.RedisConn }

func (aCluster) ToCluster() {}

// nothing is a driver without a database.
type nothing struct{}

func (nothing) Open(string) (driver.Conn, error) { return nil, errors.New("there is none") }

func init() { sql.Register("nothing", nothing{}) }

func TestAStoreWithoutCredentialsSaysSo(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	store := leasehold.DynamoDB{Table: "locks", Region: "eu-west-1", Endpoint: "http://127.0.0.1:1"}
	var log safeBuffer
	client, err := leasehold.Open(store, leasehold.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Lock(t.Context(), "a", leasehold.Wait(0)); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if text := log.String(); !strings.Contains(text, "AWS_ACCESS_KEY_ID") {
		t.Errorf("the log says %q", text)
	}
}

func TestAQuorumLocksWhileAMinorityOfItsNodesHangs(t *testing.T) {
	quorum, nodes := startQuorum(t)
	client, err := leasehold.Open(quorum)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	pair := func(name string) time.Duration {
		began := time.Now()
		if err := lock(t, client, name).Release(t.Context()); err != nil {
			t.Error(err)
		}
		return time.Since(began)
	}
	var slow []time.Duration
	for n, node := range nodes {
		// Late answers to the client before concern the locks of that client only.
		name := fmt.Sprint("a/", n)
		frozen := make(chan struct{})
		go func() {
			node.Obey("freeze")
			close(frozen)
		}()
		// Nobody waits for the node that hangs, whose requests end after 500 ms.
		for after := 0; after < 5; {
			if took := pair(name); took > 400*time.Millisecond {
				slow = append(slow, took)
			}
			select {
			case <-frozen:
				after++
			default:
			}
		}
		node.Obey("continue")
		// Until it takes part again.
		for takesPart := false; !takesPart; {
			lease := lock(t, client, name+"/b")
			takesPart = node.Do("EXISTS", name+"/b") == ":1"
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	// An attempt may be split at the very moment of a freeze.
	if len(slow) > 1 {
		t.Errorf("pairs have taken %v", slow)
	}
}
