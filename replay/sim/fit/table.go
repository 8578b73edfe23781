package fit

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"moontide/trace"
)

// Table is a CSV table of measurements.
type Table struct {
	Measurements []Measurement // named by their lines: "line 2"
	Ignored      []string      // columns without a meaning here
}

const maxTableRows = 10_000

// Columns besides the metrics.
var (
	wholeColumns = []string{"isl", "osl", "concurrency", "prompts"}
	otherColumns = []string{"rate", "mean_output_tokens", "deployment"}
)

// ReadTable reads a table whose first line names its columns: isl, osl, concurrency or
// rate (requests/s), and at least one metric by its key, such as mean_ttft_ms; empty
// cells are not measured. The columns deployment, prompts (the number of requests) and
// mean_output_tokens may be missing. If answers stop before the OSL and the table does
// not give their mean length, it is derived from the latencies.
func ReadTable(r io.Reader) (*Table, error) {
	in := csv.NewReader(r)
	in.TrimLeadingSpace = true
	t := &Table{}
	var columns []string
	for {
		cells, err := in.Read()
		switch {
		case err == io.EOF && len(t.Measurements) > 0:
			return t, nil
		case err == io.EOF:
			return nil, errors.New("the table has no rows")
		case err != nil:
			return nil, fmt.Errorf("reading the table: %w", err)
		case len(t.Measurements) == maxTableRows:
			return nil, fmt.Errorf("the table has more than %d rows", maxTableRows)
		}
		line, _ := in.FieldPos(0)
		m := Measurement{Name: fmt.Sprintf("line %d", line), Values: Values{}}
		if columns == nil {
			columns, err = t.columns(cells)
		} else {
			err = m.parse(columns, cells)
			t.Measurements = append(t.Measurements, m)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
}

// columns returns the names of columns in lower case, "" for those that are ignored.
func (t *Table) columns(header []string) (names []string, err error) {
	for _, cell := range header {
		name := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(cell, "\ufeff")))
		switch {
		case name != "" && slices.Contains(names, name):
			return nil, fmt.Errorf("two columns %q", name)
		case !slices.Contains(Metrics, Metric(name)) && !slices.Contains(slices.Concat(wholeColumns, otherColumns), name):
			t.Ignored, name = append(t.Ignored, name), ""
		}
		names = append(names, name)
	}
	return names, nil
}

// parse parses the cells of a row.
func (m *Measurement) parse(columns, cells []string) error {
	for i, name := range columns {
		cell := strings.TrimSpace(cells[i])
		if name == "deployment" {
			m.Deployment, cell = cell, ""
		}
		if name == "" || cell == "" {
			continue
		}
		v, err := strconv.ParseFloat(cell, 64)
		switch {
		case err != nil || !(v >= 0 && v <= 1e12):
			return fmt.Errorf("column %s: %.40q is not a number from 0 on", name, cell)
		case slices.Contains(wholeColumns, name) && (v != math.Trunc(v) || v > trace.MaxLength):
			return fmt.Errorf("column %s: %s is not a whole number up to %d", name, cell, trace.MaxLength)
		case v > 0:
			m.Values[Metric(name)] = v
		}
	}
	take := func(column Metric) float64 {
		defer delete(m.Values, column)
		return m.Values[column]
	}
	m.Load = Load{
		ISL: int(take("isl")), OSL: int(take("osl")), MeanOutput: take("mean_output_tokens"),
		Concurrency: int(take("concurrency")), Rate: take("rate"), Prompts: int(take("prompts")),
	}
	l := &m.Load
	if l.ISL == 0 || l.OSL == 0 || l.Concurrency == 0 && l.Rate == 0 || len(m.Values) == 0 {
		return fmt.Errorf("want isl and osl above 0, a concurrency (requests in flight) or rate (requests/s), and a metric such as %s or %s", OutputThroughput, MeanTTFT)
	}
	if mean := (m.Values[MeanE2EL]-m.Values[MeanTTFT])/m.Values[MeanTPOT] + 1; l.MeanOutput == 0 && mean > 1 && mean < 0.995*float64(l.OSL) {
		l.MeanOutput = mean
	}
	return nil
}
