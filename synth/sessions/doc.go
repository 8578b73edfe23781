// Package sessions generates traces that preserve what matters to a server's cache:
// sessions, think times, bursts, lengths, and prefix reuse.
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
// the prefix tree at which at least eight requests diverge throughout the
// trace, or at least 100 and 1 % of all at any time, as in a batch job. Where rows have session ids, these define the sessions, and a session
// can join another by its blocks.
//
// The method learns how a session starts, whether and how a turn is continued,
// when and with which lengths, and when requests arrive: in segments of the source
// with a steady rate, of about a twentieth of its requests each, but at least 100, and
// relative to that rate within them. Each distribution is
// conditional on the values known or drawn before it, by regression trees whose
// leaves hold histograms. A tree divides at the value that explains most, or where an
// interval begins that explains far more, such as an outage. Sessions cut off by the end
// of the trace are estimated with the Kaplan-Meier estimator. Sessions that began before
// the trace look new and long at its beginning: a drawn trace begins the same way. The
// odds that turns are continued are calibrated by drawings, such that as many sessions
// reach each number of turns as in the source.
//
// Lengths and sessions depend on the time of the source at which they are drawn, so
// that they drift as in the source. A trace longer than the source repeats its
// course with new sessions, the mean gap between timestamps after its end;
// [Model.Hold] holds the source's last regime instead.
// Nothing is continued beyond what the source shows.
//
// Templates, the prefixes that many sessions start with, have a popularity by regime:
// the source is split where the likelihood of one popularity before and another after
// a time is far above that by chance.
//
// # Bursts
//
// Requests that arrive almost at once are a burst, as when the replay of a trace with a
// coarse clock is captured. A source has bursts if its gaps between timestamps are of two
// kinds: at least half are within bursts, which take at most a quarter of the time; those
// between bursts are at least ten times as long; and in between there are at most a
// fifth of the gaps that there would be if their logarithms had a density with one
// peak, fewer than by chance. Poisson processes and those with gamma or Weibull gaps have
// such a density. A burst is learned as one instant, on a grid if there is one. Drawn
// requests of an instant come in random order, with gaps like those within the source's
// bursts.
//
// # Clients
//
// A model has one or more clients, sources of requests with arrivals, lengths and
// sessions of their own, which share the templates (Y. Xiang et al., "ServeGen:
// Workload Characterization and Generation of Large Language Model Serving in
// Production", 2025). Their streams are merged by time. Clients are what rows name
// by an unknown key, in the row or in its object recorded: client, tenant, app, user
// or template, all also with _id, model, type or Log Type. Each key divides the
// clients of those before it if at least 80 % of the requests then belong to clients
// with enough of them: 100, or 5 % of a source with fewer than 2,000. The others are
// pooled. A key whose value changes within sessions names no clients. Drawn rows
// carry the keys of their client. Unless Clients says how many, the clients of a source
// with few timestamps are learned as one, and so are those of at least 2,000 requests
// that are more than 0.05 from the source if one is at most two thirds as far: then all
// clients burst at once.
//
// Without such keys, [Options].Clients divides the sessions into clusters, by
// k-means on the logarithms of the lengths of their first prompts, templates and
// answers. They are kept if two drawings show them as near to the source as one
// client, or at most 0.01 further: by the largest of the KS distances of lengths,
// shared blocks, gaps and turn gaps and of the gaps of the mean lengths. One to four
// sessions with at least 5 % of the requests or of the prompts' tokens, each at least
// four times as large as any other, are a client on the same condition, if Clients is
// 0. Otherwise, two clusters are kept if one client is more than 0.05 from a source of
// at least 2,000 requests and they are at most two thirds as far.
//
// Clients share no blocks but those of templates, and no session of one continues
// one of another: a note tells how many requests of the source do.
//
// The arrivals of each of several clients are a renewal process. Its rate is that of
// windows of the source with a steady rate. The gaps have a gamma or a Weibull
// distribution, whichever has the larger likelihood. Few distinct times are kept as
// those of a single client are.
//
// # Reasoning
//
// Rows with the tokens of reasoning among those of the answer (reasoning_tokens,
// reasoning_output_tokens, reasoning_length, thinking_tokens or reason_tokens, in the
// row or in its object recorded) are drawn with the same key. The share of reasoning
// depends on the lengths, the turn and the share of the turn before.
//
// # Agents
//
// Where rows name the requests that they wait for, an agent is a chain of rows of one
// session id; without session ids, of rows that extend each other. A row that waits
// for one of another agent and continues none of its own starts a sub-agent. The method
// learns which turns start sub-agents and how many, how long after the answer each
// starts, with what it begins (a prefix of its own, or a part of its caller's prompt
// or of an earlier sub-agent's), and which later turn of its caller waits for it. How
// sub-agents go on is learned with all other turns, which depend on the level of the
// agent and on the sub-agents that the turn before started. Drawn rows then have
// delays, except for the first of each session, and name earlier rows only: a turn is
// drawn when all that it waits for has ended. Think times and those of tools have
// distributions of their own.
//
// A turn that does not wait for the one before it in its session, but for an earlier
// one, is a second continuation of that one. Waiting for none of them, or for agents
// of other sessions, is not modelled. With fewer than five calls or sub-agents, their
// numbers and what waits for them are learned from all of their requests, and their
// delays and lengths from all turns.
//
// # Few sessions
//
// Fewer than five first turns are learned from all turns, less the mean growth of the
// prompts until then, and start evenly. Fewer than five with a template, or without, count
// among the others. Fewer than five sessions tell little of how their numbers of turns
// vary: each has the mean number. Fewer than five later turns have lognormal waits, with
// the median and deviation of all, and lognormal new tokens, with their mean and
// variation. Their answers then have the lengths of all, and so do those of first turns
// in a source of fewer than 80 requests, so that the mean is that of the source.
//
// # Drawing
//
// Arrivals are drawn in the better of two ways, judged by the gaps between requests and
// between turns. Either the arrivals of sessions are drawn, and later turns come after
// their own waits, as always where they have delays. Or all arrivals are drawn: a planned
// turn that is due takes the next one, and if none is due, a session starts. Fewer than
// five gaps between timestamps tell no more than the mean gap and the mean number of
// requests at a timestamp. Fewer than twenty timestamps with at least five requests each
// are kept as they are; a single one is that of all requests, however many are drawn.
// Waits then count requests, in which the order of turns is known and their times are not.
//
// Uniform numbers are stratified over a quarter of the source's length, so that seeds
// differ less in their means, while those of short windows vary as in the source.
//
// # Accuracy
//
// The method keeps the distributions of ISL, OSL and shared context and their
// dependence, the arrivals, the sessions, and so the hit rates of caches of every
// size, and how these change over time. It does not keep cycles longer than the source,
// sessions unlike at least four others, prefixes that a few sessions share at random,
// or other correlations between requests. The tests check these means over seeds, with
// as many requests as in the source:
//
//   - Mooncake's conversation_trace.jsonl (an hour, 12,031 requests): KS distances
//     of at most 0.02 for ISL, OSL and context and 0.01 for gaps; block hit rates
//     within 0.01 at every cache size, 0.02 for single seeds and for ten times the
//     requests; the deviation of ISL within 5 %, its rank correlation with OSL
//     within 0.03.
//   - Halves and quarters of it: KS distances of ISL and context up to 0.025 and
//     0.03, hit rates within 0.015 (0.035 for the first quarter, in which few long
//     sessions end), the deviation of ISL within 8 %.
//   - Many other workloads: hit rates within 0.02. With a few hundred documents or
//     agent runs, KS distances of ISL reach 0.04 (0.1 with 300 sessions), and
//     caches of a few dozen prompts are up to 0.07 off. The deviation of very
//     skewed lengths can be 10 % off.
//   - Agents, 300 sessions with sub-agents: KS distances of at most 0.05 for tool
//     times, waits and requests at a time, and 0.06, no more than by chance, for
//     think times, sub-agents per session, their turns, and makespans.
//   - Durations are within 3 % on average, and within 10 % for a trace that ends in
//     a few requests far apart.
//
// # Privacy
//
// Every part of a model is derived from at least five requests, and no bound or
// split is the value of a single request. Events of fewer requests get a pooled
// probability or none. This is not a mathematical guarantee of privacy. The names of
// clients with enough requests are those of the source.
//
// # Files
//
// A model's file is one JSON object:
//
//	moontide_model   3, the version of the format
//	method           "sessions"
//	block_size       tokens per block; 0: no block ids
//	full_blocks_only a partial last block has no id
//	first_block      id of the first drawn block: 1, 2 or 5 times a power of 10 above
//	                 those of the source, or 0 if these reach 10^15
//	session_ids      rows have session ids
//	delays           later turns have a delay from the end of the answer, no timestamp
//	delay_kinds      delays are think times or those of tools
//	agents           rows name the requests that they wait for
//	bursts           only if there are any: tick_ms, of which times are multiples, 0 for
//	                 no grid; offsets, ms from the instant of a burst to its first
//	                 request, none if they are the same; gaps, ms between its requests,
//	                 given how many came before
//	templates        [parent, blocks, tail]: the number of an earlier one, from 1, or
//	                 0; blocks after the parent's; 0, or the tokens of a partial last
//	                 block that ends the prompt
//	client_keys      [key, "string" or "number"]: keys of the rows that name
//	                 clients; recorded.key is one of the object recorded
//	reasoning_key    key of the rows with the tokens of reasoning, or ""
//	clients          at least one, each with the members below
//
// The distribution of values is a list with an entry for each value: splits, each
// [dimension, at, below, rest], which send points below the threshold and the rest
// to a later split or, as -1-i, to leaf i; and leaves, each a list of bins
// [requests, weight, value] or [requests, weight, low, high, mean]. Dimensions
// number the known values first, then the previous values. A choice has leaves
// [requests, share, ...], with a share for each outcome. A client has
//
//	name             unique; may be empty if there is one client
//	values           of the client keys in its rows, or none
//	requests         of the source
//	sessions         of the source
//	mean_isl, mean_osl  of the source
//	sessions_ahead   maximum number of sessions ahead of their share
//	settled_ms       time after which few sessions are older than the trace
//	isl, osl         [low, high], the range of the source, rounded outward
//	templates        [number, sessions]: how many start with it and no longer one
//	starts_with_template  a choice, given ms: a session starts with a template
//	first_turn       of sessions without a template, given ms, 0, 0: tokens, OSL
//	first_turn_templated  of those with one, given ms, its blocks, 1 for a whole
//	                 prompt: tokens after it, OSL
//	reasoning        share of the answer, given ISL, OSL, number of the turn, share
//	                 of the previous turn's answer, ms
//	continues        a choice among extend, repeat, return, edit, join for the
//	                 first continuation, given a turn: times continued before,
//	                 and a half more if it was repeated the last time;
//	                 ISL, OSL, its number, new tokens, ms since the previous turn,
//	                 mean of that in its session, ms, at most settled_ms before the
//	                 end, tokens after the template, level of its agent,
//	                 sub-agents that it starts
//	continues_again  the same for later continuations
//	turn_odds        none, or factors of the odds that a turn of no sub-agent is
//	                 continued: of turn 0, of 1 and 2, of 3 to 6, and so on; the last is
//	                 that of all that follow
//	later_turns      for each of these, given the same: with
//	                 delay_kinds, 1 after a think time, 2 after tools, 0 otherwise;
//	                 share of the turn's blocks that an edit or join keeps, or 1 if
//	                 extend keeps a partial last block's id; ms
//	later_lengths    for each of these, given the same, share, ms of wait, ms, kind:
//	                 tokens (more than the turn had for extend, else after the
//	                 shared ones), OSL
//	sub_agents       levels of them; calls, a choice given a turn; number, how many,
//	                 given the same; starts, given the caller's level, the number of
//	                 those before it, how many there are, and joined and begin of
//	                 the one before: joined, the turns after the call until one
//	                 waits for it, 0 for never, -1 for what waits for its caller; 1
//	                 if it waits for those before it; the kind of its delay; ms
//	                 since the one before; begin, 0 with its own prefix, 1 with a
//	                 part of its caller's prompt, 2 of an earlier sub-agent's, 3
//	                 with the part that that one began with; how many sub-agents
//	                 ago that one started; the part's share of the blocks; templates,
//	                 starts_with_template (given the level), first_turn and
//	                 first_turn_templated (given the level and not ms), like those
//	                 of sessions; first_turn_shared, given the level, begin and the
//	                 shared tokens: tokens after these, OSL
//	arrivals         tick_ms, 0 for no grid; jitter [requests, ms off the tick];
//	                 by_tick: time advances by ticks; segments [requests, ticks
//	                 or gaps, mean requests per tick or ms per gap]; steps, given
//	                 the previous value and the segment's mean: by tick,
//	                 2 sqrt(n + u) - 2 sqrt(mean + 1/2) for n requests and u uniform
//	                 in 0..1; otherwise the gap as a multiple of the mean, and the
//	                 requests after it; mean_gap_ms, used where there are no steps;
//	                 first_ms, when the segments begin; period_ms, the source's
//	                 duration; last_ms, when its last regime of rate and lengths
//	                 begins; gap_ms, the mean between its timestamps, and before it
//	                 begins again; of_sessions: later turns come after their waits;
//	                 timetable, instead of segments and steps: [requests, ms] for
//	                 each timestamp;
//	                 renewal, instead of segments and steps of one of several
//	                 clients: windows [arrivals, ms], distribution of the gaps,
//	                 gamma or weibull, and its shape
//
// [Read] refuses earlier versions.
package sessions
