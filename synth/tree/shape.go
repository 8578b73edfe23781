package tree

import (
	"fmt"
	"math"

	"moontide/trace"
)

// Shape describes how requests drawn from a [Model] differ from its source. The
// zero value changes nothing: a multiplier of 0 means 1, and a limit of 0 means
// none. The fields are named after the options of the data generator.
type Shape struct {
	// PrefixLenMultiplier stretches the core: a block at depth d moves to depth
	// d times the multiplier, rounded. Below 1, core nodes may vanish; a request
	// left without blocks gets one unique block.
	PrefixLenMultiplier float64
	// PrefixRootMultiplier is the number of copies of the core, each with
	// separate ids. Each request uses one of them at random.
	PrefixRootMultiplier int
	// PromptLenMultiplier multiplies the blocks of unique prompts, rounded, but
	// to at least 1.
	PromptLenMultiplier float64
	// OSLMultiplier multiplies output lengths, rounded, but to at least 1 if
	// the source's is.
	OSLMultiplier float64
	// SpeedupRatio divides the time between requests; 1e-9 to 1e9.
	SpeedupRatio float64

	// MinISL and MaxISL reject shorter and longer requests. Rejected requests
	// still take their time unless KeepRate is set.
	MinISL, MaxISL int
	// MinOSL and MaxOSL clip output lengths.
	MinOSL, MaxOSL int
	// KeepRate makes rejected requests take no time, so that the others arrive
	// at the source's rate times SpeedupRatio.
	KeepRate bool
}

// ShapeError reports a [Shape] that cannot be drawn.
type ShapeError struct {
	Field   string // of Shape
	Value   any
	Problem string // may name other fields
}

func (e *ShapeError) Error() string { return fmt.Sprintf("%s %v %s", e.Field, e.Value, e.Problem) }

func shapeErrorf(field string, value any, problem string, args ...any) error {
	return &ShapeError{field, value, fmt.Sprintf(problem, args...)}
}

// Check returns a [*ShapeError] for the first field that is invalid for every
// model. [Model.Draw] also checks the shape against its model.
func (s Shape) Check() error {
	for _, m := range []struct {
		field     string
		value     float64
		low, high float64
	}{
		{"PrefixLenMultiplier", s.PrefixLenMultiplier, 0, trace.MaxLength},
		{"PromptLenMultiplier", s.PromptLenMultiplier, 0, trace.MaxLength},
		{"OSLMultiplier", s.OSLMultiplier, 0, trace.MaxLength},
		{"SpeedupRatio", s.SpeedupRatio, 1e-9, 1e9},
	} {
		if m.value != 0 && !(m.value > 0 && m.value >= m.low && m.value <= m.high) {
			return shapeErrorf(m.field, m.value, "is not a number above %v and up to %v", m.low, m.high)
		}
	}
	for _, c := range []struct {
		field string
		value int
	}{
		{"PrefixRootMultiplier", s.PrefixRootMultiplier},
		{"MinISL", s.MinISL}, {"MaxISL", s.MaxISL},
		{"MinOSL", s.MinOSL}, {"MaxOSL", s.MaxOSL},
	} {
		if c.value < 0 || c.value > trace.MaxLength {
			return shapeErrorf(c.field, c.value, "is not in 0..%d", trace.MaxLength)
		}
	}
	if s.MaxISL > 0 && s.MinISL > s.MaxISL {
		return shapeErrorf("MinISL", s.MinISL, "is above MaxISL %d", s.MaxISL)
	}
	if s.MaxOSL > 0 && s.MinOSL > s.MaxOSL {
		return shapeErrorf("MinOSL", s.MinOSL, "is above MaxOSL %d", s.MaxOSL)
	}
	return nil
}

// withDefaults returns the shape with zero multipliers set to 1.
func (s Shape) withDefaults() Shape {
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

// shapedModel is a model with a shape applied to its nodes, unique prompts and
// outputs.
type shapedModel struct {
	Model
	shape      Shape  // with defaults
	coreBlocks uint64 // of one copy of the core
}

// shaped applies a shape. It returns a [*ShapeError] if n requests cannot be
// drawn.
func (m *Model) shaped(s Shape, seed uint64, n int) (*shapedModel, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, fmt.Errorf("%d requests: at least 1 is needed", n)
	}
	s = s.withDefaults()
	shaped := &shapedModel{Model: *m, shape: s}
	shaped.unique = m.unique.Map(func(blocks int) int { return max(1, multiply(blocks, s.PromptLenMultiplier)) })
	shaped.outputs = m.outputs.Map(s.osl)
	shaped.nodes, shaped.coreBlocks = stretch(m.nodes, s.PrefixLenMultiplier)
	if err := shaped.check(seed, n); err != nil {
		return nil, err
	}
	return shaped, nil
}

// osl applies the shape to an output length of the source.
func (s Shape) osl(tokens int) int {
	tokens = max(min(tokens, 1), multiply(tokens, s.OSLMultiplier))
	if s.MaxOSL > 0 {
		tokens = min(tokens, s.MaxOSL)
	}
	return max(tokens, s.MinOSL)
}

// multiply rounds half up, with the same result on every machine: converting
// the product keeps it from being fused with the sum.
func multiply(n int, by float64) int { return int(math.Floor(float64(float64(n)*by) + .5)) }

// stretch scales the depth of every node, assigns new ids, and returns the
// nodes and their number of blocks.
func stretch(nodes []node, by float64) (stretched []node, blocks uint64) {
	stretched = make([]node, len(nodes))
	depth := make([]int, len(nodes)) // of each node's end, before stretching
	for i, n := range nodes {        // parents come before their children
		stretched[i].next = n.next
		for child := range n.next.All {
			if child >= 0 {
				depth[child] = depth[i] + nodes[child].blocks
				stretched[child].blocks = multiply(depth[child], by) - multiply(depth[i], by)
			}
		}
		if depth[i] > 0 && multiply(depth[i], by) == 0 {
			stretched[i].next = n.next.Map(exitWithBlock)
		}
	}
	for i := range stretched {
		stretched[i].first = blocks
		blocks += uint64(stretched[i].blocks)
	}
	return stretched, blocks
}

// exitWithBlock keeps a request that had blocks from ending without any.
func exitWithBlock(next int) int {
	if next == exitEnd {
		return exitOneBlock
	}
	return next
}
