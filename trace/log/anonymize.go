package log

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// Anonymizer replaces the ids and names in a trace with keyed hashes. Lengths, the order of
// rows, sharing of blocks, sessions and the graph stay, so that hit rates and sessions are
// those of the trace before. The first arrival becomes 0. Everything else that a row may
// have is left out, unless it is known to name nobody. It is not safe for concurrent use.
//
// Two of n blocks get the same id with a probability of about n*n/2^54.
type Anonymizer struct {
	hash                             []string
	blocks                           *ids
	sessions, requests, models, rest Key
	origin                           trace.Opt[float64] // ms
	recent                           map[uint64]uint64  // new ids of blocks: most of a prompt were in another one not long before
	// Dropped has the unknown keys that were left out, and how many rows had each.
	Dropped map[string]int
}

// The most ids of blocks that are remembered, and the most keys that are listed.
const (
	recentIDs   = 1 << 16
	mostDropped = 1000
)

// NewAnonymizer returns an anonymizer for one trace. Unknown keys of rows in hash, such as
// user or model, are kept with keyed names as their values.
func NewAnonymizer(k Key, hash ...string) (*Anonymizer, error) {
	if k == (Key{}) {
		return nil, errors.New("anonymizing: key is missing")
	}
	return &Anonymizer{
		hash: hash, blocks: newIDs(k.derive("anonymized blocks")), sessions: k.derive("anonymized sessions"),
		requests: k.derive("anonymized requests"), models: k.Keys().Models, rest: k.derive("anonymized keys"),
		recent: map[uint64]uint64{}, Dropped: map[string]int{},
	}, nil
}

// Rows anonymizes a stream.
func (a *Anonymizer) Rows(reqs trace.Requests) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for r, err := range reqs {
			if err == nil {
				err = a.row(&r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// row anonymizes a row. It uses memory of its own for what it changes.
func (a *Anonymizer) row(r *trace.Request) error {
	if at := &r.Timestamp; at.Set {
		if !a.origin.Set {
			a.origin = *at
		}
		if at.Value < a.origin.Value {
			return fmt.Errorf("a row arrives %v ms before the first one, which shall be at 0: sort the trace", a.origin.Value-at.Value)
		}
		if a.origin.Value != 0 {
			at.Value = math.Round((at.Value-a.origin.Value)*1e6) / 1e6 // without the rounding error of the difference
		}
	}
	r.HashIDs, r.After = slices.Clone(r.HashIDs), slices.Clone(r.After)
	for i, id := range r.HashIDs {
		r.HashIDs[i] = a.block(id)
	}
	for i, id := range r.After {
		r.After[i] = a.requests.Name(id)
	}
	r.SessionID, r.ID = a.sessions.Name(r.SessionID), a.requests.Name(r.ID)
	var err error
	r.Extra, err = a.filter(r.Extra, "")
	return err
}

func (a *Anonymizer) block(id uint64) uint64 {
	to, known := a.recent[id]
	if !known {
		if len(a.recent) >= recentIDs {
			clear(a.recent)
		}
		to = a.blocks.of(binary.LittleEndian.AppendUint64(nil, id))
		a.recent[id] = to
	}
	return to
}

// The unknown keys that name nobody, which captures and readers write, and their values
// that are strings: keys of rows, APIs and outcomes.
var (
	safe  = strings.Fields("model priority turn estimated missing status recorded recorded.endpoint recorded.stream recorded.max_tokens recorded.outcome recorded.status recorded.cached_tokens recorded.reasoning_tokens recorded.ttft_ms recorded.e2el_ms")
	words = strings.Fields("input_length output_length hash_ids completions chat responses messages generate ok client connect timeout status server protocol truncated empty canceled abandoned")
)

// filter returns an object with the members that are safe or are to be hashed.
func (a *Anonymizer) filter(object []byte, path string) ([]byte, error) {
	if len(object) == 0 {
		return nil, nil
	}
	var kept jsonscan.Object
	err := jsonscan.Members(object, func(key []byte, _ int, raw []byte) (err error) {
		switch name := path + string(key); {
		case path == "" && slices.Contains(a.hash, name) && name == "model":
			raw = jsonscan.AppendString(nil, a.models.Name(cmp.Or(textOf(raw), string(raw))))
		case path == "" && slices.Contains(a.hash, name):
			raw = jsonscan.AppendString(nil, a.rest.Name(string(raw)))
		case name == RecordedKey && raw[0] == '{':
			if raw, err = a.filter(raw, name+"."); raw == nil {
				return err
			}
		case slices.Contains(safe, name) && (plain(raw) || name == "model" && raw[0] == '"'):
		default:
			if _, known := a.Dropped[name]; !known && len(a.Dropped) >= mostDropped {
				name = "other keys"
			}
			a.Dropped[name]++
			return nil
		}
		kept.Add(string(key), raw)
		return err
	})
	return kept.Bytes(), err
}

// plain reports whether a value is a number of a valid range, a truth value, a known word
// or a list of such.
func plain(raw []byte) bool {
	switch raw[0] {
	case '{':
		return false
	case '"':
		return slices.Contains(words, string(raw[1:len(raw)-1]))
	case '[':
		all := true
		elements(raw, func(element []byte) { all = all && element[0] != '[' && plain(element) })
		return all
	case 't', 'f', 'n':
		return true
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && math.Abs(n) <= trace.MaxMS
}
