package sessions

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"moontide/synth/prefix"
	"moontide/trace"
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
	f := &fitter{Model: &Model{modelFile: modelFile{Version: fileVersion}, rate: 1}, prompts: prefix.New(), values: map[string][]keyValue{}, agents: map[string]int{}}
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
	f.nameClients()
	if err := f.findBlockSize(opts.BlockSize); err != nil {
		return nil, err
	}
	if err := f.group(); err != nil {
		return nil, err
	}
	f.makeSessions()
	if f.untimed > 0 {
		f.note("times estimated from delays and assumed answer times of %g ms and %g ms a token: %d", trace.AssumedTTFT, trace.AssumedTPOT, f.untimed)
	}
	f.blur()
	return f.Model, nil
}

// fitter makes a model.
type fitter struct {
	*Model
	detector  trace.BlockDetector
	prompts   *prefix.Tree
	lastBlock uint64 // the largest block id
	rows      []row
	hasBlocks bool
	grouped   bool // rows have session ids, or name the rows that they wait for
	builder   trace.GraphBuilder
	earlier   trace.Earlier
	agents    map[string]int // by session id
	values    map[string][]keyValue

	badReasoning int // rows
	untimed      int // rows without a timestamp, whose times are estimated

	uses []int32 // see countUses
}

// row is a request of the source.
type row struct {
	turn    // Waits has numbers of rows
	at      float64
	isl     int
	end     prefix.Node // of its last block
	session int
}

const (
	maxTime   = 1e15    // ms: 30,000 years
	maxBlocks = 1 << 20 // of a prompt
)

// note records a property that the model drops or assumes.
func (f *fitter) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// add adds a row of the source.
func (f *fitter) add(r trace.Request) error {
	for i, length := range []int{r.InputLength, r.OutputLength} {
		if length < 0 || length > trace.MaxLength {
			return fmt.Errorf("%s length %d is not in 0..%d", []string{"input", "output"}[i], length, trace.MaxLength)
		}
	}
	if has := r.HashIDs != nil; len(f.rows) == 0 {
		f.hasBlocks = has
	} else if has != f.hasBlocks {
		return errors.New("block ids must be on all rows or on none: this row differs from the first")
	}
	f.detector.Add(r)
	for _, id := range r.HashIDs {
		f.lastBlock = max(f.lastBlock, id)
	}
	x := row{isl: r.InputLength, end: f.prompts.Add(r.HashIDs), turn: turn{OSL: r.OutputLength}}
	if len(r.Extra) > 0 {
		f.readKeys(&x, "", r.Extra)
	}
	if r.SessionID != "" {
		n, known := f.agents[r.SessionID]
		if !known {
			n = len(f.agents) + 1
			f.agents[r.SessionID] = n
		}
		x.Agent = n
	}
	f.builder.Add(r, 0)
	follows, answered := none, 0.0
	for _, i := range f.earlier.Add(r) {
		x.Waits = append(x.Waits, int(i))
		if end := f.rows[i].at + trace.AnswerTime(f.rows[i].OSL); follows == none || end > answered {
			follows, answered = int(i), end
		}
	}
	x.Named = r.After != nil
	f.Graph = f.Graph || x.Named
	f.grouped = f.grouped || x.Named || r.SessionID != ""
	if r.Delay.Set {
		x.Timing, x.Delay, x.Kind = timestampAndDelay, max(0, r.Delay.Value), r.DelayKind
	}
	switch {
	case r.Timestamp.Set:
		x.at = r.Timestamp.Value
	case follows == none && len(r.After) > 0:
		return fmt.Errorf("no timestamp, and no earlier row is named in after %.60q; sort the trace first", r.After)
	case follows == none:
		return errors.New("no timestamp, and no turn before it in its session")
	default:
		x.at, x.Timing = answered+x.Delay, delayOnly
		f.untimed++
	}
	if math.IsNaN(x.at) || math.Abs(x.at) > maxTime {
		return fmt.Errorf("timestamp %v ms is out of range", x.at)
	}
	for _, i := range x.Waits { // its turn is after theirs
		x.at = max(x.at, f.rows[i].at)
	}
	f.rows = append(f.rows, x)
	return nil
}

