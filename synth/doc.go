// Package synth makes traces that are like a trace.
//
// Start with [FitTree], which learns a [Tree] from the requests of a source,
// and range over [Tree.Requests] for as many new ones as wanted:
//
//	tree, err := synth.FitTree(source, synth.TreeOptions{})
//	...
//	for r, err := range tree.Requests(1, 10_000) {
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
// # Randomness
//
// All draws come from the seed, with an independent stream for each aspect:
// arrivals, walk, unique lengths, last blocks, output lengths. Two models that
// differ in one aspect, as in their arrivals, draw the same values for all the
// others.
package synth
