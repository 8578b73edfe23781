package measure

import (
	"fmt"
	"math"
)

const (
	// maxRetried is the share of requests from which a run with retries is SUSPECT.
	maxRetried = 0.01
	// slowConnect is the wait for a connection, in milliseconds at p99, from which a run is
	// SUSPECT: the system sent its first packet again.
	slowConnect = 1000.0
)

// checkLoad checks whether the server received the load of the trace: retried requests and
// those that waited for a connection reached it late.
func (v *Verdict) checkLoad(r *Result) {
	if r.Retried > 0 {
		share := float64(r.Retried) / float64(max(r.QueueTime.Count, 1))
		v.note("retries", hint(share >= maxRetried), "%d of %d requests were retried after the server rejected them (%s, SUSPECT from %s): their latencies are those of the last attempt; compare latencies from schedule",
			r.Retried, r.QueueTime.Count, percent(share), percent(maxRetried))
	}
	if connect := r.ConnectTime.Quantile(0.99); connect >= slowConnect {
		v.note("connect_time", Suspect, "connect time p99 %.2f ms (SUSPECT from %.2f ms): the server or the network drops connections; latencies exclude connect time, so compare latencies from schedule", connect, slowConnect)
	}
	v.checkRate(r)
}

// checkRate compares the rates of due and sent requests, unless more than 1 % waited for a
// slot.
func (v *Verdict) checkRate(r *Result) {
	offered, sent := r.OfferedRate.Value, r.SentRate.Value
	switch {
	case !r.OfferedRate.Set:
	case r.Virtual:
		v.note("sent_rate", Valid, "virtual time: offered %.2f req/s; all requests were sent as soon as they had a slot", offered)
	case r.Closed:
		v.note("sent_rate", Valid, "closed loop: sent %.2f req/s", sent)
	case !r.SentRate.Set || 100*r.Queued > r.QueueTime.Count:
		v.note("sent_rate", Valid, "offered %.2f req/s, sent %.2f req/s", offered, sent)
	default:
		l, apart := limit(maxRateOff), math.Abs(sent-offered)/offered
		if r.SendingLate <= r.latenessLimit(r.TTFT).invalid && r.Unsent == 0 {
			apart = 0 // a short run: the lag of its last request changes the rate
		}
		if level := l.grade(apart); level == Valid {
			v.note("sent_rate", level, "offered %.2f req/s, sent %.2f req/s", offered, sent)
		} else {
			v.note("sent_rate", level, "offered %.2f req/s, sent %.2f req/s: %s apart (SUSPECT from %s, INVALID above %s): %sthe server did not get the load of the trace; use a larger client machine, or a server that accepts connections faster",
				offered, sent, percent(apart), percent(l.suspect), percent(l.invalid), r.latenessCause(r.latenessLimit(r.TTFT).suspect))
		}
	}
}

// Pacing describes how a limit of requests in flight, or the end of earlier turns, delayed
// requests beyond the trace. It is "" if none waited longer than the client may be late.
func (r *Result) Pacing() string {
	p99 := r.QueueTime.Quantile(0.99)
	if r.Queued == 0 || p99 <= r.latenessLimit(r.TTFT).invalid {
		return ""
	}
	by := "earlier turns of the sessions"
	if r.MaxConcurrency > 0 {
		by = fmt.Sprintf("a limit of %d in flight", r.MaxConcurrency)
	}
	return fmt.Sprintf("paced by %s: %.0f %% of requests waited, %.3g s at p99", by, 100*float64(r.Queued)/float64(r.QueueTime.Count), p99/1000)
}
