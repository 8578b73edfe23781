//go:build !linux

package evidence

// ResidentBytes returns the resident memory of a process, or 0 if unknown.
func ResidentBytes(pid int) int64 { return 0 }

// MachineCPU returns the CPU time of the machine.
func MachineCPU() MachineTime { return MachineTime{} }
