package runfile

import (
	"fmt"
	"math"
	"time"

	"moontide/replay/settings"
)

// The files of a run's folder.
const (
	RunFile      = "run.json"
	RequestsFile = "requests.jsonl"
	SummaryFile  = "summary.json"
	PageFile     = "report.html"
)

// Run is run.json: the settings of a run, which repeat it, and what came of them. It is
// written when the run starts and again when it ends.
type Run struct {
	Settings settings.Settings `json:"settings"`
	Outcome  `json:"outcome"`
}

// Outcome is what a run found, did and noted.
type Outcome struct {
	Version string            `json:"version"`
	Command []string          `json:"command"`           // secrets masked
	Sources map[string]string `json:"sources,omitempty"` // where the settings that were set came from
	Started time.Time         `json:"started"`
	Ended   time.Time         `json:"ended,omitzero"` // zero: the run did not end
	Host    Host              `json:"host"`
	Target  Target            `json:"target"`
	Trace   Source            `json:"trace"`
	Point   Point             `json:"point,omitzero"`    // zero unless the run is one of a set
	Part    Part              `json:"part,omitzero"`     // zero unless several processes drove the run
	Rows    int               `json:"rows"`              // rows of the replayed trace
	Sent    int               `json:"sent"`              // requests that were started
	NotSent int               `json:"not_sent"`          // rows that were not sent
	Stopped bool              `json:"stopped"`           // sending was stopped before the end of the trace
	TimeUp  bool              `json:"time_up,omitempty"` // the time limit ended the sending
	Skipped int               `json:"skipped,omitempty"` // of NotSent, later turns of sessions with a failed turn
	Cut     int               `json:"cut,omitempty"`     // of NotSent, turns whose session was ended early: by a limit, the model's context or an abandoned request
	// Outgrown is the number of turns, of Cut, that did not fit the model's context:
	// their sessions ended there.
	Outgrown int `json:"outgrown,omitempty"`
	// Unfinished is the number of sessions that had begun and were not over when
	// sending ended, without those of which a request failed, was abandoned or canceled.
	Unfinished int `json:"unfinished,omitempty"`
	// LostTurns is the number of requests that rows wait for and that are not in the
	// replayed trace.
	LostTurns int          `json:"lost_turns,omitempty"`
	Warmup    int          `json:"warmup_requests,omitempty"` // sent before the start of the run, not recorded
	Resumed   []Resumption `json:"resumed,omitempty"`         // in chronological order
	Failure   string       `json:"failure,omitempty"`
	// ReadDelay and Merges are set when the run has ended, if the kernel
	// timestamps arrivals.
	ReadDelay ReadDelay `json:"read_delay,omitzero"`
	Merges    Merges    `json:"merges,omitzero"`
	// Calibrated is nil if this machine was not calibrated.
	Calibrated *Calibrated `json:"calibrated,omitempty"`
	Schedule   string      `json:"schedule_sha256"`
	Prompts    string      `json:"prompts_sha256"` // set when the run has ended
	Notes      []string    `json:"notes,omitempty"`
}

// Finished reports whether the run is complete. Otherwise it was killed, was
// stopped or failed, and may be resumed.
func (r Run) Finished() bool { return !r.Ended.IsZero() && !r.Stopped && r.Failure == "" }

// Host is the client machine.
type Host struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
}

// Target is the endpoint and the form of its requests.
type Target struct {
	URL      string `json:"url"`
	Model    string `json:"model"`
	Endpoint string `json:"endpoint"` // chat or completions
	Prompt   string `json:"prompt"`   // tokens or words
	// Models are the models of a mix, of which one is drawn for each session and for
	// each row without one.
	Models    []ModelShare `json:"models,omitempty"`
	Simulated bool         `json:"simulated"` // simulated engines instead of a server
	// Engines describes the simulated engines.
	Engines Engines `json:"engines,omitzero"`
	// ServerBlockSize is the block size of the server's prefix cache in tokens; 0 means
	// unknown.
	ServerBlockSize int `json:"server_block_size,omitempty"`
	// GeneratedCached reports that the endpoint keeps generated tokens in its prefix
	// cache.
	GeneratedCached bool `json:"generated_cached,omitempty"`
	IgnoreEOS       bool `json:"ignore_eos"`
	MinTokens       bool `json:"min_tokens,omitempty"` // min_tokens was set to the OSL
	// Accepted names the optional members that requests contain because the endpoint
	// accepts them.
	Accepted []string `json:"accepted,omitempty"`
	Body     string   `json:"body,omitempty"` // body of requests (JSON) without prompt and output length, secrets masked
	// TemplateTokens is how many tokens the endpoint adds to each prompt, if measured. Prompts
	// of an exact ISL are shortened by this number.
	TemplateTokens int  `json:"template_tokens,omitempty"`
	Tokenizer      File `json:"tokenizer,omitzero"`
	Dataset        File `json:"dataset,omitzero"`
}

