// Package clock reads clocks for a protocol that needs suspended time to count.
package clock

import (
	"sync"
	"time"
)

// gain is how far the wall clock may gain on the monotonic clock before the difference counts as missed time.
const gain = 500 * time.Millisecond

// paired is a clock over one that may stand still while the machine is suspended, and the wall clock, which people can set. A
// sudden gain of the wall clock counts as time that has passed: if it was set, a lease ends too early, which is safe. Missed
// time is not detected if the wall clock is set back by the same amount.
type paired struct {
	mu     sync.Mutex
	ahead  time.Duration
	gained time.Duration
}

func (p *paired) now(steady, wall time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	leads := wall - steady
	if leads-p.ahead > gain {
		p.gained += leads - p.ahead
	}
	if leads < p.ahead || leads-p.ahead > gain {
		p.ahead = leads
	}
	return steady + p.gained
}
