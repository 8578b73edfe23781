package figure

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Labels that are shown touch neither each other nor a line.
func TestMarkLabelsKeepApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Figure{X: Axis{Min: new(0.0), Max: new(100.0)}, Series: []Series{{X: []float64{0, 100}, Y: []float64{0, 1}}}}
		for range rapid.IntRange(0, 9).Draw(t, "marks") {
			f.Marks = append(f.Marks, Mark{
				Label: strings.Repeat("m", rapid.IntRange(0, 20).Draw(t, "letters")),
				At:    float64(rapid.IntRange(-5, 105).Draw(t, "at")),
			})
		}
		marks := newPage(One(f), Options{}).panels[0].marks
		for i := range marks {
			if m := &marks[i]; m.shown && !fitsBeside(marks[:i], m) {
				t.Fatalf("%+v is in the way of another", *m)
			}
		}
	})
}

func TestMarkLabelsOfADistribution(t *testing.T) {
	f := metrics().Rows[1].Figures[1]
	for i, m := range newPage(One(f), Options{Width: 400}).panels[0].marks {
		if !m.shown {
			t.Errorf("mark %d, %q, has no label", i, m.mark.Label)
		}
	}
}
