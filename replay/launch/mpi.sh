#!/bin/bash
# A moontide run whose parts are MPI ranks. Options of mpirun come before --, the command
# after it:
#
#   bash mpi.sh -n 8 --hostfile hosts -- replay trace.jsonl --url http://server:8000
#
# It exits with the status of rank 0 or, if that is 0, with the worst of the others.

options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  options+=("$1")
  shift
done
shift

# When a part is lost, the others end by themselves, with complete records, but mpirun
# kills them as soon as one fails. So none fails: a shell prints the exit status.
set -o pipefail
rank='trap : INT TERM; "$@"; echo "moontide rank ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}: exit status $?" >&2'
statuses=$(mktemp) || exit
trap 'rm -f "$statuses"' EXIT
run() { mpirun "${options[@]}" bash -c "$rank" rank moontide "$@" --part=auto --resume=auto; }
{ run "$@" </dev/null 2>&1 >&3 | tee -i "$statuses" >&2; } 3>&1 || exit
for rank in 0 '[0-9]*'; do
  status=$(grep -ao "moontide rank $rank: exit status [0-9]*" "$statuses" | grep -o '[0-9]*$' | sort -n | tail -n 1)
  [ "${status:-1}" = 0 ] || exit "${status:-1}"
done
