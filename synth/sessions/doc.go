// Package sessions generates traces that preserve what matters to a server's cache:
// sessions, think times, bursts, lengths, and prefix reuse.
//
// [Fit] makes a [Model] of a trace; [Model.Requests] draws any number of new requests:
//
//	m, err := sessions.Fit(source, sessions.Options{})
//	...
//	for r, err := range m.Requests(1, 10_000) {
//
// [Model.WriteTo] and [Read] store a model in a file. [Model.AtRate] draws more sessions in
// the same time, [Model.Only] those of one client.
//
// # Method
//
// What a cache feels lies in whole sessions and in when they happen. A drawn trace is
// therefore a resampling of the source: copies of its sessions, near their own places.
//
// Sessions are those that rows name by session ids and by the requests that they wait for,
// so that an agent and its sub-agents are one. Without such names, a row continues the most
// recent row that shares its longest prefix, unless that is a template: a prefix with at
// least 30 uses and one for each hundred rows, over a twentieth of the trace or more. A
// conversation that grows turn by turn is one use.
//
// Each session is drawn once, in the place of one with about as many requests and tokens,
// at most about 25 places or a fortieth of all away. Neighbours share clients, lengths and
// templates, so drift, daily cycles and bursts stay. The pauses of the sessions set the
// order of requests; the k-th of them arrives when the k-th of the source did, which keeps
// bursts and coarse clocks as they are.
//
// A copy has new block ids, except for templates; prefixes that fewer sessions share are
// new each time that the source repeats. Values are varied by lognormal factors: gaps
// between arrivals, answers, and all prompts of a session beyond the shared prefix by one
// with a sigma of 0.03, delays by one of 0.1. No value moves past more than 2 % of all
// values of its kind; those that more requests have stay as they are, and so do all gaps and
// delays on a coarse clock ([trace.DetectGrid]) or longer than a hundredth of the trace.
//
// A trace longer than the source repeats its course, the mean gap between times after its
// end, with other copies. At a higher rate, each session is drawn several times; at one
// between two whole numbers, what is too many is left out. The times of rows without a
// timestamp are estimated by [trace.ResponseTime].
//
// Rows keep the values of the keys client, tenant, app, user and template, all also with
// _id, model, type and Log Type, in the row or in its object recorded, if at least 5 % of
// the rows have the value, or 100, but no fewer than 5. These values are the client of a
// row. Tokens of reasoning (reasoning_tokens and similar keys) are drawn as a share of the
// answer. No other key is kept.
//
// A model's file is JSON, compressed by gzip. It reveals about when requests arrived and how
// long their prompts and answers were, and which of them belong together: values are varied
// once as described. It has no text, no id of the source, and no keys but those above.
// Files of other versions are refused.
package sessions
