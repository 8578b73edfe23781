package prompt

import "moontide/replay/transcript"

// Segment returns the content of a segment of a prompt with live answers, other than
// of an answer: of a block id, or of a row whose block ids cover its first covered
// tokens. Segments of a prompt without answers, one after the other, are the prompt
// that Prompt returns; as texts, they are joined by spaces.
//
// If a text starts within a word of a passage, other words of one token each take the
// place of the rest of that word.
func (s Source) Segment(g transcript.Segment, covered int) Prompt {
	p := s.prompt(g.Len)
	r := run{key: key(s.base(blockDomain, ""), g.ID), from: uint64(g.From), n: p.length}
	if g.Kind == transcript.Own {
		r.key = key(s.base(rowDomain, ""), g.ID)
		p.ownKey, p.covered = r.key, covered
	}
	p.segment = r
	return p
}

// appendWordRest appends other words in place of the rest of a word within which a run
// starts: encoded apart, that could have another number of tokens.
func (c *Corpus) appendWordRest(dst []byte, r run) ([]byte, run) {
	if r.from <= nameWords {
		return dst, r
	}
	at := c.tokenOf(r)
	for ; r.n > 0 && c.text[c.offset(at)] != ' '; r.n-- {
		dst = append(dst, ' ')
		dst = c.words.appendWord(dst, draw(r.key, r.from)>>(64-wordBits))
		r.from++
		at = (at + 1) % len(c.lengths)
	}
	return dst, r
}
