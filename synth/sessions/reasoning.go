package sessions

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"moontide/trace"
	"moontide/trace/jsonscan"
	"moontide/trace/log"
)

func isReasoningKey(key string) bool {
	return log.IsReasoningKey(strings.TrimPrefix(key, recordedPrefix))
}

// tokensMark stands for the tokens of reasoning.
const tokensMark = "\x00"

// reasoningKnown is the number of values that the reasoning of an answer depends on.
const reasoningKnown = 5

// reasoningContext returns these values: ISL, OSL, the number of the turn, the
// reasoning of the turn before it, or 0, and the time of the source.
func (t *turn) reasoningContext() [reasoningKnown]float64 {
	return [reasoningKnown]float64{float64(t.isl), float64(t.osl), float64(min(t.number, 64)), t.reasonedBefore, t.phase}
}

// reason draws the share of an answer that is reasoning.
func (d *clientDrawing) reason(t *turn) {
	if len(d.Reasoning) > 0 {
		known := t.reasoningContext()
		t.reasoned = min(max(0, d.reasoning.draw(known[:]...)[0]), 1)
	}
}

// extraOf returns the unknown keys of a row.
func (d *clientDrawing) extraOf(t *turn) []byte {
	if len(d.Reasoning) == 0 {
		return d.extra
	}
	tokens := strconv.Itoa(int(math.Round(t.reasoned * float64(t.osl))))
	return slices.Concat(d.extraFrom, []byte(tokens), d.extraTo)
}

// addReasoning reads the reasoning of an answer. The first of the keys that occurs
// in the source counts.
func (f *fitter) addReasoning(x *row, r *trace.Request) {
	if len(r.Extra) == 0 {
		return
	}
	f.readReasoning(x, "", r.Extra)
}

func (f *fitter) readReasoning(x *row, prefix string, object []byte) {
	_ = jsonscan.Members(object, func(name []byte, _ int, raw []byte) error {
		if string(name) == recorded && prefix == "" && raw[0] == '{' {
			f.readReasoning(x, recordedPrefix, raw)
			return nil
		}
		key := prefix + string(name)
		if f.file.ReasoningKey != "" && key != f.file.ReasoningKey || !log.IsReasoningKey(string(name)) {
			return nil
		}
		tokens, err := log.ReasoningTokens(raw, x.osl)
		if err != nil {
			f.badReasoning.add(len(f.rows)+1, key, err)
		}
		if !tokens.Set {
			return nil
		}
		f.file.ReasoningKey = key
		x.reasons = true
		x.reasoned = float64(tokens.Value) / float64(max(1, x.osl))
		return nil
	})
}

// badReasoning counts the rows whose reasoning cannot be that of their answers.
type badReasoning struct {
	rows  int
	first string
}

func (b *badReasoning) add(row int, key string, err error) {
	if b.rows++; b.rows == 1 {
		b.first = fmt.Sprintf("%s of request %d: %v", key, row, err)
	}
}

func (f *fitter) noteBadReasoning() {
	if b := f.badReasoning; b.rows > 0 {
		f.note("the reasoning of %d of %d requests is ignored, first %s", b.rows, len(f.rows), b.first)
	}
}

// fitReasoning learns the share of answers that is reasoning.
func (f *clientFitter) fitReasoning() {
	var samples []sample
	for i := range f.rows {
		if r := &f.rows[i]; r.reasons {
			known := r.reasoningContext()
			samples = append(samples, sample{append(known[:], rounded(r.reasoned, 4)), 1})
		}
	}
	if len(samples) >= minRequests {
		f.Reasoning = fitJoint(samples, reasoningKnown)
	}
}
