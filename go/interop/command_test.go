package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
)

// Contended increments, by goroutines here and by programs under the command, which is the client in Rust.
func TestNoIncrementIsLostBesideTheCommand(t *testing.T) {
	server := testserver.StartRedis(t)
	path := filepath.Join(t.TempDir(), "count")
	if err := os.WriteFile(path, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	const workers, rounds = 3, 6
	var all sync.WaitGroup
	for range workers {
		locks := client(t, leasehold.Redis{URL: server.URL})
		all.Go(func() {
			for range 3 * rounds {
				lease, err := locks.Lock(t.Context(), name)
				if err != nil {
					t.Error(err)
					return
				}
				increment(t, path)
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for range rounds {
				// Read, and then write one more.
				work := `n=$(cat "$0"); echo $((n + 1)) > "$0"`
				command := exec.Command(testserver.Program(), "exec", "--store", server.URL, name, "--", "sh", "-c", work, path)
				if output, err := command.CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, output)
				}
			}
		})
	}
	all.Wait()
	if n := read(t, path); n != 4*workers*rounds {
		t.Errorf("%d increments", n)
	}
}

func read(t *testing.T, path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Error(err)
	}
	return n
}

func increment(t *testing.T, path string) {
	if err := os.WriteFile(path, []byte(strconv.Itoa(read(t, path)+1)), 0o600); err != nil {
		t.Error(err)
	}
}
