package figure

import (
	"math"
	"regexp"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

var command = regexp.MustCompile(`([MlZ])([^MlZ]*)`)

// drawnLines returns the lines of path data, as the script of a page reads them.
func drawnLines(data string) (lines [][]point) {
	var x, y float64
	for _, c := range command.FindAllStringSubmatch(data, -1) {
		var v []float64
		for _, text := range regexp.MustCompile(`-?[\d.]+`).FindAllString(c[2], -1) {
			number, _ := strconv.ParseFloat(text, 64)
			v = append(v, number)
		}
		add := func(dx, dy float64) {
			x, y = x+dx, y+dy
			lines[len(lines)-1] = append(lines[len(lines)-1], point{x, y})
		}
		if c[1] == "M" {
			x, y, lines = 0, 0, append(lines, nil)
		}
		for i := 0; i < len(v); i += 2 {
			add(v[i], v[i+1])
		}
	}
	return lines
}

func TestOutlinesAreTheLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o outline
		coordinate := rapid.OneOf(rapid.Float64Range(-700, 700), rapid.SampledFrom([]float64{0, 0.1, -0.1, 5, 100}))
		var lines [][]point
		for range rapid.IntRange(1, 4).Draw(t, "lines") {
			line := []point{{coordinate.Draw(t, "x"), coordinate.Draw(t, "y")}}
			for range rapid.IntRange(0, 6).Draw(t, "points") {
				p := point{coordinate.Draw(t, "x"), coordinate.Draw(t, "y")}
				line = append(line, p)
			}
			lines = append(lines, line)
			o.line(line)
		}
		got := drawnLines(string(o))
		if len(got) != len(lines) {
			t.Fatalf("%s: %d lines of %d", o, len(got), len(lines))
		}
		for i, line := range lines {
			if len(got[i]) != len(line) {
				t.Fatalf("%s: %v, want %v", o, got[i], line)
			}
			for j, p := range line {
				if math.Abs(got[i][j].x-p.x) > 0.0501 || math.Abs(got[i][j].y-p.y) > 0.0501 {
					t.Fatalf("%s: %v, want %v", o, got[i], line)
				}
			}
		}
	})
}
