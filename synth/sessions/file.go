package sessions

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/bytedance/sonic"

	"moontide/trace"
)

// The members of a model's file; doc.go describes them.
type file struct {
	Version         int                  `json:"moontide_model"`
	Method          string               `json:"method"`
	BlockSize       int                  `json:"block_size"`
	FullBlocksOnly  bool                 `json:"full_blocks_only"`
	SessionIDs      bool                 `json:"session_ids"`
	Delays          bool                 `json:"delays"`
	Requests        int                  `json:"requests"`
	Sessions        int                  `json:"sessions"`
	SessionsAhead   float64              `json:"sessions_ahead"`
	SettledMs       float64              `json:"settled_ms"`
	ISL             [2]float64           `json:"isl"`
	OSL             [2]float64           `json:"osl"`
	Templates       [][4]int             `json:"templates"`
	TemplatedByTime fileChoice           `json:"templated_by_time"`
	FirstTurn       fileJoint            `json:"first_turn"`
	FirstTemplated  fileJoint            `json:"first_turn_templated"`
	GoesOn          fileChoice           `json:"goes_on"`
	GoesOnAgain     fileChoice           `json:"goes_on_again"`
	LaterTurns      map[string]fileJoint `json:"later_turns"`
	Arrivals        fileArrivals         `json:"arrivals"`
}

type fileArrivals struct {
	TickMs  float64      `json:"tick_ms"`
	Jitter  [][2]float64 `json:"jitter"`
	Pieces  [][3]float64 `json:"pieces"`
	Counted bool         `json:"counted"`
	Steps   fileJoint    `json:"steps"`
	EvenMs  float64      `json:"even_ms"`
}

type (
	fileJoint []fileValue
	fileCut   [4]float64
	fileValue struct {
		Cuts   []fileCut     `json:"cuts"`
		Leaves [][][]float64 `json:"leaves"`
	}
	fileChoice struct {
		Cuts   []fileCut   `json:"cuts"`
		Leaves [][]float64 `json:"leaves"`
	}
)

const (
	fileVersion = 1
	fileMethod  = "sessions"
	// maxFile bounds a model's file in bytes.
	maxFile = 64 << 20
)

// WriteTo writes the model as JSON. [Read] makes a model of it that draws the
// same requests. It takes no notice of [Model.AtRate].
func (m *Model) WriteTo(w io.Writer) (int64, error) {
	data, err := m.MarshalJSON()
	if err != nil {
		return 0, err
	}
	n, err := w.Write(append(data, '\n'))
	if err != nil {
		err = fmt.Errorf("writing the model: %w", err)
	}
	return int64(n), err
}

// MarshalJSON returns what WriteTo writes.
func (m *Model) MarshalJSON() ([]byte, error) {
	f := file{
		Version: fileVersion, Method: fileMethod,
		FullBlocksOnly: m.fullOnly, SessionIDs: m.hasSessions, Delays: m.delays,
		Requests: m.requests, Sessions: m.starts, SessionsAhead: m.startsAhead, SettledMs: m.settled,
		ISL: [2]float64{m.isl.low, m.isl.high}, OSL: [2]float64{m.osl.low, m.osl.high},
		Templates:       [][4]int{},
		TemplatedByTime: m.templated.file(), FirstTurn: m.first[0].file(), FirstTemplated: m.first[1].file(),
		GoesOn: m.goesOn[0].file(), GoesOnAgain: m.goesOn[1].file(),
		LaterTurns: make(map[string]fileJoint),
		Arrivals: fileArrivals{
			TickMs: m.arrivals.tick, Counted: m.arrivals.counted, Steps: m.arrivals.steps.file(), EvenMs: m.arrivals.even,
			Jitter: [][2]float64{}, Pieces: [][3]float64{},
		},
	}
	if m.hasBlocks {
		f.BlockSize = m.size.Tokens
	}
	for _, t := range m.templates[1:] {
		f.Templates = append(f.Templates, [4]int{t.parent, t.blocks, t.starts, t.tail})
	}
	for i, j := range m.turns {
		if len(j) > 0 {
			f.LaterTurns[relationNames[i]] = j.file()
		}
	}
	for _, b := range m.arrivals.jitter {
		f.Arrivals.Jitter = append(f.Arrivals.Jitter, [2]float64{float64(b.count), b.low})
	}
	for _, p := range m.arrivals.pieces {
		f.Arrivals.Pieces = append(f.Arrivals.Pieces, [3]float64{float64(p.requests), float64(p.times), p.mean})
	}
	data, err := sonic.ConfigStd.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encoding the model: %w", err)
	}
	return data, nil
}

