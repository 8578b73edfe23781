#!/bin/bash
# A moontide run of 4 processes. Submit it with: sbatch FILE. Options of sbatch, such
# as --partition, --nodes and --time, override those below.
#SBATCH --job-name=nightly
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=2
# Before the time limit, stop sending and wait for the answers.
#SBATCH --signal=TERM@300
# After the failure of a node the job is queued again, and continues the run.
#SBATCH --requeue

# Processes end the run of all by themselves when one is lost, with complete records:
# srun must not kill them before.
exec srun --ntasks=4 --cpus-per-task=2 --kill-on-bad-exit=0 --wait=0 moontide replay \
  trace.jsonl \
  --url=http://server:8000 \
  '--header=X-Team: "a" $(b) {{c}}' \
  --part=auto \
  --resume=auto
