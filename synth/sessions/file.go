package sessions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/bytedance/sonic"
	"github.com/klauspost/compress/gzip"

	"moontide/synth"
	"moontide/trace"
)

// modelFile is the content of a model's file: columns with a value for each session or
// turn. One in which all values are 0 is left out.
type modelFile struct {
	Version        int     `json:"moontide_model"`
	BlockSize      int     `json:"block_size"` // 0: rows have no block ids
	FullBlocksOnly bool    `json:"full_blocks_only"`
	FirstBlock     uint64  `json:"first_block"`
	Graph          bool    `json:"graph"` // rows name those that they wait for
	ReasoningKey   string  `json:"reasoning_key"`
	Period         float64 `json:"period"` // of the clock
	Exact          bool    `json:"exact_gaps"`
	TimesPerMs     float64 `json:"times_per_ms"`

	Ticks      []float64  `json:"ticks_ms"`
	Keys       []string   `json:"client_keys"`
	Clients    [][]string `json:"clients"`   // values of the keys as JSON, from client 1 on
	FixedISL   []int      `json:"fixed_isl"` // lengths that do not vary
	FixedOSL   []int      `json:"fixed_osl"`
	Parents    []int      `json:"prefix_parents"` // of prefix 1 and on
	Blocks     []int      `json:"prefix_blocks"`
	Tails      []int      `json:"prefix_tails"`
	IsTemplate []int      `json:"prefix_templates"`

	Starts []float64 `json:"starts"` // by session, in units of the clock
	Turns  []int     `json:"turns"`

	Gaps     []float64 `json:"gaps"`    // by turn
	Delayed  []int     `json:"delayed"` // 1: has a delay, 2: instead of a timestamp
	Delays   []float64 `json:"delays"`
	Kinds    []int     `json:"delay_kinds"`
	Prefixes []int     `json:"prefixes"`
	Own      []int     `json:"tokens"`
	OSL      []int     `json:"osl"`
	Before   []int     `json:"shares_with"` // how many turns before, 0 for none
	Shared   []int     `json:"shared_blocks"`
	Reasoned []int     `json:"reasoned"` // ten-thousandths of the answer and 1, 0 if unknown
	Client   []int     `json:"client"`
	Agent    []int     `json:"agent"` // and 1, 0 for none
	Waits    []int     `json:"waits"` // how many turns it waits for
	Named    []int     `json:"waits_named"`
	For      []int     `json:"waits_for"` // how many turns before each of them is
}

const (
	fileVersion = 4
	// maxFile limits the JSON of a model, which is that of some million requests.
	maxFile = 128 << 20
	// reasonedParts are the parts of an answer in which its reasoning is counted.
	reasonedParts = 10_000
)

var kinds = []trace.DelayKind{"", trace.Think, trace.Tool}

// IsModel reports whether a file that begins with these bytes is a model of any version.
func IsModel(head []byte) bool {
	if z, err := gzip.NewReader(bytes.NewReader(head)); err == nil {
		plain := make([]byte, 64)
		n, _ := io.ReadFull(z, plain)
		head = plain[:n]
	}
	return bytes.Contains(head[:min(len(head), 64)], []byte(`"moontide_model"`))
}

