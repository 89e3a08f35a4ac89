package vectors

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"code.invalid/leasehold/go/internal/core"
)

// What a golden vector says, as values of Go, guided by their types.

type object = map[string]any

var (
	variants     = core.Variants()
	enumerations = core.Enumerations()
	// defaults of fields that a file leaves out where the WIT has no option.
	defaults = map[string]any{
		"owner": "", "lock-delay-ms": uint64(0), "durability": core.DurabilityNotDeclared, "birth": core.BirthNo,
		"retention-ms": uint64(604_800_000), "unless-done": false, "trust-quorum": false, "even-if-done": false,
		"unsettled": false, "result-dropped": false,
	}
	// texts are bytes that a file has as text; others are hexadecimal.
	texts = map[string]bool{"body": true, "replies": true}
	bytes = reflect.TypeFor[[]byte]()
)

func snake(name string) string { return strings.ReplaceAll(name, "-", "_") }
func kebab(name string) string { return strings.ReplaceAll(name, "_", "-") }

func read[T any](said any) T {
	var v T
	set(reflect.ValueOf(&v).Elem(), said)
	return v
}

// set makes v what is said.
func set(v reflect.Value, said any) {
	t := v.Type()
	switch {
	case t == bytes:
		v.SetBytes(unhex(said.(string)))
	case enumerations[t] != nil:
		for number, name := range enumerations[t] {
			if name == kebab(said.(string)) {
				v.SetUint(uint64(number))
				return
			}
		}
		panic(fmt.Sprintf("%v has no %v", t, said))
	case t.Kind() == reflect.Interface:
		name, content := only(said)
		if name == "answered" {
			name = "outcomes"
		}
		one, is := variants[t][kebab(name)]
		if !is {
			panic(fmt.Sprintf("%v has no case %s", t, name))
		}
		made := reflect.New(reflect.TypeOf(one)).Elem()
		setRecord(made, content)
		v.Set(made)
	case t.Kind() == reflect.Pointer:
		if said == nil || has(said, "foreign") {
			return
		}
		if has(said, "lease") {
			said = said.(object)["lease"]
		}
		v.Set(reflect.New(t.Elem()))
		set(v.Elem(), said)
	case t.Kind() == reflect.Slice:
		items := said.([]any)
		v.Set(reflect.MakeSlice(t, len(items), len(items)))
		for i, item := range items {
			set(v.Index(i), item)
		}
	case t.Kind() == reflect.Struct:
		setRecord(v, said)
	case t.Kind() == reflect.String:
		v.SetString(said.(string))
	case t.Kind() == reflect.Bool:
		v.SetBool(said.(bool))
	default:
		v.SetUint(integer(said))
	}
}

func setRecord(v reflect.Value, said any) {
	t := v.Type()
	name := func(i int) string { return t.Field(i).Tag.Get("wit") }
	switch {
	case t.NumField() == 0:
	case name(0) == "args":
		var args [][]byte
		for _, text := range said.([]any) {
			args = append(args, []byte(text.(string)))
		}
		v.Field(0).Set(reflect.ValueOf(args))
	case isList(said):
		// A header or a sort key.
		for i, part := range said.([]any) {
			set(v.Field(i), part)
		}
	case t.NumField() == 2 && name(0) == "lock" && name(1) == "event":
		// A file has the lock within the event.
		_, content := only(said)
		set(v.Field(0), content.(object)["lock"])
		set(v.Field(1), said)
	case t.NumField() == 1 && t.Field(0).Type.Kind() == reflect.Interface && !has(said, snake(name(0))):
		// A record around a variant, which a file does without.
		set(v.Field(0), said)
	default:
		for i := range t.NumField() {
			setField(v.Field(i), name(i), said.(object))
		}
	}
}

func setField(v reflect.Value, name string, said object) {
	key := snake(name)
	inNs := strings.TrimSuffix(key, "_ms") + "_ns"
	if content, is := said[key]; is {
		if texts[name] {
			v.SetBytes([]byte(content.(string)))
		} else {
			set(v, content)
		}
	} else if content, is := said[inNs]; is && strings.HasSuffix(key, "_ms") {
		// Rounded up, as the component does.
		set(v, (integer(content)+999_999)/1_000_000)
	} else if usual, is := defaults[name]; is && v.Kind() != reflect.Pointer {
		v.Set(reflect.ValueOf(usual))
	} else if v.Kind() != reflect.Pointer && v.Type() != bytes {
		panic(fmt.Sprintf("%s is not said", key))
	}
}

func integer(said any) uint64 {
	switch said := said.(type) {
	case json.Number:
		n, err := said.Int64()
		if err != nil {
			panic(err)
		}
		return uint64(n)
	case uint64:
		return said
	}
	panic(fmt.Sprintf("%v is no number", said))
}

func unhex(text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return b
}

// only is the one field of an object.
func only(said any) (string, any) {
	for name, content := range said.(object) {
		return name, content
	}
	panic("an object without a field")
}

func has(said any, name string) bool {
	fields, _ := said.(object)
	_, is := fields[name]
	return is
}

func isList(said any) bool {
	_, is := said.([]any)
	return is
}
