package runfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"moontide/replay"
	"moontide/trace/atomicfile"
	"moontide/trace/jsonscan"
)

// maxLine is far more than a line of these files needs, in bytes.
const maxLine = 1 << 20

// readLines yields the lines of a file in a run's folder, none if it does not
// exist. A line is valid until the next one.
func readLines(dir, name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			if !yield(lines.Bytes(), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// SentFile lists the rows that were sent, one number per line, counted from 0. It
// is removed when the run is complete.
const SentFile = "sent.txt"

// Sending implements replay.Journal. It needs OpenFiles.
func (f *Writer) Sending(row int) error {
	var line [24]byte
	if _, err := f.sent.Write(append(strconv.AppendInt(line[:0], int64(row), 10), '\n')); err != nil {
		return fmt.Errorf("noting that row %d is sent: %w", row+1, err)
	}
	return nil
}

// removeJournal removes the journal of a complete run.
func removeJournal(dir string) error {
	f, err := atomicfile.Open(filepath.Join(dir, SentFile), os.O_RDONLY, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return atomicfile.Remove(f)
}

// sentRows counts the rows in the journal, if it exists.
func sentRows(dir string, rows int) (n int, err error) {
	var seen replay.RowSet
	for line, err := range readLines(dir, SentFile) {
		if err != nil {
			return 0, err
		}
		// A resumed run may have sent a row twice.
		if row, err := strconv.Atoi(string(line)); err == nil && row >= 0 && row < rows && !seen.Has(row) {
			seen.Add(row)
			n++
		}
	}
	return n, nil
}

// Resume opens the folder of a killed or stopped run to append records. An
// incomplete last line is removed. It fails if the run is still active.
func Resume(dir string) (*Writer, error) {
	f, err := openWriter(dir, os.O_RDWR, func(f *Writer) (err error) {
		if err = dropCutLine(f.file); err == nil {
			f.gaps, err = readGaps(dir)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("resuming the run in %s: %w", dir, err)
	}
	return f, nil
}

// appendLines opens a file to append lines. An incomplete last line is removed.
func appendLines(path string) (*os.File, error) {
	f, err := atomicfile.Open(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	if err := dropCutLine(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// dropCutLine removes an incomplete last line and seeks to the end.
func dropCutLine(f *os.File) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	text := make([]byte, 64<<10)
	for end > 0 {
		from := max(end-int64(len(text)), 0)
		part := text[:end-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			end = from + int64(i) + 1
			break
		}
		end = from
	}
	if err := f.Truncate(end); err != nil {
		return err
	}
	_, err = f.Seek(end, io.SeekStart)
	return err
}

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

// Sample writes a line of samples.jsonl. It needs OpenFiles.
func (f *Writer) Sample(s Sample) error {
	line, err := s.Line()
	if err == nil {
		_, err = f.samples.Write(line)
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

// GapsFile holds a histogram of the gaps between token chunks if the records have
// no gaps: one [GapCount] per line, written when the run ends.
const GapsFile = "gaps.jsonl"

// GapCount is a bin of the histogram.
type GapCount struct {
	NS    int64 `json:"gap_ns"` // middle of the bin, in nanoseconds
	Count int64 `json:"count"`
}

// GapResolution is the largest relative error of a bin.
const GapResolution = 1.0 / 256

// gapCounts maps bins to counts. It has a few thousand entries at most.
type gapCounts map[int64]int64

// add counts a gap. The gaps in a bin share their first eight bits.
func (c gapCounts) add(gap time.Duration) {
	rest := max(bits.Len64(uint64(max(gap, 0)))-8, 0)
	low := int64(max(gap, 0)) >> rest << rest
	c[low+(1<<rest)/2]++
}

// list returns the counts sorted by gap.
func (c gapCounts) list() []GapCount {
	var list []GapCount
	for _, ns := range slices.Sorted(maps.Keys(c)) {
		list = append(list, GapCount{ns, c[ns]})
	}
	return list
}

// write replaces the file in a run's folder.
func (c gapCounts) write(dir string) error {
	var text []byte
	for _, count := range c.list() {
		line, err := jsonscan.Strict.Marshal(count)
		if err != nil {
			return fmt.Errorf("writing %s: %w", GapsFile, err)
		}
		text = append(append(text, line...), '\n')
	}
	f, err := atomicfile.Replace(filepath.Join(dir, GapsFile))
	return writeFile(f, err, text)
}

// readGaps reads the file, if it exists.
func readGaps(dir string) (gapCounts, error) {
	counts, n, total := gapCounts{}, 0, int64(0)
	for line, err := range readLines(dir, GapsFile) {
		if err != nil {
			return nil, err
		}
		n++
		var count GapCount
		if err := jsonscan.Strict.Unmarshal(line, &count); err != nil || count.NS < 0 || count.Count < 0 || count.Count > maxReads-total {
			return nil, fmt.Errorf("%s:%d: not a count of gaps, or too many", GapsFile, n)
		}
		total += count.Count
		counts[count.NS] += count.Count
	}
	return counts, nil
}
