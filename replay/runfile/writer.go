package runfile

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moontide/replay"
	"moontide/trace/atomicfile"
	"moontide/trace/jsonscan"
)

// The files of a run's folder.
const (
	RunFile      = "run.json"
	RequestsFile = "requests.jsonl"
	SummaryFile  = "summary.json"
	PageFile     = "report.html"
	FigureFile   = "metrics.png"
)

// Run is run.json: all that is needed to repeat the run and to tell what it
// replayed. It is written when the run starts and once more when it ends.
type Run struct {
	Version    string     `json:"version"`
	Command    []string   `json:"command"` // secrets masked
	Started    time.Time  `json:"started"`
	Ended      time.Time  `json:"ended,omitzero"` // zero: the run did not end
	Host       Host       `json:"host"`
	Target     Target     `json:"target"`
	Trace      Source     `json:"trace"`
	Seed       uint64     `json:"seed"`
	Salt       string     `json:"salt"`
	Limits     Limits     `json:"limits"`
	Window     Window     `json:"window,omitzero"`     // that is measured
	Thresholds Thresholds `json:"thresholds,omitzero"` // what its verdict goes by
	// Flags are the command's, as they were set: "--name=value", secrets masked.
	// A run is resumed with the same.
	Flags   []string     `json:"flags,omitempty"`
	Rows    int          `json:"rows"`                      // rows of the replayed trace
	Sent    int          `json:"sent"`                      // requests that were started
	NotSent int          `json:"not_sent"`                  // rows that were not
	Stopped bool         `json:"stopped"`                   // sending was stopped before the trace's end
	TimeUp  bool         `json:"time_up,omitempty"`         // sending ended because the run's duration had passed
	Skipped int          `json:"skipped,omitempty"`         // of NotSent, later turns of sessions of which a turn failed
	Warmup  int          `json:"warmup_requests,omitempty"` // sent before the start, and in no record
	Resumed []Resumption `json:"resumed,omitempty"`         // in order
	Failure string       `json:"failure,omitempty"`
	// ReadDelay is known when the run has ended, where the kernel stamps what
	// arrives.
	ReadDelay ReadDelay `json:"read_delay,omitzero"`
	// Merges is known when the run has ended, where the kernel stamps.
	Merges Merges `json:"merges,omitzero"`
	// Calibrated is absent where the client was not calibrated on this machine.
	Calibrated *Calibrated `json:"calibrated,omitempty"`
	Schedule   string      `json:"schedule_sha256"`
	Prompts    string      `json:"prompts_sha256"` // known when the run has ended
	// NoChunkTimes says that the records have no gaps: [GapsFile] counts them.
	NoChunkTimes bool     `json:"no_chunk_times,omitempty"`
	Notes        []string `json:"notes,omitempty"`
}

// Finished reports whether the run went to its end. One that did not was
// killed, was stopped or has failed, and may be resumed.
func (r Run) Finished() bool { return !r.Ended.IsZero() && !r.Stopped && r.Failure == "" }

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
	Simulated bool   `json:"simulated"` // modelled engines, not a server
	Virtual   bool   `json:"virtual"`   // in virtual time: no client took part
	IgnoreEOS bool   `json:"ignore_eos"`
	MinTokens bool   `json:"min_tokens,omitempty"` // min_tokens was the OSL
	Body      string `json:"body,omitempty"`       // what all requests said beside prompt and OSL, as JSON
	// TemplateTokens are what the endpoint adds to each prompt, as far as that
	// was measured. With ExactISL prompts were shorter by as many.
	TemplateTokens int  `json:"template_tokens,omitempty"`
	ExactISL       bool `json:"exact_isl,omitempty"`
	// What prompts were made of.
	TokenRange string `json:"token_range,omitempty"` // LO:HI, of token ids
	Tokenizer  File   `json:"tokenizer,omitzero"`
	Dataset    File   `json:"dataset,omitzero"`
}

// CountedISL is how many tokens the endpoint counts of a prompt that was made
// for a row of so many, if it counts it as meant. Where prompts were to be of
// exactly that length, one for a row no longer than the template is not.
func (t Target) CountedISL(isl int) int {
	if t.ExactISL {
		return isl
	}
	return isl + t.TemplateTokens
}

// File is a file that a run was made with.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // of a dataset: of the text that was used, and its tokens
}

// Source is the trace that was replayed.
type Source struct {
	Name       string  `json:"name"`
	SHA256     string  `json:"sha256"` // of the file's bytes
	DurationMS float64 `json:"duration_ms"`
	BlockSize  int     `json:"block_size"`
	Speedup    float64 `json:"speedup"`
	// Rate is how many requests a second arrivals were drawn to be, after Speedup.
	// It is 0 where they are the trace's own.
	Rate  float64 `json:"rate,omitempty"`
	Limit int     `json:"limit"` // rows, 0 is all
}

// Limits are the bounds the run was driven under. 0 is none.
type Limits struct {
	MaxConcurrency  int     `json:"max_concurrency"`
	Closed          bool    `json:"closed,omitempty"` // a closed loop of MaxConcurrency
	TimeoutSeconds  float64 `json:"timeout_s"`
	IdleSeconds     float64 `json:"idle_timeout_s,omitempty"` // without a byte
	DurationSeconds float64 `json:"duration_s,omitempty"`
	MaxErrors       int     `json:"max_errors,omitempty"`
	Retries         int     `json:"retries,omitempty"` // of each request
}

