// Package spec generates traces from a workload description, without a source trace.
//
// [Parse] reads a short YAML text; range over [Spec.Requests] for its requests.
// This is a complete spec:
//
//	isl: 3000
//	osl: 150
//
// It draws 100 requests with Poisson arrivals at one per second, each with a unique
// prompt. This one has two clients, conversations, shared prefixes and bursts:
//
//	duration: 10m
//	rate: 2.5            # requests per second, later turns included
//	seed: 1              # the same seed draws the same trace
//	arrival:
//	  bursts: {on: 10s, off: 50s, ratio: 0.1}
//	clients:
//	  - name: chat
//	    share: 0.7
//	    unique_isl: lognormal:100:1     # tokens after the shared prefix
//	    osl: {distribution: lognormal, mean: 300, cv: 0.8, min: 10, max: 4000}
//	    shared:
//	      - {count: 1, tokens: 500}             # shared by all
//	      - {count: 30, tokens: 1024, zipf: 1}  # one of 30 tenants
//	    sessions: {turns: geometric:4, think_time: lognormal:20s:1.5, max_isl: 128000}
//	  - {name: batch, share: 0.3, isl: 9000, osl: 100}
//
// synth/README.md documents every key with its type, default and meaning.
//
// # Sharing
//
// Only whole blocks are shared: without a block_size, one is chosen that divides
// all prefixes of a fixed length, if there is one from 16 to 512; see
// [Spec.SharedTokens] otherwise.
//
// # Rates
//
// The rate counts requests, including later turns of sessions. Arrivals start
// sessions, at the rate divided by the mean number of turns that happen, so a trace
// reaches the rate after about the length of a session. A varying rate is followed
// exactly, by time rescaling. Counts vary randomly.
//
// # Randomness
//
// Each aspect of each client, identified by its name, has a separate random stream,
// indexed by session and turn. Changing the OSL, for example, does not change
// prompts or think times, and a shorter trace is a prefix of a longer one.
package spec
