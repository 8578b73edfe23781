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

const (
	maxTableRows     = 10_000
	deploymentColumn = "deployment"
)

// Columns of numbers, besides the metrics.
var (
	wholeColumns = []string{"isl", "osl", "concurrency", "prompts"}
	otherColumns = []string{"rate", "mean_output_tokens"}
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
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the table: %w", err)
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
	if n := len(t.Measurements); n == 0 || n > maxTableRows {
		return nil, fmt.Errorf("the table has %d rows of measurements: want 1 to %d", n, maxTableRows)
	}
	return t, nil
}

// columns checks the names of columns and returns them in lower case, "" for those that are
// ignored.
func (t *Table) columns(header []string) (names []string, err error) {
	measured := false
	for _, cell := range header {
		name := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(cell, "\ufeff")))
		isMetric := slices.Contains(Metrics, Metric(name))
		switch {
		case slices.Contains(names, name):
			return nil, fmt.Errorf("two columns %q", name)
		case !isMetric && name != deploymentColumn && !slices.Contains(slices.Concat(wholeColumns, otherColumns), name):
			t.Ignored, name = append(t.Ignored, name), ""
		}
		names, measured = append(names, name), measured || isMetric
	}
	if has := func(name string) bool { return slices.Contains(names, name) }; !measured || !has("isl") || !has("osl") || !has("concurrency") && !has("rate") {
		return nil, fmt.Errorf("want columns isl, osl, concurrency (requests in flight) or rate (requests/s), and one or more of %q; the columns are %q", Metrics, header)
	}
	return names, nil
}

// parse parses the cells of a row.
func (m *Measurement) parse(columns, cells []string) error {
	numbers := map[string]float64{}
	for i, name := range columns {
		cell := strings.TrimSpace(cells[i])
		if name == deploymentColumn {
			m.Deployment = cell
		}
		if name == deploymentColumn || name == "" || cell == "" {
			continue
		}
		v, err := strconv.ParseFloat(cell, 64)
		switch {
		case err != nil || !(v >= 0 && v <= 1e12):
			return fmt.Errorf("column %s: %.40q is not a number from 0 on", name, cell)
		case slices.Contains(wholeColumns, name) && (v != math.Trunc(v) || v > trace.MaxLength):
			return fmt.Errorf("column %s: %s is not a whole number up to %d", name, cell, trace.MaxLength)
		}
		numbers[name] = v
	}
	for _, metric := range Metrics {
		if v := numbers[string(metric)]; v > 0 {
			m.Values[metric] = v
		}
	}
	m.Load = Load{
		ISL: int(numbers["isl"]), OSL: int(numbers["osl"]), MeanOutput: numbers["mean_output_tokens"],
		Concurrency: int(numbers["concurrency"]), Rate: numbers["rate"], Prompts: int(numbers["prompts"]),
	}
	l := &m.Load
	switch {
	case l.ISL < 1 || l.OSL < 1:
		return fmt.Errorf("isl and osl must be at least 1: %d and %d", l.ISL, l.OSL)
	case l.Concurrency == 0 && l.Rate == 0:
		return errors.New("neither a concurrency nor a rate")
	case len(m.Values) == 0:
		return errors.New("no metric has a value")
	}
	if mean := (m.Values[MeanE2EL]-m.Values[MeanTTFT])/m.Values[MeanTPOT] + 1; l.MeanOutput == 0 && mean > 1 && mean < 0.995*float64(l.OSL) {
		l.MeanOutput = mean
	}
	return nil
}
