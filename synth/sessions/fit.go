package sessions

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"moontide/synth/prefix"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
)

// Options configures [Fit]. The zero value detects what it needs.
type Options struct {
	// BlockSize is the number of tokens per block, 1 to [trace.MaxLength];
	// 0 detects it from the rows.
	BlockSize int
}

// Fit makes the model of a trace. The requests may be in any order, except for
// the turns of a session. It uses about 48 bytes for each distinct prefix of
// the trace and 400 bytes for each request while it runs.
//
// Fit fails if the source fails or is empty, if only some rows have block ids, if a row
// without a timestamp has no row to follow, if a prompt has more than 2^20 blocks, or if
// no single block size fits every row.
func Fit(source trace.Requests, opts Options) (_ *Model, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("fitting the sessions method: %w", err)
		}
	}()
	if opts.BlockSize < 0 || opts.BlockSize > trace.MaxLength {
		return nil, fmt.Errorf("block size %d is not in 0..%d", opts.BlockSize, trace.MaxLength)
	}
	f := &fitter{Model: &Model{modelFile: modelFile{Version: fileVersion}, rate: 1}, prompts: prefix.New(), labels: map[label]int{}}
	defer f.builder.Close()
	for r, err := range source {
		if err == nil {
			err = f.add(r)
		}
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", len(f.rows)+1, err)
		}
	}
	if len(f.rows) == 0 {
		return nil, errors.New("no requests in the source")
	}
	if f.badReasoning > 0 {
		f.note("the reasoning of %d of %d requests is ignored: it is no number of tokens of the answer", f.badReasoning, len(f.rows))
	}
	if f.untimed > 0 {
		f.note("times estimated from delays and assumed answer times of %g ms and %g ms a token: %d", trace.AssumedTTFT, trace.AssumedTPOT, f.untimed)
	}
	f.nameClients()
	if err := f.findBlockSize(opts.BlockSize); err != nil {
		return nil, err
	}
	if err := f.group(); err != nil {
		return nil, err
	}
	f.setClock()
	f.makeSessions()
	f.blur()
	return f.Model, nil
}

// fitter makes a model.
type fitter struct {
	*Model
	detector  block.SizeDetector
	prompts   *prefix.Tree
	lastBlock uint64 // the largest block id
	rows      []row
	hasBlocks bool
	grouped   bool // rows have session ids, or name the rows that they wait for
	builder   trace.GraphBuilder
	earlier   trace.Earlier
	labels    map[label]int // rows that have them

	badReasoning int // rows
	untimed      int // rows without a timestamp, whose times are estimated

	uses []int32 // see countUses
	runs []int32 // see makePrefixes
}

// row is a request of the source.
type row struct {
	turn    // Waits has numbers of rows
	number  int
	agent   string // its session id
	at      float64
	isl     int
	end     prefix.Node // of its last block
	labels  []label
	session int
	parent  int // turn of its session with which it shares the most blocks
	known   int // these blocks, or 0
}

const (
	maxTime       = 1e15    // ms: 30,000 years
	maxBlocks     = 1 << 20 // of a prompt
	maxFirstBlock = 1e15    // an id: all that follow are exact in JSON
)

