package experiment

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheckOpenFiles(t *testing.T) {
	for _, tc := range []struct {
		limit, others, rows, most int
		embedded                  bool
		want                      string
	}{
		{0, 0, 1e6, 1e6, true, ""},
		{1128, 0, 1e6, 1000, false, ""},
		{1128, 0, 1e6, 1001, false, "error: a maximum concurrency of 1001 exceeds the limit of 1128 open files (ulimit -n), which allows 1000 requests in flight"},
		{1128, 0, 1e6, 500, true, ""},
		{1128, 0, 1e6, 501, true, "allows 500 requests"},
		{1128, 0, 1000, 1e6, false, ""}, // never that many in flight
		{1128, 0, 1000, 0, false, ""},
		{1128, 0, 1001, 0, false, "note: the limit of 1128 open files (ulimit -n) allows 1000 requests in flight, and the trace has 1001"},
		{64, 0, 1, 1, false, "allows 0 requests"},
		{1128, 200, 1e6, 801, false, "allows 800 requests"},
	} {
		notes, err := checkOpenFiles(tc.limit, tc.others, tc.rows, tc.most, tc.embedded)
		got := ""
		if err != nil {
			got = "error: " + err.Error()
		} else if len(notes) > 0 {
			got = "note: " + notes[0]
		}
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}

// An endpoint is probed until it is ready or patience runs out, and each reason
// is reported once.
func TestAwaitReady(t *testing.T) {
	for name, tc := range map[string]struct {
		patience time.Duration
		answers  string // of each probe; the last one repeats
		probes   int
		took     time.Duration
		err      string
		messages int
	}{
		"ready":             {time.Minute, "ready", 1, 0, "", 0},
		"without patience":  {0, "busy", 1, 0, "too busy", 0},
		"ready later":       {time.Minute, "busy busy busy busy busy busy ready", 7, 3500 * time.Millisecond, "", 1},
		"never":             {150 * time.Millisecond, "busy", 2, 150 * time.Millisecond, "the endpoint was not ready within 150ms: too busy", 1},
		"silent":            {time.Second, "silent", 1, time.Second, "the endpoint was not ready within 1s: it does not respond", 0},
		"busy, then silent": {time.Second, "busy silent", 2, time.Second, "the endpoint was not ready within 1s: too busy", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			answers, probes, began := strings.Fields(tc.answers), 0, time.Now()
			var messages []string
			_, err := awaitReady(t.Context(), Observer{Message: func(text string) { messages = append(messages, text) }}, tc.patience, func(ctx context.Context) ([]string, error) {
				answer := answers[min(probes, len(answers)-1)]
				probes++
				switch answer {
				case "busy":
					return nil, errors.New("too busy")
				case "silent":
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return nil, nil
			})
			said := ""
			if err != nil {
				said = err.Error()
			}
			if took := time.Since(began); said != tc.err || probes != tc.probes || took != tc.took || len(messages) != tc.messages {
				t.Errorf("%s: %q after %d probes and %v, it says %q", name, said, probes, took, messages)
			}
		})
	}
}

// During a run the next garbage collection is at least the ballast away, though the heap is
// small.
func TestDelayGC(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	end := delayGC()
	runtime.GC() // the ballast is live
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.NextGC < m.HeapAlloc+ballast/2 {
		t.Errorf("the next collection is at %d bytes, the heap has %d", m.NextGC, m.HeapAlloc)
	}
	end()
}
