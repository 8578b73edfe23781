package figure

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The shortened line keeps ends and order, and no point of the line is farther from it
// than the precision.
func TestSimplifiedLinesAreClose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := randomLine(t, 1, 200)
		within := rapid.Float64Range(0, 3).Draw(t, "precision")
		short := simplified(line, within)
		if short[0] != line[0] || short[len(short)-1] != line[len(line)-1] {
			t.Fatal("the ends moved")
		}
		next := 1
		for _, p := range line[1:] {
			if d := p.from(short[next-1], short[next]); d > within+1e-9 {
				t.Fatalf("%v is %g from the line", p, d)
			}
			if p == short[next] && next < len(short)-1 {
				next++
			}
		}
	})
	straight := make([]point, 100)
	for i := range straight {
		straight[i] = point{float64(i), 2 * float64(i)}
	}
	if short := simplified(straight, 0.1); len(short) != 2 {
		t.Errorf("a straight line has %d points", len(short))
	}
}

var command = regexp.MustCompile(`([MmlhvZ])([^MmlhvZ]*)`)

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
		switch c[1] {
		case "M", "m":
			if c[1] == "M" {
				x, y = 0, 0
			}
			lines = append(lines, nil)
			add(v[0], v[1])
		case "l":
			for i := 0; i < len(v); i += 2 {
				add(v[i], v[i+1])
			}
		case "h":
			for _, dx := range v {
				add(dx, 0)
			}
		case "v":
			for _, dy := range v {
				add(0, dy)
			}
		}
	}
	return lines
}

func TestOutlinesAreTheLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o outline
		coordinate := rapid.OneOf(rapid.Float64Range(-700, 700), rapid.SampledFrom([]float64{0, 0.1, -0.1, 5, 100}))
		var lines [][]point
		closed := rapid.Bool().Draw(t, "closed")
		for range rapid.IntRange(1, 4).Draw(t, "lines") {
			line := []point{{coordinate.Draw(t, "x"), coordinate.Draw(t, "y")}}
			for range rapid.IntRange(0, 6).Draw(t, "points") {
				p := point{coordinate.Draw(t, "x"), coordinate.Draw(t, "y")}
				if rapid.Bool().Draw(t, "level") {
					p.y = line[0].y
				}
				line = append(line, p)
			}
			lines = append(lines, line)
			o.line(line)
			if closed {
				o.close()
			}
		}
		got := drawnLines(string(o.text))
		if len(got) != len(lines) {
			t.Fatalf("%s: %d lines of %d", o.text, len(got), len(lines))
		}
		for i, line := range lines {
			if len(got[i]) != len(line) {
				t.Fatalf("%s: %v, want %v", o.text, got[i], line)
			}
			for j, p := range line {
				if math.Abs(got[i][j].x-p.x) > 0.0501 || math.Abs(got[i][j].y-p.y) > 0.0501 {
					t.Fatalf("%s: %v, want %v", o.text, got[i], line)
				}
			}
		}
	})
}

// Every colour of a picture has one for dark pages, and the series keep distinct ones.
func TestDark(t *testing.T) {
	used := map[ink]bool{}
	for _, c := range append(slices.Clone(palette), paper, strong, normal, weak, rule, faint, alarm) {
		to, ok := dark[c]
		if !ok || used[to] {
			t.Errorf("#%06x has no colour of its own on a dark page", c)
		}
		used[to] = true
	}
	style := DarkStyle()
	for name, f := range figures() {
		for _, found := range regexp.MustCompile(`(fill|stroke)="#[0-9a-f]{6}"`).FindAllString(SVG(f), -1) {
			if !strings.Contains(style, "svg ["+found+"]") {
				t.Fatalf("%s: no rule for %s", name, found)
			}
		}
	}
}
