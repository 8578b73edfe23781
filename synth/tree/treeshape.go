package tree

import (
	"fmt"
	"math"

	"moontide/trace"
	"moontide/trace/stats"
)

// TreeShape says how requests drawn from a [Tree] differ from its source. The
// zero value changes nothing: a multiplier of 0 is 1, a maximum of 0 is none.
// The knobs have the names, in words, that the data generator of NVIDIA's
// serving framework gave them.
type TreeShape struct {
	// PrefixLenMultiplier stretches the core: what was d blocks from the root
	// is then at d times this, rounded to whole blocks, so that no shared
	// prefix is off by more than half a block, and requests that shared more
	// blocks than others never share fewer. Below 1, runs of the core may
	// vanish; a request of which nothing is left gets one block of its own.
	PrefixLenMultiplier float64
	// PrefixRootMultiplier is how many copies there are of the core, each with
	// ids of its own. A request falls into one of them at random.
	PrefixRootMultiplier int
	// PromptLenMultiplier stretches unique prompts: their blocks times this,
	// rounded, and at least 1.
	PromptLenMultiplier float64
	// OSLMultiplier stretches output lengths: rounded, and at least 1 where
	// the source's was.
	OSLMultiplier float64
	// SpeedupRatio divides the time between requests; 1e-9 to 1e9.
	SpeedupRatio float64

	// MinISL and MaxISL reject requests that are shorter or longer. A rejected
	// one counts in no other way than that its time passes, unless KeepRate.
	MinISL, MaxISL int
	// MinOSL and MaxOSL clip output lengths.
	MinOSL, MaxOSL int
	// KeepRate gives no time to rejected requests, so that the requests that
	// are left arrive at the source's rate, times the SpeedupRatio.
	KeepRate bool
}

// KnobError is a request for a trace that cannot be made.
type KnobError struct {
	Knob    string // in words and dashes, as in prefix-len-multiplier
	Value   any
	Problem string // and what is allowed; names other knobs as flags
}

// Error spells knobs as the flags that users of the data generator know.
func (e *KnobError) Error() string { return fmt.Sprintf("--%s %v %s", e.Knob, e.Value, e.Problem) }

func badKnob(knob string, value any, problem string, args ...any) error {
	return &KnobError{knob, value, fmt.Sprintf(problem, args...)}
}

// Check returns a [*KnobError] for the first knob that no source allows to be
// so. [Tree.Draw] finds what the tree does not allow.
func (s TreeShape) Check() error {
	for _, m := range []struct {
		knob     string
		value    float64
		low, top float64
	}{
		{"prefix-len-multiplier", s.PrefixLenMultiplier, 0, trace.MaxLength},
		{"prompt-len-multiplier", s.PromptLenMultiplier, 0, trace.MaxLength},
		{"osl-multiplier", s.OSLMultiplier, 0, trace.MaxLength},
		{"speedup-ratio", s.SpeedupRatio, 1e-9, 1e9},
	} {
		if m.value != 0 && !(m.value > 0 && m.value >= m.low && m.value <= m.top) {
			return badKnob(m.knob, m.value, "is not a number above %v and up to %v", m.low, m.top)
		}
	}
	for _, c := range []struct {
		knob  string
		value int
	}{
		{"prefix-root-multiplier", s.PrefixRootMultiplier},
		{"min-isl", s.MinISL}, {"max-isl", s.MaxISL},
		{"min-osl", s.MinOSL}, {"max-osl", s.MaxOSL},
	} {
		if c.value < 0 || c.value > trace.MaxLength {
			return badKnob(c.knob, c.value, "is not in 0..%d", trace.MaxLength)
		}
	}
	if s.MaxISL > 0 && s.MinISL > s.MaxISL {
		return badKnob("min-isl", s.MinISL, "is above --max-isl %d", s.MaxISL)
	}
	if s.MaxOSL > 0 && s.MinOSL > s.MaxOSL {
		return badKnob("min-osl", s.MinOSL, "is above --max-osl %d", s.MaxOSL)
	}
	return nil
}

// filled is the shape with every knob at what it means.
func (s TreeShape) filled() TreeShape {
	for _, m := range []*float64{&s.PrefixLenMultiplier, &s.PromptLenMultiplier, &s.OSLMultiplier, &s.SpeedupRatio} {
		if *m == 0 {
			*m = 1
		}
	}
	if s.PrefixRootMultiplier == 0 {
		s.PrefixRootMultiplier = 1
	}
	return s
}

// shapedTree is a tree as a shape has it, ready to be drawn from.
type shapedTree struct {
	size     trace.BlockSize
	shape    TreeShape // filled
	nodes    []treeNode
	core     uint64              // blocks of one copy of the core
	unique   stats.Discrete[int] // stretched, as nodes are
	tails    stats.Discrete[int]
	outputs  stats.Discrete[int] // stretched and clipped
	together stats.Discrete[int]
	steps    stats.Discrete[int64]
}

// shaped fails with a [*KnobError] where n of its requests could not be
// written, or next to none be drawn.
func (t *Tree) shaped(s TreeShape, n int) (*shapedTree, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, badKnob("num-requests", n, "is not at least 1")
	}
	s = s.filled()
	m := &shapedTree{
		size: t.size, shape: s, tails: t.tails, together: t.together, steps: t.steps,
		unique:  t.unique.Map(func(blocks int) int { return max(1, times(blocks, s.PromptLenMultiplier)) }),
		outputs: t.outputs.Map(s.osl),
	}
	m.nodes, m.core = stretched(t.nodes, s.PrefixLenMultiplier)
	if err := m.check(n); err != nil {
		return nil, err
	}
	return m, nil
}

// osl is the output length that the source's becomes.
func (s TreeShape) osl(tokens int) int {
	tokens = max(min(tokens, 1), times(tokens, s.OSLMultiplier))
	if s.MaxOSL > 0 {
		tokens = min(tokens, s.MaxOSL)
	}
	return max(tokens, s.MinOSL)
}

// times rounds half a unit up, alike on every machine: the conversion of the
// product keeps it from being fused with the sum.
func times(n int, by float64) int { return int(math.Floor(float64(float64(n)*by) + .5)) }

// stretched returns the core with every run between the rounded places of its
// ends, numbered anew, and the number of its blocks.
func stretched(nodes []treeNode, by float64) (longer []treeNode, blocks uint64) {
	longer = make([]treeNode, len(nodes))
	depth := make([]int, len(nodes)) // of each run's end, before it is stretched
	for i, n := range nodes {        // parents come before their children
		longer[i].ways = n.ways
		for child := range n.ways.All {
			if child >= 0 {
				depth[child] = depth[i] + nodes[child].blocks
				longer[child].blocks = times(depth[child], by) - times(depth[i], by)
			}
		}
		if depth[i] > 0 && times(depth[i], by) == 0 {
			longer[i].ways = n.ways.Map(notToNothing)
		}
	}
	for i := range longer {
		longer[i].first = blocks
		blocks += uint64(longer[i].blocks)
	}
	return longer, blocks
}

// notToNothing keeps a request that had blocks from ending with none.
func notToNothing(way int) int {
	if way == toEnd {
		return toBlock
	}
	return way
}
