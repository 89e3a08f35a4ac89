// Package vectors plays the golden vectors, which every language shares, against the protocol in Go.
package vectors

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"code.invalid/leasehold/go/internal/core"
)

// folder is where a checkout has them; core/vectors/README.md tells what is in them.
const folder = "../../../core/vectors"

// answers are the calls that hand in a response.
var answers = []string{"response", "http_response", "redis_replies", "rows", "server_error"}

type vector struct {
	Format int
	Why    string
	Config any
	Stores any
	Seed   string
	Start  instant
	Steps  []step
}

type instant struct {
	MonotonicNs uint64 `json:"monotonic_ns"`
	UnixMs      uint64 `json:"unix_ms"`
}

type step struct {
	AtNs     uint64  `json:"at_ns"`
	UnixMs   *uint64 `json:"unix_ms"`
	Entropy  string
	Do       object
	Outputs  []any
	WakeAtNs *uint64 `json:"wake_at_ns"`
}

func TestGoldenVectors(t *testing.T) {
	files, _ := filepath.Glob(folder + "/*.json")
	wired, _ := filepath.Glob(folder + "/wire/*.json")
	if len(files) == 0 && len(wired) == 0 {
		t.Skip("only a checkout has the vectors")
	}
	if len(files) <= 20 || len(wired) <= 10 {
		t.Fatalf("only %d and %d vectors", len(files), len(wired))
	}
	for _, path := range append(files, wired...) {
		name, _ := filepath.Rel(folder, path)
		t.Run(name, func(t *testing.T) {
			t.Run("call by call", func(t *testing.T) { play(t, path).callByCall() })
			t.Run("step by step", func(t *testing.T) { play(t, path).stepByStep() })
		})
	}
}

type played struct {
	*testing.T
	vector vector
	client *core.Client
	now    core.Now
	at     int
}

