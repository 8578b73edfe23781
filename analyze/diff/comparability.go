package diff

import (
	"fmt"
	"slices"
	"strings"

	"moontide/analyze/measure"
)

// Objection is a reason not to compare two sides.
type Objection struct {
	Reason string
	// Invalid is set if a run's verdict is INVALID, not if the tests differ.
	Invalid bool
}

// comparability returns the objections to single runs, then to pairs of the first
// run of A and another run. It also reports whether all runs sent the same requests,
// row by row, regardless of timing.
func comparability(a, b []*Run) (all []Objection, sameRequests bool) {
	runs := slices.Concat(a, b)
	for i, r := range runs {
		if slices.Contains(runs[:i], r) {
			continue // do not compare a run with itself
		}
		if r.Verdict.Level == measure.Invalid {
			all = append(all, Objection{r.Name + " is INVALID: " + strings.Join(r.Verdict.Reasons(), "; "), true})
		}
		switch info := r.Run; {
		case info.Ended.IsZero():
			all = append(all, Objection{Reason: r.Name + " did not end"})
		case info.Failure != "":
			all = append(all, Objection{Reason: fmt.Sprintf("%s failed: %s", r.Name, info.Failure)})
		case info.Stopped:
			all = append(all, Objection{Reason: fmt.Sprintf("%s was stopped: %d of %d rows were not sent", r.Name, info.NotSent, info.Rows)})
		}
	}
	sameRequests = true
	for _, r := range runs[1:] {
		rows := sameRows(runs[0], r)
		if rows.common == 0 || rows.changed > 0 || rows.remodeled > 0 {
			sameRequests = false
		}
		if reason := mismatch(runs[0], r, rows); reason != "" {
			all = append(all, Objection{Reason: fmt.Sprintf("%s and %s %s", runs[0].Name, r.Name, reason)})
		}
	}
	return all, sameRequests
}

// mismatch returns why two runs are of different tests, or "".
func mismatch(a, b *Run, rows commonRows) string {
	one, other := a.Run.Trace, b.Run.Trace
	switch {
	case rows.common == 0:
		return "have no row in common"
	case rows.changed > 0 && one.SHA256 != other.SHA256:
		return fmt.Sprintf("replayed different traces: %s with the SHA-256 %.8s and %s with %.8s", one.Name, one.SHA256, other.Name, other.SHA256)
	case rows.changed > 0:
		return fmt.Sprintf("replayed different requests: %d of %d rows that both have are not the same", rows.changed, rows.common)
	case rows.remodeled > 0:
		return fmt.Sprintf("asked for other models in %d of %d rows that both have: mixes with other shares or seeds", rows.remodeled, rows.common)
	case a.Run.Rows != b.Run.Rows:
		return fmt.Sprintf("replayed different parts of the trace: %d and %d rows", a.Run.Rows, b.Run.Rows)
	case one.BlockSize != other.BlockSize:
		return fmt.Sprintf("replayed blocks of different sizes: %d and %d tokens", one.BlockSize, other.BlockSize)
	case a.Run.Schedule != b.Run.Schedule:
		return "were sent at different times" + timingChanges(a, b)
	}
	return ""
}

// timingChanges names the settings that decide when requests are sent and differ.
func timingChanges(a, b *Run) (text string) {
	for _, c := range changes([]*Run{a}, []*Run{b}) {
		if strings.HasPrefix(c.Setting, "trace.") || c.Setting == "seed" {
			text += fmt.Sprintf("; %s: %s and %s", c.Setting, strings.Join(c.A, ", "), strings.Join(c.B, ", "))
		}
	}
	return text
}

// commonRows counts the rows that two runs have in common, and those of them that
// have different requests and, if both runs ask for several models, other models.
type commonRows struct{ common, changed, remodeled int }

func sameRows(a, b *Run) (rows commonRows) {
	k := 0
	for i := range a.requests {
		q := &a.requests[i]
		for k < len(b.requests) && b.requests[k].Row < q.Row {
			k++
		}
		if k < len(b.requests) && b.requests[k].Row == q.Row {
			other := &b.requests[k]
			rows.common++
			if other.fingerprint != q.fingerprint {
				rows.changed++
			}
			if other.model != q.model && other.model != 0 && q.model != 0 {
				rows.remodeled++
			}
		}
	}
	return rows
}
