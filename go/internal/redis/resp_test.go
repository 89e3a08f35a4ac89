package redis

import (
	"bytes"
	"strings"
	"testing"
)

func TestRepliesAreSplitWhereTheyEnd(t *testing.T) {
	replies := []string{
		"+OK\r\n", "-ERR no\r\n", ":-42\r\n", "$5\r\nhello\r\n", "$0\r\n\r\n", "$-1\r\n", "*0\r\n", "*-1\r\n",
		"*2\r\n$2\r\n\r\n\r\n:1\r\n", "*1\r\n*2\r\n+a\r\n$-1\r\n",
	}
	stream := strings.Join(replies, "")
	for _, want := range replies {
		// While any byte is missing, there is no reply.
		for length := range len(want) {
			if n, err := scan([]byte(stream[:length])); n != 0 || err != nil {
				t.Errorf("%q: %d, %v", stream[:length], n, err)
			}
		}
		n, err := scan([]byte(stream))
		if n != len(want) || err != nil {
			t.Fatalf("%q: %d, %v", want, n, err)
		}
		stream = stream[n:]
	}
}

func TestWhatIsNoReplyIsRefused(t *testing.T) {
	deep := strings.Repeat("*1\r\n", mostDepth+1) + ":1\r\n"
	for _, bad := range []string{
		"HTTP/1.1 400 Bad Request\r\n", "?\r\n", "\r\n", "H", "$x\r\n", "$-2\r\n", "*-2\r\n", "$1048577\r\n", "*1048577\r\n",
		"$1\r\nabc\r\n", "$1\r\nax\n", "*1\r\nx", ":\r\n", "_\r\n", deep, "+" + strings.Repeat("a", mostBytes) + "\r\n",
		"+" + strings.Repeat("a", mostBytes+1),
	} {
		if n, err := scan([]byte(bad)); err != errMalformed {
			t.Errorf("%.40q: %d, %v", bad, n, err)
		}
	}
}

func TestTextsOfAReply(t *testing.T) {
	for reply, want := range map[string]string{
		"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n":   "subscribe a",
		"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$0\r\n\r\n": "message a ",
		"*2\r\n$-1\r\n$1\r\na\r\n":                     "",
		"*0\r\n":                                       "", "$1\r\na\r\n": "", "": "",
	} {
		if got := string(bytes.Join(texts([]byte(reply)), []byte(" "))); got != want {
			t.Errorf("%q: %q", reply, got)
		}
	}
}

// What a server sends can be anything. A reply that is found is the same whatever follows it, and begins nowhere else.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{"+OK\r\n", "*2\r\n$1\r\na\r\n:1\r\n", "$-1\r\n", "*1\r\n*1\r\n*0\r\n", "$5\r\nhel"} {
		f.Add([]byte(seed), []byte("*1\r\n"))
	}
	f.Fuzz(func(t *testing.T, b, more []byte) {
		n, err := scan(b)
		if n < 0 || n > len(b) || err != nil && n > mostBytes+1 {
			t.Fatalf("%d of %d bytes, %v", n, len(b), err)
		}
		if n > 0 && err == nil {
			texts(b[:n])
			if again, err := scan(append(b[:n:n], more...)); again != n || err != nil {
				t.Fatalf("%d, and before more bytes %d, %v", n, again, err)
			}
			if short, err := scan(b[:n-1]); short != 0 || err != nil {
				t.Fatalf("%d, and without its end %d, %v", n, short, err)
			}
		}
	})
}

// Whatever a url is, its password stays where it is.
func FuzzParse(f *testing.F) {
	for _, url := range []string{
		"redis://:hunter2@host:6379/3?ca=x", "rediss://app:hunter2@[::1]/", "redis+unix:///run/redis.sock?db=1", "redis://host?durable=yes",
		"redis://hunter2@host#x", "valkeys://host?password=hunter2&username=u", "\x00", "redis://%zz",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		if _, err := Parse(url); err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	})
}
