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

// Options configures [Fit]. The zero value detects what it needs.
type Options struct {
	// BlockSize is the number of tokens per block, 1 to [trace.MaxLength];
	// 0 detects it from the rows.
	BlockSize int
	// Clients is the most clients to learn, 0 to [MaxClients]. 0 learns those that
	// the keys of rows name, at most 64, or two if one would be far from the source. If
	// rows name none, a number above 1 divides the sessions into as many clusters.
	Clients int
}

// MaxClients is the largest number of clients of a model.
const MaxClients = 256

// Fit learns the model of a trace. The requests may be in any order, except for
// the turns of a session. It uses about 48 bytes for each distinct prefix of
// the trace and 400 bytes for each request while it runs.
//
// Requests are grouped by session ids if rows have them, otherwise by block
// ids. A row without a timestamp follows the answer to the previous row of its
// session after its delay. Answers are assumed to take 500 ms, plus 20 ms for each
// token after the first; if most such rows then fit between the timestamps of
// their neighbours, the others are moved to fit. Without any block ids, the model
// only has lengths, arrivals and the given sessions.
//
// Fit fails if the source fails or has fewer than five requests, if only some
// rows have block ids, if a row without a timestamp has no row to follow, if a
// prompt has more than 2^20 blocks, or if no single block size fits every row.
func Fit(source trace.Requests, opts Options) (_ *Model, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("fitting the sessions method: %w", err)
		}
	}()
	if opts.BlockSize < 0 || opts.BlockSize > trace.MaxLength {
		return nil, fmt.Errorf("block size %d is not in 0..%d", opts.BlockSize, trace.MaxLength)
	}
	if opts.Clients < 0 || opts.Clients > MaxClients {
		return nil, fmt.Errorf("%d clients are not in 0..%d", opts.Clients, MaxClients)
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
	if len(f.rows) < minRequests {
		return nil, fmt.Errorf("too few requests in the source: %d; at least %d are needed", len(f.rows), minRequests)
	}
	f.noteBadReasoning()
	f.findSessions()
	f.divideByKeys(cmp.Or(opts.Clients, maxFitted))
	if err := f.prepareRows(opts.BlockSize); err != nil {
		return nil, err
	}
	f.findBursts()
	f.keepFewTimes(opts.Clients)
	return f.model(opts.Clients), nil
}

// fitter learns a model.
type fitter struct {
	*Model
	detector   trace.BlockDetector
	prompts    *prefix.Tree
	lastBlock  uint64 // the largest block id
	rows       []row
	latest     map[string]int32 // last row of each session, plus 1, in order of reading
	graph      trace.GraphBuilder
	earlier    trace.Earlier
	agents     []agent // if rows name the rows that they wait for
	keys       keyColumns
	timetable  timetable // if there are few timestamps
	parts      []part    // the clients; none if there is only one, without a name
	templateOf []int32   // template of each node of prompts

	badReasoning badReasoning
}

// row is a request of the source.
type row struct {
	turn
	agentRow
	end      prefix.Node // node of its last block
	before   int32       // the previous row of its session or, of its agent, the one that it continues; or none
	follows  int32       // of the rows that it waits for, the one answered last; or none
	delay    float64     // ms after the answer to that row, if the row has no timestamp
	parent   int32       // the row that it continues, or none
	next     []int32     // the rows that continue it
	relation relation
	untimed  bool
	reasons  bool  // has reasoned
	kind     int   // of the delay: an index of delayKinds
	first    int32 // the first row of its session in order of reading, with session ids or After
	client   int32 // of parts
}

// starts reports whether the row starts a session, which is that of its main agent.
func (r *row) starts() bool { return r.level == 0 && (r.parent == none || r.relation == joins) }

func newFitter() *fitter {
	return &fitter{Model: newModel(), prompts: prefix.New(), latest: make(map[string]int32), keys: make(keyColumns)}
}

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
	f.keys.add(len(f.rows), &r)
	x := row{turn: turn{isl: r.InputLength, osl: r.OutputLength}, before: none, follows: none, end: f.prompts.Add(r.HashIDs)}
	f.addReasoning(&x, &r)
	if r.SessionID != "" {
		f.file.SessionIDs, x.named = true, true
		x.before = f.latest[r.SessionID] - 1
		f.latest[r.SessionID] = int32(len(f.rows)) + 1
	}
	f.graph.Add(r, 0)
	for _, i := range f.earlier.Add(r) {
		if r.After != nil {
			x.waits = append(x.waits, i)
		}
		if x.follows == none || f.answered(i) > f.answered(x.follows) {
			x.follows = i
		}
	}
	f.file.Agents = f.file.Agents || r.After != nil
	switch {
	case r.Timestamp.Set:
		x.at = r.Timestamp.Value
	case x.follows == none && len(r.After) > 0:
		return fmt.Errorf("no timestamp, and no earlier row is named in after %.60q; sort the trace first", r.After)
	case x.follows == none:
		return errors.New("no timestamp, and no turn before it in its session")
	default:
		x.delay = max(0, r.Delay.Value)
		x.at = f.answered(x.follows) + x.delay
		x.untimed = true
		x.kind = kindOf(r.DelayKind)
		f.file.DelayKinds = f.file.DelayKinds || x.kind > 0
		f.untimed++
	}
	if math.IsNaN(x.at) || math.Abs(x.at) > maxTime {
		return fmt.Errorf("timestamp %v ms is out of range", x.at)
	}
	f.rows = append(f.rows, x)
	return nil
}

// answered returns the assumed end of the answer to a row.
func (f *fitter) answered(i int32) float64 { return f.rows[i].at + trace.AnswerTime(f.rows[i].osl) }

