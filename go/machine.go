package leasehold

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"code.invalid/leasehold/go/internal/clock"
	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

// longestSleep bounds how late a lease is found lost after the machine was suspended, since timers do not count that time.
const longestSleep = time.Second

// mostNotes is how many notes wait for observers and for the log.
const mostNotes = 1024

// machine drives the protocol: it performs its outputs, and decides nothing. Callers take turns themselves; one goroutine takes
// those that are due, and sends renewals thereby. No turn waits for anything.
type machine struct {
	log      *slog.Logger
	observer Observer
	world    node.World
	// wake tells the goroutine that something is due sooner than it thinks.
	wake chan struct{}
	stop chan struct{}

	mu     sync.Mutex
	core   *core.Core
	client *core.Client
	// links are those of the nodes, in their order.
	links []node.Link
	// takes tells why a store cannot keep a name.
	takes []func(name string) error
	slots map[uint64]*slot
	last  uint64
	// asked are questions to all nodes. Each takes its answer once that is there, and reports if it was.
	asked map[uint64]func() bool
	// failed is closed when the machine is broken.
	failed chan struct{}
	// wakeAt is when something is due, and sleepsUntil when the goroutine wakes up; 0 is never.
	wakeAt, sleepsUntil uint64
	// idle is closed when nothing is left to do, if somebody waits for that.
	idle   chan struct{}
	broken error
	closed bool
	// ended is closed when the client is, and confirmed then tells what it reports.
	ended     chan struct{}
	confirmed bool
	// after has the contexts that are cancelled when the lock is no longer held, since that may run code of users.
	after []func()
	// notes are for observers and for the log, which have a goroutine of their own: they may take their time.
	notes chan func()
	// sent: a link has something to flush.
	sent bool
}

// clock is the time that decides about leases.
func (m *machine) clock() uint64 { return uint64(m.world.Clock()) }

func (m *machine) now() core.Now {
	return core.Now{MonotonicNs: m.clock(), UnixMs: uint64(max(time.Now().UnixMilli(), 0))}
}

// real is the machine that this program runs on.
var real = node.World{Clock: clock.Now, Fresh: fresh}

func fresh(n int) []byte {
	bytes := make([]byte, n)
	// It never fails.
	_, _ = rand.Read(bytes)
	return bytes
}

// start makes the machine for these nodes, whose links are told where their answers go.
func start(config core.Config, nodes []node.Node, log *slog.Logger, observer Observer) (*machine, error) {
	m := &machine{
		log: log, observer: observer, world: real, core: core.New(), slots: map[uint64]*slot{}, asked: map[uint64]func() bool{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), notes: make(chan func(), mostNotes),
		ended: make(chan struct{}), failed: make(chan struct{}),
	}
	var stores []core.Store
	for _, node := range nodes {
		config.Nodes = append(config.Nodes, node.Config)
		stores = append(stores, node.Store)
		m.links = append(m.links, node.Link)
		if node.Takes != nil {
			m.takes = append(m.takes, node.Takes)
		}
		if node.World != nil {
			m.world = *node.World
		}
	}
	client, err := m.core.ClientCreateWired(config, stores, m.world.Fresh(32), m.now())
	if err != nil {
		return nil, refused("", err)
	}
	m.client = client
	for id, link := range m.links {
		link.Open(m.events(uint16(id)))
	}
	go m.run()
	go m.pass()
	return m, nil
}

// note has something observed or logged. What finds no room is left out: nothing waits for observers.
func (m *machine) note(do func()) {
	select {
	case m.notes <- do:
	default:
	}
}

// pass passes notes on, and what is left of them when the client is closed.
func (m *machine) pass() {
	for {
		select {
		case do := <-m.notes:
			do()
		case <-m.stop:
			for {
				select {
				case do := <-m.notes:
					do()
				default:
					return
				}
			}
		}
	}
}

