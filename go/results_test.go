package leasehold_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
	"code.invalid/leasehold/go/internal/testserver"
	"code.invalid/leasehold/go/leaseholdtest"
)

type invoice struct {
	Number string
	Lines  []int
}

// returning is work that returns this value.
func returning[T any](value T) func(context.Context, *leasehold.Run) (T, error) {
	return func(context.Context, *leasehold.Run) (T, error) { return value, nil }
}

func TestAllWhoComeLaterGetTheResultOfTheFirst(t *testing.T) {
	redis := testserver.StartRedis(t)
	first, second := connect(t, redis.URL), connect(t, redis.URL)
	made := invoice{"2026-7", []int{1, 2}}
	outcome, err := leasehold.OnceWithResult(t.Context(), first, "invoice", "7", returning(made))
	if err != nil || !outcome.Ran || outcome.Value == nil || outcome.Value.Number != "2026-7" {
		t.Fatalf("%+v, %v", outcome, err)
	}
	for range 2 {
		outcome, err = leasehold.OnceWithResult(t.Context(), second, "invoice", "7", returning(invoice{}))
		if err != nil || outcome.Done == nil || outcome.Value == nil || !slices.Equal(outcome.Value.Lines, made.Lines) {
			t.Fatalf("%+v, %v", outcome, err)
		}
		if outcome.Done.Began.IsZero() || outcome.Done.Unsettled || outcome.Done.Result.Kind != leasehold.ResultJSON {
			t.Errorf("%+v", outcome.Done)
		}
	}
	other, err := leasehold.OnceWithResult(t.Context(), second, "invoice", "7", returning(0))
	if !errors.Is(err, leasehold.ErrConfig) || !strings.Contains(err.Error(), `"invoice@7"`) || other.Done == nil || other.Value != nil {
		t.Errorf("%+v, %v", other, err)
	}
}

func TestBytesAndOtherKindsAreKeptAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := leaseholdtest.New(t).Connect()
		for range 2 {
			outcome, err := leasehold.OnceWithResult(t.Context(), client, "bytes", "1", returning([]byte{0xff, 0}))
			if err != nil || outcome.Value == nil || string(*outcome.Value) != "\xff\x00" {
				t.Errorf("%+v, %v", outcome, err)
			}
		}
		for kind, bytes := range map[leasehold.ResultKind]string{
			leasehold.ResultBytes: "\xff", leasehold.ResultJSON: "null", leasehold.ResultOutput: "done\n",
		} {
			work := func(_ context.Context, run *leasehold.Run) error {
				run.SetResult(leasehold.RunResult{Kind: kind, Bytes: []byte(bytes)})
				return nil
			}
			if _, err := client.Once(t.Context(), "kinds", string(kind), work); err != nil {
				t.Error(err)
			}
			outcome, err := client.Once(t.Context(), "kinds", string(kind), never(t))
			if err != nil || outcome.Done.Result == nil || outcome.Done.Result.Kind != kind || string(outcome.Done.Result.Bytes) != bytes {
				t.Errorf("%s: %+v, %v", kind, outcome.Done, err)
			}
		}
		// JSON's null is a result like any other, and its absence none.
		null, err := leasehold.OnceWithResult(t.Context(), client, "kinds", "json", returning[*int](nil))
		if err != nil || null.Value == nil || *null.Value != nil {
			t.Errorf("%+v, %v", null, err)
		}
		if _, err := client.Once(t.Context(), "none", "1", func(context.Context, *leasehold.Run) error { return nil }); err != nil {
			t.Error(err)
		}
		none, err := leasehold.OnceWithResult(t.Context(), client, "none", "1", returning[*int](nil))
		if err != nil || none.Done == nil || none.Value != nil || none.Done.Result != nil {
			t.Errorf("%+v, %v", none, err)
		}
	})
}

// after is what a later caller finds where the result of the work was not kept.
func after(t *testing.T, client *leasehold.Client, name string, err error, why string) {
	t.Helper()
	if !errors.Is(err, leasehold.ErrResultNotKept) || !strings.Contains(err.Error(), "the work is done, but its result was not kept: "+why) {
		t.Errorf("%s: %v", name, err)
	}
	outcome, err := client.Once(t.Context(), name, "1", never(t))
	if err != nil || outcome.Done == nil || outcome.Done.Result != nil {
		t.Errorf("%s: %+v, %v", name, outcome.Done, err)
	}
}

