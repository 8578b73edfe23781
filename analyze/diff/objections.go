package diff

import (
	"fmt"
	"slices"

	"moontide/analyze/run"
)

// Objection is a reason not to compare two sides.
type Objection struct {
	Reason string
	// Invalid says that a run's verdict is INVALID; else the sides are not of one
	// test.
	Invalid bool
}

// objections are those to the runs, then those to the sides: all runs have to be
// of what the first of A is.
func objections(a, b []*Run) (all []Objection) {
	runs := slices.Concat(a, b)
	for i, r := range runs {
		if slices.Contains(runs[:i], r) {
			continue // it is compared with itself
		}
		if r.Verdict.Level == run.Invalid {
			all = append(all, Objection{r.Name + " is INVALID" + why(r.Verdict), true})
		}
		switch run := r.Run; {
		case run.Ended.IsZero():
			all = append(all, Objection{Reason: r.Name + " did not end"})
		case run.Failure != "":
			all = append(all, Objection{Reason: fmt.Sprintf("%s failed: %s", r.Name, run.Failure)})
		case run.Stopped:
			all = append(all, Objection{Reason: fmt.Sprintf("%s was stopped: %d of %d rows were not sent", r.Name, run.NotSent, run.Rows)})
		}
	}
	for _, r := range runs[1:] {
		if reason := differs(runs[0], r); reason != "" {
			all = append(all, Objection{Reason: reason})
		}
	}
	return all
}

// why is what made a verdict.
func why(v run.Verdict) (reasons string) {
	separator := ": "
	for _, e := range v.Evidence {
		if e.Level == v.Level {
			reasons += separator + e.Text
			separator = "; "
		}
	}
	return reasons
}

// differs says how what two runs replayed is not the same, if it is not.
func differs(a, b *Run) string {
	one, other := a.Run.Trace, b.Run.Trace
	between := a.Name + " and " + b.Name
	common, changed := sameRows(a, b)
	switch {
	case common == 0:
		return between + " have no row in common"
	case changed > 0 && one.SHA256 != other.SHA256:
		if one.Name == other.Name {
			return fmt.Sprintf("%s replayed different traces of the name %s, with the SHA-256 %.8s and %.8s", between, one.Name, one.SHA256, other.SHA256)
		}
		return fmt.Sprintf("%s replayed different traces: %s and %s", between, one.Name, other.Name)
	case changed > 0:
		return fmt.Sprintf("%s replayed different requests: %d of %d rows that both have are not the same", between, changed, common)
	case a.Run.Rows != b.Run.Rows:
		return fmt.Sprintf("%s replayed different parts of the trace: %d and %d rows", between, a.Run.Rows, b.Run.Rows)
	case one.BlockSize != other.BlockSize:
		return fmt.Sprintf("%s replayed blocks of different sizes: %d and %d tokens", between, one.BlockSize, other.BlockSize)
	case a.Run.Schedule == b.Run.Schedule:
		return ""
	case one.AtOnce != other.AtOnce:
		return between + " were sent at different rates: only one of them at an infinite rate"
	case one.Rate != other.Rate && one.Rate > 0 && other.Rate > 0:
		return fmt.Sprintf("%s were sent at different rates: %v and %v requests a second", between, one.Rate, other.Rate)
	case one.Rate > 0 && other.Rate > 0 && a.Run.Seed != b.Run.Seed:
		return fmt.Sprintf("%s were sent at different times: their arrivals were drawn with different seeds, %d and %d", between, a.Run.Seed, b.Run.Seed)
	case one.Speedup != other.Speedup:
		return fmt.Sprintf("%s were sent at different speeds: %v and %v times that of the trace", between, one.Speedup, other.Speedup)
	}
	return between + " were sent at different times: their schedules differ"
}

// sameRequests reports whether all runs asked for the same, row by row, at
// whatever times.
func sameRequests(a, b []*Run) bool {
	for _, r := range slices.Concat(a[1:], b) {
		if common, changed := sameRows(a[0], r); common == 0 || changed > 0 {
			return false
		}
	}
	return true
}

// sameRows counts the rows that two runs have in common, and those of them that
// are not the same request.
func sameRows(a, b *Run) (common, changed int) {
	for i, k := 0, 0; i < len(a.requests) && k < len(b.requests); {
		one, other := &a.requests[i], &b.requests[k]
		switch {
		case one.row < other.row:
			i++
		case one.row > other.row:
			k++
		default:
			common++
			if one.print != other.print {
				changed++
			}
			i++
			k++
		}
	}
	return common, changed
}
