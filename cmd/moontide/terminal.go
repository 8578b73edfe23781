package main

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"

	"moontide/analyze/report/doc"
)

// leastColumns is the narrowest terminal that reports are written for.
const leastColumns = 40

// terminalOf returns the layout of text for w: the width of COLUMNS or of the terminal, and
// colour on a terminal unless NO_COLOR is set.
func terminalOf(w io.Writer) (layout doc.Terminal) {
	f, isFile := w.(*os.File)
	isTerminal := isFile && term.IsTerminal(int(f.Fd()))
	if isTerminal {
		layout.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		layout.Width, _, _ = term.GetSize(int(f.Fd())) // 0 if unknown
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		layout.Width = columns
	}
	if layout.Width > 0 {
		layout.Width = max(layout.Width, leastColumns)
	}
	return layout
}
