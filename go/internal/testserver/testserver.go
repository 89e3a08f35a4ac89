// Package testserver starts servers for tests, by the repository's program leasehold-servers, and a proxy that fails on demand.
package testserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program is the variable that says where leasehold-servers is.
const program = "LEASEHOLD_SERVERS"

// Redis is a server of its own for one test.
type Redis struct {
	URL  string `json:"url"`
	Port int    `json:"port"`

	t       testing.TB
	orders  io.Writer
	answers *bufio.Scanner
}

// StartRedis starts a Redis on a free port of 127.0.0.1, until the test ends.
func StartRedis(t testing.TB) *Redis {
	t.Helper()
	server := &Redis{t: t}
	server.orders, server.answers = start(t, "redis")
	server.hear()
	return server
}

// StartPostgres starts a PostgreSQL, and returns the settings of a connection.
func StartPostgres(t testing.TB) string {
	t.Helper()
	facts := Start(t, "postgres")
	return fmt.Sprintf("host=%s port=%v user=%s dbname=%s sslmode=disable", facts["host"], facts["port"], facts["user"], facts["database"])
}

// Start starts a server of another kind, and returns where it is.
func Start(t testing.TB, kind ...string) map[string]any {
	t.Helper()
	facts, _ := StartToObey(t, kind...)
	return facts
}

// StartToObey starts a server of another kind, and returns what takes orders, too: kill, freeze, continue or restart.
func StartToObey(t testing.TB, kind ...string) (map[string]any, func(order string)) {
	t.Helper()
	orders, answers := start(t, kind...)
	facts := map[string]any{}
	hear := func() {
		t.Helper()
		if !answers.Scan() || json.Unmarshal(answers.Bytes(), &facts) != nil {
			t.Fatal("the server has failed; stderr says why")
		}
	}
	hear()
	return facts, func(order string) {
		t.Helper()
		if _, err := fmt.Fprintln(orders, order); err != nil {
			t.Fatal(err)
		}
		hear()
	}
}

// Program is the command leasehold, which lies beside the program for servers.
func Program() string { return filepath.Join(filepath.Dir(os.Getenv(program)), "leasehold") }

// Command runs the command, and returns what it prints.
func Command(t testing.TB, args ...string) string {
	t.Helper()
	command := exec.Command(Program(), args...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("leasehold %v: %v\n%s", args, err, output)
	}
	return string(output)
}

// start starts a server until the test ends, and returns what takes orders and what hears answers.
func start(t testing.TB, kind ...string) (io.Writer, *bufio.Scanner) {
	t.Helper()
	path := os.Getenv(program)
	if path == "" {
		t.Fatalf("%s is not set: cargo xtask go runs these tests", program)
	}
	command := exec.Command(path, kind...)
	command.Stderr = os.Stderr
	orders, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// It ends with its input, also where the test does not come to its end.
	t.Cleanup(func() {
		_ = orders.Close()
		_ = command.Wait()
	})
	return orders, bufio.NewScanner(answers)
}

// Obey gives an order: kill, freeze, continue or restart, which loses all data.
func (r *Redis) Obey(order string) {
	r.t.Helper()
	if _, err := fmt.Fprintln(r.orders, order); err != nil {
		r.t.Fatal(err)
	}
	r.hear()
}

func (r *Redis) hear() {
	r.t.Helper()
	if !r.answers.Scan() {
		r.t.Fatal("the server has failed; stderr says why")
	}
	if err := json.Unmarshal(r.answers.Bytes(), r); err != nil {
		r.t.Fatal(err)
	}
}

// Address is where it listens.
func (r *Redis) Address() string { return fmt.Sprintf("127.0.0.1:%d", r.Port) }

// Do sends one command, whose words have no spaces, and returns the first line of the reply.
func (r *Redis) Do(words ...string) string {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.Address())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s\r\n", strings.Join(words, " ")); err != nil {
		r.t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
