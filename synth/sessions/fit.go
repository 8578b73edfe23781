package sessions

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"moontide/synth/prefix"
	"moontide/trace"
)

// Options say how [Fit] reads its source. The zero value detects what it needs.
type Options struct {
	// BlockSize is the number of tokens of a block, 1 to [trace.MaxLength];
	// 0 detects it from the rows.
	BlockSize int
}

// Fit learns the model from all requests of a trace, which may be in any order
// but for the turns of a session. It needs memory for the distinct prefixes of
// the trace (about 48 bytes each) and for its requests (about 300 bytes each),
// and lets go of both when it returns.
//
// Where rows have session ids, these say which requests belong together; else
// the block ids do. A row without a timestamp follows the answer to the row before
// it of its session after its delay, or at once. The answer is taken to need 500
// ms, and 20 ms for each token after the first, as descriptions of workloads take
// it; if most of these times fit in between the timestamps of the rows around, the
// file is in order of arrival and those that do not fit are moved. Rows may have no block ids at all; the
// model then knows lengths, arrivals and given sessions only.
//
// It is an error if the source fails, has fewer than five requests, has block
// ids in some rows but not in others, or a row without a timestamp that follows
// no other; if a prompt has more than 2^20 blocks; or if the block size is to be
// detected and no one size fits every row.
func Fit(source trace.Requests, opts Options) (*Model, error) {
	m, err := fit(source, opts)
	if err != nil {
		return nil, fmt.Errorf("fitting the sessions method: %w", err)
	}
	return m, nil
}

func fit(source trace.Requests, opts Options) (*Model, error) {
	if opts.BlockSize < 0 || opts.BlockSize > trace.MaxLength {
		return nil, fmt.Errorf("block size %d is not in 0..%d", opts.BlockSize, trace.MaxLength)
	}
	f := newFitter()
	for r, err := range source {
		if err != nil {
			return nil, err
		}
		if err := f.add(r); err != nil {
			return nil, fmt.Errorf("request %d: %w", len(f.rows)+1, err)
		}
	}
	if len(f.rows) < minCell {
		return nil, fmt.Errorf("the source has %d requests: at least %d are needed", len(f.rows), minCell)
	}
	if err := f.measure(opts.BlockSize); err != nil {
		return nil, err
	}
	f.findTemplates()
	f.settle()
	f.fitStarts()
	f.fitTurns()
	f.fitPace()
	f.prepare()
	return f.Model, nil
}

// fitter learns a model.
type fitter struct {
	*Model
	detector trace.BlockDetector
	prompts  *prefix.Tree
	rows     []row
	latest   map[string]int32 // row of each session, plus 1, in order of reading
	untimed  int              // rows without a timestamp
	under    []int32          // template of each node of prompts
}

// row is a request of the source.
type row struct {
	turn
	end      prefix.Node // of its blocks
	before   int32       // the row that it says to follow, in order of reading, or -1
	delay    float64     // ms from the answer to that one, where this has no timestamp
	parent   int32       // the row that it goes on from, or -1
	next     []int32     // the rows that go on from it
	relation relation
	untimed  bool
}

// begins tells whether a session begins with the row.
func (r *row) begins() bool { return r.parent == none || r.relation == joins }

func newFitter() *fitter {
	return &fitter{Model: &Model{}, prompts: prefix.New(), latest: make(map[string]int32)}
}

func (f *fitter) add(r trace.Request) error {
	for _, l := range []struct {
		name  string
		value int
	}{{"input", r.InputLength}, {"output", r.OutputLength}} {
		if l.value < 0 || l.value > trace.MaxLength {
			return fmt.Errorf("%s length %d is not in 0..%d", l.name, l.value, trace.MaxLength)
		}
	}
	if has := r.HashIDs != nil; len(f.rows) == 0 {
		f.hasBlocks = has
	} else if has != f.hasBlocks {
		return errors.New("either all rows have block ids or none: this one differs from the first")
	}
	f.detector.Add(r)
	x := row{turn: turn{isl: r.InputLength, osl: r.OutputLength}, before: none, end: f.prompts.Add(r.HashIDs)}
	if r.SessionID != "" {
		f.hasSessions = true
		x.before = f.latest[r.SessionID] - 1
		f.latest[r.SessionID] = int32(len(f.rows)) + 1
	}
	switch {
	case r.Timestamp.Set:
		x.at = r.Timestamp.Value
	case x.before == none:
		return errors.New("no timestamp, and no turn before it in its session")
	default:
		x.delay = max(0, r.Delay.Value)
		x.at = f.answered(x.before) + x.delay
		x.untimed = true
		f.untimed++
	}
	if math.IsNaN(x.at) || math.Abs(x.at) > maxTime {
		return fmt.Errorf("timestamp %v ms is out of range", x.at)
	}
	f.rows = append(f.rows, x)
	return nil
}

// An answer that no one timed is taken to have its first token after firstToken
// and each further one after nextToken, in ms.
const firstToken, nextToken = 500, 20

func answerTime(osl int) float64 { return firstToken + nextToken*float64(max(osl-1, 0)) }

// answered is when the answer to a row is there, as far as that can be told.
func (f *fitter) answered(i int32) float64 { return f.rows[i].at + answerTime(f.rows[i].osl) }

// maxTime bounds times in ms: 30,000 years.
const maxTime = 1e15

// maxBlocks bounds the blocks of a prompt.
const maxBlocks = 1 << 20

