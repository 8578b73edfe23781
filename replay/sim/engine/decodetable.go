package engine

import (
	"fmt"
	"strconv"
	"strings"
)

// DecodeTable is the cost of decoding by the number of sequences, in ascending
// order.
type DecodeTable []BatchCost

// BatchCost is an entry of a [DecodeTable].
type BatchCost struct {
	Sequences int // at least 1
	Cost      Cost
}

// maxDecodeEntries limits a table.
const maxDecodeEntries = 1024

// ParseDecodeTable parses entries such as "1:0ms,8:2.5ms,64:9ms".
func ParseDecodeTable(s string) (t DecodeTable, err error) {
	if s == "" {
		return nil, nil
	}
	for entry := range strings.SplitSeq(s, ",") {
		sequences, cost, found := strings.Cut(strings.TrimSpace(entry), ":")
		if !found {
			return nil, fmt.Errorf("entry %q: want SEQUENCES:TIME", entry)
		}
		var e BatchCost
		if e.Sequences, err = strconv.Atoi(sequences); err != nil {
			return nil, fmt.Errorf("entry %q: number of sequences %q is not an integer", entry, sequences)
		}
		if e.Cost, err = ParseCost(cost); err != nil {
			return nil, fmt.Errorf("entry %q: %w", entry, err)
		}
		t = append(t, e)
	}
	return t, t.validate()
}

// String returns the entries as [ParseDecodeTable] reads them.
func (t DecodeTable) String() string {
	entries := make([]string, len(t))
	for i, e := range t {
		entries[i] = fmt.Sprintf("%d:%v", e.Sequences, e.Cost)
	}
	return strings.Join(entries, ",")
}

func (t DecodeTable) validate() error {
	if len(t) > maxDecodeEntries {
		return fmt.Errorf("%d entries of decode costs; at most %d", len(t), maxDecodeEntries)
	}
	before := BatchCost{}
	for _, e := range t {
		switch {
		case e.Sequences <= before.Sequences:
			return fmt.Errorf("decode costs are not in ascending order of sequences: %d after %d", e.Sequences, before.Sequences)
		case e.Cost < before.Cost:
			return fmt.Errorf("decoding %d sequences costs less than %d: %v after %v", e.Sequences, before.Sequences, e.Cost, before.Cost)
		case e.Sequences > maxTokens || e.Cost > maxCost:
			return fmt.Errorf("decode costs %d:%v are above %d:%v", e.Sequences, e.Cost, maxTokens, maxCost)
		}
		before = e
	}
	return nil
}

// of returns the cost of decoding a number of sequences: linear between entries,
// proportional to the number below the first, with the slope of the last two
// beyond the last.
func (t DecodeTable) of(sequences int) Cost {
	i := 0
	for i < len(t)-1 && t[i].Sequences < sequences {
		i++
	}
	to, from := t[i], BatchCost{}
	if i > 0 {
		from = t[i-1]
	}
	if sequences == to.Sequences {
		return to.Cost
	}
	slope := (to.Cost - from.Cost) / Cost(to.Sequences-from.Sequences)
	return from.Cost + times(sequences-from.Sequences, slope)
}
