package runfile

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// PartsFile is in the folder of a run that several processes drive: it names the
// folders of the parts, and their states. Such a folder has no [RunFile].
const PartsFile = "parts.json"

// Part is the place of a folder's records in a run of several processes, which all
// send their part of one schedule. Of is 0 if the run is whole. The rows of records
// are those of the whole run.
type Part struct {
	RunID   string    `json:"run_id"` // equal in all parts of a run, and in no other run
	Number  int       `json:"number"` // from 1
	Of      int       `json:"of"`
	By      string    `json:"by"`   // what stays together: request, session or prefix
	Host    string    `json:"host"` // name of the machine
	RunRows int       `json:"run_rows"`
	Start   time.Time `json:"start"` // agreed start, by the reference clock
	Clock   Clock     `json:"clock"`
}

// Share returns the part's equal share of a limit of the whole run, which only the first
// parts have. The remainder goes to the first of them, one each.
func (p *Part) Share(limit, parts int) int {
	if p.Number > parts {
		return 0
	}
	share := limit / parts
	if p.Number <= limit%parts {
		share++
	}
	return share
}

// ClockOfPart1 is the clock to which those of the parts are related. Runs of older versions
// may name another one.
const ClockOfPart1 = "part 1"

// Clock relates the clock of a part to the reference clock.
type Clock struct {
	Reference string      `json:"reference"`
	Before    ClockOffset `json:"before"`
	After     ClockOffset `json:"after,omitzero"` // zero if the part did not measure it
}

// ClockOffset is a measured offset of a clock.
type ClockOffset struct {
	At       time.Time `json:"at"`        // by the clock of the part
	OffsetMS float64   `json:"offset_ms"` // reference clock minus that of the part
	BoundMS  float64   `json:"bound_ms"`  // the largest error of OffsetMS
}

// Measured reports whether the clock was compared with the reference at all.
func (c Clock) Measured() bool { return !c.Before.At.IsZero() }

// Drift returns how much faster the reference went than the part's clock between the
// measurements: 1e-4 is 100 ppm. It is 0 if there are not two.
func (c Clock) Drift() float64 {
	apart := c.After.At.Sub(c.Before.At)
	if c.After.At.IsZero() || apart <= 0 {
		return 0
	}
	return (c.After.OffsetMS - c.Before.OffsetMS) * float64(time.Millisecond) / float64(apart)
}

// Offset returns the reference clock minus that of the part at an instant of the
// part's clock: a line through the measurements, or the only one.
func (c Clock) Offset(at time.Time) time.Duration {
	offset := c.Before.OffsetMS * float64(time.Millisecond)
	if drift := c.Drift(); drift != 0 {
		offset += drift * float64(at.Sub(c.Before.At))
	}
	return time.Duration(math.Round(offset))
}

// ToReference returns the reference's time at an instant of the part's clock.
func (c Clock) ToReference(own time.Time) time.Time { return own.Add(c.Offset(own)) }

// maxDrift is the largest rate at which two clocks are expected to drift apart.
const maxDrift = 100e-6

// BoundMS returns the largest error of [Clock.Offset] up to an instant of the part's
// clock, in milliseconds. Without a second measurement it grows by 100 ppm of the
// time since the first.
func (c Clock) BoundMS(until time.Time) float64 {
	if !c.After.At.IsZero() {
		return max(c.Before.BoundMS, c.After.BoundMS)
	}
	since := trace.MS(max(until.Sub(c.Before.At), 0))
	return c.Before.BoundMS + maxDrift*since
}

// Bounds of what a part may say.
const (
	maxParts    = 1 << 16
	maxOffsetMS = float64(maxTime / time.Millisecond)
)

func (p *Part) check() error {
	if p.Of == 0 {
		return nil
	}
	if p.Of < 0 || p.Of > maxParts || p.Number < 1 || p.Number > p.Of {
		return fmt.Errorf("part %d of %d: numbers are from 1 to at most %d", p.Number, p.Of, maxParts)
	}
	if p.RunRows < 0 || p.RunRows > maxRows {
		return fmt.Errorf("run_rows is %d, which is not between 0 and %d", p.RunRows, maxRows)
	}
	for _, o := range []ClockOffset{p.Clock.Before, p.Clock.After} {
		if !(math.Abs(o.OffsetMS) <= maxOffsetMS) || !(o.BoundMS >= 0 && o.BoundMS <= maxOffsetMS) {
			return fmt.Errorf("the clock offset of part %d is %g +- %g ms", p.Number, o.OffsetMS, o.BoundMS)
		}
	}
	return nil
}

// Parts is parts.json.
type Parts struct {
	RunID    string      `json:"run_id"`
	Of       int         `json:"of"`
	By       string      `json:"by"`
	Rows     int         `json:"rows"` // of the whole schedule
	Schedule string      `json:"schedule_sha256"`
	Trace    string      `json:"trace_sha256"`
	Start    time.Time   `json:"start"`
	Ended    time.Time   `json:"ended,omitzero"` // zero: the leader of the run did not end
	Parts    []PartState `json:"parts"`          // in order of their numbers
}

// The states of a part.
const (
	PartRunning = "running" // as written at the start of the run
	PartEnded   = "ended"
	PartFailed  = "failed"
	PartLost    = "lost"   // it stopped answering
	PartAbsent  = "absent" // it never arrived
)

// PartState is what the leader of a run knows of a part.
type PartState struct {
	Number int    `json:"number"`
	Host   string `json:"host,omitempty"`
	Folder string `json:"folder,omitempty"` // in the folder of parts.json; "" if its records never came
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"` // of failed, lost and absent
	Clock  Clock  `json:"clock,omitzero"`
}

// ReadParts reads parts.json. The error is [fs.ErrNotExist] if the folder has none.
func ReadParts(dir string) (p Parts, err error) {
	path := filepath.Join(dir, PartsFile)
	text, err := Read(path)
	if err != nil {
		return p, fmt.Errorf("reading parts: %w", err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("reading %s: %w", path, jsonscan.Fault(err))
	}
	if err := p.check(); err != nil {
		return p, fmt.Errorf("reading %s: %w", path, err)
	}
	return p, nil
}

func (p *Parts) check() error {
	if p.Of < 1 || p.Of > maxParts || len(p.Parts) != p.Of {
		return fmt.Errorf("it lists %d of %d parts, of at most %d", len(p.Parts), p.Of, maxParts)
	}
	for i, s := range p.Parts {
		if s.Number != i+1 {
			return fmt.Errorf("part %d is listed as number %d", i+1, s.Number)
		}
		if s.Folder != "" && !filepath.IsLocal(s.Folder) {
			return fmt.Errorf("part %d is in another folder: %q", s.Number, s.Folder)
		}
	}
	return nil
}

// Folders returns the folders of the parts that have one, given that of the run.
func (p *Parts) Folders(dir string) (folders []string) {
	for _, s := range p.Parts {
		if s.Folder != "" {
			folders = append(folders, filepath.Join(dir, s.Folder))
		}
	}
	return folders
}

// Write writes parts.json.
func (p *Parts) Write(dir string) error { return WriteJSON(filepath.Join(dir, PartsFile), p) }
