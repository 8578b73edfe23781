// Package settings holds everything that can be set of a run, and the table of it.
//
//	var s settings.Settings
//	err := s.Set("max-concurrency", "8", "") // or s.MaxConcurrency = 8
//
// [Settings] is what an experiment executes. [Table] has a row for each setting: its name,
// help, place in [Settings], range and default. All that reads or writes settings reads the
// table: flags and their help, configuration files ([Read]), run.json (Settings marshals to
// an object of its settings), the comparison of two runs ([Differences]), and the axes of
// a set ([Values]). A new setting is a field and a row.
//
// Names are words joined by hyphens, as in flags; in files, underscores are as good. A
// value is text as a person types it: 8, 30s, true, a=0.7,b=0.3.
package settings

import (
	"fmt"
	"iter"
	"maps"
	"time"

	"moontide/replay"
	"moontide/replay/openai"
	"moontide/replay/sim/engine"
	"moontide/trace"
	"moontide/trace/format"
)

// Settings are the settings of a run. Only a trace is required: the zero value of all else
// replays it at its original speed against an embedded simulated endpoint.
type Settings struct {
	Trace       Trace
	Description Description // of requests that are drawn, instead of a trace
	Pacing      Pacing

	// Client has the endpoint and the content of requests. Fields of it that have no row
	// are set by the program: keys, certificates, what is known of the trace.
	Client    openai.Config
	APIKeyEnv string // environment variable of the API key
	Proxy     string // URL or none; "" takes that of the environment
	CAFile    string // CA bundle for https
	// Tokenizer is the path of a tokenizer.json, Dataset that of texts for prompts.
	Tokenizer, Dataset string
	Seed               uint64
	Salt               string

	Virtual        bool // simulated in virtual time, without a client
	EngineFile     string
	Engines        engine.Deployment // zero is engine.Default
	CacheGenerated bool              // the engines keep generated tokens in their prefix cache

	MaxConcurrency int // limit of requests in flight; 0 is none
	Closed         bool
	Sessions       replay.SessionLimits
	Duration       time.Duration // of sending; 0 is no limit
	MaxErrors      int           // failed requests that stop the run; 0 is no limit
	Retries        int
	WarmupRequests int
	WaitReady      time.Duration

	Window          Window
	Thresholds      Thresholds
	ServerBlockSize int      // of the server's prefix cache in tokens; 0 is unknown
	ServerMetrics   []string // URLs

	Objectives Objectives
	Parts      Parts
	Output     Output

	from map[string]string // where the settings that were set came from, by name
}

// Trace is the trace of a run.
type Trace struct {
	// Path is a file or folder in any format that [format.Open] reads. It is read several
	// times.
	Path          string
	Format        format.Format // "" detects it
	BlockSize     int           // 0 takes that of the trace, or detects it
	UniqueIDs     bool          // gives rows without block ids unique ones
	RecordedTimes bool          // of later turns, instead of delays after the one before
	SkipBadRows   bool
}

// Description describes requests by the keys of a spec, see synth/spec.
type Description struct {
	Spec                                                        string // a file, or the name of a ready-made one
	ISL, UniqueISL, OSL, Correlation, CV                        string
	SharedPrompts, SharedLen, Zipf, Turns, ThinkTime, NewTokens string
}

// IsZero reports whether nothing is described.
func (d Description) IsZero() bool { return d == Description{} }

// Pacing selects rows and sets their arrivals: see [trace.Pacing].
type Pacing struct {
	Start, End            time.Duration
	Limit                 int
	SpreadGrid            bool
	ThinkScale, ToolScale trace.Opt[float64]
	MaxThink              time.Duration
	Rate, SessionRate     trace.Opt[float64] // of requests or of sessions per second; +Inf is all at once
	Arrival               string             // process of Rate and SessionRate
	Burstiness            float64            // of gamma arrivals
	Speedup               float64            // 0 is 1
	Ramp                  time.Duration
}

// Window is the measured part of a run. The zero Window is the whole run.
type Window struct {
	WarmupSeconds    float64 `json:"warmup_s"`
	CooldownSeconds  float64 `json:"cooldown_s"`
	WarmupRequests   int     `json:"warmup_requests,omitempty"`   // the first requests sent, which are not measured
	CooldownRequests int     `json:"cooldown_requests,omitempty"` // the last requests sent, which are not measured
}

// Thresholds holds the limits of a run's verdict. 0 means the default.
type Thresholds struct {
	MaxLagMS      float64 `json:"max_lag_ms,omitempty"`      // default 10
	MaxLagShare   float64 `json:"max_lag_share,omitempty"`   // of the median TTFT; default 0.05
	MaxPromptsOff float64 `json:"max_prompts_off,omitempty"` // share of the prompts; default 0.01
	MaxAnswersOff float64 `json:"max_answers_off,omitempty"` // share of the responses; default 0.01
	MaxFailed     float64 `json:"max_failed,omitempty"`      // share of the requests; default 0.05
}

