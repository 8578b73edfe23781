package runfile

import "time"

// The files of a run's folder.
const (
	RunFile      = "run.json"
	RequestsFile = "requests.jsonl"
	SummaryFile  = "summary.json"
	PageFile     = "report.html"
	FigureFile   = "metrics.png"
)

// Run is run.json: everything needed to repeat the run. It is written when the
// run starts and again when it ends.
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
	Window     Window     `json:"window,omitzero"`     // the measured part
	Thresholds Thresholds `json:"thresholds,omitzero"` // of the verdict
	// Flags are the command's flags as they were set: "--name=value", secrets
	// masked. A run is resumed with the same flags.
	Flags   []string     `json:"flags,omitempty"`
	Rows    int          `json:"rows"`                      // rows of the replayed trace
	Sent    int          `json:"sent"`                      // requests that were started
	NotSent int          `json:"not_sent"`                  // rows that were not sent
	Stopped bool         `json:"stopped"`                   // sending was stopped before the end of the trace
	TimeUp  bool         `json:"time_up,omitempty"`         // the time limit ended the sending
	Skipped int          `json:"skipped,omitempty"`         // of NotSent, later turns of sessions with a failed turn
	Warmup  int          `json:"warmup_requests,omitempty"` // sent before the start, not recorded
	Resumed []Resumption `json:"resumed,omitempty"`         // in order
	Failure string       `json:"failure,omitempty"`
	// ReadDelay and Merges are known when the run has ended, if the kernel
	// timestamps arrivals.
	ReadDelay ReadDelay `json:"read_delay,omitzero"`
	Merges    Merges    `json:"merges,omitzero"`
	// Calibrated is nil if the client was not calibrated on this machine.
	Calibrated *Calibrated `json:"calibrated,omitempty"`
	Schedule   string      `json:"schedule_sha256"`
	Prompts    string      `json:"prompts_sha256"` // known when the run has ended
	// NoChunkTimes means that the records have no gaps: see [GapsFile].
	NoChunkTimes bool     `json:"no_chunk_times,omitempty"`
	Notes        []string `json:"notes,omitempty"`
}

// Finished reports whether the run is complete. Otherwise it was killed or
// stopped or has failed, and may be resumed.
func (r Run) Finished() bool { return !r.Ended.IsZero() && !r.Stopped && r.Failure == "" }

// Host is the client machine.
type Host struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
}

// Target is the endpoint and how it was asked.
type Target struct {
	URL       string `json:"url"`
	Model     string `json:"model"`
	Endpoint  string `json:"endpoint"`  // chat or completions
	Prompt    string `json:"prompt"`    // tokens or words
	Simulated bool   `json:"simulated"` // modelled engines, not a server
	Virtual   bool   `json:"virtual"`   // simulated in virtual time, without a client
	IgnoreEOS bool   `json:"ignore_eos"`
	MinTokens bool   `json:"min_tokens,omitempty"` // min_tokens was set to the OSL
	Body      string `json:"body,omitempty"`       // JSON of all requests without prompt and OSL
	// TemplateTokens is how many tokens the endpoint adds to each prompt, if
	// measured. With ExactISL, prompts were shortened by as many.
	TemplateTokens int  `json:"template_tokens,omitempty"`
	ExactISL       bool `json:"exact_isl,omitempty"`
	// The sources of prompts.
	TokenRange string `json:"token_range,omitempty"` // LO:HI, of token ids
	Tokenizer  File   `json:"tokenizer,omitzero"`
	Dataset    File   `json:"dataset,omitzero"`
}

// CountedISL is the number of prompt tokens that the endpoint should count for a
// row with an ISL.
func (t Target) CountedISL(isl int) int {
	if t.ExactISL {
		return isl
	}
	return isl + t.TemplateTokens
}

// File is an input file of a run.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // of a dataset: of the text used and its tokens
}

// Source is the trace that was replayed.
type Source struct {
	Name       string  `json:"name"`
	SHA256     string  `json:"sha256"` // of the file's bytes
	DurationMS float64 `json:"duration_ms"`
	BlockSize  int     `json:"block_size"`
	Speedup    float64 `json:"speedup"`
	// Rate is the mean rate of drawn arrivals, in requests a second. 0 means that
	// the trace's own arrivals were used.
	Rate float64 `json:"rate,omitempty"`
	// AtOnce means an infinite request rate: all requests are due at 0.
	AtOnce bool `json:"at_once,omitempty"`
	Limit  int  `json:"limit"` // rows, 0 is all
}

// Limits are the limits of the run. 0 is none.
type Limits struct {
	MaxConcurrency  int     `json:"max_concurrency"`
	Closed          bool    `json:"closed,omitempty"` // a closed loop of MaxConcurrency
	TimeoutSeconds  float64 `json:"timeout_s"`
	IdleSeconds     float64 `json:"idle_timeout_s,omitempty"` // without a byte
	DurationSeconds float64 `json:"duration_s,omitempty"`
	MaxErrors       int     `json:"max_errors,omitempty"`
	Retries         int     `json:"retries,omitempty"` // of each request
}

// Resumption is one continuation of the run.
type Resumption struct {
	At       time.Time `json:"at"`
	RowsDone int       `json:"rows_done"` // rows that were recorded, and were not sent again
	// SentAgain counts rows that had been sent and were not recorded: they were
	// in flight when the run was killed.
	SentAgain int     `json:"sent_again"`
	ClockMS   float64 `json:"clock_ms"` // where the run's clock continued
}

// ReadDelay is the time from the kernel's timestamp to the client's read. It was
// not measured if Reads is 0.
type ReadDelay struct {
	Reads    uint64  `json:"reads"`
	MedianMS float64 `json:"median_ms"`
	P99MS    float64 `json:"p99_ms"`
	MaxMS    float64 `json:"max_ms"`
}

// Range is the load that a client can drive with errors below a limit. Each number
// was reached by itself, not together with the others.
type Range struct {
	Streams           int     `json:"streams"`        // in flight at once
	EventsPerSecond   float64 `json:"events_per_s"`   // of all streams
	RequestsPerSecond float64 `json:"requests_per_s"` // sent
}

// Calibrated is the range of the client, found on the same machine at another
// time.
type Calibrated struct {
	Taken time.Time `json:"taken"`
	Range
}

// Window is the measured part of a run: without its first and last seconds. The
// zero Window is the whole run.
type Window struct {
	WarmupSeconds   float64 `json:"warmup_s"`
	CooldownSeconds float64 `json:"cooldown_s"`
}

// Thresholds are those of a run's verdict. 0 is the default.
type Thresholds struct {
	MaxLagMS      float64 `json:"max_lag_ms,omitempty"`      // default 10
	MaxLagShare   float64 `json:"max_lag_share,omitempty"`   // of the median TTFT; default 0.05
	MaxPromptsOff float64 `json:"max_prompts_off,omitempty"` // share of the prompts; default 0.01
}

// Merges counts token chunks that were read together with the next one, so that
// their timestamps may be too late. The percentiles are over all chunks; the error
// of the others is 0. It was not measured if Chunks is 0.
type Merges struct {
	Chunks uint64  `json:"chunks"` // all that the kernel timestamped
	Merged uint64  `json:"merged"` // read together with the next
	P99MS  float64 `json:"p99_ms"`
	MaxMS  float64 `json:"max_ms"`
}
