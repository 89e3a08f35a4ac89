package interop

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
)

// once runs the command, which is the client in Rust, and returns what it prints and its exit status.
func once(t *testing.T, url string, args ...string) (string, int) {
	t.Helper()
	command := exec.Command(testserver.Program(), append([]string{"once", "--store", url}, args...)...)
	output, err := command.CombinedOutput()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return string(output), command.ProcessState.ExitCode()
}

func TestResultsAreReadInEitherDirection(t *testing.T) {
	server := testserver.StartRedis(t)
	locks := client(t, leasehold.Redis{URL: server.URL})
	none := func(context.Context, *leasehold.Run) error {
		t.Error("it is done already")
		return nil
	}
	if output, status := once(t, server.URL, "--save-output", "--key", "1", "report", "--", "echo", "42 rows"); status != 0 {
		t.Fatalf("%d: %s", status, output)
	}
	outcome, err := locks.Once(t.Context(), "report", "1", none)
	if err != nil || outcome.Done == nil || outcome.Done.Result == nil {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if got := outcome.Done.Result; got.Kind != leasehold.ResultOutput || string(got.Bytes) != "42 rows\n" || outcome.Done.Began.IsZero() {
		t.Errorf("%+v", got)
	}
	_, err = locks.Once(t.Context(), "report", "2", func(_ context.Context, run *leasehold.Run) error {
		run.SetResult(leasehold.RunResult{Kind: leasehold.ResultOutput, Bytes: []byte("from Go\n")})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if output, status := once(t, server.URL, "--save-output", "--key", "2", "report", "--", "echo", "again"); status != 0 || !strings.Contains(output, "from Go\n") {
		t.Errorf("%d: %s", status, output)
	}
}

func TestAttemptsOfAllLanguagesCountTogether(t *testing.T) {
	server := testserver.StartRedis(t)
	locks := client(t, leasehold.Redis{URL: server.URL})
	options := []leasehold.OnceOption{leasehold.MaxAttempts(3)}
	counted := []string{"--max-attempts", "3", "--key", "1", "upload", "--", "sh", "-c", "exit 3"}
	if output, status := once(t, server.URL, counted...); status != 3 {
		t.Fatalf("%d: %s", status, output)
	}
	failed := errors.New("no disk")
	_, err := locks.Once(t.Context(), "upload", "1", func(_ context.Context, run *leasehold.Run) error {
		if count := run.Attempts().Count; count != 2 {
			t.Errorf("attempt %d", count)
		}
		return failed
	}, options...)
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	if output, status := once(t, server.URL, counted...); status != 3 {
		t.Fatalf("%d: %s", status, output)
	}
	_, err = locks.Once(t.Context(), "upload", "1", nil, options...)
	var why *leasehold.Error
	if !errors.As(err, &why) || why.Kind != leasehold.ErrGivenUp || why.Attempts.Count != 3 || !strings.Contains(why.Attempts.Reason, "3") {
		t.Fatal(err)
	}
	// Both say the same.
	output, status := once(t, server.URL, counted...)
	if _, message, _ := strings.Cut(err.Error(), `"upload@1": `); status != 79 || !strings.Contains(output, message) {
		t.Errorf("%d: %s, not %s", status, output, message)
	}
	if _, err := locks.ForgetRun(t.Context(), "upload", "1"); err != nil {
		t.Error(err)
	}
	if output, status := once(t, server.URL, counted...); status != 3 {
		t.Errorf("%d: %s", status, output)
	}
	if output, status := once(t, server.URL, "--forget", "--key", "1", "upload"); status != 0 {
		t.Errorf("%d: %s", status, output)
	}
	outcome, err := locks.Once(t.Context(), "upload", "1", func(_ context.Context, run *leasehold.Run) error {
		if count := run.Attempts().Count; count != 1 {
			t.Errorf("attempt %d", count)
		}
		return nil
	}, options...)
	if err != nil || !outcome.Ran {
		t.Errorf("%+v, %v", outcome, err)
	}
}

func TestOccurrencesAreThoseOfAllLanguages(t *testing.T) {
	server := testserver.StartRedis(t)
	locks := client(t, leasehold.Redis{URL: server.URL})
	// None begins while this test runs.
	for name, said := range map[string]struct {
		options []leasehold.OnceOption
		args    []string
	}{
		"period":   {[]leasehold.OnceOption{leasehold.Every(20_000 * 24 * time.Hour)}, []string{"--every", "20000d"}},
		"zone":     {[]leasehold.OnceOption{leasehold.Every(20_000 * 24 * time.Hour), leasehold.At("01:30"), leasehold.TZ("Europe/Berlin")}, []string{"--every", "20000d", "--at", "01:30", "--tz", "Europe/Berlin"}},
		"cron":     {[]leasehold.OnceOption{leasehold.Cron("0 2 29 2 *"), leasehold.TZ("America/New_York")}, []string{"--cron", "0 2 29 2 *", "--tz", "America/New_York"}},
		"cooldown": {[]leasehold.OnceOption{leasehold.Cooldown(time.Hour)}, []string{"--cooldown", "1h"}},
	} {
		outcome, err := locks.Once(t.Context(), name, "", func(context.Context, *leasehold.Run) error { return nil }, said.options...)
		if err != nil || !outcome.Ran {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
		output, status := once(t, server.URL, append(said.args, name, "--", "echo", "again")...)
		if status != 0 || !strings.Contains(output, "done already") {
			t.Errorf("%s: %d, %s", name, status, output)
		}
	}
}
