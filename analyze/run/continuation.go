package run

// continuation is a prompt that begins with another and the answer to it.
type continuation struct {
	base   int // row of the prompt in the history that it continues
	index  int32
	prompt int32 // tokens of the base's prompt, by the server's count
	shared int32 // tokens of it and of the answer that a cache can have
	// added is the number of tokens that the server counted beyond the row's, less
	// those of the base's prompt: the templates of the messages in between.
	added     int32
	counted   bool // added is known
	reencoded bool
}

// markReencoded marks the continuations for which the server added another number of
// tokens than for most: it tokenized the answer or the prompt before differently.
func (h *promptHistory) markReencoded() {
	added := map[int]int{}
	for _, k := range h.continued {
		if k.counted {
			added[int(k.added)]++
		}
	}
	usual := mostFrequent(added)
	for row, k := range h.continued {
		k.reencoded = k.counted && int(k.added) != usual
		h.continued[row] = k
	}
}

// findContinued finds the places of the prompts that others continue, after the
// history was sorted.
func (h *promptHistory) findContinued() {
	if h.continued == nil {
		return
	}
	places := make(map[int]int32, len(h.prompts))
	for i := range h.prompts {
		places[h.prompts[i].row] = int32(i)
	}
	for row, k := range h.continued {
		k.index = places[k.base]
		h.continued[row] = k
	}
}

// reencoded reports whether tokens may be missing because the server encoded a text
// differently than before.
func (p *predictor) reencoded(q *prompt, measured int) bool {
	k, some := p.continued[q.row]
	return some && (k.reencoded || p.textAnswers && measured >= p.usable(q, int(k.prompt)))
}

// continues reports whether a prompt begins with another and the answer to it.
func (p *predictor) continues(q *prompt) bool {
	_, some := p.continued[q.row]
	return some
}

// slack returns how many more tokens than the shared ones may be cached.
func (p *predictor) slack(q *prompt) int {
	if p.continued == nil {
		return p.TemplateTokens
	}
	slack := p.TemplateTokens
	if q.input >= 0 {
		slack = max(slack, int(q.input-q.own))
	}
	if p.BlockSize == 0 {
		slack += p.blockSize - 1
	}
	return slack
}
