package format

import (
	"moontide/trace"
)

// vidur is the input of the Vidur simulator: seconds and two lengths. Its
// traces of lengths alone have no arrivals.
var vidur = table{
	format:  Vidur,
	columns: []string{"num_prefill_tokens", "num_decode_tokens"},
	known:   []string{"arrived_at"},
	reader: func(at func(string) int, n *notes) rowReader {
		v := &vidurRows{time: at("arrived_at"), input: at("num_prefill_tokens"), output: at("num_decode_tokens"), notes: n}
		if v.time < 0 {
			n.say("there are no arrivals (no column arrived_at): convert --rate gives some")
		}
		return v
	},
}

type vidurRows struct {
	time, input, output int
	notes               *notes
	clock               clock
}

func (v *vidurRows) read(fields [][]byte, r *trace.Request) (err error) {
	if v.time >= 0 {
		if r.Timestamp.Value, err = seconds(fields[v.time]); err != nil {
			return keyed("arrived_at", err)
		}
		r.Timestamp.Set = true
		v.clock.see(r.Timestamp.Value)
	}
	if r.InputLength, err = length(fields[v.input]); err != nil {
		return keyed("num_prefill_tokens", err)
	}
	r.OutputLength, err = length(fields[v.output])
	return keyed("num_decode_tokens", err)
}

func (v *vidurRows) end() {
	if doubt := v.clock.doubt(); doubt != "" {
		v.notes.say("%s", doubt)
	}
}
