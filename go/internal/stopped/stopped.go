//go:build unix

// Package stopped tests what becomes of the lock of a process that is stopped or killed, on whatever store.
package stopped

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
)

// holder is the variable with which a test starts its own program again, as a process that holds a lock in the store it names.
const holder = "LEASEHOLD_TEST_HOLDER"

const name = "stopped"

// ttl is short, and long enough for a store on a busy machine: a request may take a sixth of it.
const ttl = 3 * time.Second

// Opener makes a store of a text, in the process of a test and in that of a holder.
type Opener func(at string) (leasehold.Store, error)

// Hold is for TestMain. In a process that a test has started it holds a lock until its lease ends, tells why, and returns true.
func Hold(open Opener) bool {
	at := os.Getenv(holder)
	if at == "" {
		return false
	}
	lease, err := connect(at, open).Lock(context.Background(), name, leasehold.TTL(ttl), leasehold.Owner("the process"))
	if err != nil {
		panic(err)
	}
	fmt.Println(lease.Token())
	<-lease.Context().Done()
	fmt.Println(context.Cause(lease.Context()).(*leasehold.Error).Reason, lease.Check(0) == nil)
	return true
}

func connect(at string, open Opener) *leasehold.Client {
	store, err := open(at)
	if err != nil {
		panic(err)
	}
	client, err := leasehold.Open(store)
	if err != nil {
		panic(err)
	}
	return client
}

// process is one that holds the lock.
type process struct {
	*exec.Cmd
	said  *bufio.Scanner
	token uint64
	// silent is when it was told to do nothing any more.
	silent time.Time
}

// Again starts this program again, with a variable that it looks for, and hands on what it says. It ends with the test.
func Again(t *testing.T, variable string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), variable)
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill() })
	return child, bufio.NewScanner(output)
}

// start starts a holder, and returns it once it has the lock and others see that.
func start(t *testing.T, at string, other *leasehold.Client) *process {
	t.Helper()
	child, said := Again(t, holder+"="+at)
	p := &process{Cmd: child, said: said}
	p.said.Scan()
	var err error
	if p.token, err = strconv.ParseUint(p.said.Text(), 10, 64); err != nil {
		t.Fatalf("the holder says %q", p.said.Text())
	}
	_, err = other.Lock(t.Context(), name, leasehold.Wait(0))
	var busy *leasehold.Error
	if !errors.As(err, &busy) || busy.Kind != leasehold.ErrBusy || busy.Holder == nil || busy.Holder.Owner != "the process" {
		t.Fatalf("the process does not hold it: %v", err)
	}
	return p
}

func (p *process) signal(t *testing.T, which syscall.Signal) {
	t.Helper()
	if which != syscall.SIGCONT {
		p.silent = time.Now()
	}
	if err := p.Process.Signal(which); err != nil {
		t.Fatal(err)
	}
}

// Run runs the tests on the store of a text.
func Run(t *testing.T, at string, open Opener) {
	client := connect(at, open)
	t.Cleanup(func() { _ = client.Close() })
	t.Run("a process that was stopped past its ttl finds its lease lost", func(t *testing.T) {
		child := start(t, at, client)
		child.signal(t, syscall.SIGSTOP)
		// The lock is free when the lease of the stopped holder is over.
		lease := succeed(t, client, child)
		child.signal(t, syscall.SIGCONT)
		child.said.Scan()
		if text := child.said.Text(); text != "expired false" && text != "taken_over false" {
			t.Errorf("the holder says %q", text)
		}
		if err := child.Wait(); err != nil {
			t.Error(err)
		}
		// What the holder did when it went on has changed nothing.
		if err := lease.Check(0); err != nil {
			t.Error(err)
		}
		release(t, lease)
	})
	t.Run("the lock of a process that was killed is free after its ttl", func(t *testing.T) {
		child := start(t, at, client)
		child.signal(t, syscall.SIGKILL)
		if err := child.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("%v", err)
		}
		release(t, succeed(t, client, child))
	})
}

// succeed takes the lock of a process that does nothing any more. Nothing but the end of its lease may free it, which was granted or
// renewed in the last third of the ttl; a busy machine makes that a little longer.
func succeed(t *testing.T, client *leasehold.Client, child *process) *leasehold.Lease {
	t.Helper()
	lease, err := client.Lock(t.Context(), name, leasehold.TTL(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(child.silent); took < ttl/4 {
		t.Errorf("it was free after %v", took)
	}
	if lease.Token() <= child.token {
		t.Errorf("token %d after %d", lease.Token(), child.token)
	}
	return lease
}

func release(t *testing.T, lease *leasehold.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
