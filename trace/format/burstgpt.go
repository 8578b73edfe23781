package format

import (
	"bytes"
	"fmt"

	"moontide/trace"
)

// burstGPT is the trace of a campus service, in seconds from the midnight
// before its first request. Later releases have sessions and how long an answer took. A
// request that failed has no response tokens; some releases leave such out.
var burstGPT = table{
	format:  BurstGPT,
	columns: []string{"Timestamp", "Request tokens", "Response tokens"},
	known:   []string{"Model", "Total tokens", "Log Type", "Session ID", "Elapsed time"},
	reader: func(at func(string) int, n *notes) rowReader {
		return &burstRows{
			time: at("Timestamp"), input: at("Request tokens"), output: at("Response tokens"), total: at("Total tokens"),
			model: at("Model"), kind: at("Log Type"), session: at("Session ID"), elapsed: at("Elapsed time"),
			notes: n, extras: map[string]said{},
		}
	},
}

type burstRows struct {
	time, input, output, total    int
	model, kind, session, elapsed int
	notes                         *notes
	clock                         clock
	extras                        map[string]said // by model and kind
	key                           []byte
}

func (b *burstRows) read(fields [][]byte, r *trace.Request) (err error) {
	if r.Timestamp.Value, err = seconds(fields[b.time]); err != nil {
		return keyed("Timestamp", err)
	}
	r.Timestamp.Set = true
	if r.InputLength, err = length(fields[b.input]); err != nil {
		return keyed("Request tokens", err)
	}
	if r.OutputLength, err = length(fields[b.output]); err != nil {
		return keyed("Response tokens", err)
	}
	if b.total >= 0 {
		total, err := length(fields[b.total])
		if err != nil {
			return keyed("Total tokens", err)
		}
		if total != r.InputLength+r.OutputLength {
			return keyed("Total tokens", fmt.Errorf("is not the sum of %d and %d: %s", r.InputLength, r.OutputLength, Quote(fields[b.total])))
		}
	}
	b.clock.see(r.Timestamp.Value)
	if r.OutputLength == 0 {
		b.notes.count("rows left out, without response tokens (the request failed)")
		return errLeftOut
	}
	if b.session >= 0 {
		r.SessionID = string(fields[b.session])
	}
	r.Extra, err = b.extra(fields)
	return err
}

func (b *burstRows) end() {
	if doubt := b.clock.doubt(); doubt != "" {
		b.notes.say("%s", doubt)
	}
}

// extra is what else the row says.
func (b *burstRows) extra(fields [][]byte) ([]byte, error) {
	field := func(column int) []byte {
		if column < 0 {
			return nil
		}
		return fields[column]
	}
	elapsed := field(b.elapsed)
	if len(elapsed) == 0 {
		return b.said(field(b.model), field(b.kind)).alone, nil
	}
	if _, err := seconds(elapsed); err != nil {
		return nil, keyed("Elapsed time", err)
	}
	before := b.said(field(b.model), field(b.kind)).before
	all := make([]byte, 0, len(before)+len(elapsed)+len(`""}}`))
	return append(append(append(all, before...), quotedNumber(elapsed)...), `}}`...), nil
}

// said is the unknown keys of rows of one model and kind.
type said struct {
	alone  []byte // without a duration
	before []byte // what stands before one
}

// said makes them, or finds them: there are few.
func (b *burstRows) said(model, kind []byte) said {
	b.key = append(append(append(b.key[:0], model...), ','), kind...)
	if s, ok := b.extras[string(b.key)]; ok {
		return s
	}
	var all, recorded extra
	if len(model) > 0 {
		all.add("model", quoted(string(model)))
	}
	if len(kind) > 0 {
		recorded.add("Log Type", quoted(string(kind)))
	}
	timed := recorded
	timed.b = append(bytes.Clone(recorded.b), `, "Elapsed time": `...)
	if recorded.b == nil {
		timed.b = []byte(`{"Elapsed time": `)
	}
	with := all
	with.b = bytes.Clone(all.b)
	with.add("recorded", timed.b)
	if object := recorded.object(); object != nil {
		all.add("recorded", object)
	}
	s := said{alone: all.object(), before: with.b}
	if len(b.extras) < 1000 {
		b.extras[string(b.key)] = s
	}
	return s
}
