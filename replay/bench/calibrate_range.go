package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"moontide/replay/runfile"
)

// rangeOf is the range of what was driven. What streams do counts only where it
// holds evenly phased as well as in lock-step.
func rangeOf(points []Point) runfile.Range {
	type shape struct {
		streams   int
		tokenRate float64
	}
	ways := map[shape]map[bool]bool{} // that are within the range
	for _, p := range points {
		s := shape{p.Requests, p.TokenRate}
		if p.Kind != Streams || p.TooMuch != "" {
			continue
		}
		if ways[s] == nil {
			ways[s] = map[bool]bool{}
		}
		ways[s][p.LockStep] = true
	}
	var r runfile.Range
	for _, p := range points {
		switch {
		case p.TooMuch != "":
		case p.Kind == Sends:
			r.RequestsPerSecond = max(r.RequestsPerSecond, p.SentRate)
		case len(ways[shape{p.Requests, p.TokenRate}]) == 2:
			r.Streams = max(r.Streams, p.Streams)
			r.EventsPerSecond = max(r.EventsPerSecond, p.EventRate)
		}
	}
	return r
}

// Save keeps the calibration in a file, for whose folder it sees.
func (c *Calibration) Save(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("keeping the calibration: %w", err)
	}
	if err := runfile.WriteJSON(path, c); err != nil {
		return fmt.Errorf("keeping the calibration: %w", err)
	}
	return nil
}

// maxCalibration is far more than a calibration takes, in bytes.
const maxCalibration = 1 << 20

// LoadCalibration reads what Save kept. Where there is no file the error is
// [io/fs.ErrNotExist].
func LoadCalibration(path string) (*Calibration, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the calibration: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxCalibration {
		return nil, fmt.Errorf("reading the calibration: %s is no file of at most %d bytes", path, maxCalibration)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the calibration: %w", err)
	}
	c := new(Calibration)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("reading the calibration %s: %w", path, err)
	}
	return c, nil
}

// For reports whether the calibration is that of a machine: processors of the
// same model and number.
func (c *Calibration) For(m Machine) bool {
	return c.Machine.CPU == m.CPU && c.Machine.CPUs == m.CPUs && c.Machine.OS == m.OS && c.Machine.Arch == m.Arch
}

// calibrated returns the range in a calibration file, nil without one for this
// machine. A note says if the file could not be used.
func calibrated(path string) (c *runfile.Calibrated, notes []string) {
	if path == "" {
		return nil, nil
	}
	found, err := LoadCalibration(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, []string{err.Error()}
	case !found.For(ThisMachine()):
		return nil, []string{"the client is not calibrated on this machine: the calibration is of another one"}
	}
	return &runfile.Calibrated{Taken: found.Taken, Range: found.Range}, nil
}
