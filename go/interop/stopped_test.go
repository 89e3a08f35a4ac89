//go:build unix

package interop

import (
	"database/sql"
	"os"
	"testing"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/stopped"
)

func TestMain(m *testing.M) {
	if stopped.Hold(postgresAt) {
		return
	}
	os.Exit(m.Run())
}

func postgresAt(at string) (leasehold.Store, error) {
	db, err := sql.Open("pgx", at)
	return leasehold.Postgres{DB: db}, err
}

func TestProcessesThatAreStoppedOrKilledLoseTheirLocksOnPostgreSQL(t *testing.T) {
	stopped.Run(t, tables(t, "public"), postgresAt)
}
