//go:build !linux

package experiment

import (
	"errors"
	"fmt"
)

// checkSystem returns an error: client and endpoint need a shared clock.
func checkSystem() error {
	return fmt.Errorf("calibrating: on this system: %w", errors.ErrUnsupported)
}

func cpuModel() string { return "" }
