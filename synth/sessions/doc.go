// Package sessions synthesizes traces that keep what matters to a server's
// cache: sessions, think times, bursts, lengths, and the reuse of prefixes.
//
// [Fit] learns a [Model] from a trace; [Model.Requests] draws any number of
// new requests:
//
//	m, err := sessions.Fit(source, sessions.Options{})
//	...
//	for r, err := range m.Requests(1, 10_000) {
//
// [Model.WriteTo] and [Read] store a model in a small file without any of the
// source's rows or ids. [Model.AtRate] draws more sessions in the same time.
//
// # The model
//
// A session is a chain of requests. Each continues the most recent earlier
// request that shares the longest prefix with it: it extends all of its blocks,
// repeats it, returns to what that one shared with its predecessor, or keeps a
// part of it, as when a user edits a message. Shared prefixes that do not come
// from sessions are templates, such as system prompts and documents: nodes of
// the prefix tree at which at least eight requests diverge, throughout the
// trace. Where rows have session ids, these define the sessions, and a session
// can join another by its blocks.
//
// The method learns how a session starts, whether and how a turn is continued,
// when and with which lengths, and when requests arrive: in segments of the source
// with a steady rate, and relative to that rate within them. Each distribution is
// conditional on the values known or drawn before it, by regression trees whose
// leaves hold histograms. Sessions cut off by the end of the trace are estimated
// with the Kaplan-Meier estimator. Sessions that began before the trace look new
// and long at its beginning: a drawn trace begins the same way.
//
// Arrivals are drawn first. A planned turn that is due takes the next arrival;
// if none is due, a session starts. Uniform numbers are stratified, so that seeds
// differ less in their means.
//
// # Accuracy
//
// The method keeps the distributions of ISL, OSL and shared context and their
// dependence, the arrivals, the sessions, and so the hit rates of caches of every
// size. It does not keep time of day beyond the source's length, prefixes that a
// few sessions share at random, or other correlations between requests. The tests
// check these means over seeds, with as many requests as in the source:
//
//   - Mooncake's conversation_trace.jsonl (an hour, 12,031 requests): KS distances
//     of at most 0.02 for ISL, OSL and context and 0.01 for gaps; block hit rates
//     within 0.01 at every cache size, 0.02 for single seeds and for ten times the
//     requests; the deviation of ISL within 5 %, its rank correlation with OSL
//     within 0.03.
//   - Halves and quarters of it: KS distances of ISL and context up to 0.025 and
//     0.03, hit rates within 0.015 (0.035 for the first quarter, in which few long
//     sessions end).
//   - Many other workloads: hit rates within 0.02. With a few hundred documents or
//     agent runs, KS distances of ISL reach 0.04 (0.1 with 300 sessions), and
//     caches of a few dozen prompts are up to 0.07 off. The deviation of very
//     skewed lengths can be 10 % off.
//   - Durations are within 3 % on average, and within 10 % for a trace that ends in
//     a few requests far apart.
//
// # Privacy
//
// Every part of a model is derived from at least five requests, and no bound or
// split is the value of a single request. Events of fewer requests get a pooled
// probability or none. This is not a mathematical guarantee of privacy.
//
// # Files
//
// A model's file is one JSON object. The distribution of values is a list with
// an entry for each value: splits, each [dimension, at, below, rest], which send
// points below the threshold and the rest to a later split or, as -1-i, to leaf
// i; and leaves, each a list of bins [requests, weight, value] or [requests,
// weight, low, high, mean]. Dimensions number the known values first, then the
// previous values. A choice has leaves [requests, share,
// ...], with a share for each outcome.
//
//	moontide_model   1, the version of the format
//	method           "sessions"
//	block_size       tokens per block; 0: no block ids
//	full_blocks_only a partial last block has no id
//	session_ids      rows have session ids
//	delays           later turns have a delay from the end of the answer, no timestamp
//	requests         of the source
//	sessions         of the source
//	sessions_ahead   maximum number of sessions ahead of their share
//	settled_ms       time after which few sessions are older than the trace
//	isl, osl         [low, high], the range of the source, rounded outward
//	templates        [parent, blocks, sessions, tail]: the number of an earlier one,
//	                 from 1, or 0; blocks after the parent's; sessions; 0, or
//	                 the tokens of a partial last block that ends the prompt
//	starts_with_template  a choice, given ms: a session starts with a template
//	first_turn       of sessions without a template, given ms up to settled_ms, 0,
//	                 0: tokens, OSL
//	first_turn_templated  of those with one, given ms up to settled_ms, its blocks,
//	                 1 for a whole prompt: tokens after it, OSL
//	continues        a choice among extend, repeat, return, edit, join for the
//	                 first continuation, given a turn: times continued before,
//	                 ISL, OSL, its number, new tokens, ms since the previous turn,
//	                 moving mean of that, ms up to settled_ms, tokens after the
//	                 template
//	continues_again  the same for later continuations
//	later_turns      for each of these, given the same: share of the turn's
//	                 blocks that an edit or join keeps, ms, tokens (more than the
//	                 turn had for extend, else after the shared ones), OSL
//	arrivals         tick_ms, 0 for no grid; jitter [requests, ms off the tick];
//	                 by_tick: time advances by ticks; segments [requests, ticks
//	                 or gaps, mean requests per tick or ms per gap]; steps, given
//	                 the previous value and the segment's mean: by tick,
//	                 2 sqrt(n + u) - 2 sqrt(mean + 1/2) for n requests and u uniform
//	                 in 0..1; otherwise the gap as a multiple of the mean, and the
//	                 requests after it; mean_gap_ms, used where there are no steps
//
// Read also accepts the key names used until 2026.
package sessions