func (p *partition) file() []fileCut {
	cuts := []fileCut{}
	for _, c := range p.cuts {
		cuts = append(cuts, fileCut{float64(c.dim), c.at, float64(c.below), float64(c.rest)})
	}
	return cuts
}

func (j joint) file() fileJoint {
	f := fileJoint{}
	for i := range j {
		v := fileValue{Cuts: j[i].partition.file(), Leaves: [][][]float64{}}
		for _, h := range j[i].leaves {
			bins := [][]float64{}
			for _, b := range h.bins {
				if b.low == b.high {
					bins = append(bins, []float64{float64(b.count), b.weight, b.low})
				} else {
					bins = append(bins, []float64{float64(b.count), b.weight, b.low, b.high, b.mean})
				}
			}
			v.Leaves = append(v.Leaves, bins)
		}
		f = append(f, v)
	}
	return f
}

func (c *choice) file() fileChoice {
	f := fileChoice{Cuts: c.partition.file(), Leaves: [][]float64{}}
	for _, k := range c.leaves {
		f.Leaves = append(f.Leaves, append([]float64{float64(k.count)}, k.shares...))
	}
	return f
}

// Read reads a model that [Model.WriteTo] wrote. The file may come from anyone:
// what is wrong with it is an error that names the place and the value.
func Read(r io.Reader) (*Model, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading a model: %w", err)
	}
	m := new(Model)
	if err := m.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	return m, nil
}

// UnmarshalJSON reads what MarshalJSON returned, with the errors of [Read].
func (m *Model) UnmarshalJSON(data []byte) error {
	if err := m.decode(data); err != nil {
		return fmt.Errorf("reading a model: %w", err)
	}
	return nil
}

func (m *Model) decode(data []byte) error {
	if len(data) > maxFile {
		return fmt.Errorf("more than %d bytes", maxFile)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return errors.New("not a JSON object")
	}
	var f file
	if err := sonic.ConfigStd.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("not a model: %w", err)
	}
	switch {
	case f.Version == 0:
		return errors.New(`no "moontide_model": this is not a model`)
	case f.Version != fileVersion:
		return fmt.Errorf("moontide_model: version %d is not known, only %d", f.Version, fileVersion)
	case f.Method != fileMethod:
		return fmt.Errorf("method: %q is not %q", f.Method, fileMethod)
	}
	read := Model{
		fullOnly: f.FullBlocksOnly, hasSessions: f.SessionIDs, delays: f.Delays, hasBlocks: f.BlockSize > 0,
		size: trace.GivenBlockSize(max(f.BlockSize, 1)), requests: f.Requests, starts: f.Sessions,
		startsAhead: f.SessionsAhead, settled: f.SettledMs,
	}
	c := checker{}
	c.numbers(&f)
	read.templates = c.templates(f.Templates, read.size.Tokens)
	read.templated = c.choice("templated_by_time", f.TemplatedByTime, 1, 1)
	read.isl, read.osl = c.extent("isl", f.ISL), c.extent("osl", f.OSL)
	read.first[0] = c.joint("first_turn", f.FirstTurn, startKnown, lengthRange, lengthRange)
	read.first[1] = c.joint("first_turn_templated", f.FirstTemplated, startKnown, lengthRange, lengthRange)
	read.goesOn[0] = c.choice("goes_on", f.GoesOn, turnKnown, int(relations))
	read.goesOn[1] = c.choice("goes_on_again", f.GoesOnAgain, turnKnown, int(relations))
	read.turns = c.turns(f.LaterTurns)
	read.arrivals = c.arrivals(f.Arrivals)
	if c.err != nil {
		return c.err
	}
	if len(read.first[0])+len(read.first[1]) == 0 {
		return errors.New("first_turn: no values")
	}
	read.prepare()
	*m = read
	return nil
}
