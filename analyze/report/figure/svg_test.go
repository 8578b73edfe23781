package figure

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
)

// Paths are relative to their first point, and errors of rounding do not add up.
func TestOutline(t *testing.T) {
	var o outline
	o.line([]point{{1.04, 2}, {3, 2.5}, {2.96, -1}})
	if want := "M1 2l2 0.5 0 -3.5"; string(o) != want {
		t.Errorf("%s, want %s", o, want)
	}
	o = nil
	line := []point{{0, 0}}
	for i := range 1000 {
		line = append(line, point{0.04 * float64(i+1), 0.36 * float64(i+1)})
	}
	o.line(line)
	x, y := 0.0, 0.0
	numbers := regexp.MustCompile(`-?[\d.]+`).FindAllString(string(o), -1)
	for i := 0; i < len(numbers); i += 2 {
		dx, _ := strconv.ParseFloat(numbers[i], 64)
		dy, _ := strconv.ParseFloat(numbers[i+1], 64)
		x, y = x+dx, y+dy
	}
	if end := fmt.Sprintf("%.1f %.1f", x, y); end != "40.0 360.0" {
		t.Errorf("the line ends at %s", end)
	}
}
