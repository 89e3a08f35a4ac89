//go:build unix

package leasehold_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
)

// holder is the variable with which a test starts this program again, as a process that holds a lock.
const holder = "LEASEHOLD_TEST_HOLDER"

// runner is the same for a process that has begun the work of a run.
const runner = "LEASEHOLD_TEST_RUNNER"

const shortTTL = 500 * time.Millisecond

func TestMain(m *testing.M) {
	if url := os.Getenv(holder); url != "" {
		hold(url)
		return
	}
	if url := os.Getenv(runner); url != "" {
		work(url)
		return
	}
	os.Exit(m.Run())
}

// hold holds a lock until its lease ends, and tells why.
func hold(url string) {
	client, err := leasehold.Connect(url)
	if err != nil {
		panic(err)
	}
	lease, err := client.Lock(context.Background(), "stopped", leasehold.TTL(shortTTL))
	if err != nil {
		panic(err)
	}
	fmt.Println(lease.Token())
	<-lease.Context().Done()
	fmt.Println(context.Cause(lease.Context()).(*leasehold.Error).Reason, lease.Check(0) == nil)
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

func TestAProcessThatWasStoppedFindsItsLeaseLost(t *testing.T) {
	redis := testserver.StartRedis(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), holder+"="+redis.URL)
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Process.Kill()
	said := bufio.NewScanner(output)
	said.Scan()
	first := said.Text()

	signal(t, child, syscall.SIGSTOP)
	// The lock is free when the lease of the stopped holder is over.
	lease := lock(t, connect(t, redis.URL), "stopped", leasehold.TTL(30*time.Second))
	if second := fmt.Sprint(lease.Token()); second <= first {
		t.Errorf("token %s after %s", second, first)
	}
	signal(t, child, syscall.SIGCONT)
	said.Scan()
	if text := said.Text(); text != "expired false" && text != "taken_over false" {
		t.Errorf("the holder says %q", text)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if err := lease.Check(0); err != nil {
		t.Error(err)
	}
}

func TestTheLockOfAProcessThatWasKilledIsFreeAfterItsTTL(t *testing.T) {
	redis := testserver.StartRedis(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), holder+"="+redis.URL)
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	bufio.NewScanner(output).Scan()
	signal(t, child, syscall.SIGKILL)
	_ = child.Wait()
	lock(t, connect(t, redis.URL), "stopped")
}

func TestAnAttemptOfAProcessThatWasKilledCounts(t *testing.T) {
	redis := testserver.StartRedis(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), runner+"="+redis.URL)
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(output)
	if said.Scan(); said.Text() != "1" {
		t.Errorf("it is attempt %s", said.Text())
	}
	signal(t, child, syscall.SIGKILL)
	_ = child.Wait()
	client := connect(t, redis.URL)
	options := []leasehold.OnceOption{leasehold.MaxAttempts(2), leasehold.Wait(20 * time.Second)}
	_, err = client.Once(t.Context(), "deadly", "1", func(_ context.Context, run *leasehold.Run) error {
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

func signal(t *testing.T, child *exec.Cmd, which syscall.Signal) {
	t.Helper()
	if err := child.Process.Signal(which); err != nil {
		t.Fatal(err)
	}
}