// findBlockSize finds the block size, and whether partial blocks have ids.
func (f *fitter) findBlockSize(blockSize int) error {
	if !f.hasBlocks {
		return nil
	}
	f.size = trace.GivenBlockSize(blockSize)
	if blockSize == 0 {
		if f.size = f.detector.BlockSize(); f.size.Low > f.size.High {
			return errors.New("no one block size fits every row; name the right one")
		}
	}
	f.Tokens = f.size.Tokens
	without, with := 0, 0
	for i := range f.rows {
		switch depth, full := f.prompts.Depth(f.rows[i].end), f.rows[i].isl/f.Tokens; {
		case f.rows[i].isl%f.Tokens == 0:
		case depth == full:
			without++
		case depth == full+1:
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
		f.FirstBlock = roundAbove(f.lastBlock)
	}
	return nil
}

// maxFirstBlock is the largest first block id: a power of 10, so that all that follow
// are exact in JSON.
const maxFirstBlock = 1e15

// roundAbove returns the first of 10, 20, 50, 100, ... that is above an id.
func roundAbove(id uint64) uint64 {
	for ten := uint64(10); ; ten *= 10 {
		for _, n := range []uint64{1, 2, 5} {
			if n*ten > id {
				return n * ten
			}
		}
	}
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
	order := make([]int, len(f.rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.rows[a].at, f.rows[b].at) })
	rows, place := make([]row, len(order)), make([]int, len(order))
	for to, from := range order {
		rows[to], place[from] = f.rows[from], to
	}
	begin := rows[0].at
	for i := range rows {
		rows[i].at = math.Round((rows[i].at-begin)*1000) / 1000
		for k, w := range rows[i].Waits {
			rows[i].Waits[k] = place[w]
		}
	}
	f.rows = rows
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
		known := f.known(r, latest)
		extends := false
		if known != prefix.Root {
			p := &f.rows[latest[known]-1]
			extends = r.isl > p.isl && f.prompts.Depth(known) >= min(f.fullBlocks(p.isl), f.prompts.Depth(p.end))
		}
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

// known returns the longest prefix of a row that one before it has.
func (f *fitter) known(r *row, latest []int32) prefix.Node {
	n := r.end
	for n != prefix.Root && latest[n] == 0 {
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
		known := f.known(r, latest)
		r.session = i
		if known != prefix.Root && f.uses[known] < f.minUses() {
			r.session = f.rows[latest[known]-1].session
		}
		for n := r.end; n != prefix.Root; n = f.prompts.Parent(n) {
			latest[n] = int32(i) + 1
		}
	}
}

// makeSessions makes the sessions of the rows.
func (f *fitter) makeSessions() {
	times, owners := make([]float64, len(f.rows)), make([]int, len(f.rows))
	place := make([]int, len(f.rows)) // of rows in their sessions
	numbers := map[int]int{}          // of sessions
	var members [][]int
	for i, r := range f.rows {
		times[i], owners[i] = r.at, r.session
		n, known := numbers[r.session]
		if !known {
			n = len(members)
			numbers[r.session] = n
			members = append(members, nil)
		}
		place[i] = len(members[n])
		members[n] = append(members[n], i)
	}
	var units []float64
	f.Clock, units = newClock(times, owners, f.untimed > 0)
	share := f.findShared(members)
	for _, rows := range members {
		s := session{Start: units[rows[0]]}
		before := s.Start
		agents := map[int]int{}
		for number, i := range rows {
			t := f.rows[i].turn
			if t.Timing != delayOnly {
				t.Gap, before = units[i]-before, units[i]
			}
			if t.Agent > 0 {
				if agents[t.Agent] == 0 {
					agents[t.Agent] = len(agents) + 1
				}
				t.Agent = agents[t.Agent]
			}
			for k, w := range t.Waits {
				t.Waits[k] = number - place[w]
			}
			share.apply(&t, i, number)
			s.Turns = append(s.Turns, t)
		}
		f.Sessions = append(f.Sessions, s)
	}
}

// blur replaces the lengths and gaps by others near them, so that the model has no row of
// the source.
func (f *fitter) blur() {
	j := newJitter(f.Model, true)
	random := stats.NewStream(0, "model")
	for i := range f.Prefixes {
		if p := &f.Prefixes[i]; p.Tail > 0 {
			isl := float64(f.tokensOf(i))
			p.Tail = min(max(1, p.Tail+int(j.isl.rounded(isl, isl)-isl)), f.Tokens-1)
		}
	}
	for i := range f.Sessions {
		f.Sessions[i].Turns = j.vary(f.Sessions[i].Turns, random)
	}
}
