package evidence

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessCPU returns the CPU time of a process, or 0 if unknown.
func ProcessCPU(pid int) time.Duration {
	const schedulerClock = 2 // CPUCLOCK_SCHED; see clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|schedulerClock, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// ResidentBytes returns the resident memory of a process, or 0 if unknown.
func ResidentBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)) // in pages: size, resident, ...
	if fields := numbers(text); err == nil && len(fields) >= 2 {
		return fields[1] * int64(os.Getpagesize())
	}
	return 0
}

// MachineCPU returns the CPU time of the machine.
func MachineCPU() (t MachineTime) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	const user, nice, system, idle, wait, steal = 0, 1, 2, 3, 4, 7 // user nice system idle iowait irq softirq steal
	fields := numbers(bytes.TrimPrefix(line, []byte("cpu")))
	if len(fields) <= steal {
		return t
	}
	for _, ticks := range fields[:steal+1] {
		t.Total += ticks
	}
	t.Processes = fields[user] + fields[nice] + fields[system]
	t.Busy = t.Total - fields[idle] - fields[wait]
	return t
}

// numbers parses the integers at the beginning of a text.
func numbers(text []byte) (all []int64) {
	for _, field := range bytes.Fields(text) {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			break
		}
		all = append(all, n)
	}
	return all
}
