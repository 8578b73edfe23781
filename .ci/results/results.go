// Package results keeps what the programs of .ci measure: a results.json, from which
// each of them can render its README.md again.
package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/montanaflynn/stats"
)

// Folder is the folder of a program, seen from the top of the repository.
type Folder string

// Read reads results.json into v, which stays as it is if there is none.
func (f Folder) Read(v any) error {
	if err := ReadJSON(f.File("results.json"), v); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Write writes results.json.
func (f Folder) Write(v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(f.File("results.json"), append(text, '\n'), 0o644)
}

// WritePage writes README.md.
func (f Folder) WritePage(text string) error {
	return os.WriteFile(f.File("README.md"), []byte(text), 0o644)
}

// File returns the path of a file in the folder.
func (f Folder) File(name string) string { return filepath.Join(string(f), name) }

// ReadJSON decodes a file.
func ReadJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// Page is a README.md in the making.
type Page struct{ strings.Builder }

// Line appends text and the end of the line.
func (p *Page) Line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// Table begins a table.
func (p *Page) Table(columns ...string) {
	p.Line("\n| %s |", strings.Join(columns, " | "))
	p.Line("|%s", strings.Repeat(" --- |", len(columns)))
}

// Row appends a row of a table.
func (p *Page) Row(cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "\n", "; ", "<", "&lt;").Replace(cell)
	}
	p.Line("| %s |", strings.Join(cells, " | "))
}

// Mark returns the cell that says whether a law holds.
func Mark(ok bool) string {
	if ok {
		return "yes"
	}
	return "**no**"
}

// Wanted reports whether a check was chosen: by the start of its name, and by no names at
// all.
func Wanted(check string, names []string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(check, name) })
}

// Median returns the median of a value of some runs, 0 if there are none.
func Median[T any](runs []T, value func(T) float64) float64 {
	median, _ := stats.Median(valuesOf(runs, value))
	return median
}

// Spread formats the median of a value of some runs and, if there are several, its range.
func Spread[T any](runs []T, value func(T) float64, format func(float64) string) string {
	median := format(Median(runs, value))
	if len(runs) < 2 {
		return median
	}
	values := valuesOf(runs, value)
	return fmt.Sprintf("%s (%s to %s)", median, format(slices.Min(values)), format(slices.Max(values)))
}

func valuesOf[T any](runs []T, value func(T) float64) (values []float64) {
	for _, r := range runs {
		values = append(values, value(r))
	}
	return values
}

var notInSlug = regexp.MustCompile(`[^a-z0-9]+`)

// Slug returns a name in a form for files.
func Slug(name string) string {
	return strings.Trim(notInSlug.ReplaceAllString(strings.ToLower(name), "-"), "-")
}

// FirstLine returns the first line that a command prints.
func FirstLine(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// Installed returns the version of a package in a virtual environment of Python.
func Installed(venv, name string) string {
	return FirstLine(filepath.Join(venv, "bin", "python"), "-c", "from importlib.metadata import version; print(version('"+name+"'))")
}
