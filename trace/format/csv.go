package format

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

const maxColumns = 64 // of a table

// table describes a format that is a CSV file with a header.
type table struct {
	format             Format
	required, optional []string // columns that are read
}

var tables = []table{
	// The releases of Microsoft's trace differ in their time format:
	// 2023-11-16 18:15:46.6805900 in 2023, 2024-05-10 00:00:00.009930+00:00
	// in 2024. The release of 2025 has a column NumImages.
	{Azure, []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, []string{"NumImages"}},
	// Seconds from the midnight before the first request. Later releases have
	// sessions and durations. A failed request has no response tokens.
	{BurstGPT, []string{"Timestamp", "Request tokens", "Response tokens"}, []string{"Total tokens", "Model", "Log Type", "Session ID", "Elapsed time"}},
	{Vidur, []string{"num_prefill_tokens", "num_decode_tokens"}, []string{"arrived_at"}},
}

// hasHeader reports whether a header is that of the table.
func (t *table) hasHeader(header []string) bool {
	return !slices.ContainsFunc(t.required, func(name string) bool { return !slices.Contains(header, name) })
}

// tableOf returns the format of the table with a header line, or "".
func tableOf(line []byte) Format {
	header := splitHeader(line)
	for _, t := range tables {
		if t.hasHeader(header) {
			return t.format
		}
	}
	return ""
}

// splitHeader returns the columns of a header line, or nil.
func splitHeader(line []byte) (header []string) {
	if len(line) > 64<<10 {
		return nil
	}
	fields, err := splitFields(nil, bytes.TrimRight(line, "\r"))
	if err != nil || len(fields) > maxColumns {
		return nil
	}
	for _, f := range fields {
		header = append(header, string(f))
	}
	return header
}

// csvRows parses the lines below the header of a table.
type csvRows struct {
	format  Format
	width   int      // of the header, in columns
	columns []string // that are read
	at      []int    // where they are, -1 if absent
	notes   *notes
	origin  int64 // the first date, in ns since 1970; 0 before

	// Of the current row: its fields, its model, and what else is recorded.
	fields   [][]byte
	model    []byte
	recorded jsonscan.Object
}

// newCSV reads the header of a table.
func newCSV(f Format, in *Text, name string, n *notes) (*csvRows, error) {
	t := tables[slices.IndexFunc(tables, func(t table) bool { return t.format == f })]
	line, err := in.Line()
	header := splitHeader(line)
	if (err == nil || err == io.EOF) && !t.hasHeader(header) {
		err = fmt.Errorf("not the header of %s, which has the columns %s: %s", named(f), strings.Join(t.required, ", "), Quote(line))
	}
	c := &csvRows{format: f, width: len(header), columns: slices.Concat(t.required, t.optional), notes: n}
	for _, name := range c.columns {
		c.at = append(c.at, slices.Index(header, name))
	}
	var unknown []string
	for i, name := range header {
		if slices.Index(header, name) != i && err == nil {
			err = fmt.Errorf("column %q is given twice in the header", name)
		}
		if !slices.Contains(c.columns, name) {
			unknown = append(unknown, cmp.Or(name, "(no name)"))
		}
	}
	if err != nil {
		return nil, &trace.RowError{File: name, Line: in.Number(), Err: err}
	}
	if len(unknown) > 0 {
		n.say("columns left out: %.200s", strings.Join(unknown, ", "))
	}
	if f == Vidur && !slices.Contains(header, t.optional[0]) {
		n.say("no arrivals: there is no column %s (set a rate to add arrivals)", t.optional[0])
	}
	return c, nil
}

func (c *csvRows) parse(line []byte, r *trace.Request) (err error) {
	*r = trace.Request{}
	if c.fields, err = splitFields(c.fields[:0], line); err != nil {
		return err
	}
	if len(c.fields) != c.width {
		return fmt.Errorf("%d fields under a header of %d: %s", len(c.fields), c.width, Quote(line))
	}
	c.model, c.recorded = c.model[:0], jsonscan.Object{}
	for i, at := range c.at {
		if at < 0 || i > 2 && len(c.fields[at]) == 0 { // only the time and the lengths, which come first, must not be empty
			continue
		}
		if err := c.read(c.columns[i], c.fields[at], r); err != nil {
			if tableOf(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))) != "" {
				return errors.New("the header is repeated: these are two files in one")
			}
			return keyed(c.columns[i], err)
		}
	}
	if c.format == BurstGPT && r.OutputLength == 0 {
		c.notes.count("rows left out, without response tokens (the request failed)")
		return errLeftOut
	}
	r.Extra = unknownKeys(c.model, c.recorded, false)
	return nil
}

// read sets what the field of a column gives.
func (c *csvRows) read(column string, field []byte, r *trace.Request) (err error) {
	switch column {
	case "TIMESTAMP":
		r.Timestamp.Set = true
		r.Timestamp.Value, err = c.sinceFirstDate(field)
	case "Timestamp", "arrived_at":
		r.Timestamp.Set = true
		r.Timestamp.Value, err = parseSeconds(field)
	case "ContextTokens", "Request tokens", "num_prefill_tokens":
		r.InputLength, err = parseLength(field)
	case "GeneratedTokens", "Response tokens", "num_decode_tokens":
		r.OutputLength, err = parseLength(field)
	default:
		err = c.readOptional(column, field, r)
	}
	return err
}

// readOptional is read for columns that most files lack: this is faster than one switch.
func (c *csvRows) readOptional(column string, field []byte, r *trace.Request) (err error) {
	switch column {
	case "NumImages":
		images, err := parseLength(field)
		if images > 0 {
			c.notes.count("requests with images (only their text is counted)")
			c.recorded.Add(column, strconv.AppendInt(nil, int64(images), 10))
		}
		return err
	case "Total tokens":
		total, err := parseLength(field)
		if err == nil && total != r.InputLength+r.OutputLength {
			err = fmt.Errorf("is not the sum of %d and %d: %s", r.InputLength, r.OutputLength, quoteNumber(field))
		}
		return err
	case "Model":
		c.model = jsonscan.AppendString(c.model, string(field))
	case "Session ID":
		r.SessionID = string(field)
	case "Log Type":
		c.recorded.Add(column, jsonscan.AppendString(make([]byte, 0, 64), string(field)))
	case "Elapsed time":
		if _, err = parseSeconds(field); r.OutputLength == 0 {
			return nil // it is left out
		}
		if !json.Valid(field) { // like .5
			field = jsonscan.AppendString(nil, string(field))
		}
		c.recorded.Add(column, field)
	}
	return err
}

// sinceFirstDate returns the milliseconds since the date in the first row.
func (c *csvRows) sinceFirstDate(field []byte) (float64, error) {
	at, err := parseDate(field)
	if err != nil {
		return 0, err
	}
	if c.origin == 0 {
		c.origin = at
		c.notes.say("time 0 is %.40s", field)
	}
	if at < c.origin {
		return 0, fmt.Errorf("is before that of the first row: %s", Quote(field))
	}
	return float64(at-c.origin) / float64(time.Millisecond), nil
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
		field, end := line, bytes.IndexByte(line, ',')
		if more = end >= 0; more {
			field, line = line[:end], line[end+1:]
		}
		dst = append(dst, bytes.Trim(field, " "))
	}
	return dst, nil
}
