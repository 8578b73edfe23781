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

// tableColumns lists the columns besides those of the metrics, and their fields.
var tableColumns = []struct {
	name  string
	whole bool
	set   func(l *Load, v float64)
}{
	{"isl", true, func(l *Load, v float64) { l.ISL = int(v) }},
	{"osl", true, func(l *Load, v float64) { l.OSL = int(v) }},
	{"concurrency", true, func(l *Load, v float64) { l.Concurrency = int(v) }},
	{"rate", false, func(l *Load, v float64) { l.Rate = v }},
	{"prompts", true, func(l *Load, v float64) { l.Prompts = int(v) }},
	{"mean_output_tokens", false, func(l *Load, v float64) { l.MeanOutput = v }},
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
	header, err := in.Read()
	if err != nil {
		return nil, tableError(err)
	}
	t := &Table{}
	columns, err := t.columns(header)
	if err != nil {
		return nil, err
	}
	for {
		cells, err := in.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, tableError(err)
		}
		line, _ := in.FieldPos(0)
		if len(t.Measurements) == maxTableRows {
			return nil, fmt.Errorf("line %d: more than %d rows", line, maxTableRows)
		}
		m, err := measurementOf(columns, cells)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		m.Name = fmt.Sprintf("line %d", line)
		t.Measurements = append(t.Measurements, m)
	}
	if len(t.Measurements) == 0 {
		return nil, errors.New("the table has no rows")
	}
	return t, checkUnits(t.Measurements)
}

func tableError(err error) error {
	var wrong *csv.ParseError
	switch {
	case err == io.EOF:
		return errors.New("the table is empty")
	case errors.As(err, &wrong) && errors.Is(err, csv.ErrFieldCount):
		return fmt.Errorf("line %d: the row has another number of cells than the first line", wrong.Line)
	case errors.As(err, &wrong):
		return fmt.Errorf("line %d: %w", wrong.Line, wrong.Err)
	}
	return fmt.Errorf("reading the table: %w", err)
}

// columns checks the names of columns and returns them in lower case.
func (t *Table) columns(header []string) (names []string, err error) {
	for _, name := range header {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		switch {
		case name != "" && slices.Contains(names, name):
			return nil, fmt.Errorf("line 1: two columns %q", name)
		case otherUnit(name) != "":
			return nil, fmt.Errorf("line 1: column %q: latencies have to be in milliseconds, in the column %s", name, otherUnit(name))
		case !knownColumn(name):
			t.Ignored = append(t.Ignored, name)
		}
		names = append(names, name)
	}
	has := func(name string) bool { return slices.Contains(names, name) }
	for _, name := range []string{"isl", "osl"} {
		if !has(name) {
			return nil, fmt.Errorf("line 1: no column %s; the columns are %s", name, strings.Join(names, ", "))
		}
	}
	switch {
	case !has("concurrency") && !has("rate"):
		return nil, fmt.Errorf("line 1: no column concurrency (requests in flight) or rate (requests/s); the columns are %s", strings.Join(names, ", "))
	case !slices.ContainsFunc(metricKeys[:], has):
		return nil, fmt.Errorf("line 1: no column with a metric: %s", strings.Join(metricKeys[:], ", "))
	}
	return names, nil
}

func knownColumn(name string) bool {
	if name == deploymentColumn || slices.Contains(metricKeys[:], name) {
		return true
	}
	for _, c := range tableColumns {
		if c.name == name {
			return true
		}
	}
	return false
}

// otherUnit returns the column in milliseconds of one in another unit or without one,
// "" if the name is none of these.
func otherUnit(name string) string {
	base := name
	for _, unit := range []string{"_s", "_sec", "_seconds", "_us", "_ns"} {
		base = strings.TrimSuffix(base, unit)
	}
	if milliseconds := base + "_ms"; slices.Contains(metricKeys[:], milliseconds) {
		return milliseconds
	}
	return ""
}

func measurementOf(columns, cells []string) (m Measurement, err error) {
	for i, name := range columns {
		cell := strings.TrimSpace(cells[i])
		if name == deploymentColumn {
			m.Deployment = strings.Clone(cell)
		}
		if cell == "" || name == deploymentColumn || !knownColumn(name) {
			continue
		}
		v, err := strconv.ParseFloat(cell, 64)
		if err != nil || !(v >= 0 && v <= 1e12) {
			return m, fmt.Errorf("column %s: %.40q is not a number from 0 on", name, cell)
		}
		if metric := slices.Index(metricKeys[:], name); metric >= 0 {
			m.Values[metric] = v
			continue
		}
		for _, c := range tableColumns {
			if c.name != name {
				continue
			}
			if c.whole && (v != math.Trunc(v) || v > trace.MaxLength) {
				return m, fmt.Errorf("column %s: %s is not a whole number up to %d", name, cell, trace.MaxLength)
			}
			c.set(&m.Load, v)
		}
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

// checkUnits returns an error if most rows contradict each other by a factor that only
// a wrong unit explains: Little's law, and E2EL = TTFT + tokens x TPOT.
func checkUnits(all []Measurement) error {
	var little, parts []float64
	for _, m := range all {
		v := m.Values
		if n := float64(m.Load.Concurrency); n > 0 && m.Load.Rate == 0 && v[RequestThroughput] > 0 && v[MeanE2EL] > 0 {
			little = append(little, v[RequestThroughput]*v[MeanE2EL]/1000/n)
		}
		if v[MeanE2EL] > 0 && v[MeanTPOT] > 0 && m.Load.OSL > 1 {
			parts = append(parts, (v[MeanTTFT]+v[MeanTPOT]*float64(m.Load.OSL-1))/v[MeanE2EL])
		}
	}
	switch ratio := median(little); {
	case ratio > 50:
		return fmt.Errorf("throughput times E2EL is %.3g times the concurrency in half of the rows: the latencies are not in milliseconds or the throughput is not in requests/s", ratio)
	case ratio > 0 && ratio < 0.02:
		return fmt.Errorf("throughput times E2EL is %.3g of the concurrency in half of the rows: the latencies are in seconds, not milliseconds, or the throughput is not in requests/s", ratio)
	}
	if ratio := median(parts); ratio > 50 || ratio > 0 && ratio < 0.02 {
		return fmt.Errorf("TTFT plus the times of the tokens is %.3g times the E2EL in half of the rows: mean_ttft_ms, mean_tpot_ms and mean_e2el_ms are not all in milliseconds", ratio)
	}
	return nil
}

// median returns the upper median, 0 without values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
