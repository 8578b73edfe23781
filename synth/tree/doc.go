// Package synth makes traces that are like a trace, by the tree method, whose
// knobs many know. Package synth/sessions is the faithful method: conversations,
// think times and bursts as in the source, and with them what a cache of any
// size hits. Start there unless you need the knobs. Package synth/spec makes
// traces that are like no other, from a description.
//
// Start with [FitTree], which learns a [Tree] from the requests of a source,
// and range over [Tree.Requests] for as many new ones as wanted:
//
//	tree, err := synth.FitTree(source, synth.TreeOptions{})
//	...
//	for r, err := range tree.Requests(1, 10_000) {
//
// [Tree.Draw] draws requests that differ from the source's as a [TreeShape]
// says, and is the fast way to write many:
//
//	d, err := tree.Draw(1, 10_000, synth.TreeShape{PrefixLenMultiplier: 16, MaxISL: 110_000})
//	...
//	rows, err := w.WriteRows(d) // w is a *trace.Writer
//	...
//	d.Rejected() // how many were longer than 110,000 tokens
//
// # The tree method
//
// The blocks that more than one request of the source has are its core, a tree
// of shared prefixes. A new request walks down the core and at each node takes
// one of three kinds of way on, as often as the source's requests took it: to a
// child, out of the core to a unique prompt, or to its end. Everything else is
// drawn from the source's values, each for itself: how many blocks a unique
// prompt has, how many tokens its last block holds, the output length, how many
// requests share a timestamp and how far apart timestamps are. This is the
// method of the data generator that comes with NVIDIA's serving framework.
//
// What it keeps: the means of ISL and OSL, the rate, who shares how much with
// whom at this number of requests. What it does not keep: the same core is
// walked for ever, so that hit rates grow with the number of requests; lengths
// know nothing of each other or of the path, so that ISL spreads more widely
// than in the source and is not correlated with OSL; and paths know nothing of
// time, so that hits come less close together and a small cache fares
// differently. Compare hit rates with the source at equal numbers of requests.
//
// A [TreeShape] stretches shared prefixes, unique prompts and output lengths,
// spreads requests over copies of the core, speeds time up and sets limits. It
// keeps to that generator but for three things: fractions of the prefix
// multiplier are honoured where that one rounds them up, all draws are
// repeatable, and time can be kept from passing for requests that a limit
// rejects, which otherwise slow the trace down.
//
// # Randomness
//
// All draws come from the seed, with an independent stream for each aspect:
// arrivals, walk, copy of the core, unique lengths, last blocks, output lengths.
// Two models or shapes that differ in one aspect, as in their arrivals, draw the
// same values for all the others.
package tree
