// Package anonymize replaces the ids and names in a trace with keyed hashes.
//
//	a, err := anonymize.New(anonymize.Config{Key: key})
//	w.WriteAll(a.Rows(r.Borrowed()))
//	a.Dropped() // unknown keys that were left out
//
// Lengths, the order of rows, sharing of blocks, sessions and the graph stay, so that
// hit rates and sessions are those of the trace before. Everything else that a row may
// have is left out, unless it is known to name nobody: see [Config].
//
// Ids of blocks are the first 53 bits of HMAC-SHA256(key, id), names those of the name.
// Two of n blocks get the same id with a probability of about n*n/2^54.
package anonymize

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
	"moontide/trace/record"
)

// Config is how a trace is anonymized. Key must be set.
type Config struct {
	Key record.Key
	// TimeGrid rounds times down to its multiples, in milliseconds; 0 keeps them.
	TimeGrid float64
	// KeepOrigin keeps the first arrival; otherwise it is 0.
	KeepOrigin bool
	// HashModels replaces names of models by keyed ones.
	HashModels bool
	// Keep and Hash list unknown keys whose values are kept, or replaced by keyed names.
	Keep, Hash []string
}

// Anonymizer anonymizes a trace. It is not safe for concurrent use.
type Anonymizer struct {
	cfg                              Config
	blocks                           *record.IDs
	sessions, requests, models, rest record.Key
	origin                           trace.Opt[float64] // ms
	ids                              []uint64
	after                            []string
	recent                           []renamed // by the low bits of the id
	extra                            []byte
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

// New returns an anonymizer for one trace.
func New(cfg Config) (*Anonymizer, error) {
	switch {
	case cfg.Key == record.Key{}:
		return nil, errors.New("anonymizing: key is missing")
	case !(cfg.TimeGrid >= 0 && cfg.TimeGrid <= trace.MaxMS):
		return nil, fmt.Errorf("anonymizing: a time grid of %v ms is out of range", cfg.TimeGrid)
	}
	k := cfg.Key
	return &Anonymizer{
		cfg: cfg, blocks: record.NewIDs(k.Derive("anonymized blocks")), sessions: k.Derive("anonymized sessions"),
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
	if err := a.times(r); err != nil {
		return err
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
	return a.unknown(r)
}

func (a *Anonymizer) times(r *trace.Request) error {
	if r.Delay.Set {
		r.Delay.Value = a.coarse(r.Delay.Value)
	}
	if !r.Timestamp.Set {
		return nil
	}
	if !a.origin.Set && !a.cfg.KeepOrigin {
		a.origin = r.Timestamp
	}
	ms := r.Timestamp.Value - a.origin.Value
	if ms < 0 {
		return fmt.Errorf("a row arrives %v ms before the first one, which shall be at 0: sort the trace, or keep its origin", -ms)
	}
	if a.origin.Value != 0 {
		ms = math.Round(ms*1e6) / 1e6 // without the rounding error of the difference
	}
	r.Timestamp.Value = a.coarse(ms)
	return nil
}

// coarse rounds a time down to the grid.
func (a *Anonymizer) coarse(ms float64) float64 {
	if grid := a.cfg.TimeGrid; grid > 0 {
		return math.Floor(ms/grid) * grid
	}
	return ms
}

func (a *Anonymizer) block(id uint64) uint64 {
	known := &a.recent[id%recentIDs]
	if !known.set || known.from != id {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], id)
		*known = renamed{id, a.blocks.Of(b[:]), true}
	}
	return known.to
}

// safe lists the unknown keys that name nobody: what captures and readers write.
var safe = []string{"priority", "turn", trace.Estimated, trace.Missing, "status"}

// safeRecorded lists those within recorded, besides the times of safeTimes.
var (
	safeRecorded = []string{"endpoint", "stream", "max_tokens", "outcome", "status", "cached_tokens", "reasoning_tokens"}
	safeTimes    = []string{"ttft_ms", "e2el_ms"}
)

// unknown leaves out the unknown keys of a row but for those that are to stay.
func (a *Anonymizer) unknown(r *trace.Request) error {
	if len(r.Extra) == 0 {
		return nil
	}
	a.extra = append(a.extra[:0], '{')
	err := jsonscan.Members(r.Extra, func(key []byte, _ int, raw []byte) error {
		name := string(key)
		switch {
		case slices.Contains(a.cfg.Keep, name):
			a.add(name, raw)
		case slices.Contains(a.cfg.Hash, name):
			a.addName(name, a.rest, raw)
		case name == "model" && raw[0] == '"' && a.cfg.HashModels:
			a.addName(name, a.models, raw)
		case name == "model" && raw[0] == '"', slices.Contains(safe, name) && plain(raw):
			a.add(name, raw)
		case name == "recorded" && raw[0] == '{':
			return a.recorded(raw)
		default:
			a.drop(name)
		}
		return nil
	})
	r.Extra = append(a.extra, '}')
	if len(a.extra) == 1 {
		r.Extra = nil
	}
	return err
}

// recorded keeps what captures record of an answer.
func (a *Anonymizer) recorded(raw []byte) error {
	outer := a.extra
	a.extra = []byte{'{'}
	err := jsonscan.Members(raw, func(key []byte, _ int, raw []byte) error {
		switch name := string(key); {
		case slices.Contains(safeRecorded, name) && plain(raw):
			a.add(name, raw)
		case slices.Contains(safeTimes, name):
			ms, err := strconv.ParseFloat(string(raw), 64)
			if err != nil || !(ms >= 0 && ms <= trace.MaxMS) {
				a.drop("recorded." + name)
				return nil
			}
			a.add(name, trace.AppendMS(nil, a.coarse(ms)))
		default:
			a.drop("recorded." + name)
		}
		return nil
	})
	inner := append(a.extra, '}')
	a.extra = outer
	if len(inner) > len(`{}`) {
		a.add("recorded", inner)
	}
	return err
}

func (a *Anonymizer) add(key string, raw []byte) {
	if len(a.extra) > 1 {
		a.extra = append(a.extra, ", "...)
	}
	a.extra = append(fmt.Appendf(a.extra, "%q: ", key), raw...)
}

// addName adds the keyed name of a value, which is a string or anything else.
func (a *Anonymizer) addName(key string, k record.Key, raw []byte) {
	a.add(key, fmt.Appendf(nil, "%q", k.Name(string(raw))))
}

// mostDropped limits the keys that a note lists.
const mostDropped = 1000

func (a *Anonymizer) drop(key string) {
	if _, known := a.dropped[key]; !known && len(a.dropped) >= mostDropped {
		key = "other keys"
	}
	a.dropped[key]++
}

// words are the values of safe keys that are strings: keys of rows, APIs and outcomes.
var words = []string{
	"input_length", "output_length", "hash_ids",
	record.Completions, record.Chat, record.Responses, record.Messages, record.Generate,
	record.OK, "client", "connect", "timeout", "status", "server", "protocol", "truncated", "empty", "canceled", "abandoned",
}

// plain reports whether a value is a number, a truth value, a known word or a list of
// such.
func plain(raw []byte) bool {
	switch raw[0] {
	case '{':
		return false
	case '"':
		return slices.Contains(words, string(raw[1:len(raw)-1]))
	case '[':
		all := true
		jsonscan.Elements(raw, func(_ int, element []byte) error {
			all = all && element[0] != '[' && plain(element)
			return nil
		})
		return all
	}
	return true
}