func TestWhatCannotBeKeptIsAnErrorAfterTheFact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := leaseholdtest.New(t).Connect()
		long, err := leasehold.OnceWithResult(t.Context(), client, "long", "1", returning(strings.Repeat("x", 4095)))
		if !long.Ran || long.Value == nil || len(*long.Value) != 4095 {
			t.Errorf("%+v", long)
		}
		after(t, client, "long", err, "result has 4097 bytes; at most 4096 are allowed")
		nan, err := leasehold.OnceWithResult(t.Context(), client, "nan", "1", returning(math.NaN()))
		if !nan.Ran || nan.Value == nil {
			t.Errorf("%+v", nan)
		}
		after(t, client, "nan", err, "json: unsupported value: NaN")
		for name, result := range map[string]leasehold.RunResult{
			"there is no kind": {Kind: "text"}, "the result is no JSON": {Kind: leasehold.ResultJSON, Bytes: []byte{0xff}},
		} {
			outcome, err := client.Once(t.Context(), name, "1", func(_ context.Context, run *leasehold.Run) error {
				run.SetResult(result)
				return nil
			})
			if !outcome.Ran {
				t.Errorf("%+v", outcome)
			}
			after(t, client, name, err, name)
		}
		if _, err := leasehold.OnceWithResult(t.Context(), client, "fits", "1", returning(strings.Repeat("x", 4094))); err != nil {
			t.Error(err)
		}
	})
}

// odd is a store that does something else with each finish, if that is its wish.
type odd struct {
	*leaseholdtest.Store
	// finish returns what is answered in place of the store; nil has it serve the request.
	finish func(resource string, finish core.OpFinish) core.Response
}

func (o odd) Node() (node.Node, error) {
	made, err := o.Store.Node()
	made.Link = &oddLink{Link: made.Link, store: o}
	return made, err
}

type oddLink struct {
	node.Link
	store  odd
	events node.Events
}

func (l *oddLink) Open(events node.Events) {
	l.events = events
	l.Link.Open(events)
}

func (l *oddLink) Send(output core.Output) {
	transmit := output.(core.OutputTransmit)
	finish, is := transmit.Ops[0].Op.(core.OpFinish)
	if !is {
		l.Link.Send(output)
		return
	}
	go func() {
		if response := l.store.finish(transmit.Ops[0].Resource, finish); response != nil {
			l.events.Answer([]core.Input{core.InputResponse{ID: transmit.ID, Response: response}})
		} else {
			l.Link.Send(output)
		}
	}()
}

// hasNoRoom refuses results.
func hasNoRoom(_ string, finish core.OpFinish) core.Response {
	if finish.About == nil {
		return nil
	}
	denied := core.RefusalDenied{Kind: core.DenialKindStorageFull, Detail: "no room left"}
	return core.ResponseOutcomes{Outcomes: []core.Outcome{core.OutcomeNotApplied{Refusal: denied}}}
}

func TestAStoreWithoutRoomDropsTheResultAndNotTheCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := leasehold.Open(odd{leaseholdtest.New(t), hasNoRoom})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		outcome, err := leasehold.OnceWithResult(t.Context(), client, "full", "1", returning(1))
		if !outcome.Ran || outcome.Value == nil || *outcome.Value != 1 {
			t.Errorf("%+v", outcome)
		}
		after(t, client, "full", err, "the store had no room for it")
		// A count without its number would begin at zero again, so the work does not begin.
		_, err = client.Once(t.Context(), "counted", "1", never(t), leasehold.MaxAttempts(2))
		if !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), "this attempt at the work may count, and is not begun") {
			t.Error(err)
		}
	})
}

func TestAResultOnAQuorumIsThatOfTheCompletionThatStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stores []leasehold.Store
		for range 3 {
			stores = append(stores, leaseholdtest.New(t))
		}
		open := func() *leasehold.Client {
			client, err := leasehold.Open(leasehold.Quorum{ID: "00112233445566778899aabbccddeeff", Nodes: stores})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			return client
		}
		first, second := open(), open()
		outcome, err := leasehold.OnceWithResult(t.Context(), first, "sum", "1", returning(3), leasehold.Wait(time.Hour))
		if err != nil || !outcome.Ran {
			t.Fatalf("%+v, %v", outcome, err)
		}
		stores[1].(*leaseholdtest.Store).Down()
		outcome, err = leasehold.OnceWithResult(t.Context(), second, "sum", "1", returning(4))
		if err != nil || outcome.Value == nil || *outcome.Value != 3 {
			t.Errorf("%+v, %v", outcome, err)
		}
	})
}
