package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"moontide/trace"
)

// The files of a run's folder.
const (
	RunFile      = "run.json"
	RequestsFile = "requests.jsonl"
	SummaryFile  = "summary.json"
)

// Run is run.json: all that is needed to repeat the run and to tell what it
// replayed. It is written when the run starts and once more when it ends.
type Run struct {
	Version  string    `json:"version"`
	Command  []string  `json:"command"` // secrets masked
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"` // zero: the run did not end
	Host     Host      `json:"host"`
	Target   Target    `json:"target"`
	Trace    Source    `json:"trace"`
	Seed     uint64    `json:"seed"`
	Salt     string    `json:"salt"`
	Limits   Limits    `json:"limits"`
	Rows     int       `json:"rows"`     // rows of the replayed trace
	Sent     int       `json:"sent"`     // requests that were started
	NotSent  int       `json:"not_sent"` // rows that were not
	Stopped  bool      `json:"stopped"`  // sending was stopped before the trace's end
	Failure  string    `json:"failure,omitempty"`
	Schedule string    `json:"schedule_sha256"`
	Prompts  string    `json:"prompts_sha256"` // known when the run has ended
	Notes    []string  `json:"notes,omitempty"`
}

// Host is the machine that drove the load.
type Host struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
}

// Target is what was driven.
type Target struct {
	URL       string `json:"url"`
	Model     string `json:"model"`
	Endpoint  string `json:"endpoint"`  // chat or completions
	Prompt    string `json:"prompt"`    // tokens or words
	Simulated bool   `json:"simulated"` // the embedded endpoint, not a server
	IgnoreEOS bool   `json:"ignore_eos"`
}

// Source is the trace that was replayed.
type Source struct {
	Name       string  `json:"name"`
	SHA256     string  `json:"sha256"` // of the file's bytes
	DurationMS float64 `json:"duration_ms"`
	BlockSize  int     `json:"block_size"`
	Speedup    float64 `json:"speedup"`
	Limit      int     `json:"limit"` // rows, 0 is all
}

// Limits are the bounds the run was driven under.
type Limits struct {
	MaxConcurrency int     `json:"max_concurrency"` // 0 is none
	TimeoutSeconds float64 `json:"timeout_s"`
}

// Folder is a run's folder while the run lasts. It is a [Recorder].
type Folder struct {
	Dir      string
	KeepText bool
	file     *os.File
	out      *bufio.Writer
	line     []byte
}

// CheckFolder returns why a run's folder cannot be made at dir, if it cannot:
// only an empty folder may be there.
func CheckFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("run folder %s exists and is not empty", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("making run folder: %w", err)
	}
	return nil
}

// CreateFolder makes a run's folder with its run.json. See [CheckFolder].
func CreateFolder(dir string, run Run) (*Folder, error) {
	if err := CheckFolder(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making run folder: %w", err)
	}
	f := &Folder{Dir: dir}
	if err := f.WriteRun(run); err != nil {
		return nil, err
	}
	var err error
	f.file, err = os.OpenFile(filepath.Join(dir, RequestsFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("making run folder: %w", err)
	}
	f.out = bufio.NewWriterSize(f.file, 64<<10)
	return f, nil
}

// Record writes one line, which is with the operating system when Record
// returns: a killed process loses no request that had ended.
func (f *Folder) Record(rec Record) error {
	var err error
	if f.line, err = AppendRecord(f.line[:0], rec, f.KeepText); err != nil {
		return fmt.Errorf("recording row %d: %w", rec.Row+1, err)
	}
	f.line = append(f.line, '\n')
	if _, err := f.out.Write(f.line); err != nil {
		return fmt.Errorf("recording row %d: %w", rec.Row+1, err)
	}
	if err := f.out.Flush(); err != nil {
		return fmt.Errorf("recording row %d: %w", rec.Row+1, err)
	}
	return nil
}

// Close ends requests.jsonl.
func (f *Folder) Close() error {
	if err := errors.Join(f.file.Sync(), f.file.Close()); err != nil {
		return fmt.Errorf("closing %s: %w", RequestsFile, err)
	}
	return nil
}

// WriteRun replaces run.json.
func (f *Folder) WriteRun(run Run) error { return WriteJSON(filepath.Join(f.Dir, RunFile), run) }

// WriteJSON writes v, indented, so that the file is either the old or the new
// one, never half of it.
func WriteJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	part := path + ".part"
	if err := os.WriteFile(part, append(text, '\n'), 0o644); err != nil {
		os.Remove(part)
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// Recorded is a run's folder as it lies on disk.
type Recorded struct {
	Run    Run
	reader *trace.Reader
}

// OpenFolder opens a run's folder, of a run that ended or that was killed.
func OpenFolder(dir string) (*Recorded, error) {
	text, err := os.ReadFile(filepath.Join(dir, RunFile))
	if err != nil {
		return nil, fmt.Errorf("not a run's folder: %w", err)
	}
	r := &Recorded{}
	if err := json.Unmarshal(text, &r.Run); err != nil {
		return nil, fmt.Errorf("reading %s: %.100q", filepath.Join(dir, RunFile), err.Error())
	}
	// A line that a kill cut short is counted, not fatal.
	r.reader, err = trace.Open(filepath.Join(dir, RequestsFile), trace.Options{SkipBadRows: true})
	if err != nil {
		return nil, fmt.Errorf("reading run: %w", err)
	}
	return r, nil
}

// Records returns the records in the order in which their requests ended. It
// can be ranged over once.
func (r *Recorded) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for row, err := range r.reader.Requests() {
			var rec Record
			if err == nil {
				if rec, err = parseRecord(row); err != nil {
					err = fmt.Errorf("%s:%d: %w", RequestsFile, r.reader.Line(), err)
				}
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Damaged returns how many lines could not be read, and the first reasons.
func (r *Recorded) Damaged() (lines int, reasons []error) { return r.reader.Skipped() }

// Close closes the folder's files.
func (r *Recorded) Close() error { return r.reader.Close() }
