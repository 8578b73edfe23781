package bench

import (
	"fmt"
	"slices"

	"moontide/replay/openai"
	"moontide/trace"
)

// maxRowModels limits the models that the rows of a trace name.
const maxRowModels = 1000

// rowModels finds the models that rows name, if they are sent.
type rowModels struct {
	models bool // are sent
	line   func() int
	lines  map[string]int // of the first row that names a model
	sent   []openai.NamedModel
	isSent map[string]bool // names in sent
}

func newRowModels(c openai.Config, line func() int) *rowModels {
	return &rowModels{models: c.ModelFromTrace, line: line, lines: map[string]int{}, isSent: map[string]bool{}}
}

// check handles a row of the trace, which may not be replayed.
func (m *rowModels) check(r trace.Request) error {
	if !m.models {
		return nil
	}
	name := openai.RowModel(r)
	if _, known := m.lines[name]; !known {
		if len(m.lines) > maxRowModels {
			return fmt.Errorf("the rows name more than %d models", maxRowModels)
		}
		m.lines[name] = m.line()
	}
	return nil
}

// take handles a row that is replayed.
func (m *rowModels) take(r trace.Request) {
	if !m.models {
		return
	}
	if name := openai.RowModel(r); !m.isSent[name] {
		m.isSent[name] = true
		m.sent = append(m.sent, openai.NamedModel{Name: name, Line: m.lines[name]})
	}
}

// missing returns an error if what is sent is in no row.
func (m *rowModels) missing() error {
	if m.models && !slices.ContainsFunc(m.sent, func(other openai.NamedModel) bool { return other.Name != "" }) {
		return wrong("ModelFromTrace", "finds no model: no row has the key model with a name")
	}
	return nil
}
