package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Job is the job of a cluster that a process is one of.
type Job struct {
	Name       string // the same in all processes of the job; "" if unknown
	Part, Of   int    // number of the process, from 1, and of all processes
	OneMachine bool   // all processes are known to run on one machine
}

// ErrNoJob reports an environment without a job.
var ErrNoJob = errors.New("no Slurm step, MPI rank or Kubernetes Indexed Job is in the environment")

// PartsVariable is the environment variable with the number of parts of a Kubernetes
// Indexed Job. Kubernetes does not set it.
const PartsVariable = "MOONTIDE_PARTS"

// launchers lists the variables of what starts processes. MPI comes first, because its
// launchers may run in a Slurm step.
var launchers = []struct {
	rank, size string
	describe   func(env map[string]string, job *Job)
}{
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", func(env map[string]string, job *Job) {
		job.OneMachine = env["OMPI_COMM_WORLD_LOCAL_SIZE"] == env["OMPI_COMM_WORLD_SIZE"]
		job.Name = jobName("mpi", env["PMIX_NAMESPACE"], env["OMPI_MCA_ess_base_jobid"])
	}},
	{"PMI_RANK", "PMI_SIZE", func(env map[string]string, job *Job) {
		job.OneMachine = env["MPI_LOCALNRANKS"] != "" && env["MPI_LOCALNRANKS"] == env["PMI_SIZE"]
		if job.Name = jobName("pmi", env["PMI_JOBID"]); env["SLURM_JOB_ID"] != "" {
			slurmStep(env, job)
		}
	}},
	{"SLURM_PROCID", "SLURM_NTASKS", slurmStep},
	{"JOB_COMPLETION_INDEX", PartsVariable, func(env map[string]string, job *Job) {
		job.Name = strings.TrimSuffix(env["HOSTNAME"], "-"+env["JOB_COMPLETION_INDEX"])
	}},
}

func slurmStep(env map[string]string, job *Job) {
	job.Name = jobName("slurm", env["SLURM_JOB_ID"])
	if step := env["SLURM_STEP_ID"]; step != "" && job.Name != "" {
		job.Name += "." + step
	}
	job.OneMachine = cmp.Or(env["SLURM_STEP_NUM_NODES"], env["SLURM_JOB_NUM_NODES"]) == "1"
}

// jobName returns the first id that is set, after the name of what set it.
func jobName(launcher string, ids ...string) string {
	id := cmp.Or(ids...)
	if id == "" {
		return ""
	}
	return launcher + "-" + strings.NewReplacer("/", "-", `\`, "-", ":", "-", "@", "-", " ", "-").Replace(id)
}

// Detect returns the job of a process with an environment. It fails with [ErrNoJob] if
// the environment has none.
func Detect(env map[string]string) (Job, error) {
	if task := env["SLURM_ARRAY_TASK_ID"]; task != "" && (env["SLURM_NTASKS"] == "" || env["SLURM_NTASKS"] == "1") {
		return Job{}, errors.New("the tasks of a Slurm array start at different times: use srun in one job")
	}
	for _, l := range launchers {
		if env[l.rank] == "" {
			continue
		}
		if env[l.size] == "" {
			return Job{}, fmt.Errorf("%s is set, but %s, the number of parts, is not", l.rank, l.size)
		}
		rank, errRank := strconv.Atoi(env[l.rank])
		size, errSize := strconv.Atoi(env[l.size])
		if errRank != nil || errSize != nil || rank < 0 || rank >= size {
			return Job{}, fmt.Errorf("%s=%q and %s=%q are not a rank from 0 and a number of ranks", l.rank, env[l.rank], l.size, env[l.size])
		}
		job := Job{Part: rank + 1, Of: size}
		l.describe(env, &job)
		return job, nil
	}
	return Job{}, ErrNoJob
}
