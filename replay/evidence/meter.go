package evidence

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"

	"moontide/replay/runfile"
)

// meter tells what the process cost since it was last read.
type meter struct {
	cpu   time.Duration
	work  int64 // of the machine, in ticks
	ticks int64
	gc    debug.GCStats
	gcs   int64
	waits []uint64 // a histogram of how long goroutines waited to run
	reads []metrics.Sample
}

const schedLatencies = "/sched/latencies:seconds"

// reset begins anew.
func (m *meter) reset() {
	m.reads = []metrics.Sample{{Name: schedLatencies}}
	var none runfile.Sample
	m.read(&none, time.Second)
}

// read fills in what the process cost over a span of time, which ends now.
func (m *meter) read(s *runfile.Sample, span time.Duration) {
	cpu := processCPU()
	if span > 0 {
		s.CPU = float64(cpu-m.cpu) / float64(span)
		s.MachineShare = s.CPU / float64(runtime.NumCPU())
	}
	m.cpu = cpu
	work, ticks := machineCPU()
	if ticks > m.ticks {
		s.MachineBusy = float64(work-m.work) / float64(ticks-m.ticks)
	}
	m.work, m.ticks = work, ticks
	m.readPauses(s)
	m.readWaits(s)
	s.RSSBytes = residentBytes()
}

// readPauses tells how long the garbage collector had stopped the program. The
// runtime remembers the last 256 cycles, far more than there are in a second.
func (m *meter) readPauses(s *runfile.Sample) {
	debug.ReadGCStats(&m.gc)
	s.GCPauses = int(m.gc.NumGC - m.gcs)
	m.gcs = m.gc.NumGC
	for _, pause := range m.gc.Pause[:min(s.GCPauses, len(m.gc.Pause))] {
		s.GCPauseMS += ms(pause)
		s.GCPauseMaxMS = max(s.GCPauseMaxMS, ms(pause))
	}
}

// readWaits tells how long goroutines that could have gone on waited for a
// processor: how late the program is with everything that it does.
func (m *meter) readWaits(s *runfile.Sample) {
	metrics.Read(m.reads)
	if m.reads[0].Value.Kind() != metrics.KindFloat64Histogram {
		return // a runtime that does not tell
	}
	h := m.reads[0].Value.Float64Histogram()
	since := added(h.Counts, m.waits)
	m.waits = append(m.waits[:0], h.Counts...)
	s.SchedP50MS = 1e3 * upperQuantile(since, h.Buckets, 0.5)
	s.SchedP99MS = 1e3 * upperQuantile(since, h.Buckets, 0.99)
}

// added is what counts have grown by since before, which may be empty.
func added(counts, before []uint64) []uint64 {
	since := slices.Clone(counts)
	for i, n := range before {
		since[i] -= n
	}
	return since
}

// upperQuantile is the upper end of the bucket that holds a quantile: bucket i
// is from bounds[i] to bounds[i+1]. It is 0 without values.
func upperQuantile(counts []uint64, bounds []float64, q float64) float64 {
	total := uint64(0)
	for _, n := range counts {
		total += n
	}
	rank, seen := uint64(math.Ceil(q*float64(total))), uint64(0)
	for i, n := range counts {
		if seen += n; n > 0 && seen >= rank {
			if math.IsInf(bounds[i+1], 1) {
				return bounds[i]
			}
			return bounds[i+1]
		}
	}
	return 0
}
