// Package fence rejects writers with older tokens, in the database that they write to.
//
// Any amount of time can pass between a holder's last check of its lease and its write. Only the resource itself can reject a
// late write, by comparing tokens in the transaction of the write. Claim every item before the first read of it, and check with
// every write:
//
//	if err := fence.Postgres.Claim(ctx, db, "invoice/42", lease.Token()); err != nil {
//		return err
//	}
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	if err := fence.Postgres.Check(ctx, tx, "invoice/42", lease.Token()); err != nil {
//		return err
//	}
//	_, err = tx.ExecContext(ctx, "UPDATE invoices SET total = $1 WHERE id = 42", total)
//
// One high-water mark belongs to one lock: tokens of different locks cannot be compared.
package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// MaxToken is the largest token.
const MaxToken = 1<<53 - 1

var (
	// ErrStale: a later holder has claimed the item. Stop, and discard the work.
	ErrStale = errors.New("stale token")
	// ErrUnclaimed: nobody has claimed the item; a holder claims it before it reads it.
	ErrUnclaimed = errors.New("never claimed")
	// ErrInvalid: the token or the item is none that the guard can keep.
	ErrInvalid = errors.New("invalid")
)

// Error is a claim or a check that was rejected.
type Error struct {
	// Kind is ErrStale, ErrUnclaimed or ErrInvalid; [errors.Is] finds it.
	Kind error
	// Item is what was claimed or checked.
	Item string
	// Token is the one that was presented, and HighWater the highest that the item has seen.
	Token, HighWater uint64

	message string
}

func (e *Error) Error() string { return fmt.Sprintf("leasehold: %q: %s", e.Item, e.message) }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// Guard keeps high-water marks in a table beside your rows, where they survive their deletion.
type Guard struct {
	create, claim, check string
}

// Postgres keeps its marks in the table leasehold_fence of a PostgreSQL, by any driver of database/sql. The guards of other
// languages use the same table.
var Postgres = Guard{
	create: `CREATE TABLE IF NOT EXISTS leasehold_fence (item text COLLATE "C" NOT NULL PRIMARY KEY, ` +
		`fence bigint NOT NULL CHECK (fence BETWEEN 0 AND 9007199254740991))`,
	// A claim is on disk before it is answered: a crash must not let a stale holder back in.
	claim: `WITH leasehold_on_disk AS MATERIALIZED (SELECT CASE WHEN current_setting('synchronous_commit') = 'off' ` +
		`THEN set_config('synchronous_commit', 'on', true) END) ` +
		`INSERT INTO leasehold_fence AS mark (item, fence) SELECT $1::text, $2::bigint FROM leasehold_on_disk ` +
		`ON CONFLICT (item) DO UPDATE SET fence = GREATEST(mark.fence, EXCLUDED.fence) RETURNING mark.fence`,
	check: `UPDATE leasehold_fence AS mark SET fence = GREATEST(mark.fence, $2::bigint) WHERE mark.item = $1::text ` +
		`RETURNING mark.fence`,
}

// A Database is a [sql.DB], [sql.Conn] or [sql.Tx].
type Database interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Create makes the table of marks, unless it is there. It belongs with your migrations.
func (g Guard) Create(ctx context.Context, db Database) error {
	_, err := db.ExecContext(ctx, g.create)
	return err
}

// Claim makes this token the only one that is accepted for the item, apart from higher ones. Call it with each new lease,
// before the first read of the item. What the database itself answers is returned as it is.
func (g Guard) Claim(ctx context.Context, db Database, item string, token uint64) error {
	return judged(ctx, db, g.claim, item, token)
}

// Check fails unless a write with this token may happen. It belongs in the transaction of the write, before the write; if it
// fails, roll back. At the levels REPEATABLE READ and SERIALIZABLE the database may answer that the transaction is to be
// repeated, with SQLSTATE 40001.
func (g Guard) Check(ctx context.Context, tx *sql.Tx, item string, token uint64) error {
	return judged(ctx, tx, g.check, item, token)
}

func judged(ctx context.Context, db Database, query, item string, token uint64) error {
	rejected := &Error{Item: item, Token: token}
	switch {
	case token == 0 || token > MaxToken:
		rejected.Kind, rejected.message = ErrInvalid, fmt.Sprintf("token %d is outside 1 to 2^53 - 1", token)
		return rejected
	case strings.ContainsRune(item, 0):
		rejected.Kind, rejected.message = ErrInvalid, "PostgreSQL cannot store NUL: name the item without it"
		return rejected
	}
	var mark int64
	err := db.QueryRowContext(ctx, query, item, int64(token)).Scan(&mark)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		rejected.Kind, rejected.message = ErrUnclaimed, "nobody has claimed this item: claim it before reading it"
		return rejected
	case err != nil:
		return err
	case uint64(mark) > token:
		rejected.Kind, rejected.HighWater = ErrStale, uint64(mark)
		rejected.message = fmt.Sprintf("token %d is stale: a later holder has claimed this item with %d", token, mark)
		return rejected
	default:
		return nil
	}
}
