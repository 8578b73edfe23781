package sessions

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/bytedance/sonic"

	"moontide/trace"
)

// modelFile is the file of a model. The package comment describes its members.
type modelFile struct {
	Version        int          `json:"moontide_model"`
	Method         string       `json:"method"`
	BlockSize      int          `json:"block_size"`       // 0: rows have no block ids
	FullBlocksOnly bool         `json:"full_blocks_only"` // a partial last block has no id
	FirstBlock     uint64       `json:"first_block"`      // id of the first drawn block
	SessionIDs     bool         `json:"session_ids"`
	Delays         bool         `json:"delays"` // later turns have a delay instead of a timestamp
	DelayKinds     bool         `json:"delay_kinds"`
	Agents         bool         `json:"agents"` // rows name the rows that they wait for
	ClientKeys     []clientKey  `json:"client_keys"`
	ReasoningKey   string       `json:"reasoning_key"` // of the rows; "" if they have none
	Templates      [][3]int     `json:"templates"`
	Bursts         *bursts      `json:"bursts,omitempty"`
	Clients        []clientFile `json:"clients"`
}

// clientFile is the part of a client in the file.
type clientFile struct {
	Name               string           `json:"name"`
	Values             []string         `json:"values"` // of the client keys; empty if rows have none
	Requests           int              `json:"requests"`
	Sessions           int              `json:"sessions"`
	SessionsAhead      float64          `json:"sessions_ahead"` // the most by which they were ahead of their share of the requests
	SettledMs          float64          `json:"settled_ms"`     // when few sessions are older than the trace
	MeanISL            float64          `json:"mean_isl"`
	MeanOSL            float64          `json:"mean_osl"`
	ISL                [2]float64       `json:"isl"`
	OSL                [2]float64       `json:"osl"`
	Templates          [][2]int         `json:"templates"` // number, sessions that start with it and no longer one
	TemplateRegimes    []templateRegime `json:"template_regimes,omitempty"`
	Templated          choice           `json:"starts_with_template"`
	FirstTurn          joint            `json:"first_turn"`
	FirstTurnTemplated joint            `json:"first_turn_templated"`
	Reasoning          joint            `json:"reasoning"`
	Continues          choice           `json:"continues"`
	ContinuesAgain     choice           `json:"continues_again"`
	TurnOdds           []float64        `json:"turn_odds,omitempty"` // factors of the odds that turns are continued, by their number
	LaterTurns         map[string]joint `json:"later_turns"`
	LaterLengths       map[string]joint `json:"later_lengths"`
	Arrivals           arrivals         `json:"arrivals"`
	SubAgents          *agentsFile      `json:"sub_agents,omitempty"`
}

// encoding encodes like the standard library, but empty lists as [] instead of
// null.
var encoding = sonic.Config{
	EscapeHTML: true, SortMapKeys: true, CompactMarshaler: true, CopyString: true, ValidateString: true, NoNullSliceOrMap: true,
}.Froze()

const (
	fileVersion = 3
	fileMethod  = "sessions"
	maxFileSize = 64 << 20
)

// WriteTo writes the model as JSON. [Read] restores a model that draws the same
// requests. The rate of [Model.AtRate] is not written.
func (m *Model) WriteTo(w io.Writer) (int64, error) {
	data, err := encoding.Marshal(&m.file)
	if err != nil {
		return 0, fmt.Errorf("encoding the model: %w", err)
	}
	n, err := w.Write(append(data, '\n'))
	if err != nil {
		err = fmt.Errorf("writing the model: %w", err)
	}
	return int64(n), err
}

// Read reads a model written by [Model.WriteTo]. The file may come from an
// untrusted source: errors name the position and the invalid value.
func Read(r io.Reader) (*Model, error) {
	m := newModel()
	data, err := io.ReadAll(io.LimitReader(r, maxFileSize+1))
	if err == nil {
		err = m.file.decode(data)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a model: %w", err)
	}
	m.size = trace.GivenBlockSize(max(m.file.BlockSize, 1))
	m.prepare()
	return m, nil
}

func (f *modelFile) decode(data []byte) error {
	if len(data) > maxFileSize {
		return fmt.Errorf("more than %d bytes", maxFileSize)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return errors.New("not a JSON object")
	}
	if err := encoding.Unmarshal(data, f); err != nil {
		return fmt.Errorf("not a model: %w", err)
	}
	switch {
	case f.Version == 0:
		return errors.New(`no "moontide_model": this is not a model`)
	case f.Version < fileVersion:
		return fmt.Errorf("moontide_model: version %d is too old, this is %d: fit the source again", f.Version, fileVersion)
	case f.Version != fileVersion:
		return fmt.Errorf("moontide_model: version %d is not known, only %d", f.Version, fileVersion)
	case f.Method != fileMethod:
		return fmt.Errorf("method: %q is not %q", f.Method, fileMethod)
	}
	return f.check()
}
