package measure

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

// Part is the recording of a run or of one part of it.
type Part struct {
	Name    string // of a part, in messages: its folder
	Run     runfile.Run
	Records iter.Seq2[replay.Record, error]
	Samples iter.Seq2[runfile.Sample, error]
}

// Merged is the recording of a run that several processes drove.
type Merged struct {
	Part   // the whole run
	faults []string
	parts  []*mergedPart
	latest int32 // part of the record that Records yielded last
}

// mergedPart is one of the parts.
type mergedPart struct {
	Part
	apart   time.Duration // from the run's start to the part's, by the reference clock and its own
	targets int           // added to server indexes
	opts    *Options      // nil unless the part is judged
}

// Merge merges the recordings of the parts of a run, in the order in which requests ended,
// with a few records of each part in memory. known are the parts known to the leader, nil
// if unknown. The first part must be one of a run of several processes.
//
// Merge moves each record to the clock of the whole run; durations remain those of the
// part's clock. Read delays are those of the worst machine, server metrics those of the
// first part that has any. Parts that started more than [replay.MaxWait] apart are not
// parts of one run.
func Merge(parts []Part, known *runfile.Parts) (*Merged, error) {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(a.Run.Part.Number, b.Run.Part.Number) })
	if parts[0].Run.Part.Of == 0 {
		return nil, fmt.Errorf("merging runs: %s is not a part of a run of several processes", parts[0].Name)
	}
	start := parts[0].Run.Part.Start
	m := &Merged{faults: slices.Concat(differences(parts), partNumbers(parts, known), interrupted(parts))}
	if len(m.faults) == 0 && known != nil && known.Ended.IsZero() {
		m.faults = []string{fmt.Sprintf("the end of the run is not in %s: part 1 was killed, or could not write it", runfile.PartsFile)}
	}
	for _, part := range parts {
		if apart := part.Run.Part.Clock.ToReference(part.Run.Started).Sub(start); apart.Abs() > replay.MaxWait {
			return nil, fmt.Errorf("merging runs: one started at %v and the run at %v: they are not parts of one run",
				part.Run.Started.Format(time.DateTime), start.Format(time.DateTime))
		}
		m.parts = append(m.parts, &mergedPart{Part: part, apart: part.Run.Started.Sub(start)})
	}
	m.addTargets()
	m.Run, m.Records, m.Samples = mergedRun(parts, start), m.records, m.samples
	return m, nil
}

// addTargets numbers the servers of parts that were sent to different ones.
func (m *Merged) addTargets() {
	first, servers := map[string]int{}, 0
	for _, part := range m.parts {
		url := part.Run.Target.URL
		if _, known := first[url]; !known {
			first[url] = servers
			servers += max(len(strings.Fields(url)), 1)
		}
		part.targets = first[url]
	}
}

// Judge makes [Compute] judge each part, too. of returns the options of a part: those of
// its run, and the window and the thresholds of the whole run.
func (m *Merged) Judge(of func(part int, run *runfile.Run) Options) {
	for i, part := range m.parts {
		opts := of(i, &part.Run)
		opts.Rows, opts.Objectives = 0, nil // rows are checked in the whole run
		part.opts = &opts
	}
}

// nextRecord is the next record of a part.
type nextRecord struct {
	part int32
	rec  replay.Record
	err  error
	next func() (replay.Record, error, bool)
}

func (n *nextRecord) advance() (some bool) {
	n.rec, n.err, some = n.next()
	return some
}

// records merges the records by the time at which their requests ended, errors first.
func (m *Merged) records(yield func(replay.Record, error) bool) {
	var heads []*nextRecord
	for i, part := range m.parts {
		next, stop := iter.Pull2(part.moved)
		defer stop()
		if head := (&nextRecord{part: int32(i), next: next}); head.advance() {
			heads = append(heads, head)
		}
	}
	for len(heads) > 0 {
		first := slices.MinFunc(heads, func(a, b *nextRecord) int {
			if a.err != nil || b.err != nil {
				return cmp.Compare(one(a.err == nil), one(b.err == nil))
			}
			return cmp.Compare(a.rec.Done, b.rec.Done)
		})
		m.latest = first.part
		if !yield(first.rec, first.err) || first.err != nil {
			return
		}
		if !first.advance() {
			heads = slices.DeleteFunc(heads, func(head *nextRecord) bool { return head == first })
		}
	}
}

// moved yields the records of a part as records of the whole run.
func (p *mergedPart) moved(yield func(replay.Record, error) bool) {
	for rec, err := range p.Records {
		if err == nil {
			p.time(&rec)
			rec.Target += p.targets
		}
		if !yield(rec, err) {
			return
		}
	}
}

