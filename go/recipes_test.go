package leasehold_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/leaseholdtest"
)

// The functions of this file are those of docs/recipes-go.md.

// billing answers 503 while another request works on the same invoice.
func billing(client *leasehold.Client, bill func(ctx context.Context, invoice string, token uint64) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		invoice := r.PathValue("invoice")
		lease, err := client.Lock(r.Context(), "invoice/"+invoice, leasehold.Wait(2*time.Second))
		switch {
		case errors.Is(err, leasehold.ErrTimeout), errors.Is(err, leasehold.ErrUnavailable):
			w.Header().Set("Retry-After", "1")
			http.Error(w, "busy: try again", http.StatusServiceUnavailable)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer lease.Release(context.WithoutCancel(r.Context()))
		if err := bill(lease.Context(), invoice, lease.Token()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

// daily does the work of each day once, by whichever process is there.
func daily(ctx context.Context, client *leasehold.Client, work func(ctx context.Context, day string) error) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		day := time.Now().UTC().Format(time.DateOnly)
		_, err := client.Once(ctx, "nightly-report", day, func(ctx context.Context, _ *leasehold.Run) error {
			return work(ctx, day) // after an error, the next minute or another process tries again
		})
		if err != nil && ctx.Err() == nil {
			println("the report is not written yet:", err.Error())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nightly does work once on each night of a working day, by the clocks of a zone.
func nightly(ctx context.Context, client *leasehold.Client, work func(ctx context.Context) error) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		_, err := client.Once(ctx, "clean-up", "", func(ctx context.Context, _ *leasehold.Run) error {
			return work(ctx)
		}, leasehold.Cron("30 2 * * 1-5"), leasehold.TZ("Europe/Berlin"), leasehold.MaxAttempts(3))
		if err != nil && ctx.Err() == nil {
			println("it is not cleaned up yet:", err.Error())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// number makes an invoice once, and has its number for all who ask.
func number(
	ctx context.Context, client *leasehold.Client, order string, invoice func(ctx context.Context) (string, error),
) (string, error) {
	outcome, err := leasehold.OnceWithResult(ctx, client, "invoice", order,
		func(ctx context.Context, _ *leasehold.Run) (string, error) { return invoice(ctx) },
		leasehold.Keep(30*24*time.Hour), leasehold.Wait(10*time.Second))
	switch {
	case outcome.Value != nil: // made now, or before
		return *outcome.Value, nil
	case err != nil:
		return "", err
	default:
		return "", errors.New("another process makes it, or nobody knows its number")
	}
}

// upload is tried three times by whichever process is there, ten minutes apart, and then given up.
func upload(ctx context.Context, client *leasehold.Client, file string, send func(ctx context.Context) error) (string, error) {
	outcome, err := client.Once(ctx, "upload", file, func(ctx context.Context, _ *leasehold.Run) error {
		return send(ctx) // the text of its error is kept as the reason
	}, leasehold.MaxAttempts(3), leasehold.RetryAfter(10*time.Minute))
	var why *leasehold.Error
	switch {
	case errors.As(err, &why) && why.Kind == leasehold.ErrGivenUp:
		// Mend it, and then: client.ForgetRun(ctx, "upload", file)
		return fmt.Sprintf("given up since %s: %s", why.Attempts.Since.Format(time.Kitchen), why.Attempts.Reason), nil
	case outcome.Later != nil:
		return "not before " + outcome.Later.RetryAt.Format(time.Kitchen), nil
	case err != nil:
		return "", err
	default:
		return "sent, or being sent", nil
	}
}

// steps stops between two steps as soon as the lock is lost, or cannot be relied on for one more.
func steps(lease *leasehold.Lease, step func(ctx context.Context, n int) error) error {
	for n := range 100 {
		if err := lease.Check(5 * time.Second); err != nil { // a step takes less than that
			return err
		}
		if err := step(lease.Context(), n); err != nil {
			return err
		}
	}
	return nil
}

// serve works until it is told to stop, and frees its locks then: its context ends with SIGTERM, by signal.NotifyContext.
func serve(ctx context.Context, client *leasehold.Client, work func(ctx context.Context, term *leasehold.Lease) error) error {
	defer client.Close() // releases all leases, in 2 s at most
	err := client.Lead(ctx, "worker", work)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// counted counts lost leases without any library.
func counted(lost *expvar.Map) leasehold.ClientOption {
	return leasehold.Observe(leasehold.Observer{
		Ended: func(_ string, _ time.Duration, err error) {
			var why *leasehold.Error
			if errors.As(err, &why) && why.Kind == leasehold.ErrLost {
				lost.Add(why.Reason, 1)
			}
		},
	})
}

// bubble runs a recipe on a store in memory.
func bubble(t *testing.T, recipe func(t *testing.T, store *leaseholdtest.Store)) {
	synctest.Test(t, func(t *testing.T) { recipe(t, leaseholdtest.New(t)) })
}

func TestRecipeOfResults(t *testing.T) {
	bubble(t, func(t *testing.T, store *leaseholdtest.Store) {
		made := 0
		for range 2 {
			got, err := number(t.Context(), store.Connect(), "7", func(context.Context) (string, error) {
				made++
				return "2026-7", nil
			})
			if err != nil || got != "2026-7" || made != 1 {
				t.Errorf("%s, %v, made %d times", got, err, made)
			}
		}
		broken := errors.New("no paper")
		if _, err := number(t.Context(), store.Connect(), "8", func(context.Context) (string, error) { return "", broken }); !errors.Is(err, broken) {
			t.Error(err)
		}
	})
}

func TestRecipeOfAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, store *leaseholdtest.Store) {
		client, sent := store.Connect(), 0
		broken := errors.New("no route")
		send := func(context.Context) error {
			sent++
			return broken
		}
		for range 3 {
			if _, err := upload(t.Context(), client, "monday.csv", send); !errors.Is(err, broken) {
				t.Error(err)
			}
			if said, err := upload(t.Context(), client, "monday.csv", send); err != nil || said == "" || sent < 3 && !strings.HasPrefix(said, "not before") {
				t.Errorf("%q, %v", said, err)
			}
			time.Sleep(11 * time.Minute)
		}
		if said, err := upload(t.Context(), client, "monday.csv", send); err != nil || !strings.HasSuffix(said, ": no route") || sent != 3 {
			t.Errorf("%q, %v, sent %d times", said, err, sent)
		}
	})
}

func TestRecipeOfHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, store *leaseholdtest.Store) {
		client, rival := store.Connect(), store.Connect()
		var token uint64
		mux := http.NewServeMux()
		mux.Handle("POST /invoices/{invoice}", billing(client, func(_ context.Context, invoice string, of uint64) error {
			if token = of; invoice == "bad" {
				return errors.New("no such invoice")
			}
			return nil
		}))
		ask := func(invoice string) int {
			said := httptest.NewRecorder()
			mux.ServeHTTP(said, httptest.NewRequestWithContext(t.Context(), "POST", "/invoices/"+invoice, strings.NewReader("")))
			return said.Code
		}
		if code := ask("42"); code != http.StatusOK || token == 0 {
			t.Errorf("%d with token %d", code, token)
		}
		if code := ask("bad"); code != http.StatusInternalServerError {
			t.Error(code)
		}
		lease := lock(t, rival, "invoice/42")
		if code := ask("42"); code != http.StatusServiceUnavailable {
			t.Error(code)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestRecipeOfDays(t *testing.T) {
	bubble(t, func(t *testing.T, store *leaseholdtest.Store) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*24*time.Hour-time.Second)
		defer cancel()
		days := map[string]int{}
		for range 2 {
			client := store.Connect()
			go func() {
				_ = daily(ctx, client, func(_ context.Context, day string) error {
					if days[day]++; days[day] == 1 {
						return errors.New("no paper")
					}
					return nil
				})
			}()
			time.Sleep(time.Second)
		}
		<-ctx.Done()
		for day, times := range days {
			if times != 2 {
				t.Errorf("%s: %d times", day, times)
			}
		}
		if len(days) != 3 {
			t.Errorf("%v", days)
		}
	})
}

func TestRecipeOfNights(t *testing.T) {
	bubble(t, func(t *testing.T, store *leaseholdtest.Store) {
		// From Saturday, 1 January 2000, to the night of Monday.
		time.Sleep(49 * time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var nights []string
		for range 2 {
			client := store.Connect()
			go func() {
				_ = nightly(ctx, client, func(context.Context) error {
					nights = append(nights, time.Now().UTC().Format("Mon 15:04"))
					return nil
				})
			}()
			time.Sleep(time.Second)
		}
		<-ctx.Done()
		// The first one is that of the Friday before, which nobody has done.
		want := "Mon 01:00, Mon 01:30"
		if got := strings.Join(nights, ", "); got != want {
			t.Error(got)
		}
	})
}

func TestRecipeOfSteps(t *testing.T) {
	bubble(t, func(t *testing.T, store *leaseholdtest.Store) {
		done := 0
		err := steps(lock(t, store.Connect(), "batch"), func(ctx context.Context, n int) error {
			if done = n; n == 7 {
				store.Down()
			}
			time.Sleep(time.Second)
			return nil
		})
		if !errors.Is(err, leasehold.ErrLost) || done < 7 || done > 40 {
			t.Errorf("%v after %d steps", err, done)
		}
	})
}

func TestRecipeOfSIGTERM(t *testing.T) {
	bubble(t, func(t *testing.T, store *leaseholdtest.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		led := make(chan struct{})
		ended := make(chan error)
		go func() {
			ended <- serve(ctx, store.Connect(), func(ctx context.Context, _ *leasehold.Lease) error {
				close(led)
				<-ctx.Done()
				return nil
			})
		}()
		<-led
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		lock(t, store.Connect(), "worker", leasehold.Wait(0))
	})
}

func TestRecipeOfCounts(t *testing.T) {
	bubble(t, func(t *testing.T, store *leaseholdtest.Store) {
		lost := new(expvar.Map)
		lease := lock(t, store.Connect(counted(lost)), "a")
		store.Down()
		<-lease.Context().Done()
		synctest.Wait()
		if n := lost.Get("expired"); n == nil || n.String() != "1" {
			t.Errorf("%v", lost)
		}
	})
}
