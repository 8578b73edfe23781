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
// least 30 uses and one for each hundred rows, over a twentieth of the trace or more. A
// conversation that grows turn by turn is one use.
//
// Each session is drawn once, at the place of one that is at most 25 or a fortieth of all
// sessions away, but no more than a quarter. It is chosen at random among those with a
// similar load, such that the sums of requests and tokens up to each place stay near those
// of the source. Neighbours share clients, lengths and templates, so drift, daily cycles
// and bursts stay. Gaps between starts vary by a lognormal factor with a sigma of 0.03.
//
// A copy has new block ids, except for templates; prefixes that fewer sessions share are
// new each time that the source repeats. The lengths of its prompts beyond the shared
// prefix and of its answers are multiplied by one lognormal factor with a sigma of 0.03, so
// that turns still extend each other; pauses and delays by one with a sigma of 0.1 each. No
// value moves past more than 2 % of all values of its kind, and values that more requests
// have stay as they are. So do the duration of sessions that last a tenth of the trace or
// more, order, sub-agents, share of reasoning and the client of each turn.
//
// A trace longer than the source repeats its course, the mean gap between times after its
// end, with other copies.
//
// # Clocks
//
// If most requests arrive in bursts of several sessions, time is counted in bursts: these
// keep their times, and the requests in each of them their order. On any other coarse clock
// ([trace.DetectGrid]), starts and pauses keep their values. The times of rows without a
// timestamp are estimated by [trace.AnswerTime].
//
// # Clients
//
// Rows keep the values of the keys client, tenant, app, user and template, all also with
// _id, model, type and Log Type, in the row or in its object recorded, if at least 5 % of
// the rows have the value, or 100, but no fewer than 5. The combination of these values is
// the client of a row. Tokens of reasoning (reasoning_tokens and similar keys) are drawn as
// a share of the answer. No other key is kept.
//
// # Files
//
// A model's file is JSON, compressed by gzip. It reveals when sessions began, and about how
// long their prompts, answers and pauses were: these are varied once as described, and
// lengths rounded to two significant digits beyond 100 unless others are that near. It has
// no text, no id of the source, and no keys but those above. Files of other versions are
// refused.
package sessions
