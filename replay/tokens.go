package replay

// TokenSource is where a request's number of output tokens comes from.
type TokenSource uint8

// The sources. Only ReportedTokens is exact; the others are estimates.
const (
	ReportedTokens     TokenSource = iota // the server's usage
	UnreportedTokens                      // token chunks: the server reported no usage
	ContradictedTokens                    // token chunks: the stream contradicts the usage
)

// OutputTokens returns the number of output tokens and its source.
//
// It is the server's count unless the stream contradicts it: the count is above the
// request's max_tokens, 0 although tokens arrived, or below the number of token
// chunks by more than 2 and by more than 1 %. A smaller difference is normal,
// because gateways divide chunks.
func (r *Record) OutputTokens() (tokens int, source TokenSource) {
	const few, share = 2, 100
	n, missing := r.Counts.Output, r.Chunks-r.Counts.Output.Value
	switch {
	case !n.Set:
		return r.Chunks, UnreportedTokens
	case n.Value > r.MaxTokens(),
		n.Value == 0 && r.Chunks > 0,
		missing > few && share*missing > r.Chunks:
		return r.Chunks, ContradictedTokens
	}
	return n.Value, ReportedTokens
}

// MaxTokens returns the max_tokens of the request: the OSL, but at least 1, because
// servers reject 0.
func (r *Record) MaxTokens() int { return max(r.OutputLength, 1) }
