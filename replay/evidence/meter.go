package evidence

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"

	"moontide/replay/runfile"
	"moontide/trace"
)

// meter measures the resources that this process used since the last read.
type meter struct {
	cpu     time.Duration
	machine MachineTime
	gc      debug.GCStats
	gcs     int64
	waits   []uint64 // histogram of the scheduling delays of goroutines
	reads   []metrics.Sample
}

const schedLatencies = "/sched/latencies:seconds"

func (m *meter) reset() {
	m.reads = []metrics.Sample{{Name: schedLatencies}}
	var none runfile.Sample
	m.read(&none, time.Second)
}

// read fills in a sample for a time span that ends now.
func (m *meter) read(s *runfile.Sample, span time.Duration) {
	cpu := ProcessCPU(os.Getpid())
	if span > 0 {
		s.CPU = float64(cpu-m.cpu) / float64(span)
		s.MachineShare = s.CPU / float64(runtime.NumCPU())
	}
	m.cpu = cpu
	machine := MachineCPU()
	if total := machine.Total - m.machine.Total; total > 0 {
		s.MachineBusy = float64(machine.Busy-m.machine.Busy) / float64(total)
	}
	m.machine = machine
	m.readGC(s)
	m.readSchedLatencies(s)
	s.RSSBytes = ResidentBytes(os.Getpid())
}

// readGC reads the GC pauses. The runtime keeps the last 256, far more than
// occur in a second.
func (m *meter) readGC(s *runfile.Sample) {
	debug.ReadGCStats(&m.gc)
	s.GCPauses = int(m.gc.NumGC - m.gcs)
	m.gcs = m.gc.NumGC
	for _, pause := range m.gc.Pause[:min(s.GCPauses, len(m.gc.Pause))] {
		s.GCPauseMS += trace.MS(pause)
		s.GCPauseMaxMS = max(s.GCPauseMaxMS, trace.MS(pause))
	}
}

// readSchedLatencies reads how long runnable goroutines waited for a CPU core.
func (m *meter) readSchedLatencies(s *runfile.Sample) {
	metrics.Read(m.reads)
	if m.reads[0].Value.Kind() != metrics.KindFloat64Histogram {
		return // not in this Go version
	}
	h := m.reads[0].Value.Float64Histogram()
	since := added(h.Counts, m.waits)
	m.waits = append(m.waits[:0], h.Counts...)
	s.SchedP50MS = 1e3 * upperQuantile(since, h.Buckets, 0.5)
	s.SchedP99MS = 1e3 * upperQuantile(since, h.Buckets, 0.99)
}

// added returns the growth of counts since before, which may be empty.
func added(counts, before []uint64) []uint64 {
	since := slices.Clone(counts)
	for i, n := range before {
		since[i] -= n
	}
	return since
}

// upperQuantile returns the upper bound of the bucket that contains a quantile,
// or 0 without values. Bucket i ranges from bounds[i] to bounds[i+1].
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

// MachineTime is the CPU time of all cores since boot, in ticks of 10 ms. It is
// zero on systems other than Linux.
type MachineTime struct {
	Processes int64 // processes and the kernel, without interrupts
	Busy      int64 // everything except idle and I/O wait
	Total     int64
}
