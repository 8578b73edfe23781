#!/bin/bash
# A moontide run of 4 processes. Run it with: bash FILE [OPTIONS OF MPIRUN], such as
# bash FILE --hostfile hosts. It exits with the status of rank 0 or, if that is 0, with
# the worst of the others.

# Processes end the run of all by themselves when one is lost, with complete records, but
# mpirun kills the others as soon as one fails. So none does: a shell prints its status.
set -o pipefail
rank='trap : INT TERM; "$@"; echo "moontide rank ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}: exit status $?" >&2'
statuses=$(mktemp) || exit
trap 'rm -f "$statuses"' EXIT
run() {
  mpirun -n 4 "$@" bash -c "$rank" rank moontide replay \
  trace.jsonl \
  --url=http://server:8000 \
  '--header=X-Team: "a" $(b) {{c}}' \
  --part=auto \
  --resume=auto
}
{ run "$@" </dev/null 2>&1 >&3 | tee -i "$statuses" >&2; } 3>&1 || exit
for rank in 0 '[0-9]*'; do
  status=$(grep -ao "moontide rank $rank: exit status [0-9]*" "$statuses" | grep -o '[0-9]*$' | sort -n | tail -n 1)
  [ "${status:-1}" = 0 ] || exit "${status:-1}"
done
