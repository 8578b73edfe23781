package report

import (
	"fmt"

	"moontide/analyze/run"
	"moontide/replay/runfile"
)

// window says which part of a run was measured.
func (b *servingBlock) window(r *run.Result) {
	w := r.Window
	if w == (run.Span{}) {
		return
	}
	fmt.Fprintf(b, "Measured is the window from %.2f s to %.2f s. Successful requests, input tokens and latencies are of the %d requests wholly inside it,\n"+
		"which in a short window are the short ones; generated tokens are all that came inside it, whoever's; request throughput counts the %d that ended inside it.\n",
		w.From.Seconds(), w.To.Seconds(), r.Completed, r.Ended)
}

// windowJSON is what summary.json says of the window, or null.
func windowJSON(w runfile.Window, r *run.Result) any {
	if r.Window == (run.Span{}) {
		return nil
	}
	return map[string]any{
		"warmup_s": number(w.WarmupSeconds), "cooldown_s": number(w.CooldownSeconds),
		"from_s": number(r.Window.From.Seconds()), "to_s": number(r.Window.To.Seconds()), "ended": r.Ended,
	}
}
