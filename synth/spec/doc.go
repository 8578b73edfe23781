// Package spec draws traces from a description instead of from a trace.
//
// Start with [Parse], which reads a short YAML text, and range over
// [Spec.Requests]:
//
//	isl: 3000
//	osl: 150
//
// is a whole description: 100 requests, one a second on average, Poisson
// arrivals. Each of its requests has a prompt of its own.
//
// # Limits
//
//	num_requests: 1000   # and no more; where neither limit is given: the length of
//	duration: 10m        # phases or of a replayed trace, else 100 requests
//	block_size: 512      # tokens of a block, default 512
//	seed: 1              # default 0; the same seed draws the same trace
//
// Times are 90s, 1.5m, 24h, or a number of seconds.
//
// # Arrivals
//
//	rate: 2.5            # requests a second, default 1; or one phase after another:
//	rate:
//	  - {for: 10m, at: 1}            # steady
//	  - {for: 5m, from: 1, to: 20}   # a ramp; without from it goes on from the last rate
//	rate: {phases: [...], repeat: true}   # else the last rate stays
//	arrival: poisson     # or constant; or with more to say:
//	arrival:
//	  process: gamma     # constant, poisson, gamma, weibull, replay; without it: gamma where
//	                     # cv or burstiness is given, replay where file is, else poisson
//	  cv: 2              # of gamma and weibull gaps: std / mean; burstiness: 1 / cv^2 (gamma)
//	  file: other.jsonl  # of replay: the timestamps of a trace, again and again; with a
//	                     # rate they are stretched to it
//	  bursts: {on: 10s, off: 50s, ratio: 0.1}   # mean times in two states; the rate when
//	                     # off is ratio (default 0) times the rate when on
//	  cycle: {period: 24h, amplitude: 0.8, peak: 14h}   # a rate that swings around its mean
//
// The rate is one of requests, also where sessions have many turns: arrivals
// begin sessions, at the rate divided by the mean number of turns that happen,
// where sessions that max_isl ends early count with the turns they have. So a
// trace starts empty and reaches the rate after about the length of a session. A rate
// that changes is followed exactly, by time rescaling. Nothing is rescaled to
// hit a number: counts vary as the process does.
//
// # Lengths
//
//	isl: 3000                        # tokens of the whole prompt, with what it shares
//	unique_isl: 80                   # instead: the tokens behind the shared prefix
//	osl: lognormal:300:0.8           # a law in one word, or in full:
//	osl: {law: lognormal, mean: 300, cv: 0.8, min: 10, max: 4000}
//	correlation: 0.4                 # rank correlation of ISL and OSL
//	lengths: other.jsonl             # instead: ISL and OSL of one row of a trace together
//	lengths: {file: other.jsonl, min_isl: 10, max_isl: 8000, min_osl: 1, max_osl: 900}
//
// The laws and their short forms, to each of which :min=A and :max=B can be added:
//
//	fixed:3000              uniform:100:2000 (min, max)
//	normal:1000:200         (mean, std; or cv in full)
//	lognormal:1000:1.5      (mean, cv; or std in full)
//	exponential:1000        (mean)
//	weibull:1000:1.5        (mean, cv; or std in full)
//	geometric:4             (mean: 1, 2, 3, ...)
//	file:lengths.txt        (path: plain numbers, or a trace for isl and osl)
//	{law: mixture, of: [{share: 0.7, law: fixed, value: 100}, {share: 0.3, law: ...}]}
//
// A law is cut at min and max as if values outside were drawn again, so that its
// shape between them stays and its mean moves. Lengths are at least 1 unless min
// is higher, and at most 100,000,000 tokens or 4,194,304 blocks. A law that has
// hardly any values between its bounds is refused.
//
// # Sharing
//
//	shared: {count: 20, tokens: 1024, zipf: 1}   # 20 system prompts, by popularity
//	shared:                                      # or levels, each within the one above:
//	  - {count: 1, tokens: 500}                  # everybody's
//	  - {count: 30, tokens: uniform:500:1500, zipf: 1}   # one of 30 tenants
//	  - {count: 10, tokens: 4096, zipf: 0.5}     # one of 10 documents of this tenant
//
// A zipf of 0 (the default) makes all equally popular. A shared prefix is part of
// the ISL, so that no prompt may be shorter than the longest; with unique_isl it
// comes on top. Only whole blocks are shared: a block in which a prefix ends belongs to what follows.
//
// # Sessions
//
//	sessions:
//	  turns: geometric:4        # prompts of a conversation
//	  think_time: lognormal:20s:1.5   # from an answer's end to the next prompt, default 0
//	  new_tokens: 200           # what a later prompt adds; else as much as a first prompt
//	                            # has beyond its shared prefix
//	  max_isl: 128000           # a session ends before a longer prompt; more sessions begin then
//	  timestamps: first         # later turns have a delay; all: every turn has a timestamp
//	  ttft: 500ms               # assumed for answers: timestamps (and the order of rows)
//	  tpot: 20ms                # are ttft + (OSL - 1) tpot + think time after the turn before
//
// isl and unique_isl are laws of first prompts. A later prompt is the one before it, the answer
// to that, and new tokens. It shares the whole blocks of the prompt before it. In
// later turns the correlation is one of new tokens and OSL.
//
// # Clients
//
//	clients:
//	  - {name: chat, share: 0.7, isl: 900, osl: 200, sessions: {turns: 5}}
//	  - {name: batch, share: 0.3, isl: 9000, osl: 100}
//	  - {name: cron, rate: 0.1, arrival: constant, isl: 500, osl: 20}
//
// Lengths, sharing and sessions at the top hold for every client that does not
// give its own; shared prefixes given at the top are the same for all clients.
// Clients with a share of the requests divide the arrivals of the top, and their
// shares add up to 1; a client with a rate or an arrival has arrivals of its own.
//
// # Randomness
//
// Each aspect of each client has random numbers of its own, and each turn of each
// session a place in them: another law of OSL, say, leaves all prompts, prefixes
// and think times as they were, and a trace of fewer requests is the beginning of
// one of more. Clients are known by their names.
package spec