const (
	maxTime   = 1e15    // ms: 30,000 years
	maxBlocks = 1 << 20 // of a prompt
)

// prepareRows sorts the rows by time and derives what depends on all of them.
func (f *fitter) prepareRows(blockSize int) error {
	f.moveIntoFileOrder()
	f.sortByTime()
	f.size = trace.GivenBlockSize(blockSize)
	if blockSize == 0 {
		if f.size = f.detector.BlockSize(); f.size.Low > f.size.High {
			return errors.New("no one block size fits every row; name the right one")
		}
	}
	f.detectFormat()
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

// detectFormat detects whether partial blocks have ids and whether later turns
// have delays.
func (f *fitter) detectFormat() {
	without, with, later := 0, 0, 0
	for _, r := range f.rows {
		switch depth, full := f.prompts.Depth(r.end), r.isl/f.size.Tokens; {
		case r.isl%f.size.Tokens == 0:
		case depth == full:
			without++
		case depth == full+1:
			with++
		}
		if r.before != none {
			later++
		}
	}
	f.file.FullBlocksOnly = f.hasBlocks && without > with
	f.file.Delays = f.untimed > 0 && 2*f.untimed >= later || f.file.Agents
}

// moveIntoFileOrder moves rows without a timestamp between the neighbouring
// timestamps in the file, if most are there already: the file is then in order
// of arrival, and answers were faster or slower than assumed.
func (f *fitter) moveIntoFileOrder() {
	around := make([]span, len(f.rows)) // range of neighbouring timestamps
	low, high := math.Inf(-1), math.Inf(1)
	for i, r := range f.rows {
		if !r.untimed {
			low = max(low, r.at)
		}
		around[i].low = low
	}
	inside := 0
	for i := len(f.rows) - 1; i >= 0; i-- {
		r := &f.rows[i]
		if !r.untimed {
			high = min(high, r.at)
		}
		around[i].high = high
		if r.untimed && r.at >= around[i].low && r.at <= high {
			inside++
		}
	}
	if 2*inside < f.untimed {
		return
	}
	for i := range f.rows {
		if r := &f.rows[i]; r.untimed {
			r.at = max(f.answered(r.follows)+r.delay, around[i].low)
			r.at = max(f.rows[r.follows].at, min(r.at, around[i].high))
		}
	}
}

// sortByTime sorts the rows, the first at 0, and updates their references.
func (f *fitter) sortByTime() {
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
		rows[i].phase = rows[i].at
		if b := rows[i].before; b != none {
			rows[i].before = place[b]
		}
		if b := rows[i].follows; b != none {
			rows[i].follows = place[b]
		}
		for k, w := range rows[i].waits {
			rows[i].waits[k] = place[w]
		}
	}
	f.rows = rows
}

func indices(n int) []int {
	some := make([]int, n)
	for i := range some {
		some[i] = i
	}
	return some
}

// model learns the model from the prepared rows.
func (f *fitter) model(clients int) *Model {
	f.findAgents()
	f.fitTemplates()
	f.describeStarts()
	f.file.Version, f.file.Method, f.file.FirstBlock = fileVersion, fileMethod, f.firstBlock()
	if f.hasBlocks {
		f.file.BlockSize = f.size.Tokens
	}
	for _, t := range f.templates[1:] {
		f.file.Templates = append(f.file.Templates, [3]int{t.parent, t.blocks, t.tail})
	}
	f.learnClients(clients)
	return f.Model
}

// maxFirstBlock is the largest first block id: a power of 10, so that all that follow
// are exact in JSON.
const maxFirstBlock = 1e15

// firstBlock returns a round number above the ids of the source, so that no drawn block
// has the id of one of these. Ids as large as hashes need none: it is then 0.
func (f *fitter) firstBlock() uint64 {
	if !f.hasBlocks || f.lastBlock >= maxFirstBlock {
		return 0
	}
	return uint64(gridFor(float64(f.lastBlock+1), 0, true))
}

// link finds the row that each row continues: the previous one of its session
// or, without session ids, the most recent one that shares the longest prefix
// with it, if that prefix is longer than its template. If rows have session
// ids, such a prefix means that a session joins another.
func (f *fitter) link(rows []row) {
	latest := make([]int32, f.prompts.Len()+1) // last row with the node, plus 1
	for i := range rows {
		r := &rows[i]
		r.parent, r.next, r.number, r.gap, r.meanGap, r.reasonedBefore = none, nil, 0, 0, 0, 0
		r.template = int(f.templateOf[r.end])
		depth := f.templates[r.template].depth
		known := r.end
		for known != prefix.Root && latest[known] == 0 {
			known = f.prompts.Parent(known)
		}
		switch {
		case r.before != none:
			r.parent = r.before
			r.shared = f.commonBlocks(r.end, rows[r.before].end)
		case r.level > 0: // a sub-agent starts
			r.shared = depth
		case f.prompts.Depth(known) > depth:
			r.parent = latest[known] - 1
			r.shared = f.prompts.Depth(known)
		default:
			r.shared = depth
		}
		if r.parent != none {
			p := &rows[r.parent]
			if r.relation = f.relationOf(p, r); r.relation != joins {
				r.follow(&p.turn)
			}
			p.next = append(p.next, int32(i))
		}
		if r.level > 0 { // no session joins a sub-agent
			continue
		}
		for n := r.end; n != prefix.Root; n = f.prompts.Parent(n) {
			latest[n] = int32(i) + 1
		}
	}
}

func (f *fitter) commonBlocks(a, b prefix.Node) int {
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
	case f.file.SessionIDs && r.before == none:
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
