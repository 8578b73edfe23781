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
// therefore a resampling of the source: copies of its sessions, at places near their own.
//
// Sessions are those that rows name by session ids and by the requests that they wait for,
// so that an agent and its sub-agents are one. Without such names, a row continues the most
// recent row that shares its longest prefix, unless that is a template: a prefix with at
// least 30 uses and one for each hundred rows, such as a system prompt or a document. A
// conversation that grows turn by turn is one use.
//
// The starts of the source's sessions are the places of the drawn ones. Each session is
// drawn once, at a place that is at most 25 or a fortieth of all sessions, but no more than
// a quarter of them, away from its own, chosen at random such that the sums of requests and
// tokens up to each place stay near those of the source. Neighbours share clients, load,
// lengths and templates, so drift, daily cycles and bursts are those of the source. The
// gaps between starts vary by a lognormal factor with a sigma of 0.03, and runs of about
// sqrt(n) of them change places with those at most a fortieth of the trace away.
//
// A copy has new block ids, except for templates. Prefixes that fewer sessions share are
// new each time that the source repeats. The lengths of a session's prompts beyond the
// shared prefix and of its answers are multiplied by one lognormal factor with a sigma of
// 0.03, so that turns still extend each other; pauses between turns and delays by one with
// a sigma of 0.1 each. No value moves past more than 2 % of all values of its kind, and
// lengths that more requests have stay as they are. Order, sub-agents, share of reasoning
// and the client of each turn are copied.
//
// A trace longer than the source repeats its course, the mean gap between times after its
// end, with other copies.
//
// # Clocks
//
// If there are three requests or more for each distinct time of the source, time is
// counted in ticks, which keep their times: requests of one tick stay together. On any
// other coarse clock ([trace.DetectGrid]) starts and pauses keep their values. The times of
// rows without a timestamp are estimated by [trace.AnswerTime].
//
// # Clients
//
// Rows keep the values of the keys client, tenant, app, user and template, all also with
// _id, model, type and Log Type, in the row or in its object recorded, if at least 5 % of
// the rows have the value, or 100, but no fewer than 5. The combination of these values is
// the client of a row; a session's is that of its first row. Tokens of reasoning
// (reasoning_tokens and similar keys) are drawn as a share of the answer. No other key is
// kept.
//
// # Accuracy
//
// Distributions of lengths, shared context, gaps and pauses, hit rates of caches of every
// size and their course are those of the source, within its own noise. Of few sessions,
// less can be said: with fewer than eight, their order is kept. Prefixes that sessions
// share by chance are kept; a cycle longer than the source is not.
//
// # Files
//
// A model's file is JSON, compressed by gzip: columns of sessions and turns. It reveals
// when sessions began and about how long their prompts, answers and pauses were: lengths
// are varied once as described, and rounded to two significant digits beyond 100 unless
// other lengths are that near. It has no text, no id of the source, and no keys but those
// named above. Only files of this version are read: to replace another, fit the source
// again.
package sessions