// events are those of one node.
func (m *machine) events(id uint16) node.Events {
	return node.Events{
		Answer:     func(answers []core.Input) { m.quietly(answers...) },
		Subscribed: func(resource string) { m.quietly(core.InputSubscribed{Node: id, Resource: resource}) },
		Released:   func(resource string) { m.quietly(core.InputNotified{Resource: resource}) },
		Message: func(channel, message []byte) {
			_ = m.turn(func() ([]core.Input, error) {
				if resource := m.core.RedisReleasedBy(channel, message); resource != nil {
					return []core.Input{core.InputNotified{Resource: *resource}}, nil
				}
				return nil, nil
			})
		},
		NoCredentials: func(err error) { m.log.Error("there are no credentials for the store", "error", err) },
		Credentials: func(fresh core.Credentials) {
			err := m.turn(func() ([]core.Input, error) {
				// By a call of its own: what the store does not take must not end the instance.
				return nil, m.client.SetCredentials(id, fresh, m.now())
			})
			if err != nil {
				m.log.Error("the credentials do not fit their store", "error", refused("", err))
			}
		},
	}
}

// run takes the turns that are due: it is where leases are renewed, and where their losses are found.
func (m *machine) run() {
	timer := time.NewTimer(longestSleep)
	defer timer.Stop()
	for {
		m.mu.Lock()
		sleep := time.Duration(-1)
		at := m.clock()
		if m.sleepsUntil = m.wakeAt; m.wakeAt != 0 {
			sleep = min(time.Duration(m.wakeAt-min(at, m.wakeAt)), longestSleep)
			m.sleepsUntil = at + uint64(sleep)
		}
		m.mu.Unlock()
		if sleep == 0 {
			m.quietly()
			continue
		}
		var due <-chan time.Time
		if sleep > 0 {
			timer.Reset(sleep)
			due = timer.C
		}
		select {
		case <-due:
		case <-m.wake:
		case <-m.stop:
			return
		}
	}
}

// later cancels something when the lock is no longer held.
func (m *machine) later(do func()) { m.after = append(m.after, do) }

// quietly takes a turn whose caller has no use for an error: it ends all leases instead.
func (m *machine) quietly(inputs ...core.Input) {
	_ = m.turn(func() ([]core.Input, error) { return inputs, nil })
}

// turn is one of a goroutine that must not be kept waiting.
func (m *machine) turn(prepare func() ([]core.Input, error)) error { return m.take(prepare, nil) }

// take hands the inputs to the protocol and performs what comes of it. `prepare` is called under the lock, and a turn that it
// refuses is not taken. A caller who waits carries its request by itself, where that is possible.
func (m *machine) take(prepare func() ([]core.Input, error), waiter *node.Waiter) error {
	m.mu.Lock()
	err := m.broken
	if err == nil {
		err = m.guarded(prepare)
	}
	after, sent := m.after, m.sent
	m.after, m.sent = nil, false
	m.mu.Unlock()
	for _, do := range after {
		do()
	}
	if len(m.links) > 1 {
		// A caller that waits for one node of a quorum would keep the others waiting.
		waiter = nil
	}
	if sent {
		for _, link := range m.links {
			link.Flush(waiter)
		}
	}
	return err
}

// guarded turns a panic of the protocol into an error, after which its instance is lost with all leases.
func (m *machine) guarded(prepare func() ([]core.Input, error)) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = m.breaks(fmt.Errorf("leasehold: the protocol has failed, a bug: %v", cause))
		}
	}()
	inputs, err := prepare()
	if err != nil {
		return err
	}
	var rejected error
	for {
		at := m.now()
		stepped, err := m.client.Step(m.world.Fresh(16), at, inputs)
		if err != nil {
			return m.breaks(err)
		}
		inputs = nil
		for _, output := range stepped.Outputs {
			if err := m.perform(output); err != nil {
				rejected = err
			}
		}
		if m.broken != nil {
			return m.broken
		}
		for id, takes := range m.asked {
			if takes() {
				delete(m.asked, id)
			}
		}
		m.wakeAt = value(stepped.WakeAtNs)
		if m.wakeAt != 0 && m.wakeAt <= at.MonotonicNs {
			continue
		}
		if m.wakeAt != 0 && (m.sleepsUntil == 0 || m.wakeAt < m.sleepsUntil) {
			select {
			case m.wake <- struct{}{}:
			default:
			}
		}
		if m.idle != nil && m.client.IsIdle() {
			close(m.idle)
			m.idle = nil
		}
		return rejected
	}
}

