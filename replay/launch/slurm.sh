#!/bin/bash
# A moontide run whose parts are the tasks of a Slurm job:
#
#   sbatch --nodes 4 --ntasks 8 slurm.sh replay trace.jsonl --url http://server:8000
#
# Options of sbatch, such as --partition and --time, override those below.
#SBATCH --job-name=moontide
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=2
# Before the time limit, stop sending and wait for the answers.
#SBATCH --signal=TERM@300
# After a node failure the job is queued again and resumes the run.
#SBATCH --requeue

# When a part is lost, the others end by themselves, with complete records: srun must
# not kill them before.
exec srun --cpus-per-task="${SLURM_CPUS_PER_TASK:-2}" --kill-on-bad-exit=0 --wait=0 moontide "$@" --part=auto --resume=auto
