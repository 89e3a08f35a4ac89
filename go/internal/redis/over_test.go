package redis

import (
	"context"
	"testing"
	"time"

	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

func TestNamesWhoseKeysAreInOneSlot(t *testing.T) {
	for _, name := range []string{"a", "{a}", "a{b}c", "a{b", "{", "a{b}}", "{a}{b}", "x{{y}z}", "}{a}", "a{{}}b", "{{a}"} {
		if err := InOneSlot(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"}", "a}b", "{}", "{}x", "x{}", "{}{a}", "}{"} {
		if InOneSlot(name) == nil {
			t.Errorf("%s", name)
		}
	}
}

// sayer answers everything with one reply.
type sayer struct{ reply string }

func (s sayer) Do(context.Context, [][][]byte) ([]byte, bool, error) {
	return []byte(s.reply), true, nil
}
func (sayer) Close() error { return nil }
func (sayer) Subscribe(context.Context, string, func(), func([]byte)) error {
	return nil
}

func TestARedirectionEndsARequestToASingleServerOnly(t *testing.T) {
	for reply, wants := range map[string][2]string{
		"-MOVED 3999 127.0.0.1:6381\r\n": {"-MOVED 3999 127.0.0.1:6381\r\n", "-TRYAGAIN MOVED 3999 127.0.0.1:6381\r\n"},
		"-ASK 3999 127.0.0.1:6381\r\n":   {"-ASK 3999 127.0.0.1:6381\r\n", "-ASK 3999 127.0.0.1:6381\r\n"},
		"$6\r\n-MOVED\r\n":               {"$6\r\n-MOVED\r\n", "$6\r\n-MOVED\r\n"},
	} {
		for n, isCluster := range []bool{false, true} {
			link, answers := NewOver(sayer{reply}, isCluster), make(chan core.Input, 1)
			link.Open(node.Events{Answer: func(inputs []core.Input) { answers <- inputs[0] }})
			link.Send(command(1, "PING", time.Minute))
			answer := (<-answers).(core.InputResponse)
			if said, is := answer.Response.(core.ResponseRedisReplies); !is || string(said.Replies) != wants[n] {
				t.Errorf("%q: %+v", reply, answer)
			}
			link.Close()
		}
	}
}
