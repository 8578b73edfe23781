package format

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"moontide/trace"
)

// maxColumns bounds the columns of a table.
const maxColumns = 64

// table is a format that is a CSV file with a header.
type table struct {
	format  Format
	columns []string // that it must have
	// known are columns that it can have. What stands in others is left out.
	known []string
	// reader returns what reads a row. at finds a column's place, -1 where
	// there is none.
	reader func(at func(column string) int, n *notes) rowReader
}

// rowReader reads the fields of a table's rows.
type rowReader interface {
	read(fields [][]byte, r *trace.Request) error
	end() // after the last row
}

var tables = []table{azure, burstGPT, vidur}

func tableOf(f Format) (table, bool) {
	i := slices.IndexFunc(tables, func(t table) bool { return t.format == f })
	if i < 0 {
		return table{}, false
	}
	return tables[i], true
}

// is reports whether a header is one of the format.
func (t table) is(header []string) bool {
	return !slices.ContainsFunc(t.columns, func(c string) bool { return !slices.Contains(header, c) })
}

// splitHeader returns the columns of the line, nil where it is none.
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

// csvRows reads the lines of a table behind its header.
type csvRows struct {
	header  []byte
	columns int
	fields  [][]byte
	row     rowReader
}

// newCSV reads the header of a table.
func newCSV(t table, in *Text, name string, n *notes) (*csvRows, error) {
	line, err := in.Line()
	for err == nil && len(line) == 0 {
		line, err = in.Line()
	}
	if err == io.EOF {
		line, err = nil, nil
	}
	header := splitHeader(line)
	if err == nil && !t.is(header) {
		err = fmt.Errorf("not the header of %s, which has the columns %s: %s", named(t.format), strings.Join(t.columns, ", "), Quote(line))
	}
	if err != nil {
		return nil, &trace.RowError{File: name, Line: in.Number(), Err: err}
	}
	var unknown []string
	for i, c := range header {
		if slices.Index(header, c) != i {
			return nil, &trace.RowError{File: name, Line: in.Number(), Err: fmt.Errorf("the column %q stands twice in the header", c)}
		}
		if !slices.Contains(t.columns, c) && !slices.Contains(t.known, c) {
			unknown = append(unknown, cmp.Or(c, "one without a name"))
		}
	}
	if len(unknown) > 0 {
		n.say("columns left out: %.200s", strings.Join(unknown, ", "))
	}
	at := func(column string) int { return slices.Index(header, column) }
	return &csvRows{
		header: bytes.Clone(line), columns: len(header),
		fields: make([][]byte, 0, maxColumns+1), row: t.reader(at, n),
	}, nil
}

func (c *csvRows) read(line []byte, r *trace.Request) (err error) {
	*r = trace.Request{}
	if c.fields, err = splitFields(c.fields[:0], line); err != nil {
		return err
	}
	if len(c.fields) != c.columns {
		return fmt.Errorf("%d fields under a header of %d: %s", len(c.fields), c.columns, Quote(line))
	}
	err = c.row.read(c.fields, r)
	if err != nil && bytes.Equal(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")), c.header) {
		return errors.New("the header again: these are two files, one behind the other")
	}
	return err
}

func (c *csvRows) end() { c.row.end() }

// splitFields appends the fields of a line to dst. A line of very many is cut
// behind one more than a table may have.
func splitFields(dst [][]byte, line []byte) ([][]byte, error) {
	cut := cutField
	if bytes.IndexByte(line, '"') >= 0 { // few lines have any
		cut = cutQuoted
	}
	for more := true; more && len(dst) <= maxColumns; {
		var field []byte
		if field, line, more = cut(line); field == nil {
			return dst, fmt.Errorf("not a row of CSV: %s", Quote(line))
		}
		dst = append(dst, field)
	}
	return dst, nil
}

// cutField cuts the first field off a line without quotes, less the spaces
// around it.
func cutField(line []byte) (field, rest []byte, more bool) {
	if i := bytes.IndexByte(line, ','); i >= 0 {
		field, rest, more = line[:i], line[i+1:], true
	} else {
		field = line
	}
	for len(field) > 0 && field[0] == ' ' {
		field = field[1:]
	}
	for n := len(field); n > 0 && field[n-1] == ' '; n-- {
		field = field[:n-1]
	}
	return field, rest, more
}

// cutQuoted cuts the first field off a line where fields may be in quotes. A
// quote that is not one of them gives the field nil, and the line as it is.
func cutQuoted(line []byte) (field, rest []byte, more bool) {
	b := bytes.TrimLeft(line, " ")
	if len(b) == 0 || b[0] != '"' {
		field, rest, more = cutField(line)
		if bytes.IndexByte(field, '"') >= 0 {
			return nil, line, false
		}
		return field, rest, more
	}
	doubled := false
	for i := 1; ; i++ {
		quote := bytes.IndexByte(b[i:], '"')
		if quote < 0 {
			return nil, line, false
		}
		if i += quote; i+1 < len(b) && b[i+1] == '"' {
			doubled = true
			i++
			continue
		}
		if field = b[1:i]; doubled {
			field = bytes.ReplaceAll(field, []byte(`""`), []byte(`"`))
		}
		rest = bytes.TrimLeft(b[i+1:], " ")
		switch {
		case len(rest) == 0:
			return field, nil, false
		case rest[0] == ',':
			return field, rest[1:], true
		}
		return nil, line, false
	}
}
