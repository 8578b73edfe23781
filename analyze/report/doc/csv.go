package doc

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// WriteCSV writes the numbers of the document and of its parts as one table, with the
// columns of all. Notes, verdicts and warnings go in a last column: those of a part in its
// first row, those of the document in the very first row.
func (d *Document) WriteCSV(w io.Writer) error {
	columns, rows, notes := d.csvRows()
	if len(notes) > 0 {
		columns = append(columns, "notes")
	}
	out := csv.NewWriter(w)
	out.Write(csvCells(slices.Clone(columns)))
	for i, row := range rows {
		cells := make([]string, len(columns))
		if len(notes) > 0 {
			cells[len(columns)-1] = notes[i]
		}
		copy(cells, row)
		out.Write(csvCells(cells))
	}
	if out.Flush(); out.Error() != nil {
		return fmt.Errorf("writing report: %w", out.Error())
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

// csvRows returns the rows of the document and its parts, and notes by row. Rows may lack
// the last columns.
func (d *Document) csvRows() (columns []string, rows [][]string, notes map[int]string) {
	columns, rows, notes = slices.Clone(d.Data.Columns), slices.Clone(d.Data.Rows), map[int]string{}
	for _, part := range d.Parts {
		partColumns, partRows, partNotes := part.csvRows()
		for i, text := range partNotes {
			notes[len(rows)+i] = text
		}
		var at []int // of the part's columns in all
		for _, column := range partColumns {
			if !slices.Contains(columns, column) {
				columns = append(columns, column)
			}
			at = append(at, slices.Index(columns, column))
		}
		for _, row := range partRows {
			cells := make([]string, len(columns))
			for i, cell := range row {
				cells[at[i]] = cell
			}
			rows = append(rows, cells)
		}
	}
	if all := d.allNotes(); len(all) > 0 {
		if rows == nil {
			rows = [][]string{nil}
		}
		notes[0] = strings.TrimSuffix(strings.Join(append(all, notes[0]), "; "), "; ")
	}
	return columns, rows, notes
}
