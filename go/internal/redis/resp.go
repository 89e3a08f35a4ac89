package redis

import (
	"bytes"
	"errors"
	"strconv"

	"code.invalid/leasehold/go/internal/core"
)

const (
	// mostBytes is the longest reply that is understood.
	mostBytes = 1 << 20
	// mostDepth is how deep lists may lie in lists.
	mostDepth = 8
)

var errMalformed = errors.New("the server does not speak RESP 2, or sends too much")

// scan is the length of the first reply in the bytes; 0 while its end is missing.
func scan(b []byte) (int, error) {
	length, err := scanned(b, 0)
	if err == nil && length == 0 && len(b) > mostBytes || length > mostBytes {
		err = errMalformed
	}
	return length, err
}

func scanned(b []byte, depth int) (int, error) {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 0 {
		return 0, kindOf(b)
	}
	head := end + 2
	if err := kindOf(b); err != nil || b[0] == '+' || b[0] == '-' {
		return head, err
	}
	number, err := strconv.ParseInt(string(b[1:end]), 10, 64)
	switch {
	case err != nil:
		return 0, errMalformed
	case b[0] == ':' || number == -1:
		return head, nil
	case number < 0 || number > mostBytes || depth == mostDepth:
		return 0, errMalformed
	case b[0] == '$':
		whole := head + int(number) + 2
		if len(b) < whole {
			return 0, nil
		}
		if b[whole-2] != '\r' || b[whole-1] != '\n' {
			return 0, errMalformed
		}
		return whole, nil
	}
	for range number {
		length, err := scanned(b[head:], depth+1)
		if length == 0 || err != nil {
			return 0, err
		}
		head += length
	}
	return head, nil
}

// kindOf checks the first byte, which tells the kind of a reply.
func kindOf(b []byte) error {
	if len(b) > 0 && bytes.IndexByte([]byte("+-:$*"), b[0]) < 0 {
		return errMalformed
	}
	return nil
}

// texts are the texts at the beginning of a whole reply that is a list, before the first element of another kind.
func texts(reply []byte) [][]byte {
	if len(reply) == 0 || reply[0] != '*' {
		return nil
	}
	var found [][]byte
	rest := reply[bytes.IndexByte(reply, '\n')+1:]
	for len(rest) > 0 && rest[0] == '$' {
		length, err := scan(rest)
		if err != nil || length == 0 {
			break
		}
		start := bytes.IndexByte(rest, '\n') + 1
		if start == length {
			// Nothing, which is no text.
			break
		}
		found = append(found, rest[start:length-2])
		rest = rest[length:]
	}
	return found
}

// encode appends a command as it is sent.
func encode[T string | []byte](to []byte, args []T) []byte {
	to = append(strconv.AppendInt(append(to, '*'), int64(len(args)), 10), "\r\n"...)
	for _, arg := range args {
		to = append(strconv.AppendInt(append(to, '$'), int64(len(arg)), 10), "\r\n"...)
		to = append(append(to, arg...), "\r\n"...)
	}
	return to
}

func encodeAll(to []byte, commands []core.RedisCommand) []byte {
	for _, command := range commands {
		to = encode(to, command.Args)
	}
	return to
}
