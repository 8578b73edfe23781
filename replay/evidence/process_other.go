//go:build !unix

package evidence

import "time"

// ProcessCPU returns the CPU time of a process, 0 if it is not known.
func ProcessCPU(pid int) time.Duration { return 0 }
