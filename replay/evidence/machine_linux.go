package evidence

import (
	"bytes"
	"os"
	"strconv"
)

// residentBytes is the memory of this process that the machine holds.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm") // in pages: size, resident, ...
	if err != nil {
		return 0
	}
	fields := numbers(text)
	if len(fields) < 2 {
		return 0
	}
	return fields[1] * int64(os.Getpagesize())
}

// machineCPU is the time that all processors together have had since the
// machine began, and how much of it they worked, for whomever; both in ticks.
func machineCPU() (worked, all int64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	const idle, wait, steal = 3, 4, 7 // user nice system idle iowait irq softirq steal
	fields := numbers(bytes.TrimPrefix(line, []byte("cpu")))
	if len(fields) <= steal {
		return 0, 0
	}
	for _, ticks := range fields[:steal+1] {
		all += ticks
	}
	return all - fields[idle] - fields[wait], all
}

// numbers are the integers of a text, up to what is none.
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
