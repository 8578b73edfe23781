// Package cluster coordinates the processes of a distributed run: they connect to part 1,
// verify that they replay the same schedule, start together and end together. It starts no
// processes: [Detect] reads the place of a process from the environment that Slurm, MPI or
// Kubernetes set.
//
//	member, err := cluster.Join(ctx, cluster.Config{Number: 2, Of: 4, Dir: "runs/today"})
//	...
//	defer member.Close(nil)
//	err = member.Agree(ctx, facts)         // all have loaded, and replay the same
//	part, start, err := member.Begin(ctx)  // all are prepared
//	...
//	err = member.End(ctx, outcome)         // measured, saved
//
// Parts are numbered from 1. Part 1 leads: it serves HTTP, and the others report to it at
// least every second. A part that is silent for [Silence], disagrees or does not arrive in
// time ends the run of all.
//
// Each part compares its clock with that of part 1 by exchanges of four timestamps. The
// exchange with the shortest round trip counts; half of that bounds the error. Requests
// carry a token, see [Config].
package cluster
