package bench

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func checkSystem() error { return nil }

// cpuModel is the model name of the CPU.
func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// processCPUTime is the CPU time of all threads of a process, 0 if it is not
// known.
func processCPUTime(pid int) time.Duration {
	const schedulerClock = 2 // CPUCLOCK_SCHED; see clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|schedulerClock, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// residentMemory is the resident memory of a process.
func residentMemory(pid int) (megabytes float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, resident int
	if _, err := fmt.Fscan(bytes.NewReader(text), &size, &resident); err != nil {
		return 0
	}
	return float64(resident) * float64(os.Getpagesize()) / (1 << 20)
}

// machineCPUTime is the CPU time of all processes and the kernel, without
// interrupts.
func machineCPUTime() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	var user, nice, system int
	if _, err := fmt.Sscanf(string(text), "cpu %d %d %d", &user, &nice, &system); err != nil {
		return 0
	}
	return time.Duration(user+nice+system) * (time.Second / 100) // USER_HZ
}
