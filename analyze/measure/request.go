package measure

import (
	"math"
	"time"
	"unique"

	"moontide/replay"
)

// Detail describes a run over time and by ISL.
type Detail struct {
	// Series is the measured part of the run over time.
	Series Series
	// ByISL groups the completed and failed requests.
	ByISL []Group
}

// Request is one request of a run.
type Request struct {
	Timing
	End     time.Duration
	Row     int
	session unique.Handle[string]
	model   unique.Handle[string]
	ISL     int32 // tokens, as in the trace
	Turn    int32 // position in its session id, from 1
	Class   replay.Class
	Counted bool // completed, and entirely in the measured part

	inSession     bool
	links         int32 // place in collector.links plus 1, 0 if none
	input, cached int32 // the server's counts; without them the ISL and -1
	osl           int32
	prompt        int32 // place in the history of prompts, -1 if not sent
}

func newRequest(rec *replay.Record, timing Timing, counted bool) Request {
	q := Request{
		Timing: timing, End: rec.Done, Row: rec.Row, ISL: clampTokens(rec.InputLength), Counted: counted, Class: rec.Class, Turn: 1,
		session: unique.Make(rec.SessionID), model: unique.Make(rec.Model), cached: -1, osl: clampTokens(rec.OutputLength), prompt: -1,
	}
	if q.input = q.ISL; rec.Counts.Input.Set {
		q.input = clampTokens(rec.Counts.Input.Value)
	}
	if rec.Counts.Cached.Set {
		q.cached = clampTokens(rec.Counts.Cached.Value)
	}
	return q
}

func clampTokens(tokens int) int32 { return int32(min(max(tokens, 0), math.MaxInt32)) }