// Resumption is one time that a run went on behind what it had recorded.
type Resumption struct {
	At       time.Time `json:"at"`
	RowsDone int       `json:"rows_done"` // rows that were in the record, and were not sent again
	// SentAgain are rows that had been sent and were not in the record: they
	// were in flight when the run was killed.
	SentAgain int     `json:"sent_again"`
	ClockMS   float64 `json:"clock_ms"` // where the run's clock went on
}

// ReadDelay is how much later than the kernel the client had what it read, over
// the reads of a run. Without Reads it was not measured.
type ReadDelay struct {
	Reads    uint64  `json:"reads"`
	MedianMS float64 `json:"median_ms"`
	P99MS    float64 `json:"p99_ms"`
	MaxMS    float64 `json:"max_ms"`
}

// Writer is a run's folder while the run lasts. It is a [Recorder].
type Writer struct {
	Dir      string
	KeepText bool
	// NoChunkTimes leaves the gaps between token chunks out of the records,
	// which are then short, and counts them in [GapsFile].
	NoChunkTimes bool

	gaps    gapCounts
	file    *os.File
	sent    journal
	out     *bufio.Writer
	line    []byte
	samples sampleFile
}

// CheckFolder returns why a run's folder cannot be made at dir, if it cannot:
// only an empty folder may be there, or what a run left of its own that was
// killed before it had a run.json.
func CheckFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && !slices.ContainsFunc(entries, isContent):
		return nil
	case err == nil:
		return fmt.Errorf("run folder %s exists and is not empty", dir)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("making run folder: %w", err)
}

// isContent reports whether a file is more than what the making of a run's
// folder begins with.
func isContent(e fs.DirEntry) bool {
	info, err := e.Info()
	begun := e.Name() == RequestsFile && err == nil && info.Mode().IsRegular() && info.Size() == 0
	return !begun && !strings.HasPrefix(e.Name(), RunFile+atomicfile.PartSuffix)
}

// TryFolder returns why a run's folder cannot be made at dir, if it cannot. It
// makes one, and takes it away again. See [CheckFolder].
func TryFolder(dir string) error {
	if err := CheckFolder(dir); err != nil {
		return err
	}
	var made []string // the innermost first
	for outer := filepath.Clean(dir); ; outer = filepath.Dir(outer) {
		if _, err := os.Lstat(outer); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, outer)
	}
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, RunFile+atomicfile.PartSuffix); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	for _, folder := range made {
		os.Remove(folder) // one that somebody else uses by now stays
	}
	if err != nil {
		return fmt.Errorf("making run folder: %w", err)
	}
	return nil
}

// Create makes a run's folder with its run.json. See [CheckFolder].
func Create(dir string, run Run) (*Writer, error) {
	if err := CheckFolder(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making run folder: %w", err)
	}
	f := &Writer{Dir: dir}
	// Who has a lock on the record has the folder, and a run.json has a record.
	file, err := os.OpenFile(filepath.Join(dir, RequestsFile), os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		err = f.writeTo(file)
	}
	if err == nil {
		err = CheckFolder(dir) // nobody was faster
	}
	if err == nil {
		err = f.WriteRun(run)
	}
	if err != nil {
		if file != nil {
			file.Close()
		}
		return nil, fmt.Errorf("making run folder: %w", err)
	}
	return f, nil
}

// writeTo has the records go to a file, which nobody else writes to.
func (f *Writer) writeTo(file *os.File) error {
	if !Lock(file) {
		return errors.New("the run is still going")
	}
	f.file, f.out = file, bufio.NewWriterSize(file, 64<<10)
	return nil
}

// Record writes one line, which is with the operating system when Record
// returns: a killed process loses no request that had ended.
func (f *Writer) Record(rec replay.Record) error {
	if f.NoChunkTimes {
		f.countGaps(&rec)
	}
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

// countGaps takes the gaps out of a record. Those of a request that failed are
// in no latency.
func (f *Writer) countGaps(rec *replay.Record) {
	if f.gaps == nil {
		f.gaps = gapCounts{}
	}
	if rec.Class == replay.OK {
		for _, gap := range rec.Gaps {
			f.gaps.add(gap)
		}
	}
	rec.Gaps = nil
}

// Close ends requests.jsonl.
func (f *Writer) Close() error {
	if f.NoChunkTimes {
		if err := f.gaps.write(f.Dir); err != nil {
			return errors.Join(err, f.closeFiles())
		}
	}
	return f.closeFiles()
}

func (f *Writer) closeFiles() error {
	if err := errors.Join(f.file.Sync(), f.file.Close(), f.samples.close(), f.sent.close()); err != nil {
		return fmt.Errorf("closing %s: %w", RequestsFile, err)
	}
	return nil
}

// WriteRun replaces run.json.
func (f *Writer) WriteRun(run Run) error {
	if err := WriteJSON(filepath.Join(f.Dir, RunFile), run); err != nil || !run.Finished() {
		return err
	}
	return f.sent.remove(f.Dir)
}

// WriteJSON writes v, indented, so that the file is either the old or the new
// one, never half of it.
func WriteJSON(path string, v any) error {
	text, err := jsonscan.Strict.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return fmt.Errorf("writing %w", err)
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		f.Discard()
		return fmt.Errorf("writing %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing %w", err)
	}
	return nil
}