func (m *Merged) samples(yield func(runfile.Sample, error) bool) {
	scraped := false // by a previous part
	for _, part := range m.parts {
		scrapedHere := false
		for s, err := range part.Samples {
			s.AtMS += trace.MS(part.later(time.Duration(s.AtMS * float64(time.Millisecond))))
			scrapedHere = scrapedHere || s.Server != nil || s.ServerError != ""
			if scraped {
				s.Server, s.ServerError = nil, ""
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
		scraped = scraped || scrapedHere
	}
}

// endOf returns the end of a part by the reference clock.
func endOf(r *runfile.Run) time.Time {
	if r.Ended.IsZero() {
		return time.Time{}
	}
	return r.Part.Clock.ToReference(r.Ended)
}

// name returns the part's name in messages.
func (p *Part) name() string {
	run := p.Run.Part
	if run.Host == "" {
		return fmt.Sprintf("part %d of %d", run.Number, run.Of)
	}
	return fmt.Sprintf("part %d of %d (%s)", run.Number, run.Of, run.Host)
}

// lastInstant returns the latest known instant of the part, by its clock.
func (p *Part) lastInstant() time.Time {
	if p.Run.Ended.IsZero() {
		return p.Run.Started.Add(time.Duration(min(p.Run.Trace.DurationMS, trace.MS(replay.MaxWait)) * float64(time.Millisecond)))
	}
	return p.Run.Ended
}

// later returns the offset to add to a time of the part.
func (p *mergedPart) later(at time.Duration) time.Duration {
	return p.apart + p.Run.Part.Clock.Offset(p.Run.Started.Add(at))
}

// time moves the times of a record by the offset at its send time.
func (p *mergedPart) time(rec *replay.Record) {
	at := rec.Done
	if rec.Sent.Set {
		at = rec.Sent.Value
	}
	later := p.later(at)
	rec.Due, rec.Ready, rec.Done = rec.Due+later, rec.Ready+later, rec.Done+later
	for _, at := range []*replay.Instant{&rec.Sent, &rec.First, &rec.FirstVisible, &rec.Last} {
		if at.Set {
			at.Value += later
		}
	}
}

// mergedRun returns the record of the whole run.
func mergedRun(parts []Part, start time.Time) runfile.Run {
	run, first := parts[0].Run, parts[0].Run.Part
	run.Part = runfile.Part{}
	run.Started, run.Ended = start, endOf(&parts[0].Run)
	run.Notes = append([]string{fmt.Sprintf("the run was split among %d processes by %s: see its parts", first.Of, first.By)}, run.Notes...)
	for _, part := range parts[1:] {
		addPart(&run, &part.Run)
	}
	if len(parts) > 1 {
		run.Prompts, run.Calibrated = "", nil
	}
	run.Rows, run.LostTurns = first.RunRows, parts[0].Run.LostTurns
	return run
}

// addPart adds the counts of a part.
func addPart(run, other *runfile.Run) {
	if ended := endOf(other); run.Ended.IsZero() || other.Ended.IsZero() {
		run.Ended = time.Time{}
	} else if ended.After(run.Ended) {
		run.Ended = ended
	}
	run.Rows, run.Sent, run.NotSent = run.Rows+other.Rows, run.Sent+other.Sent, run.NotSent+other.NotSent
	run.Skipped, run.Warmup = run.Skipped+other.Skipped, run.Warmup+other.Warmup
	run.Cut, run.LostTurns = run.Cut+other.Cut, run.LostTurns+other.LostTurns
	run.Outgrown, run.Unfinished = run.Outgrown+other.Outgrown, run.Unfinished+other.Unfinished
	run.Stopped, run.TimeUp = run.Stopped || other.Stopped, run.TimeUp || other.TimeUp
	run.Failure = cmp.Or(run.Failure, other.Failure)
	d, e := &run.ReadDelay, other.ReadDelay
	d.Reads, d.MedianMS, d.P99MS, d.MaxMS = d.Reads+e.Reads, max(d.MedianMS, e.MedianMS), max(d.P99MS, e.P99MS), max(d.MaxMS, e.MaxMS)
	m, n := &run.Merges, other.Merges
	m.Chunks, m.Merged, m.P99MS, m.MaxMS = m.Chunks+n.Chunks, m.Merged+n.Merged, max(m.P99MS, n.P99MS), max(m.MaxMS, n.MaxMS)
	run.Resumed = append(slices.Clip(run.Resumed), other.Resumed...)
	for _, note := range other.Notes {
		if !slices.Contains(run.Notes, note) {
			run.Notes = append(run.Notes, note)
		}
	}
}

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
		if run := part.Run.Part; run.Clock.Measured() {
			p.OffsetMS = trace.Some(trace.MS(run.Clock.Offset(part.Run.Started)))
			p.BoundMS = trace.Some(run.Clock.BoundMS(part.lastInstant()))
			p.StartedLate = trace.Some(trace.MS(run.Clock.ToReference(part.Run.Started).Sub(run.Start)))
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
