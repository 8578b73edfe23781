package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"moontide/replay/runfile"
	"moontide/trace"
)

// PartResult describes one part of a run by itself.
type PartResult struct {
	Name string // such as "part 3 of 4 (host)", or the folder of a run that was merged
	Run  runfile.Run
	// StartedLate is the delay of the part after the agreed start, in milliseconds; absent
	// without an agreed start.
	StartedLate trace.Opt[float64]
	// OffsetMS is the offset of the part's clock at its start, BoundMS the largest
	// error of the offset during the run; absent if it was not measured.
	OffsetMS, BoundMS trace.Opt[float64]
	// Result has the counts and latencies of the part's requests. Its Verdict omits checks
	// that need all parts, such as the contents of the server's cache. The limits for the
	// client's lateness are those of the whole run, whose latencies it distorts.
	Result *Result
}

// partResults judges the parts of a merged run.
func (c *collector) partResults(whole *Result) (all []PartResult) {
	for i, part := range c.opts.Parts.parts {
		p := PartResult{Name: part.name(), Run: part.Run}
		if place := part.Run.Part; place.Clock.Measured() {
			p.OffsetMS = trace.Some(trace.MS(place.Clock.Offset(part.Run.Started)))
			p.BoundMS = trace.Some(place.Clock.BoundMS(part.lastInstant()))
			p.StartedLate = trace.Some(trace.MS(place.Clock.ToReference(part.Run.Started).Sub(place.Start)))
		}
		if part.opts != nil {
			p.Result = newResult(part.opts, func(yield func(*Request) bool) {
				for q := range c.all {
					if q.part == int32(i) && !yield(q) {
						return
					}
				}
			})
			for of, text := range c.examples {
				if of.part == int32(i) {
					p.Result.Examples[of.class] = text
				}
			}
			p.Result.Verdict = judgePart(p.Result, whole, &part.Run)
		}
		all = append(all, p)
	}
	return all
}

func judgePart(r, whole *Result, info *runfile.Run) Verdict {
	if info.Rows == 0 && r.Records == 0 {
		return Verdict{Evidence: []Evidence{{"rows", Valid, "no request of the schedule is in this part"}}}
	}
	ttft := r.TTFT
	r.TTFT, r.ITL = whole.TTFT, whole.ITL
	v := judge(r, true)
	r.TTFT = ttft
	return v
}

func (f *findings) parts(r *Result) {
	for _, fault := range r.PartFaults {
		f.note(Invalid, "%s", fault)
	}
}

// clocks checks the errors of the parts' clocks, and that none was changed.
func (f *findings) clocks(r *Result) {
	if r.Virtual && len(r.Parts) > 0 {
		f.note(Valid, "virtual time: the clocks of the parts agree")
		return
	}
	var unmeasured []string
	var worst *PartResult
	for i := range r.Parts {
		p := &r.Parts[i]
		if !p.BoundMS.Set {
			unmeasured = append(unmeasured, p.Name)
			continue
		}
		if worst == nil || p.BoundMS.Value > worst.BoundMS.Value {
			worst = p
		}
		if clock := p.Run.Part.Clock; math.Abs(clock.Drift()) > maxClockDrift {
			f.note(Suspect, "%s: its clock was changed during the run, from an offset of %.2f ms to %.2f ms (SUSPECT above %.0f ppm), so the order of requests is unknown; disable time synchronization that steps the clock",
				p.Name, clock.Before.OffsetMS, clock.After.OffsetMS, 1e6*maxClockDrift)
		}
	}
	if len(unmeasured) > 0 {
		f.note(Suspect, "the clocks of %s were not compared: if they differ, the order of requests, rates and cache hits are wrong; start the parts as one run",
			firstOf(unmeasured))
	}
	if worst != nil {
		f.delay(fmt.Sprintf("clocks of the parts are known within %.3g ms, the worst being that of %s", worst.BoundMS.Value, worst.Name), worst.BoundMS.Value, r.latenessLimit(r.TTFT), "")
	}
}

// start checks whether the parts started together.
func (f *findings) start(r *Result) {
	late := func(p *PartResult) float64 { return math.Abs(p.StartedLate.Value) }
	var latest *PartResult
	for i := range r.Parts {
		if p := &r.Parts[i]; p.BoundMS.Set && (latest == nil || late(p) > late(latest)) {
			latest = p
		}
	}
	if latest != nil && !r.Virtual {
		f.delay(fmt.Sprintf("%s started %.2f ms from the agreed start, the most of all parts", latest.Name, latest.StartedLate.Value), late(latest), r.latenessLimit(r.TTFT), "")
	}
}

// maxClockDrift is the maximum drift of an undisturbed clock: the kernel corrects clocks
// gradually by up to 500 ppm.
const maxClockDrift = 1000e-6

// eachPart repeats the evidence against parts: the worst for each check.
func (f *findings) eachPart(r *Result) {
	const shown = 3 // for each check
	var keys []string
	against := map[string][]Evidence{} // with the names of the parts
	good := 0
	for _, p := range r.Parts {
		if p.Result == nil {
			continue
		}
		if p.Result.Verdict.Level == Valid {
			good++
		}
		for _, e := range p.Result.Verdict.Evidence {
			if e.Level == Valid {
				continue
			}
			if against[e.Check] == nil {
				keys = append(keys, e.Check)
			}
			against[e.Check] = append(against[e.Check], Evidence{e.Check, e.Level, p.Name + ": " + e.Text})
		}
	}
	for _, key := range keys {
		all := against[key]
		slices.SortStableFunc(all, func(a, b Evidence) int { return cmp.Compare(b.Level, a.Level) })
		if more := len(all) - shown; more > 0 {
			all = all[:shown]
			all[shown-1].Text += fmt.Sprintf(" (%d more)", more)
		}
		for _, e := range all {
			f.note(e.Level, "%s", e.Text)
		}
	}
	if good > 0 {
		f.note(Valid, "%d of %d parts are VALID on their own", good, len(r.Parts))
	}
}

// places returns the faults of the numbers of the parts.
func places(parts []Part, known *runfile.Parts) (faults []string) {
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
			faults = append(faults, fmt.Sprintf("%s did not end (%d of %d requests were sent): it was killed or is still running, and the server did not get the load of the trace", parts[i].name(), r.Sent, r.Rows))
		case r.Failure != "":
			faults = append(faults, fmt.Sprintf("%s failed (%d of %d requests were sent): %s", parts[i].name(), r.Sent, r.Rows, r.Failure))
		case r.Stopped && !everywhere:
			faults = append(faults, fmt.Sprintf("%s was stopped early (%d of %d requests were sent) but others were not: the server did not get the load of the trace", parts[i].name(), r.Sent, r.Rows))
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
			notes = append(notes, fmt.Sprintf("the runs differ in their %s: %s; merge runs with the same settings", thing.name, firstOf(all)))
		}
	}
	return notes
}

// firstOf joins a few names.
func firstOf(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
