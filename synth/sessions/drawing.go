package sessions

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"moontide/synth"
	"moontide/trace"
	"moontide/trace/stats"
)

// Requests draws n requests, at least 1, in order of arrival, the first at
// about 0. Templates have the first block ids, from a
// round number above those of the source; the others follow in sequence.
// Requests with block ids have context_len, the leading tokens that an earlier
// request had, and unique_user_prompt_len, the rest of the ISL. If the source has
// session ids, the drawn ones are s1, s2, and so on. If most of its later turns
// have a delay instead of a timestamp, so do the drawn ones.
//
// The requests depend only on the model and the seed, and a smaller n gives a
// prefix of a larger one. The stream can be ranged over repeatedly and
// concurrently. Its memory does not grow with n. Its only error is an n below 1.
func (m *Model) Requests(seed uint64, n int) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		if n < 1 {
			yield(trace.Request{}, fmt.Errorf("drawing %d requests: at least 1 is needed", n))
			return
		}
		d := m.newDrawing(seed)
		next := d.next
		if m.file.Bursts != nil {
			next = m.inBursts(seed, d.next).next
		}
		for range n {
			if !yield(d.request(next()), nil) {
				return
			}
		}
	}
}

// drawing is one pass through a model: the streams of its clients, merged by
// time.
type drawing struct {
	*shared
	speed   float64
	hold    bool
	clients []*clientDrawing
	started uint64 // sessions
	free    uint64 // next unused block id
	used    []bool // whether each template was used
}

// clientDrawing draws the requests of a client.
type clientDrawing struct {
	*client
	all             *drawing
	clock           *arrivalClock
	slot, stamp     float64 // next time of the clock, and its timestamp
	course, ahead   course  // before it, and at it
	templateChoices *rand.Rand
	first           [2]*jointSampler
	templated       *choiceSampler
	continues       [2]*choiceSampler
	turns           [relations]*jointSampler // kept share and wait
	lengths         [relations]*jointSampler // tokens and OSL
	reasoning       *jointSampler
	agents          *agentSampler // nil if there are no sub-agents

	planned synth.Queue[plannedTurn]
	joining synth.Queue[plannedTurn] // sessions that will join another
	parked  int                      // turns that wait for sub-agents
	early   float64                  // how early turns may come, in ms
	drawn   float64                  // requests
	started float64                  // sessions
}

func (m *Model) newDrawing(seed uint64) *drawing {
	d := &drawing{shared: m.shared, speed: m.speed, free: m.firstFree, used: make([]bool, len(m.templates))}
	d.hold = m.hold && slices.ContainsFunc(m.clients, func(c client) bool { return c.Arrivals.last() })
	for i := range m.clients {
		d.clients = append(d.clients, d.newClient(&m.clients[i], seed))
	}
	return d
}

func (d *drawing) newClient(c *client, seed uint64) *clientDrawing {
	stream := func(aspect string) *rand.Rand { return stats.NewStream(seed, aspect+c.stream) }
	cd := &clientDrawing{
		client: c, all: d,
		templateChoices: stream("templates"),
		templated:       newChoiceSampler(&c.Templated, stream("templates or none")),
	}
	cd.clock = c.Arrivals.newClock(stream("arrivals"), d.speed, d.hold)
	cd.course = cd.clock.course
	first, continues, later := stream("first turns"), stream("going on"), stream("later turns")
	sessions, others := float64(c.Sessions), float64(c.Requests-c.Sessions)
	for i := range cd.first {
		cd.first[i] = newJointSampler(c.firstTurns[i], first, sessions)
	}
	for i := range cd.continues {
		cd.continues[i] = newChoiceSampler(c.continues[i], continues)
	}
	for i := range cd.turns {
		cd.turns[i] = newJointSampler(c.turns[i], later, others)
		cd.lengths[i] = newJointSampler(c.lengths[i], later, others)
	}
	cd.reasoning = newJointSampler(c.Reasoning, stream("reasoning"), float64(c.Requests))
	cd.agents = newAgentSampler(c.SubAgents, stream)
	cd.advance()
	return cd
}

// next draws the next turn of the client whose next one is first.
func (d *drawing) next() drawnTurn {
	first, at := d.clients[0], math.Inf(1)
	if len(d.clients) > 1 {
		for _, c := range d.clients {
			if t := c.nextTime(); t < at {
				first, at = c, t
			}
		}
	}
	t := first.next()
	first.reason(t.turn)
	t.extra = first.extraOf(t.turn)
	return t
}

func (d *drawing) newSession() uint64 {
	d.started++
	return d.started
}

func (d *drawing) newRun(blocks int) synth.BlockRun {
	r := synth.BlockRun{First: d.free, Blocks: blocks}
	d.free += uint64(blocks)
	return r
}

// useTemplate marks a template as used and returns how many of its blocks no earlier
// request had.
func (d *drawing) useTemplate(template int) (unknown int) {
	for !d.used[template] && template > 0 {
		d.used[template] = true
		unknown += d.templates[template].blocks
		template = d.templates[template].parent
	}
	return unknown
}

// request returns the row of a turn.
func (d *drawing) request(t drawnTurn) trace.Request {
	r := trace.Request{InputLength: t.isl, OutputLength: t.osl, Delay: t.delay, DelayKind: t.kind, Extra: t.extra}
	if !t.delay.Set {
		r.Timestamp = trace.Some(microseconds(t.stamp))
	}
	switch {
	case t.agent != nil:
		r.ID, r.After = t.id(), t.after
		if d.file.SessionIDs {
			r.SessionID = t.agent.name
		}
	case d.file.SessionIDs:
		r.SessionID = "s" + strconv.FormatUint(t.session, 10)
	}
	if !d.hasBlocks {
		return r
	}
	r.HashIDs = d.appendTemplate(make([]uint64, 0, t.blocks), t.template)
	for _, run := range t.runs {
		r.HashIDs = run.AppendIDs(r.HashIDs)
	}
	context := min((t.shared-d.useTemplate(t.template))*d.size.Tokens, t.isl)
	r.ContextLen, r.UniquePromptLen = trace.Some(context), trace.Some(t.isl-context)
	return r
}

func (d *drawing) appendTemplate(ids []uint64, template int) []uint64 {
	if template == 0 {
		return ids
	}
	t := &d.templates[template]
	return t.run().AppendIDs(d.appendTemplate(ids, t.parent))
}
