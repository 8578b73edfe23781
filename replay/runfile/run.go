package runfile

import (
	"fmt"
	"math"
	"time"
)

// The files of a run's folder.
const (
	RunFile      = "run.json"
	RequestsFile = "requests.jsonl"
	SummaryFile  = "summary.json"
	PageFile     = "report.html"
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
	Leg        Leg        `json:"leg,omitzero"`        // zero unless the run is one of a sweep
	Part       Part       `json:"part,omitzero"`       // zero unless several processes drove the run
	Window     Window     `json:"window,omitzero"`     // the measurement window
	Thresholds Thresholds `json:"thresholds,omitzero"` // thresholds of the verdict
	// Flags holds the command's flags as set: "--name=value", secrets masked. A
	// run must be resumed with the same flags.
	Flags   []string `json:"flags,omitempty"`
	Rows    int      `json:"rows"`              // rows of the replayed trace
	Sent    int      `json:"sent"`              // requests that were started
	NotSent int      `json:"not_sent"`          // rows that were not sent
	Stopped bool     `json:"stopped"`           // sending was stopped before the end of the trace
	TimeUp  bool     `json:"time_up,omitempty"` // the time limit ended the sending
	Skipped int      `json:"skipped,omitempty"` // of NotSent, later turns of sessions with a failed turn
	Cut     int      `json:"cut,omitempty"`     // of NotSent, turns whose session was ended early: by a limit, the model's context or an abandoned request
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
	// NoChunkTimes reports that the records have no gaps: see [GapsFile].
	NoChunkTimes bool     `json:"no_chunk_times,omitempty"`
	Notes        []string `json:"notes,omitempty"`
}

// Finished reports whether the run is complete. Otherwise it was killed, was
// stopped or failed, and may be resumed.
func (r Run) Finished() bool { return !r.Ended.IsZero() && !r.Stopped && r.Failure == "" }

// Leg is the place of a run in a sweep.
type Leg struct {
	Deployment string `json:"deployment,omitempty"` // label of the target
	Shape      string `json:"shape,omitempty"`      // ISL:OSL, if the sweep has several
	Axis       string `json:"axis"`                 // concurrency, rate or speedup
	Level      string `json:"level"`                // a number, or inf
	Repeat     int    `json:"repeat,omitempty"`     // counts the runs at a level from 1, in a search for a load
}

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
	Models []ModelShare `json:"models,omitempty"`
	// ModelFromTrace reports that rows name their models; Model is for those that do
	// not, and empty if all do.
	ModelFromTrace bool `json:"model_from_trace,omitempty"`
	Simulated      bool `json:"simulated"` // simulated engines instead of a server
	Virtual        bool `json:"virtual"`   // simulated in virtual time, without a client
	// Engines describes the simulated engines.
	Engines Engines `json:"engines,omitzero"`
	// ServerBlockSize is the block size of the server's prefix cache in tokens, as
	// configured; 0 means unknown.
	ServerBlockSize int `json:"server_block_size,omitempty"`
	// LiveAnswers reports that prompts contain the real answers to earlier turns.
	LiveAnswers bool `json:"live_answers,omitempty"`
	// GeneratedCached reports that the endpoint keeps generated tokens in its prefix
	// cache.
	GeneratedCached bool `json:"generated_cached,omitempty"`
	IgnoreEOS       bool `json:"ignore_eos"`
	MinTokens       bool `json:"min_tokens,omitempty"` // min_tokens was set to the OSL
	// Accepted names the optional members that requests contain because the endpoint
	// accepts them.
	Accepted []string `json:"accepted,omitempty"`
	Body     string   `json:"body,omitempty"` // body of requests (JSON) without prompt and output length, secrets masked
	// TemplateTokens is how many tokens the endpoint adds to each prompt, if
	// measured. With ExactISL, prompts were shortened by this number.
	TemplateTokens int  `json:"template_tokens,omitempty"`
	ExactISL       bool `json:"exact_isl,omitempty"`
	// Prompt sources.
	TokenRange string `json:"token_range,omitempty"` // LO:HI, range of token ids
	Tokenizer  File   `json:"tokenizer,omitzero"`
	Dataset    File   `json:"dataset,omitzero"`
}

