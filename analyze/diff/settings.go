package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"moontide/replay/runfile"
)

// Change is a setting of run.json that differs, with all values of each side.
type Change struct {
	Setting string
	A, B    []string // empty: not set
}

// notSettings lists fields that describe the course of a run, and flags that repeat
// other settings.
var notSettings = map[string]bool{
	"command": true, "started": true, "ended": true, "rows": true, "sent": true, "not_sent": true, "stopped": true, "time_up": true,
	"skipped": true, "resumed": true, "failure": true, "read_delay": true, "merges": true, "calibrated": true,
	"schedule_sha256": true, "prompts_sha256": true, "part": true, "flags.out": true,
	"flags.seed": true, "flags.salt": true, "flags.url": true, "flags.model": true, "flags.max-concurrency": true,
	"flags.drawn-rate": true,
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
	return all
}

func without(list, other []string) (rest []string) {
	for _, s := range list {
		if !slices.Contains(other, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

// Settings calls see with the name and value of every setting of a run.
func Settings(info runfile.Run, see func(name, value string)) {
	settings(reflect.ValueOf(info), "", see)
}

// settings calls see with every setting in a part of run.json.
func settings(v reflect.Value, path string, see func(name, value string)) {
	switch {
	case notSettings[path]:
	case path == "flags":
		for _, flag := range v.Interface().([]string) {
			name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
			settings(reflect.ValueOf(value), "flags."+name, see)
		}
	case v.Kind() == reflect.Struct:
		for field, value := range v.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			settings(value, strings.TrimPrefix(path+"."+name, "."), see)
		}
	case v.Kind() == reflect.Slice:
		for _, element := range v.Seq2() {
			settings(element, path, see)
		}
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			settings(v.Elem(), path, see)
		}
	default:
		see(path, fmt.Sprint(v.Interface()))
	}
}