// measure sorts the rows by time and finds out what depends on all of them.
func (f *fitter) measure(given int) error {
	f.followFile()
	f.sort()
	f.size = trace.GivenBlockSize(given)
	if given == 0 {
		if f.size = f.detector.BlockSize(); f.size.Low > f.size.High {
			return errors.New("no one block size fits every row; name the right one")
		}
	}
	full, partial := 0, 0
	later := 0
	for _, r := range f.rows {
		switch depth, tokens := f.prompts.Depth(r.end), f.size.Tokens; {
		case r.isl%tokens == 0:
		case depth == r.isl/tokens:
			full++
		case depth == r.isl/tokens+1:
			partial++
		}
		if r.before != none {
			later++
		}
	}
	f.fullOnly = f.hasBlocks && full > partial
	f.delays = f.untimed > 0 && 2*f.untimed >= later
	f.requests = len(f.rows)
	f.isl = f.extentOf(func(r *row) int { return r.isl })
	f.osl = f.extentOf(func(r *row) int { return r.osl })
	for i := range f.rows {
		r := &f.rows[i]
		r.blocks = f.blocksOf(r.isl)
		if f.hasBlocks && r.blocks > maxBlocks {
			return fmt.Errorf("a prompt of %d tokens has %d blocks of %d tokens, more than %d", r.isl, r.blocks, f.size.Tokens, maxBlocks)
		}
		if f.hasBlocks && f.prompts.Depth(r.end) != r.blocks {
			f.irregular++
		}
		for f.prompts.Depth(r.end) > r.blocks {
			r.end = f.prompts.Parent(r.end)
		}
	}
	return nil
}

// followFile moves rows without a timestamp between the timestamps around them in
// the file, where most lie there already: they are in order of arrival then, and
// answers took longer or shorter than taken.
func (f *fitter) followFile() {
	type bounds struct{ low, high float64 }
	between := make([]bounds, len(f.rows))
	low, high := math.Inf(-1), math.Inf(1)
	for i, r := range f.rows {
		if !r.untimed {
			low = max(low, r.at)
		}
		between[i].low = low
	}
	inside := 0
	for i := len(f.rows) - 1; i >= 0; i-- {
		r := &f.rows[i]
		if !r.untimed {
			high = min(high, r.at)
		}
		between[i].high = high
		if r.untimed && r.at >= between[i].low && r.at <= high {
			inside++
		}
	}
	for i := range f.rows {
		if r := &f.rows[i]; r.untimed && 2*inside >= f.untimed {
			r.at = max(f.answered(r.before)+r.delay, between[i].low)
			r.at = max(f.rows[r.before].at, min(r.at, between[i].high))
		}
	}
}

func (f *fitter) extentOf(length func(*row) int) extent {
	values := make([]float64, len(f.rows))
	for i := range f.rows {
		values[i] = float64(length(&f.rows[i]))
	}
	slices.Sort(values)
	return extentOf(values, true)
}

// sort puts rows in order of time, the first at 0, and what they say to follow
// along with them.
func (f *fitter) sort() {
	order := indices(len(f.rows))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.rows[a].at, f.rows[b].at) })
	rows := make([]row, len(order))
	place := make([]int32, len(order))
	for to, from := range order {
		rows[to] = f.rows[from]
		place[from] = int32(to)
	}
	begin := rows[0].at
	for i := range rows {
		rows[i].at = rounded(rows[i].at-begin, 15)
		if b := rows[i].before; b != none {
			rows[i].before = place[b]
		}
	}
	f.rows = rows
}

// link finds for each row the one that it goes on from: the one that it says to
// follow or, where it does not, the most recent one that has the longest prefix of
// it, if that is longer than its template. If rows have session ids, it is a
// session that joins another then.
func (f *fitter) link() {
	latest := make([]int32, f.prompts.Len()+1) // row that has the node, plus 1
	for i := range f.rows {
		r := &f.rows[i]
		r.parent, r.next, r.number, r.gap, r.pace = none, nil, 0, 0, 0
		r.template = int(f.under[r.end])
		depth := f.templates[r.template].depth
		known := r.end
		for known != prefix.Root && latest[known] == 0 {
			known = f.prompts.Parent(known)
		}
		switch {
		case r.before != none:
			r.parent = r.before
			r.shared = f.common(r.end, f.rows[r.before].end)
		case f.prompts.Depth(known) > depth:
			r.parent = latest[known] - 1
			r.shared = f.prompts.Depth(known)
		default:
			r.shared = depth
		}
		if r.parent != none {
			p := &f.rows[r.parent]
			if r.relation = f.relationOf(p, r); r.relation != joins {
				r.follow(&p.turn)
			}
			p.next = append(p.next, int32(i))
		}
		for n := r.end; n != prefix.Root; n = f.prompts.Parent(n) {
			latest[n] = int32(i) + 1
		}
	}
}

// common is the number of blocks that two prompts begin with alike.
func (f *fitter) common(a, b prefix.Node) int {
	for a != b {
		if f.prompts.Depth(a) >= f.prompts.Depth(b) {
			a = f.prompts.Parent(a)
		} else {
			b = f.prompts.Parent(b)
		}
	}
	return f.prompts.Depth(a)
}

func (f *fitter) relationOf(p, r *row) relation {
	switch {
	case f.hasSessions && r.before == none:
		return joins
	case r.isl == p.isl && r.end == p.end:
		return repeats
	case r.shared >= min(p.isl/f.size.Tokens, p.blocks) && r.isl >= p.isl:
		return extends
	case r.shared == p.shared:
		return returns
	}
	return edits
}