func play(t *testing.T, path string) *played {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := &played{T: t}
	decoder := json.NewDecoder(file)
	decoder.UseNumber()
	if err := decoder.Decode(&p.vector); err != nil {
		t.Fatal(err)
	}
	if p.vector.Format != 1 {
		t.Fatalf("another format: %d", p.vector.Format)
	}
	p.now = core.Now(p.vector.Start)
	config, seed := read[core.Config](p.vector.Config), unhex(p.vector.Seed)
	if p.vector.Stores == nil {
		p.client, err = core.New().ClientCreate(config, seed, p.now)
	} else {
		p.client, err = core.New().ClientCreateWired(config, read[[]core.Store](p.vector.Stores), seed, p.now)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *played) callByCall() {
	for p.at < len(p.vector.Steps) {
		step := p.next()
		name, said := only(step.Do)
		var outputs []core.Output
		if err := p.call(name, said.(object), step); err != nil {
			refused := err.(*core.Refused[core.CommandError])
			lock := integer(said.(object)["lock"])
			outputs = append(outputs, core.OutputRejected{Lock: lock, Error: refused.Reason})
		}
		for {
			output := p.client.PollOutput(p.now)
			if wake, is := output.(core.OutputWakeAt); is {
				p.compare(step, outputs, wake.AtNs)
				break
			}
			outputs = append(outputs, output)
		}
	}
	p.client.Drop()
}

// call is one call of a method.
func (p *played) call(name string, said object, step step) error {
	text := func(of string) string { return said[of].(string) }
	switch c, now := p.client, p.now; name {
	case "timeout":
		return c.HandleTimeout(unhex(step.Entropy), now)
	case "acquire":
		options := read[core.LockOptions](said["options"])
		return c.Acquire(integer(said["lock"]), text("resource"), options, unhex(step.Entropy), now)
	case "release":
		return c.Release(integer(said["lock"]), now)
	case "finish":
		return c.Finish(integer(said["lock"]), read[*core.RunResult](said["run_result"]), now)
	case "declare_lost":
		return c.DeclareLost(integer(said["lock"]), now)
	case "response", "http_response", "redis_replies", "rows", "server_error":
		c.HandleResponse(integer(said["id"]), read[core.Response](response(name, said)), now)
	case "notified":
		c.Notified(text("resource"), now)
	case "subscribed":
		c.Subscribed(read[uint16](said["node"]), text("resource"), now)
	case "credentials_renewed":
		c.CredentialsRenewed(read[uint16](said["node"]), now)
	case "set_credentials":
		return c.SetCredentials(read[uint16](said["node"]), read[core.Credentials](said["credentials"]), now)
	case "node_votes":
		var loss []byte
		if said["loss"] != nil {
			loss = unhex(text("loss"))
		}
		return c.NodeVotes(read[uint16](said["node"]), loss, now)
	case "reseed":
		return c.Reseed(unhex(text("seed")))
	case "close":
		c.Close(now)
	default:
		p.Fatalf("no call %s", name)
	}
	return nil
}

func response(name string, said object) any {
	if name == "response" {
		return said["result"]
	}
	return object{name: said}
}

// stepByStep makes each call the only input of a step, together with the timeout after it where that is due at once.
func (p *played) stepByStep() {
	for p.at < len(p.vector.Steps) {
		step := p.next()
		name, said := only(step.Do)
		fresh := make([]byte, 16)
		if step.Entropy != "" {
			fresh = unhex(step.Entropy)
		}
		joined := false
		if step.WakeAtNs != nil && *step.WakeAtNs <= step.AtNs && p.at < len(p.vector.Steps) {
			later := p.vector.Steps[p.at]
			joined = later.AtNs == step.AtNs && has(later.Do, "timeout")
		}
		if joined {
			due := p.next()
			fresh = unhex(due.Entropy)
			step.Outputs, step.WakeAtNs = append(step.Outputs, due.Outputs...), due.WakeAtNs
		} else if name == "acquire" {
			fresh[0] ^= 1
		}
		var inputs []core.Input
		if name != "timeout" {
			input := object{}
			for of, content := range said.(object) {
				input[of] = content
			}
			if slices.Contains(answers, name) {
				input["response"] = response(name, said.(object))
				name = "response"
			}
			inputs = append(inputs, read[core.Input](object{name: input}))
		}
		stepped, err := p.client.Step(fresh, p.now, inputs)
		if err != nil {
			p.Fatalf("step %d: %v", p.at, err)
		}
		if joined {
			p.compareJoined(step, stepped.Outputs, stepped.WakeAtNs)
		} else {
			p.compare(step, stepped.Outputs, stepped.WakeAtNs)
		}
	}
}

// next is the next step, whose time it is now.
func (p *played) next() step {
	step := p.vector.Steps[p.at]
	p.at++
	p.now.MonotonicNs = step.AtNs
	if step.UnixMs != nil {
		p.now.UnixMs = *step.UnixMs
	}
	return step
}

func (p *played) compare(step step, found []core.Output, wakeAt *uint64) {
	p.Helper()
	p.same(step, read[[]core.Output](step.Outputs), found, wakeAt)
}

// compareJoined has the requests behind all other outputs.
func (p *played) compareJoined(step step, found []core.Output, wakeAt *uint64) {
	p.Helper()
	requestsLast := func(outputs []core.Output) []core.Output {
		is := func(output core.Output) int {
			if _, is := output.(core.OutputTransmit); is {
				return 1
			}
			return 0
		}
		slices.SortStableFunc(outputs, func(a, b core.Output) int { return is(a) - is(b) })
		return outputs
	}
	p.same(step, requestsLast(read[[]core.Output](step.Outputs)), requestsLast(found), wakeAt)
}

func (p *played) same(step step, wanted, found []core.Output, wakeAt *uint64) {
	p.Helper()
	// Headers are in any order, and no outputs are no outputs.
	for _, outputs := range [][]core.Output{wanted, found} {
		for _, output := range outputs {
			if request, is := output.(core.OutputHTTPRequest); is {
				slices.SortFunc(request.Headers, func(a, b core.HTTPHeader) int { return cmp.Compare(a.Name, b.Name) })
			}
		}
	}
	same := len(wanted) == 0 && len(found) == 0 || reflect.DeepEqual(wanted, found)
	if !same || !reflect.DeepEqual(step.WakeAtNs, wakeAt) {
		p.Fatalf("step %d, %v: %s\nexpected %s\n   found %s", p.at, step.Do, p.vector.Why,
			shown(wanted, step.WakeAtNs), shown(found, wakeAt))
	}
}

func shown(outputs []core.Output, wakeAt *uint64) string {
	text := ""
	for _, output := range outputs {
		content, _ := json.Marshal(output)
		text += fmt.Sprintf("%T%s ", output, content)
	}
	at, _ := json.Marshal(wakeAt)
	return text + "and to wake at " + string(at)
}
