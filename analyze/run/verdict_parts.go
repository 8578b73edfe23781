package run

import "fmt"

// PartFaults returns why runs cannot be the parts of one test, if they cannot: one
// was made with other settings, is there twice, or did not run with the others.
func PartFaults(parts []Part) (faults []string) {
	faults = differences(parts)
	first, last := 0, 0 // that ended first, and that started last
	real := true
	for i := range parts {
		a := &parts[i].Run
		real = real && !a.Target.Virtual && !a.Ended.IsZero()
		if a.Ended.Before(parts[first].Run.Ended) {
			first = i
		}
		if a.Started.After(parts[last].Run.Started) {
			last = i
		}
		for k := range parts[:i] {
			if b := &parts[k].Run; a.Started.Equal(b.Started) && a.Prompts == b.Prompts && a.Target.URL == b.Target.URL {
				faults = append(faults, fmt.Sprintf("runs %d and %d are the same run: leave one of them out", k+1, i+1))
				break
			}
		}
	}
	if real && parts[last].Run.Started.After(parts[first].Run.Ended) {
		faults = append(faults, fmt.Sprintf("run %d started after run %d had ended: merge runs that drove the server at the same time", last+1, first+1))
	}
	return faults
}

// checkParts checks the runs that were merged into one.
func (v *Verdict) checkParts(faults []string) {
	for _, fault := range faults {
		v.note("parts", Invalid, "%s", fault)
	}
}
