package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Change is a setting in which the sides differ, as run.json calls it. A side
// whose runs differ has several values.
type Change struct {
	Setting string
	A, B    []string // empty: not set
}

// notSettings are the parts of run.json that tell how a run went.
var notSettings = map[string]bool{
	"command": true, "started": true, "ended": true, "rows": true, "sent": true, "not_sent": true, "stopped": true, "time_up": true,
	"skipped": true, "resumed": true, "failure": true, "read_delay": true, "merges": true, "calibrated": true,
	"schedule_sha256": true, "prompts_sha256": true,
	"flags.out": true, // every run has its own
	// These are settings of other names, too.
	"flags.seed": true, "flags.salt": true, "flags.url": true, "flags.model": true, "flags.max-concurrency": true,
	"flags.drawn-rate": true,
}

func changes(a, b []*Run) (all []Change) {
	var names []string // as they come
	var values [2]map[string][]string
	for i, runs := range [][]*Run{a, b} {
		values[i] = map[string][]string{}
		for _, r := range runs {
			run := r.Run
			if run.Target.Simulated {
				run.Target.URL = "" // any free port
			}
			settings(reflect.ValueOf(run), "", func(name, value string) {
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
		if slices.Equal(inA, inB) {
			continue
		}
		if name == "notes" { // a run has many, and most say the same
			inA, inB = without(inA, inB), without(inB, inA)
		}
		all = append(all, Change{name, inA, inB})
	}
	return all
}

// without is a list less what is in another.
func without(list, other []string) (rest []string) {
	for _, s := range list {
		if !slices.Contains(other, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

// settings calls see for all that is set in a part of run.json, by its path.
func settings(v reflect.Value, path string, see func(name, value string)) {
	if notSettings[path] {
		return
	}
	switch {
	case path == "flags":
		for _, flag := range v.Interface().([]string) {
			name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
			settings(reflect.ValueOf(value), "flags."+name, see)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if path != "" {
				name = path + "." + name
			}
			settings(v.Field(i), name, see)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			settings(v.Index(i), path, see)
		}
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			settings(v.Elem(), path, see)
		}
	default:
		see(path, fmt.Sprint(v.Interface()))
	}
}
