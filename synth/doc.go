// Package synth contains three methods to generate traces:
//
//   - synth/sessions learns a model of a trace that keeps its conversations,
//     think times, bursts, lengths and cache hit rates. Use it to make a trace
//     longer, denser or shareable.
//   - synth/tree learns a tree of shared prefixes, as the data generator of
//     NVIDIA's serving framework does. Use it for that generator's options.
//   - synth/spec needs no source: it draws a trace from a YAML spec of rates,
//     lengths, sharing, sessions and clients.
//
// Each yields [moontide/trace.Requests]. The same seed gives the same requests.
//
// The package itself holds code that the methods share.
package synth
