// Package tree generates traces with the tree method of NVIDIA's data generator. Use it
// if you need that generator's options. Package synth/sessions is the more faithful
// method, and package synth/spec needs no source trace.
//
// [Fit] learns a [Model] from a trace; [Model.Draw] draws new requests, with a [Shape]
// (longer prefixes, limits, speed-up):
//
//	m, err := tree.Fit(source, tree.Options{})
//	...
//	d, err := m.Draw(1, 10_000, tree.Shape{PrefixLenMultiplier: 16, MaxISL: 110_000})
//	...
//	rows, err := w.WriteAll(trace.Borrow(d)) // w is a *format.Writer
//
// # The tree method
//
// Blocks that occur in more than one request of the source form the core, a tree
// of shared prefixes. A new request walks down the core; at each node it
// continues to a child, leaves for a unique prompt, or ends, with the frequencies
// of the source. Everything else is drawn independently from the source's
// values: blocks of a unique prompt, tokens of the last block, OSL, requests per
// timestamp and gaps between timestamps, each with its own random stream.
//
// The method keeps the means of ISL and OSL, the rate, and the amount of sharing at
// the source's number of requests; with more requests, the hit rate grows. It does
// not keep the spread of ISL, its correlation with OSL, or the clustering of hits
// in time, and with it the hit rates of small caches.
//
// It differs from that generator in three ways: the prefix multiplier
// is not rounded up, all draws are repeatable, and
// [Shape.KeepRate] keeps rejected requests from slowing the trace down.
package tree
