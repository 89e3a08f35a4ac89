package leasehold

import (
	"context"
	"encoding/json"
	"fmt"

	"code.invalid/leasehold/go/internal/core"
)

// ResultKind is the form of a result.
type ResultKind string

const (
	// ResultBytes: bytes of any kind.
	ResultBytes ResultKind = "bytes"
	// ResultJSON: a value as JSON writes it, in UTF-8.
	ResultJSON ResultKind = "json"
	// ResultOutput: the output of a command.
	ResultOutput ResultKind = "output"
)

// kinds are those of the protocol.
var kinds = map[ResultKind]core.ResultKind{
	ResultBytes: core.ResultKindBytes, ResultJSON: core.ResultKindJson, ResultOutput: core.ResultKindOutput,
}

// RunResult is what a run leaves for later callers, at most 4,096 bytes. All who may read the locks may read it, so it is no place
// for secrets.
type RunResult struct {
	Kind ResultKind
	// Bytes are its content. What is JSON is taken as it is, and not read.
	Bytes []byte
}

// lowered is the result as the protocol takes it.
func (r *RunResult) lowered() (*core.RunResult, error) {
	kind, known := kinds[r.Kind]
	if !known {
		return nil, fmt.Errorf("there is no kind %q of results: give ResultBytes, ResultJSON or ResultOutput", r.Kind)
	}
	return &core.RunResult{Kind: kind, Bytes: r.Bytes}, nil
}

func lifted(result *core.RunResult) *RunResult {
	if result == nil {
		return nil
	}
	return &RunResult{Kind: ResultKind(result.Kind.String()), Bytes: result.Bytes}
}

// OutcomeOf is what has become of a run whose work returns a value.
type OutcomeOf[T any] struct {
	Outcome
	// Value is what the work returned, now or before. It is nil where nobody knows: the work is not done, its run left no result, the
	// store had no room for it, or it is not settled yet (Done.Unsettled). It may be missing, and is never another one.
	Value *T
}

// OnceWithResult is [Client.Once] for work that returns a value: later callers get it as well. It is kept as JSON, and a []byte as it
// is. The first caller gets what is read back, too, so that both get the same.
//
// A value that cannot be kept is an error after the fact, of the kind [ErrResultNotKept]: above 4,096 bytes, what JSON cannot hold, and
// where the store has no room. The work then counts as done, and Outcome.Ran and Value say so. A value of an earlier run that is no T
// is an error of the kind [ErrConfig] beside Done.
func OnceWithResult[T any](
	ctx context.Context, client *Client, name, key string, fn func(ctx context.Context, run *Run) (T, error), options ...OnceOption,
) (OutcomeOf[T], error) {
	var made T
	var kept *RunResult
	outcome, resource, err := client.once(ctx, name, key, func(ctx context.Context, run *Run) error {
		var err error
		if made, err = fn(ctx, run); err != nil {
			return err
		}
		if kept, run.unfit = written(made); run.unfit == nil {
			run.result = kept
		}
		return nil
	}, options)
	all := OutcomeOf[T]{Outcome: outcome}
	switch {
	case outcome.Ran && kept == nil:
		all.Value = &made
	case outcome.Ran:
		// Later callers read something else than was written where JSON reads less than it writes.
		if all.Value, _ = read[T](kept); all.Value == nil {
			all.Value = &made
		}
	case outcome.Done != nil && outcome.Done.Result != nil:
		if all.Value, err = read[T](outcome.Done.Result); err != nil {
			failed := configError("the work is done, but its result is no %T: %v", made, err)
			failed.Resource = resource
			return all, failed
		}
	}
	return all, err
}

// written is a value as a result.
func written[T any](value T) (*RunResult, error) {
	if bytes, is := any(value).([]byte); is {
		return &RunResult{Kind: ResultBytes, Bytes: bytes}, nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return &RunResult{Kind: ResultJSON, Bytes: text}, nil
}

// read is a result as a value.
func read[T any](result *RunResult) (*T, error) {
	value := new(T)
	bytes, wanted := any(value).(*[]byte)
	switch {
	case wanted != (result.Kind != ResultJSON):
		return nil, fmt.Errorf("it is of the kind %q", result.Kind)
	case wanted:
		*bytes = result.Bytes
		return value, nil
	}
	if err := json.Unmarshal(result.Bytes, value); err != nil {
		return nil, err
	}
	return value, nil
}
