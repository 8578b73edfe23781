// Package spec draws traces from a workload spec, without a source trace.
//
// [Parse] reads a short YAML text; range over [Spec.Requests] for its requests.
// This is a complete spec:
//
//	isl: 3000
//	osl: 150
//
// It draws 100 requests with Poisson arrivals at one per second, each with a unique
// prompt.
//
// # Limits
//
//	num_requests: 1000   # if neither limit is set, the length of the phases or of
//	duration: 10m        # a replayed trace, else 100 requests
//	block_size: 512      # tokens per block; default 512, or what fits shared prefixes
//	seed: 1              # default 0; the same seed draws the same trace
//
// Times are 90s, 1.5m, 24h, or a number of seconds.
//
// # Arrivals
//
//	rate: 2.5            # requests per second, default 1; or phases:
//	rate:
//	  - {for: 10m, at: 1}            # constant
//	  - {for: 5m, from: 1, to: 20}   # a ramp; from defaults to the previous rate
//	rate: {phases: [...], repeat: true}   # without repeat, the last rate stays
//	arrival: poisson     # or constant; or in full:
//	arrival:
//	  process: gamma     # constant, poisson, gamma, weibull, replay; default: gamma with
//	                     # cv or burstiness, replay with file, else poisson
//	  cv: 2              # of gamma and weibull gaps: std / mean; or burstiness: 1 / cv^2 (gamma)
//	  file: other.jsonl  # of replay: the timestamps of a trace, repeated; stretched to the
//	                     # rate, if there is one
//	  bursts: {on: 10s, off: 50s, ratio: 0.1}   # mean times in two states; ratio (default 0)
//	                     # is the rate when off over the rate when on
//	  cycle: {period: 24h, amplitude: 0.8, peak: 14h}   # a rate that varies around its mean
//
// The rate counts requests, including later turns of sessions. Arrivals start
// sessions, at the rate divided by the mean number of turns that happen, so a trace
// reaches the rate after about the length of a session. A varying rate is followed
// exactly, by time rescaling. Counts vary randomly.
//
// # Lengths
//
//	isl: 3000                        # tokens of the whole prompt, with the shared prefix
//	unique_isl: 80                   # instead: the tokens after the shared prefix
//	osl: lognormal:300:0.8           # a distribution, short or in full:
//	osl: {distribution: lognormal, mean: 300, cv: 0.8, min: 10, max: 4000}
//	correlation: 0.4                 # rank correlation of ISL and OSL
//	lengths: other.jsonl             # instead: pairs of ISL and OSL from a trace
//	lengths: {file: other.jsonl, min_isl: 10, max_isl: 8000, min_osl: 1, max_osl: 900}
//
// These are the distributions and their short forms, to which :min=A and :max=B
// can be added:
//
//	fixed:3000              uniform:100:2000 (min, max)
//	normal:1000:200         (mean, std; or cv in full)
//	lognormal:1000:1.5      (mean, cv; or std in full)
//	exponential:1000        (mean)
//	weibull:1000:1.5        (mean, cv; or std in full)
//	geometric:4             (mean: 1, 2, 3, ...)
//	file:lengths.txt        (path: plain numbers, or a trace for isl and osl)
//	{distribution: mixture, of: [{share: 0.7, distribution: fixed, value: 100}, {share: 0.3, ...}]}
//
// The key law is accepted for distribution. Distributions are truncated to min and
// max, which changes the mean; one with hardly any values between them is refused.
// Lengths are at least 1, and at most 100,000,000 tokens or 4,194,304 blocks.
//
// # Sharing
//
//	shared: {count: 20, tokens: 1024, zipf: 1}   # 20 system prompts, by popularity
//	shared:                                      # or nested levels:
//	  - {count: 1, tokens: 500}                  # shared by all
//	  - {count: 30, tokens: uniform:500:1500, zipf: 1}   # one of 30 tenants
//	  - {count: 10, tokens: 4096, zipf: 0.5}     # one of 10 documents of this tenant
//
// With a zipf of 0 (the default) all are equally popular. A shared prefix is part of
// isl, so no prompt may be shorter than the longest prefix; unique_isl excludes
// it. Only whole blocks are shared: without a block_size, one is chosen that divides
// all prefixes of a fixed length, if there is one from 16 to 512; see
// [Spec.SharedTokens] otherwise.
//
// # Sessions
//
//	sessions:
//	  turns: geometric:4        # prompts of a conversation
//	  think_time: lognormal:20s:1.5   # from the end of an answer to the next prompt, default 0
//	  new_tokens: 200           # added by a later prompt; default: as in a first prompt
//	                            # after its shared prefix
//	  max_isl: 128000           # a session ends before a longer prompt; more sessions start then
//	  timestamps: first         # later turns have a delay; all: every turn has a timestamp
//	  ttft: 500ms               # assumed for answers: timestamps (and the order of rows)
//	  tpot: 20ms                # are ttft + (OSL - 1) tpot + think time after the turn before
//
// isl and unique_isl apply to first prompts. A later prompt consists of the
// previous prompt, its answer, and new tokens; it shares the whole blocks of the
// previous prompt. In later turns, correlation is between new tokens and OSL.
//
// # Clients
//
//	clients:
//	  - {name: chat, share: 0.7, isl: 900, osl: 200, sessions: {turns: 5}}
//	  - {name: batch, share: 0.3, isl: 9000, osl: 100}
//	  - {name: cron, rate: 0.1, arrival: constant, isl: 500, osl: 20}
//
// Top-level lengths, sharing and sessions apply to clients that do not set them;
// top-level shared prefixes are the same for all clients. Clients with a share of
// the requests divide the top-level arrivals, and their shares add up to 1; a
// client with a rate or an arrival has separate arrivals.
//
// # Randomness
//
// Each aspect of each client, identified by its name, has a separate random stream,
// indexed by session and turn. Changing the OSL, for example, does not change
// prompts or think times, and a shorter trace is a prefix of a longer one.
package spec
