package leasehold_test

import (
	"context"
	"database/sql"

	leasehold "code.invalid/leasehold/go"
)

// stores opens one client for each kind of store.
func stores(db *sql.DB) (clients []*leasehold.Client, err error) {
	for _, store := range []leasehold.Store{
		leasehold.Redis{URL: "rediss://cache.example.com"},
		leasehold.Postgres{DB: db},                              // by pgx's stdlib, lib/pq or any other driver; `leasehold store create` makes the table
		leasehold.DynamoDB{Table: "locks", Region: "eu-west-1"}, // keys from the environment, or by Credentials
		leasehold.Etcd{URL: "https://etcd.example.com:2379", User: "app", Password: "s3cret"},
		leasehold.S3{Bucket: "locks", Region: "eu-west-1"},
		leasehold.Quorum{ID: "00112233445566778899aabbccddeeff", Nodes: []leasehold.Store{ // from `leasehold quorum init`
			leasehold.Redis{URL: "redis://a"}, leasehold.Redis{URL: "redis://b"}, leasehold.Redis{URL: "redis://c"},
		}},
	} {
		client, err := leasehold.Open(store)
		if err != nil {
			return clients, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

func ExampleClient_Once() {
	ctx := context.Background()
	client, err := leasehold.Connect("redis://localhost")
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = client.Once(ctx, "nightly-report", "2026-11-24", func(ctx context.Context, run *leasehold.Run) error {
		return nil // the report is written
	})
}
