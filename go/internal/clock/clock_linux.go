package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// Missed is how much suspended time the clock may fail to count.
const Missed = time.Duration(0)

// bootTime is the clock that counts while the machine is suspended. Go's own monotonic clock does not.
const bootTime = 7

// Now is the time on a clock that never runs backwards, from an arbitrary start.
func Now() time.Duration {
	var at syscall.Timespec
	_, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, bootTime, uintptr(unsafe.Pointer(&at)), 0)
	if failed != 0 {
		// Every Linux since 2.6.39 has this clock. A time that goes on with another one would be a wrong time.
		panic("leasehold: clock_gettime(CLOCK_BOOTTIME): " + failed.Error())
	}
	return time.Duration(at.Nano())
}