// note records a property that the model drops or assumes.
func (f *fitter) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// add adds a row of the source.
func (f *fitter) add(r trace.Request) error {
	if min(r.InputLength, r.OutputLength) < 0 || max(r.InputLength, r.OutputLength) > trace.MaxLength {
		return fmt.Errorf("an input length of %d or an output length of %d is not in 0..%d", r.InputLength, r.OutputLength, trace.MaxLength)
	}
	if has := r.HashIDs != nil; len(f.rows) == 0 {
		f.hasBlocks = has
	} else if has != f.hasBlocks {
		return errors.New("block ids must be on all rows or on none: this row differs from the first")
	}
	f.detector.Add(r.InputLength, r.HashIDs)
	for _, id := range r.HashIDs {
		f.lastBlock = max(f.lastBlock, id)
	}
	x := row{number: len(f.rows), agent: r.SessionID, isl: r.InputLength, end: f.prompts.Add(r.HashIDs), turn: turn{OSL: r.OutputLength, Named: r.After != nil}}
	if len(r.Extra) > 0 {
		f.readKeys(&x, "", r.Extra)
	}
	f.Graph = f.Graph || x.Named
	f.grouped = f.grouped || x.Named || r.SessionID != ""
	f.builder.Add(r, 0)
	before, answered := math.Inf(-1), math.Inf(-1) // the arrival and the answer of the last one that it waits for
	for _, i := range f.earlier.Add(r) {
		x.Waits = append(x.Waits, int(i))
		before = max(before, f.rows[i].at)
		answered = max(answered, f.rows[i].at+trace.ResponseTime(f.rows[i].OSL))
	}
	if r.Delay.Set {
		x.Timing, x.Delay, x.Kind = timestampAndDelay, max(0, r.Delay.Value), r.DelayKind
	}
	switch {
	case r.Timestamp.Set:
		x.at = max(r.Timestamp.Value, before)
	case len(x.Waits) == 0 && len(r.After) > 0:
		return fmt.Errorf("no timestamp, and no earlier row is named in after %.60q; sort the trace first", r.After)
	case len(x.Waits) == 0:
		return errors.New("no timestamp, and no turn before it in its session")
	default:
		x.at, x.Timing = answered+x.Delay, delayOnly
		f.untimed++
	}
	if math.IsNaN(x.at) || math.Abs(x.at) > maxTime {
		return fmt.Errorf("timestamp %v ms is out of range", x.at)
	}
	f.rows = append(f.rows, x)
	return nil
}

// findBlockSize finds the block size, and whether partial blocks have ids.
func (f *fitter) findBlockSize(blockSize int) error {
	if !f.hasBlocks {
		return nil
	}
	f.size = block.GivenSize(blockSize)
	if blockSize == 0 {
		if f.size = f.detector.Size(); f.size.Low > f.size.High {
			return errors.New("no one block size fits every row; name the right one")
		}
	}
	f.Tokens = f.size.Tokens
	without, with := 0, 0
	for i := range f.rows {
		r := &f.rows[i]
		switch partial := f.prompts.Depth(r.end) - r.isl/f.Tokens; {
		case r.isl%f.Tokens == 0:
		case partial == 0:
			without++
		case partial == 1:
			with++
		}
	}
	f.FullBlocksOnly = without > with
	for i := range f.rows {
		r := &f.rows[i]
		blocks := f.blocksOf(r.isl)
		if blocks > maxBlocks {
			return fmt.Errorf("a prompt of %d tokens has %d blocks of %d tokens, more than %d", r.isl, blocks, f.Tokens, maxBlocks)
		}
		if f.prompts.Depth(r.end) != blocks {
			f.irregular++
		}
		for f.prompts.Depth(r.end) > blocks {
			r.end = f.prompts.Parent(r.end)
		}
	}
	if f.lastBlock < maxFirstBlock {
		for f.FirstBlock = 10; f.FirstBlock <= f.lastBlock; f.FirstBlock *= 10 {
		}
	}
	return nil
}

// group sets the sessions of the rows, and sorts the rows by time, the first at 0.
func (f *fitter) group() error {
	if f.grouped {
		graph, err := f.builder.Graph()
		if err != nil {
			return err
		}
		for i := range f.rows {
			f.rows[i].session = graph.First(i)
		}
	}
	slices.SortFunc(f.rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number)) })
	begin := f.rows[0].at
	for i := range f.rows {
		f.rows[i].at = microseconds(f.rows[i].at - begin)
	}
	f.countUses()
	if !f.grouped {
		f.groupByPrefix()
	}
	return nil
}

// minUses is the number of uses from which a prefix is a template: one prompt in a hundred.
func (f *fitter) minUses() int32 { return int32(max(30, len(f.rows)/100)) }

// countUses counts the uses of each prefix: the rows that have it, but a run of rows that
// each extend the prompt before, as the turns of a conversation, counts once. One within a
// twentieth of the trace has none: it is that of one task, such as a search.
func (f *fitter) countUses() {
	f.uses = make([]int32, f.prompts.Len()+1)
	latest, first := make([]int32, len(f.uses)), make([]int32, len(f.uses)) // rows, from 1
	for i := range f.rows {
		r := &f.rows[i]
		known := f.longest(r.end, func(n prefix.Node) bool { return latest[n] > 0 })
		p := &f.rows[max(1, latest[known])-1]
		extends := known != prefix.Root && r.isl > p.isl && f.prompts.Depth(known) >= min(f.fullBlocks(p.isl), f.prompts.Depth(p.end))
		for n := r.end; n != prefix.Root; n = f.prompts.Parent(n) {
			if !extends || latest[n] == 0 {
				f.uses[n]++
			}
			if latest[n] = int32(i) + 1; first[n] == 0 {
				first[n] = latest[n]
			}
		}
	}
	for n := range f.uses {
		if int(latest[n]-first[n]) < len(f.rows)/20 {
			f.uses[n] = 0
		}
	}
}

