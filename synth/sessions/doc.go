// Package sessions makes traces that a server feels like the trace they are
// learned from: the faithful method of synthesis.
//
// Start with [Fit], which learns a [Model] from the requests of a source, and
// range over [Model.Requests] for as many new ones as wanted:
//
//	m, err := sessions.Fit(source, sessions.Options{})
//	...
//	for r, err := range m.Requests(1, 10_000) {
//
// [Model.WriteTo] and [Read] keep a model in a small file that holds none of the
// source's rows or ids. [Model.AtRate] makes more sessions in the same time.
//
// # The model
//
// A session is a chain of requests. Each goes on from the most recent earlier
// request that shares the longest prefix with it: it extends all of its blocks,
// or repeats it, or returns to where that one had left its own predecessor, or
// keeps a part of it, as when a user edits what was said. The rest of what is
// shared are templates, such as system prompts and documents: nodes of the
// prefix tree at which at least eight requests part, throughout the trace. Few
// users of a document are a chain, too, which keeps how soon they follow each
// other. Where rows say their session, a session can so join another.
//
// From this the method learns, with the time as the trace settles:
//
//   - how a session begins: with a template or not, with which, how many further
//     tokens, and which OSL;
//   - whether and how a turn is gone on from, given its lengths, number, and the
//     time between the turns before: so that short and long sessions, fast and
//     slow ones stay apart;
//   - for each way to go on, when, by how many tokens, and with which OSL;
//   - when requests come, whoever they are: on a grid or not, in pieces of the
//     source in which the rate is steady, and in these relative to it. The pieces
//     follow each other by the number of requests or ticks, so that as many
//     requests take as long as in the source, through lulls and ramps.
//
// Each distribution is conditional on what is known and drawn before, by
// regression trees: leaves with similar values, in each a histogram of bins. The
// end of the trace hides how its last turns went on; this is estimated, not
// counted (Kaplan and Meier). The beginning hides how its first turns came
// about, so that sessions look new and long there: a drawn trace begins so, too,
// and goes on with new sessions at the settled rate, however long it becomes.
//
// To draw, requests come by the clock of arrivals; a turn that is due takes the
// time that there is, and where none is due a session begins. So the arrivals
// are right by themselves, and turns are late as often as early. Values are
// drawn like cards from small decks, one from each 32nd of the distribution, so
// that traces of different seeds differ less in their means than real hours do.
//
// # What it keeps and what not
//
// It keeps the laws of ISL, OSL and shared context and their dependence, the
// arrivals, the sessions, and with these the hit rates of caches of every size.
// It does not keep which requests come together beyond that, time of day beyond
// the source's length (pieces of it follow each other in random runs then), and
// prefixes that a few sessions share at random, far apart.
//
// How close it comes, as means over seeds with as many requests as the source has
// (the tests hold it to this):
//
//   - For the hour of conversation_trace.jsonl of Mooncake (12,031 requests) the
//     Kolmogorov-Smirnov distances of ISL, OSL and context are at most 0.02, that
//     of the time between requests 0.01, the block hit rates are within 0.01 at
//     every cache size, the deviation of ISL within 5 %, its rank correlation with
//     OSL within 0.03. Single seeds stray from the hit rate by up to 0.02. With ten
//     times the requests hit rates stay within 0.02.
//   - For halves and quarters of it the distances of ISL and context reach 0.025
//     and 0.03, and hit rates 0.035 (the first quarter; 0.015 the others): a quarter
//     sees few of its long sessions end, which the method then has to guess.
//   - For many other workloads the same as for the whole hour, with hit rates within
//     0.02. With a few hundred long documents or agent runs, the distances of ISL
//     reach 0.04 (0.1 where there are but 300 sessions: that is the sampling
//     error of as many), and caches of a few dozen prompts hit up to 0.07 off, as
//     clients of different kinds are mixed more evenly than they came.
//     The deviation of very skewed lengths hangs on a few prompts and can be 10 % off.
//   - The time that requests take is within 3 % on average. A trace that ends in a
//     few last requests far apart varies by 10 %.
//
// No part of a model rests on fewer than five requests, and no bound or cut is the
// value of one: they lie halfway between groups of requests; the ends are round
// numbers further out, or follow from the mean and variance of five requests or
// more; things that happened to fewer have their chance from all places where
// they are as rare, or none. That is no guarantee of privacy in the mathematical
// sense.
//
// # Randomness
//
// All draws come from the seed, with a stream for each aspect: arrivals, how
// sessions begin, whether and how they go on, and how turns continue.
//
// # Files
//
// A model's file is one JSON object. Values of a distribution are a list with an
// entry for each value in turn: cuts, each [dimension, at, below, rest], which
// send what is below to the one place and the rest to the other, a later cut or,
// as -1-i, the leaf i; and leaves, each a list of bins [requests, weight, value]
// or [requests, weight, low, high, mean]. Dimensions count what is known first
// and then the values before. A choice has leaves [requests, share, ...], with a
// share for each thing that can happen.
//
//	moontide_model   1, the version of the format
//	method           "sessions"
//	block_size       tokens of a block; 0: no block ids
//	full_blocks_only a last block that is not full has no id
//	session_ids      rows have session ids
//	delays           later turns have a delay, from the end of the answer, instead
//	                 of a timestamp
//	requests         of the source
//	sessions         of the source
//	sessions_ahead   the most by which these were ahead of their share
//	settled_ms       when few sessions are older than the trace
//	isl, osl         [low, high], the range of the source, rounded outward
//	templates        [parent, blocks, sessions, tail]: the parent is 0 for none or
//	                 the number, from 1, of an earlier one; blocks are its own;
//	                 the tail is 0, or the tokens of a last block that ends the prompt
//	templated_by_time a choice, given ms: a session begins with a template
//	first_turn       of sessions without a template, given ms up to settled_ms, 0,
//	                 0: tokens, OSL
//	first_turn_templated  of those with one, given ms up to settled_ms, its blocks,
//	                 1 for a whole prompt: tokens after it, OSL
//	goes_on          a choice among extend, repeat, return, edit, join for the
//	                 first time, given a turn: how often it was gone on from, ISL,
//	                 OSL, its number, new tokens, ms since the turn before, moving
//	                 mean of that, ms up to settled_ms, tokens after the template
//	goes_on_again    the same for the times after that
//	later_turns      for each of these, given the same: share of the turn's own
//	                 blocks that an edit or join keeps, ms, tokens (more than the
//	                 turn had for extend, else after the shared ones), OSL
//	arrivals         tick_ms, 0 for no grid; jitter [requests, ms off the tick];
//	                 counted: time goes from tick to tick; pieces [requests, ticks
//	                 or steps, mean requests a tick or ms a step]; steps, given the
//	                 value before and the piece's mean: where counted, 2 sqrt(n + u)
//	                 - 2 sqrt(mean + 1/2) for n requests and u uniform in 0..1; else
//	                 the step as a multiple of the mean, and the requests after it;
//	                 even_ms, used where there are no steps
package sessions
