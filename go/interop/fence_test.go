package interop

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"code.invalid/leasehold/go/fence"
	"code.invalid/leasehold/go/internal/testserver"

	_ "github.com/lib/pq"
)

// add adds to the total of an invoice, unless a later holder has claimed it.
func add(ctx context.Context, db *sql.DB, token uint64, amount int) error {
	if err := fence.Postgres.Claim(ctx, db, "invoice/42", token); err != nil { // before the first read
		return err
	}
	var total int
	if err := db.QueryRowContext(ctx, "SELECT total FROM invoices WHERE id = 42").Scan(&total); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil) // one transaction:
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fence.Postgres.Check(ctx, tx, "invoice/42", token); err != nil { // the check, and the write that it protects
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE invoices SET total = $1 WHERE id = 42", total+amount); err != nil {
		return err
	}
	return tx.Commit()
}

func database(t *testing.T) *sql.DB {
	db, err := sql.Open("postgres", testserver.StartPostgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, statement := range []string{
		"CREATE TABLE invoices (id bigint PRIMARY KEY, total bigint NOT NULL)", "INSERT INTO invoices VALUES (42, 100)",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := fence.Postgres.Create(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func TestTheGuardRejectsALateWriter(t *testing.T) {
	db := database(t)
	if err := add(t.Context(), db, 7, 10); err != nil {
		t.Fatal(err)
	}
	// A holder writes more than once.
	if err := add(t.Context(), db, 7, 1); err != nil {
		t.Fatal(err)
	}
	err := add(t.Context(), db, 6, 100)
	var stale *fence.Error
	if !errors.Is(err, fence.ErrStale) || !errors.As(err, &stale) || stale.HighWater != 7 || stale.Token != 6 {
		t.Errorf("%v", err)
	}
	var total int
	if err := db.QueryRow("SELECT total FROM invoices").Scan(&total); err != nil || total != 111 {
		t.Errorf("%d, %v", total, err)
	}
}

func TestACheckBetweenAClaimAndAWriteIsInTheWritesTransaction(t *testing.T) {
	db := database(t)
	check := func(item string, token uint64) error {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		return fence.Postgres.Check(t.Context(), tx, item, token)
	}
	if err := check("new", 1); !errors.Is(err, fence.ErrUnclaimed) {
		t.Errorf("%v", err)
	}
	for _, token := range []uint64{0, fence.MaxToken + 1} {
		if err := check("new", token); !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("%d: %v", token, err)
		}
	}
	if err := check("a\x00b", 1); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if err := fence.Postgres.Claim(t.Context(), db, "new", fence.MaxToken); err != nil {
		t.Error(err)
	}
	// A later holder claims while a write is under way: it waits for the end of that transaction.
	if err := fence.Postgres.Claim(t.Context(), db, "item", 1); err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := fence.Postgres.Check(t.Context(), tx, "item", 1); err != nil {
		t.Fatal(err)
	}
	claimed := make(chan error)
	go func() { claimed <- fence.Postgres.Claim(t.Context(), db, "item", 2) }()
	waits := "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
	for waiting := 0; waiting == 0; {
		if err := db.QueryRow(waits).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-claimed; err != nil {
		t.Error(err)
	}
	if err := check("item", 1); !errors.Is(err, fence.ErrStale) {
		t.Errorf("%v", err)
	}
}
