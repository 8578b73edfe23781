package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"moontide/replay/parts"
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
	for i, part := range c.opts.Parts.Parts {
		p := PartResult{Name: part.Label(), Run: part.Run}
		if run := part.Run.Part; run.Clock.Measured() {
			p.OffsetMS = trace.Some(trace.MS(run.Clock.Offset(part.Run.Started)))
			p.BoundMS = trace.Some(run.Clock.BoundMS(part.LastInstant()))
			p.StartedLate = trace.Some(trace.MS(run.Clock.ToReference(part.Run.Started).Sub(run.Start)))
		}
		if i < len(c.opts.PartOptions) {
			opts := c.opts.PartOptions[i]
			opts.Rows, opts.Objectives = 0, nil // rows are checked in the whole run
			p.Result = newResult(&opts, func(yield func(*Request) bool) {
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
			parts.FirstOf(unmeasured))
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
	if latest != nil {
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
		countIf(&good, p.Result.Verdict.Level == Valid)
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