// perform performs one output. Its error is that of a command that was not accepted.
func (m *machine) perform(output core.Output) error {
	switch output := output.(type) {
	case core.OutputRedisCommands:
		m.send(output.Node, output)
	case core.OutputStatement:
		m.send(output.Node, output)
	case core.OutputHTTPRequest:
		m.send(output.Node, output)
	case core.OutputTransmit:
		m.send(output.Node, output)
	case core.OutputNeedCredentials:
		m.links[output.Node].NeedCredentials()
	case core.OutputEvent:
		if slot := m.slots[output.Lock]; slot != nil {
			slot.apply(output.Event)
		}
	case core.OutputSubscribe:
		channel, err := m.core.RedisChannel(output.Resource)
		if err == nil {
			m.links[output.Node].Subscribe(output.Resource, channel)
		}
	case core.OutputUnsubscribe:
		m.links[output.Node].Unsubscribe(output.Resource)
	case core.OutputRejected:
		// A release of a lock that is no longer alive needs no answer.
		if _, gone := output.Error.(core.CommandErrorUnknownLock); !gone {
			// Another command than an acquisition leaves its lock as it is.
			if slot := m.slots[output.Lock]; slot != nil && slot.phase == pending {
				delete(m.slots, output.Lock)
			}
			return &core.Refused[core.CommandError]{Reason: output.Error}
		}
	default:
		return m.breaks(fmt.Errorf("leasehold: unsupported output %T, a bug", output))
	}
	return nil
}

func (m *machine) send(to uint16, request core.Output) {
	m.links[to].Send(request)
	m.sent = true
}

// acquire begins an acquisition.
func (m *machine) acquire(ctx context.Context, resource, owner string, options core.LockOptions) (*slot, error) {
	if !utf8.ValidString(resource) || !utf8.ValidString(owner) {
		return nil, configError("the name and the owner of a lock have to be UTF-8: %q, %q", resource, owner)
	}
	for _, takes := range m.takes {
		if err := takes(resource); err != nil {
			return nil, &Error{Kind: ErrRefused, Resource: resource, message: err.Error()}
		}
	}
	var made *slot
	waiter := &node.Waiter{Ctx: ctx}
	err := m.take(func() ([]core.Input, error) {
		if m.closed {
			return nil, closedError(resource)
		}
		m.last++
		made = newSlot(m, m.last, resource, owner)
		m.slots[made.lock] = made
		waiter.Done = made.decided
		return []core.Input{core.InputAcquire{Lock: made.lock, Resource: resource, Options: options}}, nil
	}, waiter)
	if err != nil {
		return nil, refused(resource, err)
	}
	return made, nil
}

// runResource is the name of one occurrence of a job, or without a key of the job as a whole.
func (m *machine) runResource(name, key string) (resource string, err error) {
	if !utf8.ValidString(name) || !utf8.ValidString(key) {
		return "", configError("the name and the key of a run have to be UTF-8: %q", name)
	}
	var given *string
	if key != "" {
		given = &key
	}
	err = m.turn(func() ([]core.Input, error) {
		resource, err = m.core.RunsRunResource(name, given)
		return nil, err
	})
	return resource, err
}

// newestResource is the name of the record that has the newest request for a run, if a request with these settings can replace its runner.
func (m *machine) newestResource(run string, options core.LockOptions, countsAttempts bool) (record string, err error) {
	err = m.turn(func() ([]core.Input, error) {
		record, err = m.core.RunsNewestResource(run, options, countsAttempts)
		return nil, err
	})
	return record, err
}

