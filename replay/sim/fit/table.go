package fit

import (
	"bufio"
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

// Limits of a table.
const (
	maxTableBytes = 16 << 20
	maxTableRows  = 10_000
)

// tableColumns sets the numbers of a measurement besides its metrics, by column.
var tableColumns = map[string]func(l *Load, v float64){
	"isl":                func(l *Load, v float64) { l.ISL = int(v) },
	"osl":                func(l *Load, v float64) { l.OSL = int(v) },
	"concurrency":        func(l *Load, v float64) { l.Concurrency = int(v) },
	"prompts":            func(l *Load, v float64) { l.Prompts = int(v) },
	"rate":               func(l *Load, v float64) { l.Rate = v },
	"mean_output_tokens": func(l *Load, v float64) { l.MeanOutput = v },
}

const deploymentColumn = "deployment"

// ReadTable reads a table whose first line names its columns: isl, osl, concurrency or
// rate (requests/s), and at least one metric by its key, such as mean_ttft_ms; empty
// cells are not measured. The columns deployment, prompts (the number of requests) and
// mean_output_tokens may be missing. If answers stop before the OSL and the table does
// not give their mean length, it is derived from the latencies.
func ReadTable(r io.Reader) (*Table, error) {
	in := csv.NewReader(io.LimitReader(bufio.NewReader(r), maxTableBytes))
	in.TrimLeadingSpace, in.ReuseRecord = true, true
	t := &Table{}
	var columns []string
	for {
		cells, err := in.Read()
		var wrong *csv.ParseError
		switch {
		case err == io.EOF && len(t.Measurements) > 0:
			return t, nil
		case err == io.EOF:
			return nil, errors.New("the table has no rows")
		case errors.As(err, &wrong):
			return nil, fmt.Errorf("line %d: %w", wrong.Line, wrong.Err)
		case err != nil:
			return nil, fmt.Errorf("reading the table: %w", err)
		case len(t.Measurements) == maxTableRows:
			return nil, fmt.Errorf("more than %d rows", maxTableRows)
		}
		line, _ := in.FieldPos(0)
		if columns == nil {
			columns, err = t.columns(cells)
		} else {
			var m Measurement
			m, err = measurementOf(columns, cells)
			m.Name = fmt.Sprintf("line %d", line)
			t.Measurements = append(t.Measurements, m)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// columns checks the names of columns and returns them in lower case.
func (t *Table) columns(header []string) (names []string, err error) {
	measured := false
	for _, name := range header {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		isMetric := slices.Contains(metricKeys[:], name)
		if name != "" && slices.Contains(names, name) {
			return nil, fmt.Errorf("two columns %q", name)
		}
		if tableColumns[name] == nil && !isMetric && name != deploymentColumn {
			t.Ignored = append(t.Ignored, name)
		}
		names, measured = append(names, name), measured || isMetric
	}
	switch has := func(name string) bool { return slices.Contains(names, name) }; {
	case !has("isl") || !has("osl") || !has("concurrency") && !has("rate"):
		return nil, fmt.Errorf("want columns isl, osl, and concurrency (requests in flight) or rate (requests/s); the columns are %s", strings.Join(names, ", "))
	case !measured:
		return nil, fmt.Errorf("no column with a metric: %s", strings.Join(metricKeys[:], ", "))
	}
	return names, nil
}

func measurementOf(columns, cells []string) (m Measurement, err error) {
	for i, name := range columns {
		cell := strings.TrimSpace(cells[i])
		set, metric := tableColumns[name], slices.Index(metricKeys[:], name)
		switch {
		case name == deploymentColumn:
			m.Deployment = strings.Clone(cell)
			continue
		case cell == "" || set == nil && metric < 0:
			continue
		}
		v, err := strconv.ParseFloat(cell, 64)
		if err != nil || !(v >= 0 && v <= 1e12) {
			return m, fmt.Errorf("column %s: %.40q is not a number from 0 on", name, cell)
		}
		if metric >= 0 {
			m.Values[metric] = v
			continue
		}
		if name != "rate" && name != "mean_output_tokens" && (v != math.Trunc(v) || v > trace.MaxLength) {
			return m, fmt.Errorf("column %s: %s is not a whole number up to %d", name, cell, trace.MaxLength)
		}
		set(&m.Load, v)
	}
	l := &m.Load
	switch {
	case l.ISL < 1 || l.OSL < 1:
		return m, fmt.Errorf("isl and osl must be at least 1: %d and %d", l.ISL, l.OSL)
	case l.Concurrency == 0 && l.Rate == 0:
		return m, errors.New("neither a concurrency nor a rate")
	case m.Values == Values{}:
		return m, errors.New("no metric has a value")
	}
	if mean := (m.Values[MeanE2EL]-m.Values[MeanTTFT])/m.Values[MeanTPOT] + 1; l.MeanOutput == 0 && mean > 1 && mean < 0.995*float64(l.OSL) {
		l.MeanOutput = mean
	}
	return m, nil
}
