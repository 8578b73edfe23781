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

	HitRate        *float64 `json:"hit_rate,omitempty"`        // recent, 0..1, if the server has no counters
	BlockSize      *float64 `json:"block_size,omitempty"`      // tokens
	CapacityTokens *float64 `json:"capacity_tokens,omitempty"` // total size of the KV caches of all engines
}

// sampleFile is samples.jsonl during a run.
type sampleFile struct {
	file *os.File
	line []byte
}

// Sample writes a line of samples.jsonl. It must be called from a single
// goroutine, which may differ from that of Record.
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

// maxSampleLine is far more than a sample needs, in bytes.
const maxSampleLine = 1 << 20

// Samples returns the samples in a run's folder in order. Invalid lines, which a
// kill may leave, are skipped.
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
