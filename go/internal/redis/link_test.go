package redis

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"code.invalid/leasehold/go/internal/clock"
	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

// command is one that has this name, until a deadline.
func command(id uint64, name string, patience time.Duration) core.Output {
	made := core.RedisCommand{Args: [][]byte{[]byte(name)}}
	return core.OutputRedisCommands{ID: id, Commands: []core.RedisCommand{made}, DeadlineNs: uint64(clock.Now() + patience)}
}

// opened is a link to a server of the test, and where its answers go.
func opened(t *testing.T, listener net.Listener) (*Link, chan core.InputResponse) {
	place, err := Parse("redis://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	link, answers := NewLink(place), make(chan core.InputResponse, 8)
	t.Cleanup(link.Close)
	link.Open(node.Events{Answer: func(inputs []core.Input) {
		for _, input := range inputs {
			answers <- input.(core.InputResponse)
		}
	}})
	return link, answers
}

func listen(t *testing.T) net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func TestNothingIsSentAfterItsDeadlineWhileAConnectionIsMade(t *testing.T) {
	listener := listen(t)
	link, answers := opened(t, listener)
	link.Send(command(1, "LATE", 50*time.Millisecond))
	link.Send(command(2, "SOON", time.Minute))
	link.Flush(nil)
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	time.Sleep(100 * time.Millisecond)
	_, _ = server.Write([]byte("+OK\r\n+OK\r\n*1\r\n$6\r\nmaster\r\n"))
	var words []string
	for lines := bufio.NewScanner(server); lines.Scan(); {
		words = append(words, lines.Text())
		if lines.Text() == "SOON" {
			break
		}
	}
	if said := strings.Join(words, " "); strings.Contains(said, "LATE") {
		t.Errorf("sent: %s", said)
	}
	_, _ = server.Write([]byte("+PONG\r\n"))
	if answer := <-answers; answer.ID != 2 {
		t.Errorf("%+v", answer)
	}
}

func TestTheEarliestDeadlineEndsAConnection(t *testing.T) {
	listener := listen(t)
	link, answers := opened(t, listener)
	link.Send(command(1, "PATIENT", time.Minute))
	link.Send(command(2, "HASTY", 100*time.Millisecond))
	link.Flush(nil)
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, _ = server.Write([]byte("+OK\r\n+OK\r\n*1\r\n$6\r\nmaster\r\n"))
	for range 2 {
		if answer, is := (<-answers).Response.(core.ResponseUnknown); !is || answer.Kind != core.FaultKindTimeout {
			t.Errorf("%+v", answer)
		}
	}
}
