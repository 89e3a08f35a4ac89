// Package postgres has the protocol's statements executed by a PostgreSQL, over the connections of a program.
package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"

	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

// Link sends each statement over a connection of its own while it lasts.
type Link struct {
	node.Deaf
	db     *sql.DB
	events node.Events
	// ctx ends with the link.
	ctx    context.Context
	cancel context.CancelFunc
}

// NewLink makes a link that is not open yet.
func NewLink(db *sql.DB) *Link {
	ctx, cancel := context.WithCancel(context.Background())
	return &Link{db: db, ctx: ctx, cancel: cancel}
}

// Open tells where answers go.
func (l *Link) Open(events node.Events) { l.events = events }

// Close ends statements that are under way. The connections are the program's.
func (l *Link) Close() { l.cancel() }

// Send has a statement executed.
func (l *Link) Send(request core.Output) {
	statement := core.Statement(request.(core.OutputStatement))
	go func() {
		response := l.execute(statement)
		l.events.Answer([]core.Input{core.InputResponse{ID: statement.ID, Response: response}})
	}()
}

func (l *Link) execute(statement core.Statement) core.Response {
	ctx, cancel := context.WithTimeout(l.ctx, node.Left(statement.DeadlineNs))
	defer cancel()
	// A connection that is taken is not replaced by another one: what was sent is not sent again.
	conn, err := l.db.Conn(ctx)
	if err != nil {
		if code := state(err); code != "" {
			return core.ResponseServerError{Code: code, Message: message(err), When: core.RefusalTimeAtLogin}
		}
		return core.ResponseNotSent(fault(core.FaultKindUnreachable, err))
	}
	defer conn.Close()
	rows, err := query(ctx, conn, statement)
	if err == nil {
		return core.ResponseRows{Rows: rows}
	}
	code := state(err)
	switch {
	case code == "" && ctx.Err() != nil:
		return core.ResponseUnknown(fault(core.FaultKindTimeout, ctx.Err()))
	case code == "":
		return core.ResponseUnknown(fault(core.FaultKindReset, err))
	case takesNoWrites(code):
		// Another server may take them, to which a new connection leads.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return core.ResponseServerError{Code: code, Message: message(err), When: when(err)}
}

func query(ctx context.Context, conn *sql.Conn, statement core.Statement) ([]core.Row, error) {
	args := make([]any, len(statement.Params))
	for i, param := range statement.Params {
		args[i] = argument(param)
	}
	found, err := conn.QueryContext(ctx, statement.SQL, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	types, err := found.ColumnTypes()
	if err != nil {
		return nil, err
	}
	rows := []core.Row{}
	values, places := make([]any, len(types)), make([]any, len(types))
	for i := range values {
		places[i] = &values[i]
	}
	for found.Next() {
		if err := found.Scan(places...); err != nil {
			return nil, err
		}
		columns := make([]core.SQLValue, len(types))
		for i, value := range values {
			columns[i] = column(value, types[i].DatabaseTypeName())
		}
		rows = append(rows, core.Row{Columns: columns})
	}
	return rows, found.Err()
}

func argument(param core.SQLValue) any {
	switch param := param.(type) {
	case core.SQLValueText:
		return param.Value
	case core.SQLValueBytes:
		return param.Value
	case core.SQLValueNumber:
		return int64(param.Value)
	case core.SQLValueTruth:
		return param.Value
	default:
		return nil
	}
}

// column is a value as drivers scan it, of which some have bytes for text.
func column(value any, kind string) core.SQLValue {
	switch value := value.(type) {
	case string:
		return core.SQLValueText{Value: value}
	case []byte:
		if kind == "BYTEA" {
			return core.SQLValueBytes{Value: append([]byte{}, value...)}
		}
		return core.SQLValueText{Value: string(value)}
	case int64:
		return core.SQLValueNumber{Value: uint64(max(value, 0))}
	case bool:
		return core.SQLValueTruth{Value: value}
	default:
		return core.SQLValueNull{}
	}
}

// state is the SQLSTATE of an error of the server, as pgx and lib/pq tell it; empty for any other error.
func state(err error) string {
	var told interface{ SQLState() string }
	if errors.As(err, &told) {
		return told.SQLState()
	}
	return ""
}

func message(err error) string {
	if text, is := field(err, "Message"); is {
		return text
	}
	return err.Error()
}

// when tells if the session goes on, which is certain only where the driver shows the severity.
func when(err error) core.RefusalTime {
	// Errors in the server's own language, and in English.
	for _, name := range []string{"SeverityUnlocalized", "Severity"} {
		if severity, _ := field(err, name); severity == "ERROR" {
			return core.RefusalTimeInSession
		}
	}
	return core.RefusalTimeAtTheEnd
}

// field is a text of the server's error, by its name in the drivers, of which this module imports none.
func field(err error, name string) (string, bool) {
	var told interface{ SQLState() string }
	if !errors.As(err, &told) {
		return "", false
	}
	v := reflect.Indirect(reflect.ValueOf(told))
	if v.Kind() != reflect.Struct {
		return "", false
	}
	found := v.FieldByName(name)
	return found.String(), found.Kind() == reflect.String
}

// takesNoWrites: a server that was the primary, and is one no longer.
func takesNoWrites(code string) bool { return code == "25006" || code == "55000" }

func fault(kind core.FaultKind, err error) core.Fault {
	detail := fmt.Sprintf("PostgreSQL: %v", err)
	return core.Fault{Kind: kind, Detail: &detail}
}