// Engines describes simulated engines.
type Engines struct {
	Deployment string `json:"deployment"`    // in words
	File       File   `json:"file,omitzero"` // of the engine, if their costs are from one
}

// ModelText describes the models of requests.
func (t Target) ModelText() string {
	const each = "(as in the trace)"
	switch {
	case !t.ModelFromTrace:
		return t.Model
	case t.Model == "":
		return each
	}
	return each + ", else " + t.Model
}

// ModelShare is a model and its share of the requests.
type ModelShare struct {
	Model string  `json:"model"`
	Share float64 `json:"share"` // as configured, from 0 to 1
}

// CountedISL returns the number of prompt tokens that the endpoint should count
// for a row with this ISL.
func (t Target) CountedISL(isl int) int {
	if t.ExactISL {
		return isl
	}
	return isl + t.TemplateTokens
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
	Speedup    float64 `json:"speedup"`
	// Rate is the mean rate of drawn arrivals, in requests per second. 0 means
	// that the trace's own arrivals were used.
	Rate float64 `json:"rate,omitempty"`
	// AtOnce reports an infinite request rate: all requests are due at 0.
	AtOnce bool `json:"at_once,omitempty"`
	Limit  int  `json:"limit"` // maximum number of rows; 0 means all
}

// Limits holds the limits of the run. 0 means no limit.
type Limits struct {
	MaxConcurrency int  `json:"max_concurrency"`
	Closed         bool `json:"closed,omitempty"` // closed loop of MaxConcurrency requests or MaxSessions sessions
	// Limits of sessions: those in progress at a time, and the turns of each.
	MaxSessions int `json:"max_sessions,omitempty"`
	MaxTurns    int `json:"max_turns,omitempty"`
	// CancelAfterSeconds is how long after it was sent a request was abandoned.
	CancelAfterSeconds float64 `json:"cancel_after_s,omitempty"`
	TimeoutSeconds     float64 `json:"timeout_s"`
	// FirstByteSeconds limits the time to the first token, IdleSeconds that without
	// a byte after it. Older versions had no limit of the first.
	FirstByteSeconds float64 `json:"first_byte_timeout_s,omitempty"`
	IdleSeconds      float64 `json:"idle_timeout_s,omitempty"`
	DurationSeconds  float64 `json:"duration_s,omitempty"`
	MaxErrors        int     `json:"max_errors,omitempty"`
	Retries          int     `json:"retries,omitempty"` // maximum per request
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

// Window is the measured part of a run, without its first and last seconds. The
// zero Window is the whole run.
type Window struct {
	WarmupSeconds    float64 `json:"warmup_s"`
	CooldownSeconds  float64 `json:"cooldown_s"`
	WarmupRequests   int     `json:"warmup_requests,omitempty"`   // the first requests sent, which are not measured
	CooldownRequests int     `json:"cooldown_requests,omitempty"` // the last requests sent, which are not measured
}

// Thresholds holds the thresholds of a run's verdict. 0 means the default.
type Thresholds struct {
	MaxLagMS      float64 `json:"max_lag_ms,omitempty"`      // default 10
	MaxLagShare   float64 `json:"max_lag_share,omitempty"`   // of the median TTFT; default 0.05
	MaxPromptsOff float64 `json:"max_prompts_off,omitempty"` // share of the prompts; default 0.01
	MaxAnswersOff float64 `json:"max_answers_off,omitempty"` // share of the answers; default 0.01
	MaxFailed     float64 `json:"max_failed,omitempty"`      // share of the requests; default 0.05
}

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
		{"max_concurrency", r.Limits.MaxConcurrency}, {"block_size", r.Trace.BlockSize},
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
