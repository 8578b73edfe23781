package capture

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sort"
	"time"

	"moontide/trace"
)

// turn is a request of a session.
type turn struct {
	id      string // request_id
	session *session
	arrived time.Time // at the proxy
	ended   time.Time // its answer; zero before
	number  int       // from 1

	// What the turn waits for: the pause since the end of the turn before it, and that
	// turn's id if it is not the latest of the session, or an empty list for nothing.
	delay trace.Opt[time.Duration]
	after []string
}

// session is a conversation.
type session struct {
	name string
	last *turn
}

// join adds a turn to a session, after the turn that it continues, if any.
func (t *turn) join(of *session, before *turn) {
	t.session, t.number = of, 1
	if before != nil {
		t.number = before.number + 1
		switch running := before.ended.IsZero() || before.ended.After(t.arrived); {
		case running:
			t.after = []string{}
		case before != of.last:
			t.after = []string{before.id}
			fallthrough
		default:
			t.delay = trace.Some(t.arrived.Sub(before.ended))
		}
	}
	of.last = t
}

// sessions finds the session of each request: by its name, or else by its prompt, which
// continues an earlier one that it begins with. It knows prompts by hashes with a seed
// that is made anew for each capture. It remembers a number of prompts and names, and
// forgets the oldest. It must be locked by its user.
type sessions struct {
	most   int
	seed   maphash.Seed
	named  map[string]*session
	ends   map[uint64]*turn        // by the hash of a whole prompt
	tails  map[uint64][]tailLength // ascending, by the id of the last full block
	oldest []remembered            // in order of arrival
}

// tailLength is what a number of prompts have after their last full block.
type tailLength struct{ bytes, prompts int }

// remembered is a name, or else a prompt, that is forgotten some time.
type remembered struct {
	name       string
	block, end uint64
	tail       int
}

func newSessions(most int) *sessions {
	return &sessions{
		most: most, seed: maphash.MakeSeed(),
		named: map[string]*session{}, ends: map[uint64]*turn{}, tails: map[uint64][]tailLength{},
	}
}

// byName adds a turn to the session with a name.
func (s *sessions) byName(name string, t *turn) {
	of := s.named[name]
	if of == nil {
		of = &session{name: name}
		s.named[name] = of
		s.remember(remembered{name: name})
	}
	t.join(of, of.last)
}

// byPrompt adds a turn to the session of the longest prompt that its own one continues,
// or else to a new one with a name.
func (s *sessions) byPrompt(p hashed, name string, t *turn) {
	if before := s.longest(p); before != nil {
		t.join(before.session, before)
	} else {
		t.join(&session{name: name}, nil)
	}
	last := len(p.ids) - 1
	block, tail := p.ids[last], p.content[last*p.blockBytes:]
	var end uint64
	s.hashTails(block, tail, []tailLength{{bytes: len(tail)}}, func(h uint64) { end = h })
	if s.ends[end] == nil {
		lengths := s.tails[block]
		at := sort.Search(len(lengths), func(i int) bool { return lengths[i].bytes >= len(tail) })
		if at == len(lengths) || lengths[at].bytes != len(tail) {
			lengths = slices.Insert(lengths, at, tailLength{bytes: len(tail)})
		}
		lengths[at].prompts++
		s.tails[block] = lengths
		s.remember(remembered{block: block, tail: len(tail), end: end})
	}
	s.ends[end] = t
}

// hashed is a prompt and the ids of its full blocks, after the id of its scope.
type hashed struct {
	content    []byte
	blockBytes int
	ids        []uint64
}

// longest returns the turn with the longest prompt that a prompt continues, nil if there
// is none. It does not continue an equal one.
func (s *sessions) longest(p hashed) (found *turn) {
	for n := len(p.ids) - 1; n >= 0 && found == nil; n-- {
		rest := p.content[n*p.blockBytes:]
		s.hashTails(p.ids[n], rest[:max(len(rest)-1, 0)], s.tails[p.ids[n]], func(h uint64) {
			if t := s.ends[h]; t != nil {
				found = t
			}
		})
	}
	return found
}

// hashTails calls see with the hash of the prompt that ends after each length of a tail.
func (s *sessions) hashTails(block uint64, tail []byte, lengths []tailLength, see func(uint64)) {
	var h maphash.Hash
	h.SetSeed(s.seed)
	var first [8]byte
	binary.LittleEndian.PutUint64(first[:], block)
	h.Write(first[:])
	done := 0
	for _, l := range lengths {
		if l.bytes > len(tail) {
			return
		}
		h.Write(tail[done:l.bytes])
		done = l.bytes
		see(h.Sum64())
	}
}

func (s *sessions) remember(r remembered) {
	s.oldest = append(s.oldest, r)
	if len(s.oldest) <= s.most {
		return
	}
	r, s.oldest = s.oldest[0], s.oldest[1:]
	if r.name != "" {
		delete(s.named, r.name)
		return
	}
	delete(s.ends, r.end)
	lengths := s.tails[r.block]
	at := slices.IndexFunc(lengths, func(l tailLength) bool { return l.bytes == r.tail })
	if lengths[at].prompts--; lengths[at].prompts > 0 {
		return
	}
	if lengths = slices.Delete(lengths, at, at+1); len(lengths) == 0 {
		delete(s.tails, r.block)
		return
	}
	s.tails[r.block] = lengths
}