// WriteTo writes the model as JSON, compressed by gzip. [Read] restores a model that draws
// the same requests. The rate of [Model.AtRate] is not written.
func (m *Model) WriteTo(w io.Writer) (int64, error) {
	data, err := sonic.Marshal(m.columns())
	switch {
	case err != nil:
		return 0, fmt.Errorf("encoding the model: %w", err)
	case len(data) > maxFile:
		return 0, fmt.Errorf("the model of %d requests is too large: fit a part of the trace", m.SourceRequests())
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(append(data, '\n')) // errors are those of the buffer
	z.Close()
	n, err := b.WriteTo(w)
	if err != nil {
		err = fmt.Errorf("writing the model: %w", err)
	}
	return n, err
}

// columns returns the content of the model's file.
func (m *Model) columns() *modelFile {
	f := &modelFile{
		Version: fileVersion, FullBlocksOnly: m.fullBlocksOnly, FirstBlock: m.firstBlock, Graph: m.graph, ReasoningKey: m.reasoningKey,
		Period: m.clock.period, Exact: m.clock.exact, TimesPerMs: m.clock.perMs, Ticks: m.clock.ticks, Keys: m.keys,
		FixedISL: m.isl.sorted(), FixedOSL: m.osl.sorted(),
	}
	if m.hasBlocks {
		f.BlockSize = m.size.Tokens
	}
	for _, c := range m.clients[1:] {
		f.Clients = append(f.Clients, c.values)
	}
	for _, p := range m.prefixes[1:] {
		f.Parents, f.Blocks, f.Tails = append(f.Parents, p.parent), append(f.Blocks, p.blocks), append(f.Tails, p.tail)
		f.IsTemplate = append(f.IsTemplate, indicator(p.template))
	}
	for i := range m.sessions {
		f.Starts, f.Turns = append(f.Starts, m.sessions[i].start), append(f.Turns, len(m.sessions[i].turns))
		for k := range m.sessions[i].turns {
			f.addTurn(&m.sessions[i].turns[k], k)
		}
	}
	for _, column := range f.byTurn() {
		if !slices.ContainsFunc(*column, func(x int) bool { return x != 0 }) {
			*column = nil
		}
	}
	return f
}

func (f *modelFile) addTurn(t *turn, number int) {
	before := 0
	if t.parent != none {
		before = number - t.parent
	}
	f.Gaps = append(f.Gaps, t.gap)
	f.Delays = append(f.Delays, t.delay.Value)
	reasoned := 0
	if t.reasoned != none {
		reasoned = 1 + int(math.Round(t.reasoned*reasonedParts))
	}
	values := []int{
		indicator(t.delay.Set) + indicator(t.untimed), slices.Index(kinds, t.kind), t.prefix, t.own, t.osl, before, t.shared, reasoned,
		t.client, t.agent + 1, len(t.after), indicator(t.named),
	}
	for i, column := range f.byTurn() {
		*column = append(*column, values[i])
	}
	for _, w := range t.after {
		f.For = append(f.For, number-w)
	}
}

// byTurn returns the columns of whole numbers with a value for each turn.
func (f *modelFile) byTurn() []*[]int {
	return []*[]int{
		&f.Delayed, &f.Kinds, &f.Prefixes, &f.Own, &f.OSL, &f.Before, &f.Shared, &f.Reasoned, &f.Client, &f.Agent, &f.Waits, &f.Named,
	}
}

func indicator(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sorted returns the lengths in order.
func (f fixedLengths) sorted() []int { return slices.Sorted(maps.Keys(f)) }

// Read reads a model written by [Model.WriteTo]. The file may come from an
// untrusted source: errors name the invalid value.
func Read(r io.Reader) (_ *Model, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading a model: %w", err)
		}
	}()
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if z, notZipped := gzip.NewReader(bytes.NewReader(data)); err == nil && notZipped == nil {
		data, err = io.ReadAll(io.LimitReader(z, maxFile+1))
	}
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("more than %d bytes", maxFile)
	}
	var head struct {
		Version int `json:"moontide_model"`
	}
	switch err := sonic.Unmarshal(data, &head); {
	case err != nil:
		return nil, fmt.Errorf("not a model: %w", err)
	case head.Version == 0:
		return nil, errors.New(`no "moontide_model": this is not a model`)
	case head.Version != fileVersion:
		return nil, fmt.Errorf("version %d of models is not %d: fit the source again", head.Version, fileVersion)
	}
	f := &modelFile{}
	if err := sonic.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("not a model: %w", err)
	}
	return f.model()
}

