// Package cluster coordinates the processes of a distributed run: they connect to part 1,
// verify that they replay the same schedule, start together and end together. It brings
// no scheduler: [Detect] reads the place of a process from the environment that Slurm,
// MPI or Kubernetes set.
//
//	member, err := cluster.Join(ctx, cluster.Config{Number: 2, Of: 4, Dir: "runs/today"})
//	...
//	defer member.Close(nil)
//	err = member.Agree(ctx, facts)         // all have loaded, and replay the same
//	part, start, err := member.Begin(ctx)  // all are prepared
//	...
//	err = member.End(ctx, outcome)         // measured, saved
//
// Parts are numbered from 1. Part 1 leads: it listens on HTTP, and the others poll it
// with what they do, at least every second. A part that is silent for [Silence], that
// disagrees or that has not arrived in time ends the run of all.
//
// The clocks of the parts are compared with that of part 1 by exchanges of four
// timestamps, of which the one with the shortest round trip counts; half of that is
// the bound of the error. Requests carry a token, see [Config].
package cluster
