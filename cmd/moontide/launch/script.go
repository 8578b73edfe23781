package launch

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Slurm job gets its signal this long before its time limit at most: a limit that is
// closer would end the run at its start.
const maxSlurmGrace = 5 * time.Minute

// Slurm returns an sbatch script.
func (j Job) Slurm() ([]byte, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, `#!/bin/bash
# A moontide run of %d processes. Submit it with: sbatch FILE. Options of sbatch, such
# as --partition, --nodes and --time, override those below.
#SBATCH --job-name=%s
#SBATCH --ntasks=%d
#SBATCH --cpus-per-task=%d
# Before the time limit, stop sending and wait for the answers.
#SBATCH --signal=TERM@%d
`, j.Ranks, j.Name, j.Ranks, j.CPUs, seconds(min(j.Grace, maxSlurmGrace)))
	b.WriteString(`# After the failure of a node the job is queued again, and continues the run.
#SBATCH --requeue

# Processes end the run of all by themselves when one is lost, with complete records:
# srun must not kill them before.
`)
	line := append([]string{"exec", "srun", fmt.Sprintf("--ntasks=%d", j.Ranks), fmt.Sprintf("--cpus-per-task=%d", j.CPUs), "--kill-on-bad-exit=0", "--wait=0"}, "moontide")
	writeCommand(&b, line, j.Command.with())
	return []byte(b.String()), nil
}

// MPI returns a script that runs mpirun and exits with the status of rank 0 or, if that
// is 0, with the worst of the others.
func (j Job) MPI() ([]byte, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, `#!/bin/bash
# A moontide run of %d processes. Run it with: bash FILE [OPTIONS OF MPIRUN], such as
# bash FILE --hostfile hosts. It exits with the status of rank 0 or, if that is 0, with
# the worst of the others.

# Processes end the run of all by themselves when one is lost, with complete records, but
# mpirun kills the others as soon as one fails. So none does: a shell prints its status.
set -o pipefail
rank='trap : INT TERM; "$@"; echo "moontide rank ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}: exit status $?" >&2'
statuses=$(mktemp) || exit
trap 'rm -f "$statuses"' EXIT
run() {
  `, j.Ranks)
	writeCommand(&b, []string{"mpirun", "-n", fmt.Sprint(j.Ranks), `"$@"`, "bash", "-c", `"$rank"`, "rank", "moontide"}, j.Command.with())
	b.WriteString(`}
{ run "$@" </dev/null 2>&1 >&3 | tee -i "$statuses" >&2; } 3>&1 || exit
for rank in 0 '[0-9]*'; do
  status=$(grep -ao "moontide rank $rank: exit status [0-9]*" "$statuses" | grep -o '[0-9]*$' | sort -n | tail -n 1)
  [ "${status:-1}" = 0 ] || exit "${status:-1}"
done
`)
	return []byte(b.String()), nil
}

// writeCommand writes the words that start a command, as they are, and its arguments,
// one on a line.
func writeCommand(b *strings.Builder, start, args []string) {
	b.WriteString(strings.Join(start, " "))
	for i, arg := range args {
		if i > 0 {
			b.WriteString(" \\\n ")
		}
		b.WriteString(" " + quoteShell(arg))
	}
	b.WriteString("\n")
}

// plainShell are the characters that no shell interprets.
const plainShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%"

// quoteShell returns a word of a bash script. Control characters are escaped: sbatch
// refuses scripts that contain carriage returns.
func quoteShell(arg string) string {
	isPlain := func(r rune) bool { return strings.ContainsRune(plainShell, r) }
	switch {
	case arg != "" && strings.IndexFunc(arg, func(r rune) bool { return !isPlain(r) }) < 0:
		return arg
	case utf8.ValidString(arg) && strings.IndexFunc(arg, func(r rune) bool { return !strconv.IsPrint(r) }) < 0:
		return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(arg) {
		switch c := arg[i]; {
		case c == '\'' || c == '\\':
			b.Write([]byte{'\\', c})
		case c == '\n':
			b.WriteString(`\n`)
		case c >= ' ' && c < 0x7f:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	return b.String() + "'"
}

func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