// attemptsResource is the name of the record that has the attempts at a run.
func (m *machine) attemptsResource(run string) (record string, err error) {
	err = m.turn(func() ([]core.Input, error) {
		record, err = m.core.RunsAttemptsResource(run)
		return nil, err
	})
	return record, err
}

// read reads a record on all nodes, and returns what each of them has answered.
func (m *machine) read(ctx context.Context, resource string) ([]core.Outcome, error) {
	answers, err := ask(ctx, m, resource, func() (uint64, error) { return m.client.Read(resource, m.now()) }, m.client.TakeRead)
	if err != nil {
		return nil, err
	}
	return answers.Outcomes, nil
}

// revoke asks the holder of a lease to let go, by its nonce, and reports if there was such a lease. It does not wait for its end.
func (m *machine) revoke(ctx context.Context, resource string, nonce []byte) (bool, error) {
	answer, err := ask(ctx, m, resource, func() (uint64, error) { return m.client.Revoke(resource, nonce, m.now()) }, m.client.TakeRevoke)
	switch {
	case err != nil:
		return false, err
	case answer.IsRevoked != nil:
		return *answer.IsRevoked, nil
	case len(answer.Troubles) > 0:
		_, err := contents(resource, answer.Troubles[0])
		return false, err
	default:
		message := "the lease is revoked on too few nodes, so its holder may keep it: try again"
		return false, &Error{Kind: ErrUnavailable, Resource: resource, message: message}
	}
}

// ask asks all nodes something, and waits for the answer; both functions are called under the lock.
func ask[T any](
	ctx context.Context, m *machine, resource string, begin func() (uint64, error), take func(id uint64) *T,
) (*T, error) {
	answers := make(chan *T, 1)
	err := m.turn(func() ([]core.Input, error) {
		if m.closed {
			return nil, closedError(resource)
		}
		id, err := begin()
		if err != nil {
			return nil, err
		}
		m.asked[id] = func() bool {
			answer := take(id)
			if answer != nil {
				answers <- answer
			}
			return answer != nil
		}
		return nil, nil
	})
	if err != nil {
		return nil, refused(resource, err)
	}
	select {
	case answer := <-answers:
		return answer, nil
	case <-m.failed:
		return nil, &Error{Kind: ErrUnavailable, Resource: resource, message: m.broken.Error()}
	case <-m.ended:
		return nil, closedError(resource)
	case <-ctx.Done():
		return nil, abandoned(ctx, resource)
	}
}

// command is about one slot, which `end` changes first. There is a waiter if somebody waits for its end. The error is that of a command
// that was not accepted; a machine that has failed has ended all slots.
func (m *machine) command(input core.Input, end func(), waiter *node.Waiter) error {
	return m.take(func() ([]core.Input, error) {
		end()
		return []core.Input{input}, nil
	}, waiter)
}

// close releases everything, and reports whether the store has confirmed all that within the patience.
func (m *machine) close(patience time.Duration) bool {
	m.mu.Lock()
	first := !m.closed
	m.closed = true
	m.mu.Unlock()
	if !first {
		<-m.ended
		return m.confirmed
	}
	defer close(m.ended)
	idle := make(chan struct{})
	err := m.turn(func() ([]core.Input, error) {
		m.idle = idle
		for _, slot := range m.slots {
			slot.endByClosing()
		}
		return []core.Input{core.InputClose{}}, nil
	})
	m.confirmed = err == nil
	if m.confirmed {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-idle:
		case <-timer.C:
			m.confirmed = false
		}
	}
	close(m.stop)
	for _, link := range m.links {
		link.Close()
	}
	return m.confirmed
}

// breaks ends every acquisition and lease, since the instance can no longer be used.
func (m *machine) breaks(err error) error {
	if m.broken == nil {
		m.broken = err
		m.wakeAt = 0
		m.note(func() { m.log.Error("leasehold has failed", "error", err) })
		for _, slot := range m.slots {
			slot.breaks(err)
		}
		clear(m.slots)
		clear(m.asked)
		close(m.failed)
		if m.idle != nil {
			close(m.idle)
			m.idle = nil
		}
	}
	return m.broken
}
