package sessions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/bytedance/sonic"
	"github.com/klauspost/compress/gzip"

	"moontide/synth"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/log"
)

// modelFile is the content of a model's file.
type modelFile struct {
	Version        int         `json:"moontide_model"`
	Tokens         int         `json:"block_size"`       // 0: rows have no block ids
	FullBlocksOnly bool        `json:"full_blocks_only"` // a partial last block has no id
	FirstBlock     uint64      `json:"first_block"`      // id of the first drawn block
	Graph          bool        `json:"graph"`            // rows name the rows that they wait for
	Clock          clock       `json:"clock"`
	ReasoningKey   string      `json:"reasoning_key"`
	Labels         [][]label   `json:"clients"`  // of each; the first has none
	Prefixes       []prefixRun `json:"prefixes"` // the first is empty
	Sessions       [][]turn    `json:"sessions"` // in order of arrival, and so are their turns
}

const (
	fileVersion = 5
	// maxFile limits the JSON of a model, which is that of about a million requests.
	maxFile = 128 << 20
)

// IsModel reports whether a file that begins with these bytes is a model of any version.
func IsModel(head []byte) bool {
	if z, err := gzip.NewReader(bytes.NewReader(head)); err == nil {
		head, _ = io.ReadAll(io.LimitReader(z, 64)) // as far as it can be read
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
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFile:
		return nil, fmt.Errorf("more than %d bytes", maxFile)
	}
	m := &Model{rate: 1}
	err = sonic.Unmarshal(data, &m.modelFile)
	switch {
	case m.Version != fileVersion && m.Version != 0:
		return nil, fmt.Errorf("version %d of models is not %d: fit the source again", m.Version, fileVersion)
	case err != nil:
		return nil, errors.New("not a model, or not all of it")
	case m.Version == 0:
		return nil, errors.New(`no "moontide_model": this is not a model`)
	}
	if m.Tokens > 0 {
		m.size = block.GivenSize(m.Tokens)
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
	if m.ReasoningKey != "" && !slices.Contains(log.ReasoningKeys, strings.TrimPrefix(m.ReasoningKey, recordedPrefix)) {
		synth.Fail("reasoning_key: %.60q counts no reasoning", m.ReasoningKey)
	}
	within("gaps_ms, the number", len(m.Clock.Gaps), 1, math.MaxInt32)
	for _, gap := range m.Clock.Gaps {
		within("gaps_ms", gap, 0, maxTime)
	}
	m.Clock.setTimes()
	within("gaps_ms, the sum", m.Clock.at[len(m.Clock.at)-1], 0, maxTime)
	within("clients, the number", len(m.Labels), 1, math.MaxInt32)
	for _, l := range slices.Concat(m.Labels...) {
		if !l.isName() {
			synth.Fail("clients: %.60q of %.60q is no name", l.Value, l.Key)
		}
	}
	m.setClients()
	within("prefixes, the number", len(m.Prefixes), 1, math.MaxInt32)
	for i := range m.Prefixes[1:] {
		p := &m.Prefixes[i+1]
		within("parent of a prefix", p.Parent, 0, i)
		within("blocks of a prefix", p.Blocks, 1, maxBlocks)
		p.depth = m.Prefixes[p.Parent].depth + p.Blocks
		within("blocks of a prefix, with its parents", p.depth, 1, maxBlocks)
	}
	within("sessions, the number", len(m.Sessions), 1, math.MaxInt32)
	before := 0
	for i := range m.Sessions {
		turns := m.Sessions[i]
		within("turns, the number", len(turns), 1, math.MaxInt32)
		for k := range turns {
			m.checkTurn(turns, k)
		}
		within("arrival", turns[0].Arrival, before, len(m.Clock.Gaps)-1)
		before = turns[0].Arrival
	}
	return nil
}

// checkTurn checks a turn of a session.
func (m *Model) checkTurn(turns []turn, number int) {
	t := &turns[number]
	within("arrival", t.Arrival, 0, len(m.Clock.Gaps)-1)
	within("timing", t.Timing, timestamp, delayOnly)
	within("delay", t.Delay, 0, maxTime)
	if !slices.Contains([]trace.DelayKind{"", trace.Think, trace.Tool}, t.Kind) {
		synth.Fail("kind: %.60q is not that of a delay", t.Kind)
	}
	within("prefix", t.Prefix, 0, len(m.Prefixes)-1)
	depth := m.Prefixes[t.Prefix].depth
	within("tokens", t.Own, -depth*m.Tokens, trace.MaxLength-depth*m.Tokens)
	within("blocks of a prompt", m.blocksOf(m.islOf(t)), depth, maxBlocks)
	within("osl", t.OSL, 0, trace.MaxLength)
	within("reasoned", t.Reasoned, 0, reasonedParts+1)
	within("client", t.Client, 0, len(m.Labels)-1)
	for _, back := range t.Waits {
		within("waits", back, 1, number)
	}
	if t.Timing == delayOnly && len(t.Waits) == 0 {
		synth.Fail("timing: a turn that waits for no other has no timestamp")
	}
	within("parent", t.Parent, 0, number)
	if t.Parent == 0 {
		within("shared", t.Shared, 0, 0)
		return
	}
	p := &turns[number-t.Parent]
	within("shared", t.Shared, 1, min(m.blocksOf(m.islOf(p)), m.blocksOf(m.islOf(t)))-depth)
	within("prefix of a turn with shared blocks", t.Prefix, p.Prefix, p.Prefix)
}
