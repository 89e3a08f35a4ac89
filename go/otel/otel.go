// Package otel counts locks by OpenTelemetry.
//
//	observer, err := otel.Metrics(provider.Meter("myapp"))
//	client, err := leasehold.Connect(url, leasehold.Observe(observer))
//
// The names are those of the other languages, with dots: leasehold.acquire, by its outcome; leasehold.wait and leasehold.hold, in
// seconds; leasehold.lost, by its reason; and leasehold.renew.late. Names of locks are in none, since there may be any number of
// them.
package otel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	leasehold "code.invalid/leasehold/go"
)

// outcomes are the kinds of errors by which an acquisition ends, as an attribute has them.
var outcomes = []struct {
	kind error
	name string
}{
	{nil, "acquired"}, {leasehold.ErrBusy, "busy"}, {leasehold.ErrTimeout, "timed_out"}, {leasehold.ErrUnavailable, "unavailable"},
	{leasehold.ErrRefused, "refused"}, {leasehold.ErrClosed, "closed"}, {context.Canceled, "cancelled"},
	{context.DeadlineExceeded, "cancelled"},
}

// Metrics makes an observer that counts.
func Metrics(meter metric.Meter) (leasehold.Observer, error) {
	acquired, err := meter.Int64Counter("leasehold.acquire", metric.WithDescription("acquisitions that have ended"))
	if err != nil {
		return leasehold.Observer{}, err
	}
	wait, err := seconds(meter, "leasehold.wait", "time from the call to the grant or failure")
	if err != nil {
		return leasehold.Observer{}, err
	}
	hold, err := seconds(meter, "leasehold.hold", "time from the grant to the end of the lease")
	if err != nil {
		return leasehold.Observer{}, err
	}
	lost, err := meter.Int64Counter("leasehold.lost", metric.WithDescription("leases that were lost"))
	if err != nil {
		return leasehold.Observer{}, err
	}
	late, err := meter.Int64Counter("leasehold.renew.late", metric.WithDescription("renewals that were not confirmed"))
	if err != nil {
		return leasehold.Observer{}, err
	}
	ctx := context.Background()
	return leasehold.Observer{
		Decided: func(_ string, took time.Duration, err error) {
			acquired.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome(err))))
			wait.Record(ctx, took.Seconds())
		},
		Ended: func(_ string, lasted time.Duration, err error) {
			hold.Record(ctx, lasted.Seconds())
			var why *leasehold.Error
			if errors.As(err, &why) && why.Kind == leasehold.ErrLost {
				lost.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", why.Reason)))
			}
		},
		Late: func(string, string) { late.Add(ctx, 1) },
	}, nil
}

func seconds(meter metric.Meter, name, about string) (metric.Float64Histogram, error) {
	return meter.Float64Histogram(name, metric.WithDescription(about), metric.WithUnit("s"))
}

func outcome(err error) string {
	// A run that was done before has not failed.
	if made := (*leasehold.Error)(nil); errors.As(err, &made) && made.Kind.Error() == "done" {
		return "done"
	}
	for _, outcome := range outcomes {
		if errors.Is(err, outcome.kind) {
			return outcome.name
		}
	}
	return "failed"
}
