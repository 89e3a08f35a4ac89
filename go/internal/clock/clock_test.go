package clock

import (
	"testing"
	"time"
)

func TestTimeThatTheWallClockGainsHasPassed(t *testing.T) {
	const second = time.Second
	clock := paired{ahead: 100 * second}
	read := func(steady, wall time.Duration, want time.Duration) {
		t.Helper()
		if got := clock.now(steady, wall); got != want {
			t.Errorf("at %v by the wall's %v: %v, not %v", steady, wall, got, want)
		}
	}
	read(1*second, 101*second, 1*second)
	// A minute of suspension, and then no more.
	read(2*second, 162*second, 62*second)
	read(3*second, 163*second, 63*second)
	// Somebody sets the wall clock back, and it goes on from there.
	read(4*second, 24*second, 64*second)
	read(5*second, 25*second+gain, 65*second)
	read(6*second, 26*second+2*gain, 66*second+2*gain)
}

func TestTheClockGoesForwards(t *testing.T) {
	first := Now()
	for range 1000 {
		next := Now()
		if next < first {
			t.Fatalf("%v after %v", next, first)
		}
		first = next
	}
}
