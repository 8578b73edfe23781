package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"moontide/replay"
)

// progress shows where a run is until the returned function is called: one
// line that is redrawn on a terminal, a line now and then elsewhere.
func progress(w io.Writer, runner *replay.Runner, plan replay.Plan) (end func()) {
	every, format, last := 10*time.Second, "moontide: %s\n", ""
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		every, format, last = 200*time.Millisecond, "\r\x1b[K%s", "\r\x1b[K"
	}
	start := time.Now()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				fmt.Fprintf(w, format, progressLine(now.Sub(start), runner.Status(), plan))
			case <-done:
				io.WriteString(w, last)
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

func progressLine(elapsed time.Duration, s replay.Status, plan replay.Plan) string {
	span := time.Duration(plan.DurationMS * float64(time.Millisecond))
	return fmt.Sprintf("%v of %v | sent %d of %d, in flight %d, done %d, failed %d | %d output tokens",
		elapsed.Round(time.Second), span.Round(time.Second), s.Sent, plan.Rows, s.InFlight, s.Done-s.Failed, s.Failed, s.OutputTokens)
}
