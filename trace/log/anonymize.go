package log

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// Anonymizer replaces the ids and names in a trace with keyed hashes. Lengths, the order of
// rows, sharing of blocks, sessions and the graph stay, so that hit rates and sessions are
// those of the trace before. The first arrival becomes 0. Everything else that a row may
// have is left out, unless it is known to name nobody. It is not safe for concurrent use.
//
// Ids of blocks are the first 53 bits of HMAC-SHA256(key, id), names those of the name.
// Two of n blocks get the same id with a probability of about n*n/2^54.
type Anonymizer struct {
	hash                             []string
	blocks                           *ids
	sessions, requests, models, rest Key
	origin                           trace.Opt[float64] // ms
	ids                              []uint64
	after                            []string
	recent                           []renamed // by the low bits of the id
	dropped                          map[string]int
}

// renamed is a block id and its new one.
type renamed struct {
	from, to uint64
	set      bool
}

// recentIDs is the number of ids whose new ones are remembered: most blocks of a prompt
// were in another one not long before.
const recentIDs = 1 << 16

// NewAnonymizer returns an anonymizer for one trace. Unknown keys of rows in hash, such as
// user or model, are kept with keyed names as their values.
func NewAnonymizer(k Key, hash ...string) (*Anonymizer, error) {
	if k == (Key{}) {
		return nil, errors.New("anonymizing: key is missing")
	}
	return &Anonymizer{
		hash: hash, blocks: newIDs(k.Derive("anonymized blocks")), sessions: k.Derive("anonymized sessions"),
		requests: k.Derive("anonymized requests"), models: k.Keys().Models, rest: k.Derive("anonymized keys"),
		recent: make([]renamed, recentIDs), dropped: map[string]int{},
	}, nil
}

// Rows anonymizes a stream. Each row is valid until the next.
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

// Dropped is an unknown key that was left out, and the number of rows that had it.
type Dropped struct {
	Key  string
	Rows int
}

// Dropped returns the keys that were left out, the most frequent first.
func (a *Anonymizer) Dropped() (all []Dropped) {
	for key, n := range a.dropped {
		all = append(all, Dropped{key, n})
	}
	slices.SortFunc(all, func(x, y Dropped) int { return cmp.Or(y.Rows-x.Rows, cmp.Compare(x.Key, y.Key)) })
	return all
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
	if len(r.HashIDs) > 0 {
		a.ids = a.ids[:0]
		for _, id := range r.HashIDs {
			a.ids = append(a.ids, a.block(id))
		}
		r.HashIDs = a.ids
	}
	r.SessionID, r.ID = a.sessions.Name(r.SessionID), a.requests.Name(r.ID)
	if len(r.After) > 0 {
		a.after = a.after[:0]
		for _, id := range r.After {
			a.after = append(a.after, a.requests.Name(id))
		}
		r.After = a.after
	}
	var err error
	r.Extra, err = a.filter(r.Extra, "", safe)
	return err
}

func (a *Anonymizer) block(id uint64) uint64 {
	known := &a.recent[id%recentIDs]
	if !known.set || known.from != id {
		*known = renamed{id, a.blocks.of(binary.LittleEndian.AppendUint64(nil, id)), true}
	}
	return known.to
}

// safe lists the unknown keys that name nobody, which captures and readers write, and
// safeRecorded those within recorded.
var (
	safe         = []string{"model", "priority", "turn", trace.Estimated, trace.Missing, "status", RecordedKey}
	safeRecorded = []string{"endpoint", "stream", "max_tokens", "outcome", "status", "cached_tokens", "reasoning_tokens", "ttft_ms", "e2el_ms"}
)

// words are the values of safe keys that are strings: keys of rows, APIs and outcomes.
var words = []string{
	"input_length", "output_length", "hash_ids", Completions, Chat, Responses, Messages, Generate,
	OK, "client", "connect", "timeout", "status", "server", "protocol", "truncated", "empty", "canceled", "abandoned",
}

// filter returns an object with the members that are safe or are to be hashed.
func (a *Anonymizer) filter(object []byte, path string, safe []string) ([]byte, error) {
	if len(object) == 0 {
		return nil, nil
	}
	var kept jsonscan.Object
	err := jsonscan.Members(object, func(key []byte, _ int, raw []byte) (err error) {
		name := string(key)
		switch known := slices.Contains(safe, name); {
		case path == "" && slices.Contains(a.hash, name) && name == "model":
			raw = quoted(a.models.Name(cmp.Or(textOf(raw), string(raw))))
		case path == "" && slices.Contains(a.hash, name):
			raw = quoted(a.rest.Name(string(raw)))
		case known && path == "" && name == RecordedKey && raw[0] == '{':
			if raw, err = a.filter(raw, RecordedKey+".", safeRecorded); raw == nil {
				return err
			}
		case known && path == "" && name == "model" && raw[0] == '"', known && plain(raw):
		default:
			a.drop(path + name)
			return nil
		}
		kept.Add(name, raw)
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

// mostDropped limits the keys that a note lists.
const mostDropped = 1000

func (a *Anonymizer) drop(key string) {
	if _, known := a.dropped[key]; !known && len(a.dropped) >= mostDropped {
		key = "other keys"
	}
	a.dropped[key]++
}
