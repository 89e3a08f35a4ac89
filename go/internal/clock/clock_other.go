//go:build !linux

package clock

import "time"

// Missed is how much suspended time the clock may fail to count.
const Missed = gain

var (
	start = time.Now()
	only  = paired{ahead: wall()}
)

func wall() time.Duration { return time.Duration(time.Now().UnixNano()) }

// Now is the time on a clock that never runs backwards, from an arbitrary start.
func Now() time.Duration { return only.now(time.Since(start), wall()) }