// model returns the model in a file, after checks of all of its values.
func (f *modelFile) model() (m *Model, err error) {
	defer synth.Catch(&err)
	m = &Model{rate: 1}
	m.hasBlocks, m.fullBlocksOnly, m.firstBlock = f.BlockSize > 0, f.FullBlocksOnly, f.FirstBlock
	m.size = trace.GivenBlockSize(max(f.BlockSize, 1))
	m.graph, m.keys, m.reasoningKey = f.Graph, f.Keys, f.ReasoningKey
	within("block_size", f.BlockSize, 0, trace.MaxLength)
	within("first_block", f.FirstBlock, 0, maxFirstBlock)
	within("reasoning_key, the length", len(f.ReasoningKey), 0, maxName)
	f.readClock(m)
	f.readClients(m)
	m.isl, m.osl = fixedLengths{}, fixedLengths{}
	for i, lengths := range [][]int{f.FixedISL, f.FixedOSL} {
		for _, x := range lengths {
			[]fixedLengths{m.isl, m.osl}[i][x] = true
		}
	}
	f.readPrefixes(m)
	f.readSessions(m)
	return m, nil
}

// within fails unless a value is in a range.
func within[T int | uint64 | float64](name string, x, low, high T) {
	if !(low <= x && x <= high) {
		synth.Fail("%s: %v is not in %v..%v", name, x, low, high)
	}
}

func (f *modelFile) readClock(m *Model) {
	m.clock = clock{ticks: f.Ticks, perMs: f.TimesPerMs, exact: f.Exact, period: f.Period}
	within("period", f.Period, 0, maxTime)
	if f.TimesPerMs != wholeMs && f.TimesPerMs != microseconds {
		synth.Fail("times_per_ms: %v is neither %d nor %d", f.TimesPerMs, wholeMs, microseconds)
	}
	if f.Ticks == nil {
		return
	}
	for i := range f.Ticks {
		within("ticks_ms", f.Ticks[i], f.Ticks[max(0, i-1)], maxTime)
	}
	if last := len(f.Ticks) - 1; last < 1 || f.Ticks[0] != 0 || f.Period != float64(last) || !f.Exact {
		synth.Fail("ticks_ms: %d times from %v on, with a period of %v, are no clock", len(f.Ticks), f.Ticks[:min(1, len(f.Ticks))], f.Period)
	}
}

func (f *modelFile) readClients(m *Model) {
	for _, key := range f.Keys {
		within("client_keys, the length", len(key), 1, maxName)
	}
	m.clients = []client{m.newClient(make([]string, len(f.Keys)))}
	for _, values := range f.Clients {
		within("clients, the values", len(values), len(f.Keys), len(f.Keys))
		for _, v := range values {
			if v != "" && !isName(v) {
				synth.Fail("clients: %.60q is no string or number", v)
			}
		}
		m.clients = append(m.clients, m.newClient(values))
	}
}

func (f *modelFile) readPrefixes(m *Model) {
	n := len(f.Parents)
	for _, column := range [][]int{f.Blocks, f.Tails, f.IsTemplate} {
		within("prefixes", len(column), n, n)
	}
	m.prefixes = make([]prefixRun, 1, n+1)
	for i, parent := range f.Parents {
		within("prefix_parents", parent, 0, i)
		depth := m.prefixes[parent].depth + f.Blocks[i]
		within("prefix_blocks", f.Blocks[i], 1, maxBlocks)
		within("prefix_blocks, with those of its parents", depth, 1, maxBlocks)
		tail := f.Tails[i]
		within("prefix_tails", tail, 0, m.size.Tokens-1)
		if !m.hasBlocks || tail > 0 && m.fullBlocksOnly {
			synth.Fail("prefix_tails: rows have no such blocks")
		}
		m.prefixes = append(m.prefixes, prefixRun{parent: parent, blocks: f.Blocks[i], tail: tail, template: f.IsTemplate[i] == 1, depth: depth})
	}
}

