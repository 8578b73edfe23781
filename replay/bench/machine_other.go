//go:build !linux

package bench

import (
	"errors"
	"fmt"
)

// checkSystem says why this system cannot calibrate: client and endpoint need a
// clock that they share.
func checkSystem() error {
	return fmt.Errorf("calibrating: on this system: %w", errors.ErrUnsupported)
}

func cpuModel() string { return "" }
