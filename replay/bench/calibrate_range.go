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

// rangeOf returns the range covered by the points. Streams must be within the
// limits both evenly phased and in lock-step.
func rangeOf(points []Point) runfile.Range {
	type shape struct {
		streams   int
		tokenRate float64
	}
	phases := map[shape]map[bool]bool{} // within the range, by lock-step
	for _, p := range points {
		s := shape{p.Requests, p.TokenRate}
		if p.Kind != Streams || p.TooMuch != "" {
			continue
		}
		if phases[s] == nil {
			phases[s] = map[bool]bool{}
		}
		phases[s][p.LockStep] = true
	}
	var r runfile.Range
	for _, p := range points {
		switch {
		case p.TooMuch != "":
		case p.Kind == Sends:
			r.RequestsPerSecond = max(r.RequestsPerSecond, p.SentRate)
		case len(phases[shape{p.Requests, p.TokenRate}]) == 2:
			r.Streams = max(r.Streams, p.Streams)
			r.EventsPerSecond = max(r.EventsPerSecond, p.EventRate)
		}
	}
	return r
}

// Save writes the calibration to a file and creates its folder.
func (c *Calibration) Save(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("saving the calibration: %w", err)
	}
	if err := runfile.WriteJSON(path, c); err != nil {
		return fmt.Errorf("saving the calibration: %w", err)
	}
	return nil
}

// maxCalibration is larger than any calibration, in bytes.
const maxCalibration = 1 << 20

// LoadCalibration reads a saved calibration. If the file does not exist, the
// error is [io/fs.ErrNotExist].
func LoadCalibration(path string) (*Calibration, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the calibration: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxCalibration {
		return nil, fmt.Errorf("reading the calibration: %s is not a file of at most %d bytes", path, maxCalibration)
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

// For reports whether the calibration is valid for a machine: same CPU model
// and number of cores.
func (c *Calibration) For(m Machine) bool {
	return c.Machine.CPU == m.CPU && c.Machine.CPUs == m.CPUs && c.Machine.OS == m.OS && c.Machine.Arch == m.Arch
}

// calibrated returns the range in a calibration file, or nil if it has none for
// this machine. Notes report an unusable file.
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
