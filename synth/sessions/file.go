package sessions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/bytedance/sonic"
	"github.com/klauspost/compress/gzip"

	"moontide/synth"
	"moontide/trace"
)

// modelFile is the content of a model's file.
type modelFile struct {
	Version        int         `json:"moontide_model"`
	Tokens         int         `json:"block_size"`       // 0: rows have no block ids
	FullBlocksOnly bool        `json:"full_blocks_only"` // a partial last block has no id
	FirstBlock     uint64      `json:"first_block"`      // id of the first drawn block
	Graph          bool        `json:"graph"`            // rows name the rows that they wait for
	Clock          clock       `json:"clock"`
	FixedISL       []int       `json:"fixed_isl"` // lengths that do not vary, in order
	FixedOSL       []int       `json:"fixed_osl"`
	ReasoningKey   string      `json:"reasoning_key"`
	Keys           []string    `json:"client_keys"`
	KnownClients   []client    `json:"clients"`  // the first has no values
	Prefixes       []prefixRun `json:"prefixes"` // the first is empty
	Sessions       []session   `json:"sessions"` // in order of start
}

const (
	fileVersion = 4
	// maxFile limits the JSON of a model, which is that of about a million requests.
	maxFile = 128 << 20
)

var errNoModel = errors.New("not a model, or not all of it")

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
	data, err := sonic.Marshal(&m.modelFile)
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
	m := &Model{rate: 1}
	err = sonic.Unmarshal(data, &struct {
		Version *int `json:"moontide_model"`
	}{&m.Version})
	switch {
	case err != nil:
		return nil, errNoModel
	case m.Version == 0:
		return nil, errors.New(`no "moontide_model": this is not a model`)
	case m.Version != fileVersion:
		return nil, fmt.Errorf("version %d of models is not %d: fit the source again", m.Version, fileVersion)
	}
	if sonic.Unmarshal(data, &m.modelFile) != nil {
		return nil, errNoModel
	}
	if m.Tokens > 0 {
		m.size = trace.GivenBlockSize(m.Tokens)
	}
	return m, m.check()
}

// within fails unless a value is in a range.
func within[T int | uint64 | float64](name string, x, low, high T) {
	if !(low <= x && x <= high) {
		synth.Fail("%s: %v is not in %v..%v", name, x, low, high)
	}
}

// check checks all values of a file, and derives the rest of the model.
func (m *Model) check() (err error) {
	defer synth.Catch(&err)
	within("block_size", m.Tokens, 0, trace.MaxLength)
	within("first_block", m.FirstBlock, 0, maxFirstBlock)
	within("reasoning_key, the length", len(m.ReasoningKey), 0, maxName)
	m.Clock.check()
	within("clients, the number", len(m.KnownClients), 1, math.MaxInt32)
	for i := range m.KnownClients {
		c := &m.KnownClients[i]
		within("clients, the values", len(c.Values), len(m.Keys), len(m.Keys))
		for _, v := range c.Values {
			if v != "" && !isName(v) {
				synth.Fail("clients: %.60q is no string or number", v)
			}
		}
		m.prepare(c)
	}
	m.checkPrefixes()
	within("sessions, the number", len(m.Sessions), 1, math.MaxInt32)
	before := 0.0
	for i := range m.Sessions {
		s := &m.Sessions[i]
		within("start", s.Start, before, m.Clock.Period)
		before = s.Start
		within("turns, the number", len(s.Turns), 1, math.MaxInt32)
		for k := range s.Turns {
			m.checkTurn(s.Turns, k)
		}
	}
	return nil
}

func (c *clock) check() {
	within("period", c.Period, 0, maxTime)
	if c.PerMs != wholeMs && c.PerMs != microseconds {
		synth.Fail("times_per_ms: %v is neither %d nor %d", c.PerMs, wholeMs, microseconds)
	}
	for _, gap := range c.Spacing {
		within("spacing_ms", gap, 0, maxTime)
	}
	for i := range c.Ticks {
		within("ticks_ms", c.Ticks[i], c.Ticks[max(0, i-1)], maxTime)
	}
	if n := len(c.Ticks); n > 0 && (n == 1 || c.Ticks[0] != 0 || c.Period != float64(n-1)*places || !c.Exact) {
		synth.Fail("ticks_ms: %d times from %v on, with a period of %v, are no clock", n, c.Ticks[0], c.Period)
	}
}

func (m *Model) checkPrefixes() {
	within("prefixes, the number", len(m.Prefixes), 1, math.MaxInt32)
	for i := range m.Prefixes[1:] {
		p := &m.Prefixes[i+1]
		within("parent of a prefix", p.Parent, 0, i)
		within("blocks of a prefix", p.Blocks, 1, maxBlocks)
		p.depth = m.Prefixes[p.Parent].depth + p.Blocks
		within("blocks of a prefix, with its parents", p.depth, 1, maxBlocks)
		within("tail of a prefix", p.Tail, 0, m.Tokens-1)
		if p.Tail > 0 && m.FullBlocksOnly {
			synth.Fail("tail of a prefix: rows have no partial blocks")
		}
	}
}

func (m *Model) checkTurn(turns []turn, number int) {
	t := &turns[number]
	within("gap", t.Gap, 0, maxTime)
	within("timing", t.Timing, timestamp, delayOnly)
	within("delay", t.Delay, 0, maxTime)
	if !slices.Contains([]trace.DelayKind{"", trace.Think, trace.Tool}, t.Kind) {
		synth.Fail("kind: %.60q is not that of a delay", t.Kind)
	}
	within("prefix", t.Prefix, 0, len(m.Prefixes)-1)
	within("tokens", t.Own, 0, trace.MaxLength)
	within("tokens, the prompt", m.islOf(t), 0, trace.MaxLength)
	within("tokens, the blocks of the prompt", m.blocksOf(m.islOf(t)), 0, maxBlocks)
	within("osl", t.OSL, 0, trace.MaxLength)
	within("reasoned", t.Reasoned, 0, reasonedParts+1)
	within("client", t.Client, 0, len(m.KnownClients)-1)
	within("agent", t.Agent, 0, math.MaxInt32)
	for _, back := range t.Waits {
		within("waits", back, 1, number)
	}
	if t.Timing == delayOnly && (len(t.Waits) == 0 || m.Clock.Ticks != nil) {
		synth.Fail("timing: a turn that waits for no other has no timestamp")
	}
	within("parent", t.Parent, 0, number)
	if t.Parent == 0 {
		within("shared", t.Shared, 0, 0)
		return
	}
	p := &turns[number-t.Parent]
	within("shared", t.Shared, 1, min(m.blocksOf(m.islOf(p)), m.blocksOf(m.islOf(t)))-m.Prefixes[t.Prefix].depth)
	within("prefix of a turn with shared blocks", t.Prefix, p.Prefix, p.Prefix)
}
