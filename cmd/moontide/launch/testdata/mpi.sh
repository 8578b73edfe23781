#!/bin/bash
# A moontide run of 4 processes. Run it with: bash FILE [OPTIONS OF MPIRUN], such as
# bash FILE --hostfile hosts.

# Processes end the run of all by themselves when one is lost, with complete records:
# Open MPI must not kill them before.
export OMPI_MCA_orte_abort_on_non_zero_status=0
exec mpirun -n 4 "$@" moontide replay \
  trace.jsonl \
  --url=http://server:8000 \
  '--header=X-Team: "a" $(b) {{c}}' \
  --part=auto \
  --resume=auto