// longest returns the longest prefix of a prompt for which a function is true, or the root.
func (f *fitter) longest(n prefix.Node, is func(prefix.Node) bool) prefix.Node {
	for n != prefix.Root && !is(n) {
		n = f.prompts.Parent(n)
	}
	return n
}

// groupByPrefix makes rows turns of the session of the most recent row that shares their
// longest prefix, unless that is a template.
func (f *fitter) groupByPrefix() {
	latest := make([]int32, len(f.uses)) // row, from 1
	for i := range f.rows {
		r := &f.rows[i]
		known := f.longest(r.end, func(n prefix.Node) bool { return latest[n] > 0 })
		r.session = i
		if known != prefix.Root && f.uses[known] < f.minUses() {
			r.session = f.rows[latest[known]-1].session
		}
		for n := r.end; n != prefix.Root; n = f.prompts.Parent(n) {
			latest[n] = int32(i) + 1
		}
	}
}

// setClock sets the arrivals and the clock.
func (f *fitter) setClock() {
	c := &f.Clock
	var times []float64
	steps := 0 // from one time to a later one
	for i := range f.rows {
		r := &f.rows[i]
		if i > 0 && r.at > f.rows[i-1].at {
			steps++
		}
		if r.Timing != delayOnly {
			r.Arrival = len(times)
			times = append(times, r.at)
		}
	}
	c.Whole = !slices.ContainsFunc(times, func(at float64) bool { return at != math.Round(at) })
	step := .001
	if c.Whole {
		step = 1
	}
	if f.untimed == 0 {
		var grid trace.Grid
		if grid, c.Coarse = trace.DetectGrid(times); c.Coarse && grid.Step == math.Round(grid.Step) {
			step = grid.Step
		}
	}
	again := f.rows[len(f.rows)-1].at // when the source is repeated: after the mean gap
	if steps > 0 {
		again += max(1, math.Round(again/float64(steps)/step)) * step
	}
	c.Gaps = []float64{again - times[len(times)-1]}
	for i := range times[1:] {
		c.Gaps = append(c.Gaps, microseconds(times[i+1]-times[i]))
	}
	c.setTimes()
}

// makeSessions makes the sessions of the rows.
func (f *fitter) makeSessions() {
	place := make([]int, len(f.rows)) // of rows, by their numbers, in their sessions
	numbers := map[int]int{}          // of sessions
	var members [][]int
	for i := range f.rows {
		r := &f.rows[i]
		n, known := numbers[r.session]
		if !known {
			n = len(members)
			numbers[r.session] = n
			members = append(members, nil)
		}
		place[r.number] = len(members[n])
		members[n] = append(members[n], i)
	}
	f.makePrefixes(f.findShared(members))
	for _, rows := range members {
		var turns []turn
		agents := map[string]int{"": 0}
		for number, i := range rows {
			t := f.turnOf(i, number)
			agent := f.rows[i].agent
			if _, known := agents[agent]; !known {
				agents[agent] = len(agents)
			}
			t.Agent = agents[agent]
			for k, w := range t.Waits {
				t.Waits[k] = number - place[w]
			}
			turns = append(turns, t)
		}
		f.Sessions = append(f.Sessions, turns)
	}
}

// blur replaces lengths, delays and gaps by others near them, so that the model has no row
// of the source.
func (f *fitter) blur() {
	random := stats.NewStream(0, "model")
	j := newJitter(f.Model)
	for i := range f.Sessions {
		f.Sessions[i] = j.vary(f.Sessions[i], random)
	}
	gaps := values(slices.Sorted(slices.Values(f.Clock.Gaps)))
	for i, gap := range f.Clock.Gaps[1:] {
		f.Clock.Gaps[i+1] = f.Clock.vary(gap, gaps, lengthJitter, random)
	}
	f.Clock.setTimes()
}