// Engines describes simulated engines.
type Engines struct {
	Deployment string `json:"deployment"`    // in words
	File       File   `json:"file,omitzero"` // of the engine, if their costs are from one
}

// ModelText describes the models of requests.
func (r *Run) ModelText() string {
	const each = "(as in the trace)"
	switch {
	case !r.Settings.Client.ModelFromTrace:
		return r.Target.Model
	case r.Target.Model == "":
		return each
	}
	return each + ", else " + r.Target.Model
}

// ModelShare is a model and its share of the requests.
type ModelShare struct {
	Model string  `json:"model"`
	Share float64 `json:"share"` // as configured, from 0 to 1
}

// MaxConcurrency returns the limit of requests in flight, of a part its share.
func (r *Run) MaxConcurrency() int {
	limit := r.Settings.MaxConcurrency
	if r.Part.Of > 1 && limit > 0 {
		return r.Part.Share(limit, min(r.Part.Of, limit))
	}
	return limit
}

// CountedISL returns the number of prompt tokens that the endpoint should count
// for a row with this ISL.
func (r *Run) CountedISL(isl int) int {
	if r.Settings.Client.ExactISL {
		return isl
	}
	return isl + r.Target.TemplateTokens
}

// File is an input file of a run.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // for a dataset: of the text used and its tokens
}

// Source is the trace that was replayed.
type Source struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // of the file's bytes
	// DigestRows is set if SHA256 is of that many first rows, as lines of the native
	// format: a limit left the rest of a large file unread.
	DigestRows int     `json:"sha256_rows,omitempty"`
	DurationMS float64 `json:"duration_ms"`
	BlockSize  int     `json:"block_size"`
}

// Resumption is one continuation of the run.
type Resumption struct {
	At       time.Time `json:"at"`
	RowsDone int       `json:"rows_done"` // recorded rows, which were not sent again
	// SentAgain counts rows that had been sent but not recorded: they were in
	// flight when the run was killed.
	SentAgain int     `json:"sent_again"`
	ClockMS   float64 `json:"clock_ms"` // where the run's clock continued
}

// ReadDelay is the time from the kernel's timestamp to the client's read. If Reads
// is 0, it was not measured.
type ReadDelay struct {
	Reads    uint64  `json:"reads"`
	MedianMS float64 `json:"median_ms"`
	P99MS    float64 `json:"p99_ms"`
	MaxMS    float64 `json:"max_ms"`
}

// Range is the load that a client can generate with errors below a limit. Each
// number was measured separately, not in combination with the others.
type Range struct {
	Streams           int     `json:"streams"`        // in flight at once
	EventsPerSecond   float64 `json:"events_per_s"`   // over all streams
	RequestsPerSecond float64 `json:"requests_per_s"` // sent
}

// Calibrated is the range of the client, measured earlier on the same machine.
type Calibrated struct {
	Taken time.Time `json:"taken"`
	Range
}

// The measured part and the limits of the verdict are settings.
type (
	Window     = settings.Window
	Thresholds = settings.Thresholds
)

// Merges counts token chunks that were read together with the next one, so that
// their timestamps may be too late. The percentiles are over all chunks; the error
// of the others is 0. If Chunks is 0, it was not measured.
type Merges struct {
	Chunks uint64  `json:"chunks"` // all that the kernel timestamped
	Merged uint64  `json:"merged"` // read together with the next
	P99MS  float64 `json:"p99_ms"`
	MaxMS  float64 `json:"max_ms"`
}

// Bounds of what a folder may say, so that sums over the records and parts of a
// run cannot overflow.
const (
	maxRows  = math.MaxInt32
	maxReads = 1 << 53                    // of a whole run
	maxTime  = 100 * 365 * 24 * time.Hour // since the start of the run
)

// checkCounts returns an error if a count is out of range.
func (r *Run) checkCounts() error {
	for _, c := range []struct {
		key string
		n   int
	}{
		{"rows", r.Rows}, {"sent", r.Sent}, {"skipped", r.Skipped}, {"cut", r.Cut}, {"outgrown", r.Outgrown}, {"unfinished", r.Unfinished}, {"lost_turns", r.LostTurns}, {"warmup_requests", r.Warmup},
		{"max_concurrency", r.Settings.MaxConcurrency}, {"block_size", r.Trace.BlockSize},
		{"server_block_size", r.Target.ServerBlockSize}, {"template_tokens", r.Target.TemplateTokens},
	} {
		if c.n < 0 || c.n > maxRows {
			return fmt.Errorf("%s is %d, which is not between 0 and %d", c.key, c.n, maxRows)
		}
	}
	if r.NotSent < -maxRows || r.NotSent > maxRows { // negative if the trace grew during the run
		return fmt.Errorf("not_sent is %d, which is beyond %d", r.NotSent, maxRows)
	}
	if n := max(r.ReadDelay.Reads, r.Merges.Chunks, r.Merges.Merged); n > maxReads {
		return fmt.Errorf("read_delay or merges counts %d reads, more than %d", n, maxReads)
	}
	return r.Part.check()
}
