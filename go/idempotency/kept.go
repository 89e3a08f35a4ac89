package idempotency

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	leasehold "code.invalid/leasehold/go"
)

// Runs have the names, and responses the form, that the middleware of Python and Node gives them: bindings/idempotency.json.

const (
	// most is the length of the longest result of a run, in bytes.
	most = 4096
	// shown is the number of characters of a path in the name of a run, which people read.
	shown = 200
)

var (
	keyPattern   = regexp.MustCompile(`^(?:"[ !#-~]{1,255}"|[!#-~]{1,255})$`)
	tokenPattern = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	neverKept    = []string{
		"set-cookie", "connection", "keep-alive", "transfer-encoding", "content-length", "date", "upgrade", "trailer",
		"te", "proxy-authenticate", "proxy-authorization", "proxy-connection",
	}
	// lineBreaks become spaces, as where the server writes them.
	lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")
)

func isKey(text string) bool { return keyPattern.MatchString(text) }

func isToken(text string) bool { return tokenPattern.MatchString(text) }

// isKept: responses of this status are kept. All others ask for the same request again.
func isKept(status int, headers http.Header) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	case http.StatusConflict:
		// Another service has answered so, whose own middleware sees the work under way.
		return headers.Get("Retry-After") == ""
	default:
		return 200 <= status && status < 500
	}
}

// occurrenceOf returns the name and the key of the run that a request stands for. What is no UTF-8 in its path is U+FFFD, as elsewhere.
func occurrenceOf(method, path, principal, key string) (name, occurrence string) {
	path = replaced(path)
	var start strings.Builder
	letters := 0
	for _, letter := range path {
		if letters++; letters > shown {
			break
		}
		// Braces have a meaning in names on Redis Cluster.
		if letter < ' ' || letter > 'z' && letter != '|' && letter != '~' {
			letter = '?'
		}
		start.WriteRune(letter)
	}
	return method + " " + start.String(), hash(method, path, principal, strings.Trim(key, `"`))
}

// replaced is a text with U+FFFD for each part of it that could still have become a letter of UTF-8, as decoders of the web have it, where
// Go has one for each byte.
func replaced(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var whole strings.Builder
	for text != "" {
		letter, size := utf8.DecodeRuneInString(text)
		if letter == utf8.RuneError && size == 1 {
			size = begun(text)
		}
		whole.WriteRune(letter)
		text = text[size:]
	}
	return whole.String()
}

// begun is the number of bytes with which this text begins a letter that is not completed; 1 for a byte that begins none.
func begun(text string) int {
	length, low, high := 1, byte(0x80), byte(0xbf)
	switch first := text[0]; {
	case first >= 0xc2 && first <= 0xdf:
		length = 2
	case first >= 0xe0 && first <= 0xef:
		length = 3
	case first >= 0xf0 && first <= 0xf4:
		length = 4
	}
	switch text[0] {
	case 0xe0:
		low = 0xa0
	case 0xed:
		high = 0x9f
	case 0xf0:
		low = 0x90
	case 0xf4:
		high = 0x8f
	}
	n := 1
	for ; n < length && n < len(text) && text[n] >= low && text[n] <= high; n++ {
		low, high = 0x80, 0xbf
	}
	return n
}

// hash is one of parts that cannot run into each other.
func hash(parts ...string) string {
	whole := sha256.New()
	for _, part := range parts {
		whole.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		whole.Write([]byte(part))
	}
	return hex.EncodeToString(whole.Sum(nil))
}

// kept is a response as it was kept.
type kept struct {
	// fingerprint is the fingerprint of its request.
	fingerprint string
	// status is 0 where the response was too long.
	status  int
	headers [][2]string
	body    []byte
}

// written is a response as it is kept: a line of JSON, and the body. Of one that is too long, it is the fingerprint alone.
func written(fingerprint string, status int, headers [][2]string, body []byte) []byte {
	type line struct {
		Fingerprint string      `json:"fingerprint"`
		Status      *int        `json:"status"`
		Headers     [][2]string `json:"headers,omitzero"`
	}
	fit := [][2]string{}
	for _, header := range headers {
		name, value := strings.ToLower(header[0]), strings.Trim(lineBreaks.Replace(header[1]), " \t")
		// The server sends no names that are not fit, and no client takes such values.
		if text := fromLatin1(value); !slices.Contains(neverKept, name) && isToken(name) && isPlain(text) {
			fit = append(fit, [2]string{name, text})
		}
	}
	whole := append(encoded(line{fingerprint, &status, fit}), body...)
	if len(whole) <= most {
		return whole
	}
	return encoded(line{Fingerprint: fingerprint})
}

// encoded is a line of JSON.
func encoded(line any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	// There is nothing in it that JSON cannot hold.
	_ = encoder.Encode(line)
	return text.Bytes()
}

// read is the response that written has written; nil for anything else, since others may write to the store.
func read(result *leasehold.RunResult) *kept {
	if result == nil || result.Kind != leasehold.ResultBytes {
		return nil
	}
	line, body, ok := bytes.Cut(result.Bytes, []byte("\n"))
	var parts map[string]json.RawMessage
	if !ok || !utf8.Valid(line) || json.Unmarshal(line, &parts) != nil {
		return nil
	}
	fingerprint, hasFingerprint := as[string](parts["fingerprint"])
	status, hasStatus := as[int](parts["status"])
	isTooLong := string(parts["status"]) == "null"
	if !hasFingerprint || !isTooLong && (!hasStatus || status < 200 || status >= 500) {
		return nil
	}
	headers := [][2]string{}
	if given, has := parts["headers"]; has {
		pairs, is := as[[][]*string](given)
		if !is {
			return nil
		}
		for _, pair := range pairs {
			if len(pair) != 2 || pair[0] == nil || pair[1] == nil || !isToken(*pair[0]) || !isPlain(*pair[1]) {
				return nil
			}
			// Another one could set cookies by it, or end the body early.
			if name := strings.ToLower(*pair[0]); !slices.Contains(neverKept, name) {
				headers = append(headers, [2]string{name, toLatin1(*pair[1])})
			}
		}
	}
	return &kept{fingerprint, status, headers, body}
}

// as is a value of JSON that is no null.
func as[T any](text json.RawMessage) (T, bool) {
	var value *T
	if text == nil || json.Unmarshal(text, &value) != nil || value == nil {
		return *new(T), false
	}
	return *value, true
}

// isPlain: the text is the value of a header, byte for letter. With a line break it would begin another one.
func isPlain(text string) bool {
	for _, letter := range text {
		if letter != '\t' && (letter < ' ' || letter > '~' && letter < 0x80 || letter > 0xff) {
			return false
		}
	}
	return true
}

// fromLatin1 is a text with one letter for each byte.
func fromLatin1(value string) string {
	letters := make([]rune, len(value))
	for i := range len(value) {
		letters[i] = rune(value[i])
	}
	return string(letters)
}

// toLatin1 has one byte for each letter of a text that is plain.
func toLatin1(text string) string {
	var value []byte
	for _, letter := range text {
		value = append(value, byte(letter))
	}
	return string(value)
}

// replay answers with it.
func (k *kept) replay(w http.ResponseWriter) {
	headers := http.Header{}
	for _, header := range k.headers {
		headers.Add(header[0], header[1])
	}
	headers.Set("Idempotency-Replayed", "true")
	out := w.Header()
	// A response that had none would get the type that its bytes look like.
	out["Content-Type"] = nil
	maps.Copy(out, headers)
	w.WriteHeader(k.status)
	if k.status != http.StatusNoContent && k.status != http.StatusNotModified {
		_, _ = w.Write(k.body)
	}
}
