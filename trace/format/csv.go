package format

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"moontide/trace"
)

const maxColumns = 64 // of a table

// table describes a format that is a CSV file with a header.
type table struct {
	format              Format
	time, input, output string   // columns of arrival and lengths
	optionalTime        bool     // there may be no arrivals
	optional            []string // further columns that are read
	// parseTime returns the arrival in milliseconds; nil parses seconds.
	parseTime func(c *csvRows, field []byte) (float64, error)
	// parseRest sets the fields that the columns above do not provide.
	parseRest func(c *csvRows, r *trace.Request) error
}

var tables = []table{
	{
		// The releases of Microsoft's trace differ in their time format:
		// 2023-11-16 18:15:46.6805900 in 2023, 2024-05-10 00:00:00.009930+00:00
		// in 2024. The release of 2025 has a column NumImages.
		format: Azure, time: "TIMESTAMP", input: "ContextTokens", output: "GeneratedTokens", optional: []string{"NumImages"},
		parseTime: (*csvRows).sinceFirstDate, parseRest: parseAzure,
	},
	{
		// Seconds from the midnight before the first request. Later releases
		// have sessions and durations. A failed request has no response tokens.
		format: BurstGPT, time: "Timestamp", input: "Request tokens", output: "Response tokens",
		optional:  []string{"Model", "Total tokens", "Log Type", "Session ID", "Elapsed time"},
		parseRest: parseBurstGPT,
	},
	{
		format: Vidur, time: "arrived_at", input: "num_prefill_tokens", output: "num_decode_tokens", optionalTime: true,
	},
}

// Columns of all tables; the optional ones follow.
const (
	columnTime = iota
	columnInput
	columnOutput
	columnOptional
)

// hasHeader reports whether a header is that of the table.
func (t *table) hasHeader(header []string) bool {
	return slices.Contains(header, t.input) && slices.Contains(header, t.output) && (t.optionalTime || slices.Contains(header, t.time))
}

// splitHeader returns the columns of a header line, or nil.
func splitHeader(line []byte) []string {
	if len(line) > 64<<10 {
		return nil
	}
	fields, err := splitFields(nil, bytes.TrimRight(line, "\r"))
	if err != nil || len(fields) > maxColumns {
		return nil
	}
	header := make([]string, len(fields))
	for i, f := range fields {
		header[i] = string(f)
	}
	return header
}

// csvRows parses the lines below the header of a table.
type csvRows struct {
	table   *table
	head    []byte
	columns int      // in the header
	at      []int    // where the columns of the table are, -1 if absent
	fields  [][]byte // of the current line
	notes   *notes
	origin  int64 // the first date, in ns since 1970; 0 before
}

// newCSV reads the header of a table.
func newCSV(f Format, in *Text, name string, n *notes) (*csvRows, error) {
	t := &tables[slices.IndexFunc(tables, func(t table) bool { return t.format == f })]
	line, err := in.Line()
	for err == nil && len(line) == 0 {
		line, err = in.Line()
	}
	if err == io.EOF {
		line, err = nil, nil
	}
	header := splitHeader(line)
	if err == nil && !t.hasHeader(header) {
		required := t.time + ", " + t.input + ", " + t.output
		if t.optionalTime {
			required = t.input + ", " + t.output
		}
		err = fmt.Errorf("not the header of %s, which has the columns %s: %s", named(f), required, Quote(line))
	}
	c := &csvRows{table: t, head: bytes.Clone(line), columns: len(header), fields: make([][]byte, 0, maxColumns+1), notes: n}
	known := append([]string{t.time, t.input, t.output}, t.optional...)
	for _, name := range known {
		c.at = append(c.at, slices.Index(header, name))
	}
	var unknown []string
	for i, name := range header {
		if slices.Index(header, name) != i && err == nil {
			err = fmt.Errorf("column %q is given twice in the header", name)
		}
		if !slices.Contains(known, name) {
			unknown = append(unknown, cmp.Or(name, "(no name)"))
		}
	}
	if err != nil {
		return nil, &trace.RowError{File: name, Line: in.Number(), Err: err}
	}
	if len(unknown) > 0 {
		n.say("columns left out: %.200s", strings.Join(unknown, ", "))
	}
	if c.at[columnTime] < 0 {
		n.say("no arrivals: there is no column %s (set a rate to add arrivals)", t.time)
	}
	return c, nil
}

func (c *csvRows) parse(line []byte, r *trace.Request) (err error) {
	*r = trace.Request{}
	if c.fields, err = splitFields(c.fields[:0], line); err != nil {
		return err
	}
	if len(c.fields) != c.columns {
		return fmt.Errorf("%d fields under a header of %d: %s", len(c.fields), c.columns, Quote(line))
	}
	err = c.parseFields(r)
	if err != nil && bytes.Equal(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")), c.head) {
		return errors.New("the header is repeated: these are two files in one")
	}
	return err
}

func (c *csvRows) parseFields(r *trace.Request) (err error) {
	t := c.table
	r.Timestamp.Set = c.at[columnTime] >= 0
	if r.Timestamp.Set && t.parseTime != nil {
		r.Timestamp.Value, err = t.parseTime(c, c.field(columnTime))
	} else if r.Timestamp.Set {
		r.Timestamp.Value, err = parseSeconds(c.field(columnTime))
	}
	if err != nil {
		return keyed(t.time, err)
	}
	if r.InputLength, err = parseLength(c.field(columnInput)); err != nil {
		return keyed(t.input, err)
	}
	if r.OutputLength, err = parseLength(c.field(columnOutput)); err != nil {
		return keyed(t.output, err)
	}
	if t.parseRest != nil {
		return t.parseRest(c, r)
	}
	return nil
}

// field returns the field of a column of the table, empty if the trace does not have it.
func (c *csvRows) field(column int) []byte {
	if i := c.at[column]; i >= 0 {
		return c.fields[i]
	}
	return nil
}

// splitFields appends the fields of a line to dst, without the spaces around
// them. It stops after maxColumns+1 fields.
func splitFields(dst [][]byte, line []byte) ([][]byte, error) {
	if bytes.IndexByte(line, '"') >= 0 { // few lines have quotes
		r := csv.NewReader(bytes.NewReader(line))
		r.TrimLeadingSpace = true
		fields, err := r.Read()
		if err != nil {
			return dst, fmt.Errorf("not a row of CSV: %s", Quote(line))
		}
		for _, field := range fields[:min(len(fields), maxColumns+1)] {
			dst = append(dst, []byte(strings.Trim(field, " ")))
		}
		return dst, nil
	}
	for more := true; more && len(dst) <= maxColumns; {
		var field []byte
		field, line, more = bytes.Cut(line, []byte(","))
		dst = append(dst, bytes.Trim(field, " "))
	}
	return dst, nil
}
