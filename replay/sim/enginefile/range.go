package enginefile

import (
	"fmt"
	"strconv"
)

type namedInterval struct {
	Interval
	key, label string
}

func intervals(r Range) []namedInterval {
	return []namedInterval{
		{r.ISL, "isl", "ISL"}, {r.OSL, "osl", "OSL"}, {r.Concurrency, "concurrency", "concurrency"}, {r.Running, "running", "sequences running on an engine"},
	}
}

// slack is by how much a load may exceed the fitted range.
const slack = 1.1

// Outside describes by how far a load is outside the fitted range, nil if it is inside
// or nothing was fitted. Intervals of 0 in load are not compared.
func (f *File) Outside(load Range) (warnings []string) {
	if f.Fit == nil {
		return nil
	}
	fitted := intervals(f.Fit.Range)
	for i, l := range intervals(load) {
		switch r := fitted[i]; {
		case r.High == 0 || l.High == 0:
		case float64(l.High) > slack*float64(r.High):
			warnings = append(warnings, fmt.Sprintf("%s %s is %s times the largest fitted, %s", l.label, number(l.High), ratio(l.High, r.High), number(r.High)))
		case float64(l.High)*slack < float64(r.Low):
			warnings = append(warnings, fmt.Sprintf("%s %s is %s of the smallest fitted, %s", l.label, number(l.High), ratio(l.High, r.Low), number(r.Low)))
		}
	}
	return warnings
}

func ratio(a, b int) string { return strconv.FormatFloat(float64(a)/float64(b), 'g', 2, 64) }

// number formats an integer with thousands separators.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
