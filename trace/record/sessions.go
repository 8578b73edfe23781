package record

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sort"
	"time"

	"moontide/trace"
)

// Turn is a request of a session.
type Turn struct {
	ID      string // request_id
	Arrived time.Time
	Ended   time.Time // its answer; zero before
	// EndUnknown says that Ended is zero because nobody knows it.
	EndUnknown bool

	session *session
	number  int // from 1

	// What the turn waits for: the pause since the end of the turn before it, and that
	// turn's id if it is not the latest of the session, or an empty list for nothing.
	delay trace.Opt[time.Duration]
	after []string
}

// Session returns the name of the session that the turn has joined.
func (t *Turn) Session() string { return t.session.name }

// session is a conversation.
type session struct {
	name string
	last *Turn
}

// join adds a turn to a session, after the turn that it continues, if any.
func (t *Turn) join(of *session, before *Turn) {
	t.session, t.number = of, 1
	if before != nil {
		t.number = before.number + 1
		running := before.Ended.IsZero() || before.Ended.After(t.Arrived)
		switch {
		case running && !before.EndUnknown:
			t.after = []string{}
		case before != of.last:
			t.after = []string{before.ID}
		}
		if !running {
			t.delay = trace.Some(t.Arrived.Sub(before.Ended))
		}
	}
	of.last = t
}

// Sessions finds the session of each request: by its name, or else by its prompt, which
// continues an earlier one that it begins with. It knows prompts by hashes with a seed
// that is made anew for each. It remembers a number of prompts and names, and forgets
// the oldest. It must be locked by its user.
type Sessions struct {
	most   int
	seed   maphash.Seed
	named  map[string]*session
	ends   map[uint64]*Turn        // by the hash of a whole prompt
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

// NewSessions returns sessions that remember a number of prompts and names.
func NewSessions(most int) *Sessions {
	return &Sessions{
		most: most, seed: maphash.MakeSeed(),
		named: map[string]*session{}, ends: map[uint64]*Turn{}, tails: map[uint64][]tailLength{},
	}
}

// Join adds a turn to the session with a name, or else to that of the prompt which its
// own one continues, or else to a new session named fresh. Turns join in order of their
// arrival. b, which may be nil, holds the prompt no longer.
func (s *Sessions) Join(t *Turn, name string, b *Blocks, fresh string) {
	switch {
	case name != "":
		s.byName(name, t)
	case b != nil && len(b.of.content) > 0:
		s.byPrompt(b.of, fresh, t)
	default:
		t.join(&session{name: fresh}, nil)
	}
	if b != nil {
		b.of = hashed{}
	}
}

// byName adds a turn to the session with a name.
func (s *Sessions) byName(name string, t *Turn) {
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
func (s *Sessions) byPrompt(p hashed, name string, t *Turn) {
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
func (s *Sessions) longest(p hashed) (found *Turn) {
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
func (s *Sessions) hashTails(block uint64, tail []byte, lengths []tailLength, see func(uint64)) {
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

func (s *Sessions) remember(r remembered) {
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
