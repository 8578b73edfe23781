package doc

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// WriteCSV writes the numbers of the document and of its parts as one table. Notes,
// verdicts and warnings go in a last column: those of a part in its first row, those
// of the document in the very first row.
func (d *Document) WriteCSV(w io.Writer) error {
	columns, rows, noted := d.csvRows()
	if noted {
		columns = append(slices.Clone(columns), "notes")
	}
	out := csv.NewWriter(w)
	out.Write(csvCells(slices.Clone(columns)))
	for i, row := range rows {
		rows[i] = csvCells(row)[:len(columns)]
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

// csvCells makes cells safe in place. A spreadsheet would run text that begins with
// one of =+-@ as a formula; an apostrophe prevents that.
func csvCells(cells []string) []string {
	for i, cell := range cells {
		cells[i] = Clean(cell)
		if _, err := strconv.ParseFloat(cells[i], 64); err != nil && cells[i] != "" && strings.Contains("=+-@", cells[i][:1]) {
			cells[i] = "'" + cells[i]
		}
	}
	return cells
}

// csvRows returns copies of the rows with an extra cell for notes.
func (d *Document) csvRows() (columns []string, rows [][]string, noted bool) {
	columns = d.Data.Columns
	for _, row := range d.Data.Rows {
		rows = append(rows, append(slices.Clone(row), ""))
	}
	for _, part := range d.Parts {
		partColumns, partRows, partNoted := part.csvRows()
		if columns == nil {
			columns = partColumns
		}
		rows, noted = append(rows, partRows...), noted || partNoted
	}
	notes := d.allNotes()
	if len(notes) == 0 {
		return columns, rows, noted
	}
	if len(rows) == 0 {
		rows = [][]string{make([]string, len(columns)+1)}
	}
	last := &rows[0][len(columns)]
	*last = strings.TrimSuffix(strings.Join(notes, "; ")+"; "+*last, "; ")
	return columns, rows, true
}
