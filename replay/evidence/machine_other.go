//go:build !linux

package evidence

// residentBytes is not known on this system.
func residentBytes() int64 { return 0 }

// machineCPU is not known on this system.
func machineCPU() (worked, all int64) { return 0, 0 }