// Objectives are conditions on the metrics of a run, in the language of analyze/measure.
type Objectives struct {
	SLO, FailIf []string
	Force       bool   // judges percentiles of too few requests
	Goodput     string // objectives of each request
}

// Parts divides a run among processes.
type Parts struct {
	Part       string // i/n, or auto
	By         string // what is never split
	Rendezvous string // HOST:PORT of part 1
	Timeout    time.Duration
}

// Output is where results go, and what is recorded.
type Output struct {
	Dir           string // of the run
	KeepText      bool   // records texts of the trace instead of their SHA-256
	NoChunkTimes  bool   // records a histogram of the gaps between token chunks instead of every gap
	MetricsListen string // address of live metrics
	Percentiles   string
}

// Set sets a setting to a text. from names where the text came from, for [Settings.From].
// The error does not name the setting.
func (s *Settings) Set(name, text, from string) error {
	row := Find(name)
	if row == nil {
		return fmt.Errorf("there is no setting %.60q%s", name, suggestion(name))
	}
	before := *s
	if err := row.set(s, text); err != nil {
		*s = before
		return err
	}
	s.Mark(row.Name, from)
	return nil
}

// Replace is Set for a repeatable setting that gets one value in place of all.
func (s *Settings) Replace(name, text, from string) error {
	if row := Find(name); row != nil && row.Repeatable() {
		row.clear(s)
	}
	return s.Set(name, text, from)
}

// Mark notes that a setting was set, and where.
func (s *Settings) Mark(name, from string) {
	s.from = maps.Clone(s.from) // copies of s have their own
	if s.from == nil {
		s.from = map[string]string{}
	}
	s.from[name] = from
}

// From returns where a setting was set. set is false if it has its default.
func (s *Settings) From(name string) (from string, set bool) {
	if from, set = s.from[name]; set {
		return from, true
	}
	row := Find(name)
	return "", row != nil && row.Text(s) != row.Text(&defaults)
}

// IsSet reports whether one of the settings was set.
func (s *Settings) IsSet(names ...string) bool { return s.FirstSet(names...) != "" }

// FirstSet returns the first of the settings that was set, or "".
func (s *Settings) FirstSet(names ...string) string {
	for _, name := range names {
		if _, set := s.From(name); set {
			return name
		}
	}
	return ""
}

// Unset gives settings their defaults. They must not share a field with others, as timeouts
// do.
func (s *Settings) Unset(names ...string) {
	s.from = maps.Clone(s.from)
	for _, name := range names {
		delete(s.from, name)
		if row := Find(name); row != nil {
			row.clear(s)
		}
	}
}

// Adopt sets what was set in an earlier run and is not set in s, such as the other limits of
// the verdict. from names that run.
func (s *Settings) Adopt(earlier *Settings, from string) {
	for _, row := range earlier.given() {
		texts, set := row.texts(earlier), s.IsSet(row.Name)
		if _, several := row.Field(s).(*limits); set && several {
			texts = append(texts, row.Text(s))
		} else if set || row.Here {
			continue
		}
		for _, text := range texts {
			if row.set(s, text) == nil && !set { // it was parsed before
				s.Mark(row.Name, from)
			}
		}
	}
}

// Sources returns where each setting that was set came from, by name.
func (s *Settings) Sources() map[string]string {
	sources := maps.Clone(s.from)
	maps.DeleteFunc(sources, func(name, from string) bool { return from == "" || Find(name).Here })
	return sources
}

// given returns the rows that were set, in the order of the table.
func (s *Settings) given() (rows []*Setting) {
	for i := range Table {
		if s.IsSet(Table[i].Name) {
			rows = append(rows, &Table[i])
		}
	}
	return rows
}

// Given yields the settings that were set and affect the requests or the measurement, in the
// order of the table, with their texts, masked.
func (s *Settings) Given() iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for _, row := range s.given() {
			if !row.Own && !yield(row.Name, row.Masked(s)) {
				return
			}
		}
	}
}

// Difference is a setting that two runs have set differently. A and B are the texts, masked;
// "" if it was not set.
type Difference struct{ Name, A, B string }

// String describes the difference: "max-concurrency was 8, is 16".
func (d Difference) String() string {
	is := func(text string) string {
		if text == "" {
			return "not set"
		}
		return text
	}
	return fmt.Sprintf("%s was %s, is %s", d.Name, is(d.A), is(d.B))
}

// Differences returns the settings that differ between two runs, in the order of the table,
// without those that affect neither requests nor measurement.
func Differences(a, b *Settings) (all []Difference) {
	inA, inB := maps.Collect(a.Given()), maps.Collect(b.Given())
	for i := range Table {
		if name := Table[i].Name; inA[name] != inB[name] {
			all = append(all, Difference{name, inA[name], inB[name]})
		}
	}
	return all
}
