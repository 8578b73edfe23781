package runfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"moontide/trace/jsonscan"
)

// SamplesFile holds the state of client and server, second by second. A run in
// virtual time has no such file.
const SamplesFile = "samples.jsonl"

// Sample is the state of a run during an interval, usually a second: one line of
// samples.jsonl. Counts are per interval unless noted.
type Sample struct {
	AtMS   float64 `json:"at_ms"`   // end of the interval, since the start of the run
	SpanMS float64 `json:"span_ms"` // length of the interval

	// The client. CPU is in CPU cores, MachineShare is the same as a share of all
	// cores, and MachineBusy is that share for all processes, 0 if unknown.
	CPU          float64   `json:"cpu"`
	MachineShare float64   `json:"machine_share"`
	MachineBusy  float64   `json:"machine_busy"`
	GCPauses     int       `json:"gc_pauses"`
	GCPauseMS    float64   `json:"gc_pause_ms"` // total
	GCPauseMaxMS float64   `json:"gc_pause_max_ms"`
	SchedP50MS   float64   `json:"sched_p50_ms"` // scheduling latency of goroutines
	SchedP99MS   float64   `json:"sched_p99_ms"`
	ReadDelay    ReadDelay `json:"read_delay,omitzero"`
	RSSBytes     int64     `json:"rss_bytes"`

	// Progress.
	InFlight int `json:"in_flight"`
	Sent     int `json:"sent"` // since its start
	Done     int `json:"done"` // since its start

	// The server's metrics, if scraped.
	Server      *ServerFigures `json:"server,omitempty"`
	ServerError string         `json:"server_error,omitempty"`
}

// ServerFigures holds a server's own metrics, over all of its engines. nil means
// unknown.
type ServerFigures struct {
	Engine   string   `json:"engine"`               // vllm, sglang, trtllm or dynamo
	Engines  int      `json:"engines"`              // engines that report their KV cache use
	KVUse    *float64 `json:"kv_use,omitempty"`     // share of the KV cache in use, 0..1, mean over the engines
	KVUseMax *float64 `json:"kv_use_max,omitempty"` // maximum over the engines
	Running  *float64 `json:"running,omitempty"`    // requests
	Waiting  *float64 `json:"waiting,omitempty"`    // requests

	// Totals since the server started.
	QueriedTokens *float64 `json:"queried_tokens,omitempty"` // prompt tokens looked up in the prefix cache
	HitTokens     *float64 `json:"hit_tokens,omitempty"`     // QueriedTokens found in the cache
	Preemptions   *float64 `json:"preemptions,omitempty"`    // preempted requests
	Aborted       *float64 `json:"aborted,omitempty"`        // requests that ended because the client closed them

	StartTime      *float64 `json:"start_time,omitempty"`      // of the newest server process, in seconds since 1970
	HitRate        *float64 `json:"hit_rate,omitempty"`        // recent, 0..1, if the server has no counters
	BlockSize      *float64 `json:"block_size,omitempty"`      // tokens
	CapacityTokens *float64 `json:"capacity_tokens,omitempty"` // total size of the KV caches of all engines
}

// Line returns the sample as a line of samples.jsonl. It uses encoding/json like
// [WriteJSON]: there is a sample per second.
func (s Sample) Line() ([]byte, error) {
	var line bytes.Buffer
	out := json.NewEncoder(&line)
	out.SetEscapeHTML(false)
	err := out.Encode(s)
	return line.Bytes(), err
}

// Sample writes a line of samples.jsonl.
func (f *Writer) Sample(s Sample) error {
	line, err := s.Line()
	if err == nil {
		err = f.samples.write(f.Dir, SamplesFile, line)
	}
	if err != nil {
		return fmt.Errorf("writing samples: %w", err)
	}
	return nil
}

// Samples returns the samples in a run's folder in order. Invalid lines, which a
// kill may leave, are skipped.
func Samples(dir string) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		for line, err := range readLines(dir, SamplesFile) {
			var s Sample
			if err != nil {
				yield(s, fmt.Errorf("reading samples: %w", err))
				return
			}
			if jsonscan.Strict.Unmarshal(line, &s) == nil && !yield(s, nil) {
				return
			}
		}
	}
}
