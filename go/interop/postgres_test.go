package interop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/behaviours"
	"code.invalid/leasehold/go/internal/testserver"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
)

// drivers of PostgreSQL, by their names in database/sql.
var drivers = []string{"pgx", "postgres"}

func open(t testing.TB, driver, at string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// tables starts a server with the tables of locks in a schema, and returns the settings of a connection.
func tables(t *testing.T, schema string) string {
	t.Helper()
	at, _ := tablesToObey(t, schema)
	return at
}

func tablesToObey(t *testing.T, schema string) (string, func(order string)) {
	t.Helper()
	facts, obey := testserver.StartToObey(t, "postgres")
	at := fmt.Sprintf("postgres://%s@%s:%v/%s", facts["user"], facts["host"], facts["port"], facts["database"])
	db := open(t, "pgx", at+"?sslmode=disable")
	if _, err := db.Exec(`CREATE SCHEMA IF NOT EXISTS "` + schema + `"`); err != nil {
		t.Fatal(err)
	}
	testserver.Command(t, "store", "create", "--store", at+"?sslmode=disable&schema="+schema)
	return at + "?sslmode=disable", obey
}

func TestALeaseIsLostWhenPostgreSQLHangs(t *testing.T) {
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			at, obey := tablesToObey(t, "public")
			locks := client(t, leasehold.Postgres{DB: open(t, driver, at)}, leasehold.RequestTimeout(100*time.Millisecond))
			lease, err := locks.Lock(t.Context(), "hung", leasehold.TTL(time.Second))
			if err != nil {
				t.Fatal(err)
			}
			obey("freeze")
			<-lease.Context().Done()
			if why := context.Cause(lease.Context()); !errors.Is(why, leasehold.ErrLost) {
				t.Error(why)
			}
			if _, err := locks.Lock(t.Context(), "other", leasehold.Wait(0)); !errors.Is(err, leasehold.ErrUnavailable) {
				t.Errorf("%v", err)
			}
			obey("continue")
			if lease, err = locks.Lock(t.Context(), "other"); err != nil {
				t.Fatal(err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPostgreSQLBehaves(t *testing.T) {
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			at := tables(t, "locks of ours")
			store := leasehold.Postgres{DB: open(t, driver, at), Schema: "locks of ours", Notify: true}
			behaviours.Run(t, behaviours.Of(func() leasehold.Store { return store }))
		})
	}
}

func client(t *testing.T, store leasehold.Store, options ...leasehold.ClientOption) *leasehold.Client {
	t.Helper()
	client, err := leasehold.Open(store, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestErrorsOfPostgreSQLAreToldApart(t *testing.T) {
	at := tables(t, "public")
	for _, driver := range drivers {
		for name, given := range map[string]struct {
			at, schema, says string
			kind             error
		}{
			"a missing table": {at, "nowhere", "leasehold store create", leasehold.ErrRefused},
			"a wrong database": {
				strings.Replace(at, "/postgres?", "/nowhere?", 1), "", "the database of the url does not exist", leasehold.ErrRefused,
			},
			"no server": {"postgres://postgres@127.0.0.1:1/postgres?sslmode=disable", "", "PostgreSQL", leasehold.ErrUnavailable},
		} {
			t.Run(driver+", "+name, func(t *testing.T) {
				store := leasehold.Postgres{DB: open(t, driver, given.at), Schema: given.schema}
				_, err := client(t, store).Lock(t.Context(), "a", leasehold.Wait(0))
				if !errors.Is(err, given.kind) || !strings.Contains(err.Error(), given.says) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

func TestARowThatATransactionHoldsIsWaitedFor(t *testing.T) {
	db := open(t, "pgx", tables(t, "public"))
	locks := client(t, leasehold.Postgres{DB: db})
	lease, err := locks.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("SELECT FROM leasehold WHERE resource = 'a' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Lock(t.Context(), "a", leasehold.Wait(0)); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if lease, err = locks.Lock(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// Each time that a session of the holder is ended, a later one renews the lease.
func TestALeaseSurvivesSessionsThatAreEnded(t *testing.T) {
	const end = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND datname = current_database()`
	at := tables(t, "public")
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			admin := open(t, "pgx", at)
			admin.SetMaxOpenConns(1)
			locks := client(t, leasehold.Postgres{DB: open(t, driver, at)})
			// Long enough that a busy machine does not end it by itself.
			lease, err := locks.Lock(t.Context(), driver, leasehold.TTL(20*time.Second), leasehold.RenewEvery(100*time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			for times := 0; times < 6; {
				var ended int
				if err := admin.QueryRow(end).Scan(&ended); err != nil {
					t.Fatal(err)
				}
				times += min(ended, 1)
				// Less and less is left, until a renewal is confirmed.
				for before, now := lease.Remaining(), lease.Remaining(); now <= before; before, now = now, lease.Remaining() {
					if err := lease.Check(0); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Millisecond)
				}
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
