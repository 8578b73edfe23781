package runfile

import (
	"fmt"
	"maps"
	"math/bits"
	"path/filepath"
	"slices"
	"time"

	"moontide/trace/jsonscan"
)

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
	return writeFile(filepath.Join(dir, GapsFile), text)
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
			return nil, fmt.Errorf("%s:%d: not a count of gaps, or too many: %.100q", GapsFile, n, line)
		}
		total += count.Count
		counts[count.NS] += count.Count
	}
	return counts, nil
}
