package evidence

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
)

// watched samples a run that starts after startsAfter and takes lasts, and
// returns the samples.
func watched(t *testing.T, change func(*Config), startsAfter, lasts time.Duration) (samples []runfile.Sample, err error) {
	t.Helper()
	var start atomic.Value
	start.Store(time.Time{})
	cfg := Config{
		Write: func(s runfile.Sample) error { samples = append(samples, s); return nil },
		Status: func() replay.Status {
			return replay.Status{Start: start.Load().(time.Time), Sent: 5, Done: 2, InFlight: 3}
		},
	}
	if change != nil {
		change(&cfg)
	}
	s := Start(t.Context(), cfg)
	time.Sleep(startsAfter)
	synctest.Wait()
	start.Store(time.Now())
	time.Sleep(lasts)
	synctest.Wait()
	return samples, s.Stop()
}

func atMS(samples []runfile.Sample) (at []float64) {
	for _, s := range samples {
		at = append(at, s.AtMS)
	}
	return at
}

// Samples are taken every second and at the end, with times since the run's
// start, and with the delays of reads since the sample before.
func TestASampleASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := uint64(0)
		samples, err := watched(t, func(c *Config) {
			c.ReadDelay = func() runfile.ReadDelay { calls++; return runfile.ReadDelay{Reads: calls} }
		}, 300*time.Millisecond, 3450*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := atMS(samples), []float64{0, 700, 1700, 2700, 3450}; !slices.Equal(got, want) {
			t.Fatalf("samples at %v, want %v", got, want)
		}
		for i, span := range []float64{0, 1000, 1000, 1000, 750} {
			s := samples[i]
			if s.SpanMS != span || i > 0 && (s.Sent != 5 || s.Done != 2 || s.InFlight != 3 || s.Server != nil || s.ReadDelay.Reads != uint64(i+1)) {
				t.Errorf("sample %d: %+v", i, s)
			}
		}
	})
}

// A run may never start, or end at once.
func TestShortRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var samples []runfile.Sample
		s := Start(t.Context(), Config{Write: func(s runfile.Sample) error { samples = append(samples, s); return nil }, Status: func() replay.Status { return replay.Status{} }})
		time.Sleep(5 * time.Second)
		if err := s.Stop(); err != nil || samples != nil {
			t.Errorf("%v, %v", samples, err)
		}
		samples, err := watched(t, nil, 0, time.Millisecond)
		if err != nil || !slices.Equal(atMS(samples), []float64{0, 1}) {
			t.Errorf("%v, %v", samples, err)
		}
	})
}

// The server is scraped before the run, again after each answer, and after the
// run.
func TestServerIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var samples []runfile.Sample
		start := time.Now()
		s := Start(t.Context(), Config{
			Every:  900 * time.Millisecond,
			Write:  func(s runfile.Sample) error { samples = append(samples, s); return nil },
			Status: func() replay.Status { return replay.Status{Start: start} },
			Server: func(ctx context.Context) (runfile.ServerFigures, error) {
				asked++
				n := float64(asked)
				switch asked {
				case 2: // slow, but in time
					time.Sleep(1500 * time.Millisecond)
				case 3:
					<-ctx.Done()
					return runfile.ServerFigures{}, errors.New("silent")
				}
				return runfile.ServerFigures{Running: &n}, nil
			},
		})
		time.Sleep(9500 * time.Millisecond)
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		var got []float64 // the answer in each sample; -1 for a failure
		for _, s := range samples {
			switch {
			case s.ServerError == "silent":
				got = append(got, -1)
			case s.Server != nil:
				got = append(got, *s.Server.Running)
			default:
				got = append(got, 0)
			}
		}
		// Scraped at 0, 0.9 (until 2.4), 2.7 (until 7.7), 8.1, 9 and 9.5 s.
		if want := []float64{1, 0, 0, 2, 0, 0, 0, 0, 0, -1, 4, 6}; !slices.Equal(got, want) {
			t.Errorf("answers %v", got)
		}
	})
}

// An unresponsive server delays nothing once the context has ended.
func TestCanceledScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		s := Start(ctx, Config{
			Write:  func(runfile.Sample) error { return nil },
			Status: func() replay.Status { return replay.Status{} },
			Server: func(ctx context.Context) (runfile.ServerFigures, error) {
				<-ctx.Done()
				return runfile.ServerFigures{}, ctx.Err()
			},
		})
		if err := s.Stop(); err != nil || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// After a write error nothing more is written, and Stop returns the error.
func TestWriteError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, writes := errors.New("full"), 0
		_, err := watched(t, func(c *Config) {
			c.Write = func(runfile.Sample) error { writes++; return full }
		}, 0, 5*time.Second)
		if err != full || writes != 1 {
			t.Errorf("%v after %d writes", err, writes)
		}
	})
}

// Resources are measured since the last read.
func TestMeter(t *testing.T) {
	var m meter
	m.reset()
	var s runfile.Sample
	before := ProcessCPU(os.Getpid())
	for ProcessCPU(os.Getpid()) < before+20*time.Millisecond && before > 0 {
	}
	runtime.GC()
	m.read(&s, 10*time.Millisecond)
	if before > 0 && (s.CPU < 2 || s.MachineShare != s.CPU/float64(runtime.NumCPU())) {
		t.Errorf("CPU %v of one, %v of the machine", s.CPU, s.MachineShare)
	}
	if s.GCPauses < 1 || s.GCPauseMS < s.GCPauseMaxMS || s.GCPauseMaxMS <= 0 {
		t.Errorf("%+v", s)
	}
	if runtime.GOOS == "linux" && s.RSSBytes < 1<<20 {
		t.Errorf("%d bytes", s.RSSBytes)
	}
	m.read(&s, time.Hour)
	if s.CPU > 0.01 || s.SchedP99MS < s.SchedP50MS {
		t.Errorf("%+v", s)
	}
}

func TestUpperQuantile(t *testing.T) {
	t.Parallel()
	bounds := []float64{math.Inf(-1), 1, 2, 4, math.Inf(1)}
	for _, test := range []struct {
		counts []uint64
		q      float64
		want   float64
	}{
		{[]uint64{0, 0, 0, 0}, 0.5, 0}, {[]uint64{0, 1, 0, 0}, 0.5, 2}, {[]uint64{99, 0, 1, 0}, 0.99, 1},
		{[]uint64{98, 0, 2, 0}, 0.99, 4}, {[]uint64{0, 0, 0, 5}, 0.5, 4}, {[]uint64{1, 1, 1, 1}, 1, 4},
	} {
		if got := upperQuantile(test.counts, bounds, test.q); got != test.want {
			t.Errorf("%v of %v is %v, want %v", test.q, test.counts, got, test.want)
		}
	}
}
