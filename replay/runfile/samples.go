package runfile

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"moontide/trace/jsonscan"
	"os"
	"path/filepath"
)

// SamplesFile is where a run's folder keeps what the run was like, second by
// second. A run without a client, or one of before there were samples, has
// none.
const SamplesFile = "samples.jsonl"

// Sample is what a run was like for a while, mostly a second: one line of
// samples.jsonl. What is counted is of that while, unless it says otherwise.
type Sample struct {
	AtMS   float64 `json:"at_ms"`   // its end, since the run's start
	SpanMS float64 `json:"span_ms"` // its length

	// What the client did. CPU is its CPU time over the time that passed, so 1
	// is one processor; MachineShare is the same over all processors, and
	// MachineBusy that of all processes together, 0 where it is not known.
	CPU          float64   `json:"cpu"`
	MachineShare float64   `json:"machine_share"`
	MachineBusy  float64   `json:"machine_busy"`
	GCPauses     int       `json:"gc_pauses"`
	GCPauseMS    float64   `json:"gc_pause_ms"` // their sum
	GCPauseMaxMS float64   `json:"gc_pause_max_ms"`
	SchedP50MS   float64   `json:"sched_p50_ms"` // how long goroutines that could go on waited for a processor
	SchedP99MS   float64   `json:"sched_p99_ms"`
	ReadDelay    ReadDelay `json:"read_delay,omitzero"`
	RSSBytes     int64     `json:"rss_bytes"`

	// How far the run was.
	InFlight int `json:"in_flight"`
	Sent     int `json:"sent"` // since its start
	Done     int `json:"done"` // since its start

	// What the server said of itself, if it was asked and had answered.
	Server      *ServerFigures `json:"server,omitempty"`
	ServerError string         `json:"server_error,omitempty"`
}

// ServerFigures are what a server tells of itself in its metrics, over all of
// its engines. What it does not tell is nil.
type ServerFigures struct {
	Engine   string   `json:"engine"`               // whose names they bear: vllm, sglang, trtllm or dynamo
	Engines  int      `json:"engines"`              // that told how much of their KV cache is in use
	KVUse    *float64 `json:"kv_use,omitempty"`     // share of the KV cache in use, 0..1, mean over the engines
	KVUseMax *float64 `json:"kv_use_max,omitempty"` // the same of the one with most
	Running  *float64 `json:"running,omitempty"`    // requests
	Waiting  *float64 `json:"waiting,omitempty"`    // requests

	// Since the server began.
	QueriedTokens *float64 `json:"queried_tokens,omitempty"` // of prompts, looked up in the prefix cache
	HitTokens     *float64 `json:"hit_tokens,omitempty"`     // of these, found
	Preemptions   *float64 `json:"preemptions,omitempty"`    // requests that lost their place

	HitRate        *float64 `json:"hit_rate,omitempty"`        // of late, 0..1, of servers that say no more
	BlockSize      *float64 `json:"block_size,omitempty"`      // tokens
	CapacityTokens *float64 `json:"capacity_tokens,omitempty"` // of the KV caches of all engines
}

// sampleFile is samples.jsonl while it is written.
type sampleFile struct {
	file *os.File
	line []byte
}

// Sample writes a line of samples.jsonl, which is with the operating system
// when it returns. Samples are written by one goroutine, which need not be that
// of the records.
func (f *Writer) Sample(s Sample) error {
	if f.samples.file == nil {
		var err error
		if f.samples.file, err = appendLines(filepath.Join(f.Dir, SamplesFile)); err != nil {
			return fmt.Errorf("writing samples: %w", err)
		}
	}
	text, err := jsonscan.Strict.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing samples: %w", err)
	}
	f.samples.line = append(append(f.samples.line[:0], text...), '\n')
	if _, err := f.samples.file.Write(f.samples.line); err != nil {
		return fmt.Errorf("writing samples: %w", err)
	}
	return nil
}

func (s *sampleFile) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// maxSampleLine is far more than a sample takes, in bytes.
const maxSampleLine = 1 << 20

// Samples returns the samples of a run's folder in their order; none where it
// has none. A line that is no sample, as a kill may leave one, is left out.
func Samples(dir string) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		f, err := os.Open(filepath.Join(dir, SamplesFile))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(Sample{}, fmt.Errorf("reading samples: %w", err))
			return
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, maxSampleLine)
		for lines.Scan() {
			var s Sample
			if jsonscan.Strict.Unmarshal(lines.Bytes(), &s) != nil {
				continue
			}
			if !yield(s, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Sample{}, fmt.Errorf("reading samples: %w", err))
		}
	}
}
