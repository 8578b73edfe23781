package figure

import (
	"fmt"
	"strings"
	"testing"

	"gonum.org/v1/plot/text"
	"pgregory.net/rapid"
)

// textRecord is a surface that only keeps where texts are.
type textRecord struct {
	texts []string
	boxes []rect
}

func (w *textRecord) begin(string, ...string)                     {}
func (w *textRecord) end()                                        {}
func (w *textRecord) path([][]point, pen, string)                 {}
func (w *textRecord) dots([]point, float64, ink, float64, string) {}
func (w *textRecord) text(at point, s string, l letters) {
	width := l.width(s)
	switch l.anchor {
	case text.XCenter:
		at.x -= width / 2
	case text.XRight:
		at.x -= width
	}
	w.texts = append(w.texts, s)
	w.boxes = append(w.boxes, l.box(at, s))
}

// No text of a picture is on another, or outside the picture.
func TestTextsKeepApart(t *testing.T) {
	for name, sheet := range samples() {
		for _, width := range []int{460, 900, 1300} {
			if width == 460 && len(sheet.Figures) > 1 || name == "awkward" {
				continue // names of several figures do not fit
			}
			t.Run(fmt.Sprintf("%s %d", name, width), func(t *testing.T) {
				textsKeepApart(t, sheet, width, "")
			})
		}
	}
}

// textsKeepApart checks the texts that begin with a prefix.
func textsKeepApart(t interface{ Errorf(string, ...any) }, sheet Sheet, width int, prefix string) {
	p := newPage(sheet, width)
	var w textRecord
	p.draw(&w)
	for i, a := range w.boxes {
		if a.left < 0 || a.right > float64(p.width) || a.top < 0 || a.bottom > float64(p.height) {
			t.Errorf("%q is at %v, outside of %d x %d", w.texts[i], a, p.width, p.height)
		}
		for j, b := range w.boxes[:i] {
			if a.overlaps(b) && (strings.HasPrefix(w.texts[i], prefix) || strings.HasPrefix(w.texts[j], prefix)) {
				t.Errorf("%q is on %q: %v, %v", w.texts[i], w.texts[j], a, b)
			}
		}
	}
}

// The labels of objectives are on no other text, wherever they are.
func TestObjectivesKeepApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, s := sweep(), Series{}
		for i := range rapid.IntRange(1, 8).Draw(t, "points") {
			s.X = append(s.X, 1.2*float64(i+1))
			s.Y = append(s.Y, float64(rapid.IntRange(0, 1000).Draw(t, "y")))
			s.Labels = append(s.Labels, fmt.Sprint(1<<i))
		}
		f.Series, f.Marks = []Series{s}, nil
		for range rapid.IntRange(0, 4).Draw(t, "objectives") {
			m := Mark{Label: "SLO 150 ms", Limit: true, OnY: rapid.Bool().Draw(t, "on y")}
			m.At = float64(rapid.IntRange(10, 1000).Draw(t, "at"))
			if !m.OnY {
				m.At /= 100
			}
			f.Marks = append(f.Marks, m)
		}
		textsKeepApart(t, alone(f), rapid.SampledFrom([]int{360, 460, 900}).Draw(t, "width"), "SLO")
	})
}
