package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"moontide/replay"
	"moontide/replay/cluster"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/trace"
)

// join takes this part's share of the limits. Interrupts stop all parts.
func (c *Config) join(ctx context.Context) (context.Context, func()) {
	m := c.Part
	c.senders = m.Of
	for _, limit := range []int{c.MaxConcurrency, c.Sessions.Open} {
		if limit > 0 {
			c.senders = min(c.senders, limit)
		}
	}
	c.MaxConcurrency, c.Sessions.Open, c.WarmupRequests = m.Share(c.MaxConcurrency, c.senders), m.Share(c.Sessions.Open, c.senders), m.Share(c.WarmupRequests, c.senders)
	notInterrupted := interruptAll(ctx, m, c.Drain)
	c.Drain = m.Drained()
	ctx, end := m.Ending(ctx)
	return ctx, func() { notInterrupted(); end() }
}

// deal finds the rows of this part. Parts without a share of a limit have none.
func (in *input) deal(partition *trace.Partition, c *Config) error {
	in.partRows = in.plan.Rows
	m := c.Part
	if m == nil {
		return nil
	}
	parts, families := partition.Parts(in.plan.Graph, c.senders)
	if families < c.senders {
		return fmt.Errorf("the trace has %d rows of %d families (%s) to deal to %d parts: use fewer parts or deal by another unit", in.plan.Rows, families, partition.By, c.senders)
	}
	in.partRows, in.part = 0, replay.RowSet{} // nil would be all
	for row, part := range parts {
		if int(part) == m.Number-1 {
			in.part.Add(row)
			in.partRows++
		}
	}
	return nil
}

// agree waits until all parts are ready for the same run, and sets their progress in an
// earlier run that they resume.
func (c *Config) agree(ctx context.Context, in *input, info *runfile.Run, earlier *earlierRun) (err error) {
	if c.Part == nil {
		return nil
	}
	if c.senders < c.Part.Of {
		info.Notes = append(info.Notes, fmt.Sprintf("%d of %d parts send requests, as many as the limit of requests or sessions in progress", c.senders, c.Part.Of))
	}
	c.done, err = c.Part.Agree(ctx, []cluster.Fact{
		{Name: "the trace (SHA-256)", Value: in.sha256},
		{Name: "the settings", Value: given(&c.recorded)},
		{Name: "what stays together", Value: c.Part.By},
		{Name: "the block size", Value: fmt.Sprint(in.blockSize.Tokens)},
		{Name: "the model", Value: info.ModelText()},
		{Name: "the schedule (SHA-256)", Value: in.plan.Schedule},
	}, earlier.progress())
	if ended := c.Part.Err(); ended != nil {
		return ended
	}
	return err
}

// begin returns the function that agrees on the start, nil for a run of one process. It
// records the part before the first request is sent.
func (c *Config) begin(folder *runfile.Writer, in *input, info *runfile.Run) func(context.Context) (time.Time, error) {
	m := c.Part
	if m == nil {
		return nil
	}
	return func(ctx context.Context) (time.Time, error) {
		part, start, err := m.Begin(ctx)
		if err != nil {
			return start, err
		}
		// A resumed run has the start that it would have without the pause.
		part.RunRows, part.Start = in.plan.Rows, part.Start.Add(-c.done.Clock)
		info.Part, info.Started, c.begun = part, m.Clock().Add(time.Until(start)-c.done.Clock), true
		if m.Leads() {
			err = c.writeParts(in, time.Time{})
		}
		return start, errors.Join(err, folder.WriteRun(*info))
	}
}

// writeParts writes parts.json.
func (c *Config) writeParts(in *input, ended time.Time) error {
	parts := c.Part.Parts()
	parts.Rows, parts.Schedule, parts.Trace, parts.Ended = in.plan.Rows, in.plan.Schedule, in.sha256, ended
	parts.Start = parts.Start.Add(-c.done.Clock)
	return parts.Write(c.Output.Dir)
}

// started adds the status of the other parts for the observer of part 1.
func (c *Config) started(s Started) Started {
	if c.Part == nil {
		return s
	}
	if all := c.Part.Progress(s.Status); c.Part.Leads() {
		s.Parts, s.All, s.Dir = c.Part.Of, all, c.Output.Dir
	}
	return s
}

// compareClock measures the clock of a part once more, at the end.
func (c *Config) compareClock(ctx context.Context, info *runfile.Run) {
	if c.Part != nil && c.begun {
		c.Part.ClockAfter(context.WithoutCancel(ctx), &info.Part.Clock)
	}
}

// endPart ends a part whose record is saved. Part 1 waits for the others and returns the
// result of all. partErr is the failure of this part.
func (c *Config) endPart(ctx context.Context, in *input, info *runfile.Run, partErr error) (*Result, error) {
	m, failure := c.Part, ""
	if partErr != nil {
		failure = partErr.Error()
	}
	err := m.End(context.WithoutCancel(ctx), info.Part, failure)
	switch {
	case err != nil: // includes or explains the failure of this part
	case partErr != nil:
		err = partErr
	}
	dir := m.Folder()
	if m.Leads() && c.begun {
		m.AwaitOthers()
		dir = c.Output.Dir
		err = errors.Join(err, c.writeParts(in, time.Now()))
	}
	if !c.begun {
		return nil, err
	}
	result, measureErr := Measure(MeasureConfig{Detail: true}, dir)
	return result, errors.Join(err, measureErr)
}

// interruptAll stops all parts when this process is interrupted.
func interruptAll(ctx context.Context, m *cluster.Part, interrupts <-chan struct{}) (end func()) {
	notAborted, done := context.AfterFunc(ctx, func() { m.Interrupt(2) }), make(chan struct{})
	go func() {
		select {
		case <-interrupts:
			m.Interrupt(1)
		case <-done:
		}
	}()
	return func() { notAborted(); close(done) }
}

// given returns the settings that affect a run as text.
func given(s *settings.Settings) string {
	var texts []string
	for name, text := range s.Given() {
		texts = append(texts, name+" "+text)
	}
	return strings.Join(texts, ", ")
}
