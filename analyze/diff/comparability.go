package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"moontide/analyze/measure"
	"moontide/replay/runfile"
	"moontide/replay/settings"
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
		row := settings.Find(c.Setting)
		if strings.HasPrefix(c.Setting, "trace.") || c.Setting == "seed" || row != nil && (row.Group == settings.Load || row.Group == settings.Input) {
			text += fmt.Sprintf("; %s: %s and %s", c.Setting, listed(c.A), listed(c.B))
		}
	}
	return text
}

func listed(values []string) string {
	if len(values) == 0 {
		return "not set"
	}
	return strings.Join(values, ", ")
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
			if a, b := q.Model(), other.Model(); a != b && a != "" && b != "" {
				rows.remodeled++
			}
		}
	}
	return rows
}

// Change is a setting of run.json that differs, with all values of each side.
type Change struct {
	Setting string
	A, B    []string // empty: not set
}

// notSettings lists what describes the course of a run.
var notSettings = map[string]bool{
	"command": true, "sources": true, "started": true, "ended": true, "rows": true, "sent": true, "not_sent": true, "stopped": true, "time_up": true,
	"skipped": true, "resumed": true, "failure": true, "read_delay": true, "merges": true, "calibrated": true,
	"schedule_sha256": true, "prompts_sha256": true, "part": true,
}

func changes(a, b []*Run) (all []Change) {
	var names []string
	var values [2]map[string][]string
	for i, runs := range [][]*Run{a, b} {
		values[i] = map[string][]string{}
		for _, r := range runs {
			info := r.Run
			if info.Target.Simulated {
				info.Target.URL = "" // any free port
			}
			Settings(info, func(name, value string) {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
				if !slices.Contains(values[i][name], value) {
					values[i][name] = append(values[i][name], value)
				}
			})
		}
	}
	for _, name := range names {
		inA, inB := values[0][name], values[1][name]
		slices.Sort(inA)
		slices.Sort(inB)
		switch {
		case slices.Equal(inA, inB):
		case name == "notes": // runs have many notes, mostly equal
			all = append(all, Change{name, without(inA, inB), without(inB, inA)})
		default:
			all = append(all, Change{name, inA, inB})
		}
	}
	differ := map[string]bool{}
	for _, c := range all {
		differ[c.Setting] = true
	}
	return slices.DeleteFunc(all, func(c Change) bool { return differ[settingOf[c.Setting]] })
}

// settingOf has the settings that say the same as what a run found.
var settingOf = map[string]string{
	"target.url": "url", "target.model": "model", "target.endpoint": "endpoint", "target.prompt": "prompt",
	"target.server_block_size": "server-block-size", "trace.name": "trace", "trace.block_size": "block-size",
}

func without(list, other []string) (rest []string) {
	for _, s := range list {
		if !slices.Contains(other, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

// Settings calls see with the name and value of every setting of a run, and of what it
// found: the endpoint, the trace and the machine.
func Settings(info runfile.Run, see func(name, value string)) {
	for name, value := range info.Settings.Given() {
		see(name, value)
	}
	facts(reflect.ValueOf(info.Outcome), "", see)
}

// facts calls see with every value in a part of an outcome.
func facts(v reflect.Value, path string, see func(name, value string)) {
	switch {
	case notSettings[path]:
	case v.Kind() == reflect.Struct:
		for field, value := range v.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			facts(value, strings.TrimPrefix(path+"."+name, "."), see)
		}
	case v.Kind() == reflect.Slice:
		for _, element := range v.Seq2() {
			facts(element, path, see)
		}
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			facts(v.Elem(), path, see)
		}
	default:
		see(path, fmt.Sprint(v.Interface()))
	}
}