func (f *modelFile) readSessions(m *Model) {
	n := 0
	within("turns, the sessions", len(f.Turns), 1, math.MaxInt32)
	within("starts, the sessions", len(f.Starts), len(f.Turns), len(f.Turns))
	for _, turns := range f.Turns {
		within("turns", turns, 1, math.MaxInt32)
		n += turns
	}
	within("gaps, the turns", len(f.Gaps), n, n)
	within("delays, the turns", len(f.Delays), n, n)
	for _, column := range f.byTurn() {
		if *column == nil {
			*column = make([]int, n)
		}
		within("turns", len(*column), n, n)
	}
	at, before := 0, 0.0
	for i, turns := range f.Turns {
		within("starts", f.Starts[i], before, f.Period)
		if before = f.Starts[i]; m.clock.ticks != nil && before != math.Trunc(before) {
			synth.Fail("starts: %v is not a number of ticks", before)
		}
		s := session{start: before, client: f.Client[at], turns: make([]turn, turns)}
		for k := range s.turns {
			f.readTurn(m, s.turns, k, at)
			at++
		}
		m.sessions = append(m.sessions, s)
	}
}

// readTurn reads a turn of a session, which is at an index of the columns.
func (f *modelFile) readTurn(m *Model, turns []turn, number, at int) {
	within("gaps", f.Gaps[at], 0, maxTime)
	within("delays", f.Delays[at], 0, maxTime)
	within("delayed", f.Delayed[at], 0, 2)
	within("delay_kinds", f.Kinds[at], 0, len(kinds)-1)
	within("prefixes", f.Prefixes[at], 0, len(m.prefixes)-1)
	within("tokens", f.Own[at], 0, trace.MaxLength)
	within("osl", f.OSL[at], 0, trace.MaxLength)
	within("reasoned", f.Reasoned[at], 0, reasonedParts+1)
	within("client", f.Client[at], 0, len(m.clients)-1)
	within("agent", f.Agent[at], 0, math.MaxInt32)
	within("waits", f.Waits[at], 0, len(f.For))
	t := turn{
		gap: f.Gaps[at], untimed: f.Delayed[at] == 2, delay: trace.Opt[float64]{Value: f.Delays[at], Set: f.Delayed[at] > 0},
		kind: kinds[f.Kinds[at]], prefix: f.Prefixes[at], own: f.Own[at], osl: f.OSL[at], parent: none,
		reasoned: float64(f.Reasoned[at]-1) / reasonedParts, client: f.Client[at], agent: f.Agent[at] - 1, named: f.Named[at] == 1,
	}
	if f.Reasoned[at] == 0 {
		t.reasoned = none
	}
	within("tokens, the prompt", m.islOf(&t), 0, trace.MaxLength)
	if m.hasBlocks {
		within("tokens, the blocks of the prompt", m.blocksOf(m.islOf(&t)), 0, maxBlocks)
	}
	for _, w := range f.For[:f.Waits[at]] {
		within("waits_for", w, 1, number)
		t.after = append(t.after, number-w)
	}
	f.For = f.For[f.Waits[at]:]
	if t.untimed && (number == 0 || len(t.after) == 0 || m.clock.ticks != nil) {
		synth.Fail("delayed: a turn that waits for no other has no timestamp")
	}
	if m.clock.ticks != nil && t.gap != math.Trunc(t.gap) {
		synth.Fail("gaps: %v is not a number of ticks", t.gap)
	}
	if before := f.Before[at]; before > 0 {
		within("shares_with", before, 1, number)
		t.parent, t.shared = number-before, f.Shared[at]
		p := &turns[t.parent]
		within("shared_blocks", t.shared, 1, min(m.blocksOf(m.islOf(p)), m.blocksOf(m.islOf(&t)))-m.prefixes[t.prefix].depth)
		within("prefixes, that of a turn with shared blocks", t.prefix, p.prefix, p.prefix)
	}
	turns[number] = t
}
