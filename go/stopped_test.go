//go:build unix

package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/stopped"
	"code.invalid/leasehold/go/internal/testserver"
)

// runner is the variable with which a test starts this program again, as a process that has begun the work of a run.
const runner = "LEASEHOLD_TEST_RUNNER"

const shortTTL = 500 * time.Millisecond

func TestMain(m *testing.M) {
	if stopped.Hold(storeAt) {
		return
	}
	if url := os.Getenv(runner); url != "" {
		work(url)
		return
	}
	os.Exit(m.Run())
}

// work begins the work of a run, and never ends it.
func work(url string) {
	client, err := leasehold.Connect(url)
	if err != nil {
		panic(err)
	}
	_, err = client.Once(context.Background(), "deadly", "1", func(ctx context.Context, run *leasehold.Run) error {
		fmt.Println(run.Attempts().Count)
		select {}
	}, leasehold.TTL(shortTTL), leasehold.MaxAttempts(2))
	panic(err)
}

func TestProcessesThatAreStoppedOrKilledLoseTheirLocks(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) string{
		"Redis":    func(t *testing.T) string { return testserver.StartRedis(t).URL },
		"DynamoDB": func(t *testing.T) string { return testserver.Start(t, "dynamodb", "table")["url"].(string) },
		"etcd":     func(t *testing.T) string { return testserver.Start(t, "etcd")["url"].(string) },
		"S3":       func(t *testing.T) string { return testserver.Start(t, "s3")["url"].(string) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stopped.Run(t, start(t), storeAt)
		})
	}
}

func TestAnAttemptOfAProcessThatWasKilledCounts(t *testing.T) {
	redis := testserver.StartRedis(t)
	child, said := stopped.Again(t, runner+"="+redis.URL)
	if said.Scan(); said.Text() != "1" {
		t.Errorf("it is attempt %s", said.Text())
	}
	if err := child.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	client := connect(t, redis.URL)
	options := []leasehold.OnceOption{leasehold.MaxAttempts(2), leasehold.Wait(20 * time.Second)}
	_, err := client.Once(t.Context(), "deadly", "1", func(_ context.Context, run *leasehold.Run) error {
		if got := run.Attempts(); got.Count != 2 {
			t.Errorf("%+v", got)
		}
		return errors.New("a bad input")
	}, options...)
	if err == nil || errors.Is(err, leasehold.ErrGivenUp) {
		t.Error(err)
	}
	_, err = client.Once(t.Context(), "deadly", "1", never(t), options...)
	isGivenUp(t, err, 2, "a bad input")
	if _, err := client.ForgetRun(t.Context(), "deadly", "1"); err != nil {
		t.Error(err)
	}
	if redis.Do("EXISTS", `"{deadly@1@attempts}\x1fdone of name"`) != ":0" {
		t.Error("the count is still there")
	}
	outcome, err := client.Once(t.Context(), "deadly", "1", func(context.Context, *leasehold.Run) error { return nil }, options...)
	if err != nil || !outcome.Ran {
		t.Errorf("%+v, %v", outcome, err)
	}
}
