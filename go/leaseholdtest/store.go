// Package leaseholdtest is a store in memory for tests of code that takes locks, and the faults that such code has to survive.
//
// Its clients are real ones, with the same code and the same protocol; they differ in their clock, which is that of package time.
// So a test in a bubble of [testing/synctest] moves it by waiting: hours take no time, nothing is slow, and everything that was due
// on the way has happened.
//
//	func TestTheInvoiceIsSettledLater(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			store := leaseholdtest.New(t)
//			client, rival := store.Connect(), store.Connect() // as in two processes
//			held, err := rival.Lock(t.Context(), "invoice/42")
//			if err != nil {
//				t.Fatal(err)
//			}
//			if got := settle(t.Context(), client); got != "later" { // waits for 5 s, which take no time
//				t.Error(got)
//			}
//			time.Sleep(time.Hour) // renewals happen on the way
//			store.Lose("invoice/42")
//			<-held.Context().Done()
//			if got := settle(t.Context(), client); got != "settled" {
//				t.Error(got)
//			}
//		})
//	}
//
// Outside of a bubble, the same store works in real time.
package leaseholdtest

import (
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/core"
	"code.invalid/leasehold/go/internal/node"
)

// Store is one store in memory. It is safe for concurrent use. A [leasehold.Quorum] may have several as its nodes.
type Store struct {
	t     testing.TB
	began time.Time

	mu      sync.Mutex
	core    *core.Core
	records *core.Records
	clients uint64
	links   []*link
	// held has the attempt that was last granted each name.
	held map[string][]byte

	isDown      bool
	lostReplies int
	delay       time.Duration
}

// New makes an empty store. The clients that it connects are closed when the test ends.
func New(t testing.TB) *Store {
	made := core.New()
	return &Store{t: t, began: time.Now(), core: made, records: made.RecordsCreate(), held: map[string][]byte{}}
}

// Connect makes another client of the store, as another process has it. Its leases have the owner "test".
func (s *Store) Connect(options ...leasehold.ClientOption) *leasehold.Client {
	s.t.Helper()
	options = append([]leasehold.ClientOption{leasehold.Label("test"), leasehold.Logger(slog.New(slog.DiscardHandler))}, options...)
	client, err := leasehold.Open(s, options...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

// Down takes the store down: requests do not reach it. Its records stay.
func (s *Store) Down() { s.set(func() { s.isDown = true }) }

// Up lets requests reach the store again.
func (s *Store) Up() { s.set(func() { s.isDown = false }) }

// LoseReplies lets so many further requests be served, and their answers get lost.
func (s *Store) LoseReplies(n int) { s.set(func() { s.lostReplies += n }) }

// Late lets each answer take so long from now on.
func (s *Store) Late(delay time.Duration) { s.set(func() { s.delay = delay }) }

func (s *Store) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Lose takes this lock away from its holder, who finds out by its next renewal. For a lease that runs out, take the store [Store.Down]
// for longer than its ttl.
func (s *Store) Lose(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nonce := s.held[name]
	if nonce == nil {
		s.t.Errorf("leaseholdtest: nobody has ever held %q", name)
		return
	}
	release := core.LockOp{Resource: name, Op: core.OpRelease{Nonce: nonce}}
	s.records.Perform([]core.LockOp{release}, s.now())
	s.tell(name)
}

// Node is for package leasehold.
func (s *Store) Node() (node.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients++
	declared := core.DurabilityDeclared
	made := &link{store: s, closed: make(chan struct{}), wanted: map[string]bool{}}
	s.links = append(s.links, made)
	return node.Node{
		Config: core.NodeConfig{Poll: core.PollAcquire, Watch: true, Durability: &declared},
		Store:  core.StoreOperations{},
		Link:   made,
		World:  &node.World{Clock: s.clock, Fresh: drawn(s.clients)},
	}, nil
}

// clock begins at a second, so that no instant is 0.
func (s *Store) clock() time.Duration { return time.Since(s.began) + time.Second }

func (s *Store) now() core.Now {
	return core.Now{MonotonicNs: uint64(s.clock()), UnixMs: uint64(time.Now().UnixMilli())}
}

// drawn are the same bytes for the same client of a store in each run of a test.
func drawn(client uint64) func(int) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], client)
	source := rand.NewChaCha8(seed)
	return func(n int) []byte {
		bytes := make([]byte, n)
		// It never fails.
		_, _ = source.Read(bytes)
		return bytes
	}
}

// serve performs a request as its fate says. The answer is nil where it is never heard.
func (s *Store) serve(request core.Transmit) (core.Response, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDown {
		return core.ResponseNotSent(fault(core.FaultKindUnreachable, "the test has taken the store down")), 0
	}
	outcomes := s.records.Perform(request.Ops, s.now())
	for i, op := range request.Ops {
		s.note(op, outcomes[i])
	}
	if s.lostReplies > 0 {
		s.lostReplies--
		return core.ResponseUnknown(fault(core.FaultKindReset, "the test has lost the answer")), 0
	}
	return core.ResponseOutcomes{Outcomes: outcomes}, s.delay
}

// note keeps who holds a lock, and tells of releases.
func (s *Store) note(op core.LockOp, outcome core.Outcome) {
	applied, is := outcome.(core.OutcomeApplied)
	if !is {
		return
	}
	switch applied.Applied.(type) {
	case core.AppliedAcquired, core.AppliedAcquiredInDoubt:
		s.held[op.Resource] = op.Op.(core.OpAcquire).Nonce
	case core.AppliedReleased, core.AppliedFinished:
		s.tell(op.Resource)
	}
}

// tell wakes those who wait for a lock.
func (s *Store) tell(name string) {
	for _, link := range s.links {
		if link.wanted[name] {
			go link.events.Released(name)
		}
	}
}

func fault(kind core.FaultKind, detail string) core.Fault {
	return core.Fault{Kind: kind, Detail: &detail}
}

// link is the store as one client has it.
type link struct {
	store  *Store
	events node.Events
	closed chan struct{}
	// wanted belongs to the store's lock.
	wanted map[string]bool
}

func (l *link) Open(events node.Events) { l.events = events }

func (l *link) Send(request core.Output) {
	transmit := core.Transmit(request.(core.OutputTransmit))
	go func() {
		response, delay := l.store.serve(transmit)
		// A timer that is due at once runs within the select, where the race detector of Go 1.26 crashes in a bubble.
		if delay > 0 {
			timer := time.NewTimer(delay)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-l.closed:
			}
		}
		select {
		case <-l.closed:
		default:
			l.events.Answer([]core.Input{core.InputResponse{ID: transmit.ID, Response: response}})
		}
	}()
}

func (l *link) Subscribe(resource string, _ []byte) {
	l.store.set(func() { l.wanted[resource] = true })
	go l.events.Subscribed(resource)
}

func (l *link) Unsubscribe(resource string) { l.store.set(func() { delete(l.wanted, resource) }) }

func (l *link) NeedCredentials() {}

func (l *link) Flush(*node.Waiter) {}

func (l *link) Close() { close(l.closed) }
