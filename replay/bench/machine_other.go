//go:build !linux

package bench

import (
	"errors"
	"fmt"
	"time"
)

// checkSystem says why this system cannot calibrate: client and endpoint need
// a clock that they share.
func checkSystem() error {
	return fmt.Errorf("calibrating: on this system: %w", errors.ErrUnsupported)
}

func cpuModel() string                       { return "" }
func processCPUTime(int) time.Duration       { return 0 }
func residentMemory(int) (megabytes float64) { return 0 }
func machineCPUTime() time.Duration          { return 0 }
