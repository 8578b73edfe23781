package parts

import (
	"fmt"
	"slices"
	"strings"

	"moontide/replay/runfile"
)

// partNumbers returns the faults of the numbers of the parts.
func partNumbers(parts []Part, known *runfile.Parts) (faults []string) {
	run := parts[0].Run.Part
	found := map[int]string{}
	rows := 0
	for i := range parts {
		switch p := &parts[i].Run.Part; {
		case p.Of == 0 || p.RunID != run.RunID || p.Of != run.Of || known != nil && (p.RunID != known.RunID || p.Of != known.Of):
			faults = append(faults, parts[i].Name+" does not belong to the same run as "+parts[0].Name+": omit it")
		case found[p.Number] != "":
			faults = append(faults, fmt.Sprintf("%s and %s are both part %d: omit one of them", found[p.Number], parts[i].Name, p.Number))
		default:
			found[p.Number] = parts[i].Name
			rows += parts[i].Run.Rows
		}
	}
	for number := 1; number <= run.Of; number++ {
		if found[number] == "" {
			faults = append(faults, missing(number, run.Of, known))
		}
	}
	if len(faults) == 0 && rows != run.RunRows {
		faults = append(faults, fmt.Sprintf("the parts have %d of the %d rows of the schedule: they do not belong to one schedule", rows, run.RunRows))
	}
	return faults
}

// missing describes a part without a folder.
func missing(number, of int, known *runfile.Parts) string {
	text := fmt.Sprintf("part %d of %d is missing", number, of)
	if known == nil || number > len(known.Parts) {
		return text + ": add its folder"
	}
	s := known.Parts[number-1]
	if s.Host != "" {
		text += " (" + s.Host + ")"
	}
	if s.State == runfile.PartEnded || s.State == runfile.PartRunning {
		return text + ": restore its folder"
	}
	return text + ": " + strings.TrimSuffix(s.State+", "+s.Reason, ", ")
}

// interrupted returns the parts that did not send all requests while others did.
func interrupted(parts []Part) (faults []string) {
	everywhere := !slices.ContainsFunc(parts, func(p Part) bool { return !p.Run.Stopped })
	for i := range parts {
		switch r := &parts[i].Run; {
		case r.Ended.IsZero():
			faults = append(faults, fmt.Sprintf("%s did not end (%d of %d requests were sent): it was killed or is still running, and the server did not get the load of the trace", parts[i].Label(), r.Sent, r.Rows))
		case r.Failure != "":
			faults = append(faults, fmt.Sprintf("%s failed (%d of %d requests were sent): %s", parts[i].Label(), r.Sent, r.Rows, r.Failure))
		case r.Stopped && !everywhere:
			faults = append(faults, fmt.Sprintf("%s was stopped early (%d of %d requests were sent) but others were not: the server did not get the load of the trace", parts[i].Label(), r.Sent, r.Rows))
		}
	}
	return faults
}

// differences returns the settings that differ but must not.
func differences(parts []Part) (notes []string) {
	for _, thing := range []struct {
		name string
		of   func(r *runfile.Run) string
	}{
		{"versions of moontide", func(r *runfile.Run) string { return r.Version }},
		{"models", func(r *runfile.Run) string { return r.ModelText() }},
		{"endpoints", func(r *runfile.Run) string { return r.Target.Endpoint }},
		{"prompts", func(r *runfile.Run) string { return r.Target.Prompt }},
		{"block sizes", func(r *runfile.Run) string { return fmt.Sprint(r.Trace.BlockSize) }},
		{"speedups", func(r *runfile.Run) string { return fmt.Sprint(r.Settings.Speedup()) }},
		{"schedules (SHA-256)", func(r *runfile.Run) string { return r.Schedule }},
		{"traces (SHA-256)", func(r *runfile.Run) string { return r.Trace.SHA256 }},
		{"seeds", func(r *runfile.Run) string { return fmt.Sprint(r.Settings.Seed) }},
		{"salts", func(r *runfile.Run) string { return r.Settings.Salt }},
		{"agreed starts", func(r *runfile.Run) string { return fmt.Sprint(r.Part.Start.UTC()) }},
	} {
		var all []string
		for i := range parts {
			if s := thing.of(&parts[i].Run); !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		if len(all) > 1 {
			notes = append(notes, fmt.Sprintf("the runs differ in their %s: %s; merge runs with the same settings", thing.name, FirstOf(all)))
		}
	}
	return notes
}

// FirstOf joins a few names.
func FirstOf(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
