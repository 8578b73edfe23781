package cluster

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Place is the place of a process among those of its job.
type Place struct {
	Number, Of int    // from 1
	Engine     string // the source, for messages
	Job        string // name of the job, the same in all of its processes; "" if unknown
	Host       string // host of part 1, if it is known
	OneMachine bool   // all processes are known to be on one machine
}

// ErrNoPlace reports an environment without a place.
var ErrNoPlace = errors.New("no Slurm step, MPI rank or Kubernetes Indexed Job is in the environment")

// PartsVariable is the environment variable with the number of parts of a Kubernetes
// Indexed Job. Kubernetes does not set it.
const PartsVariable = "MOONTIDE_PARTS"

// places lists the variables of the engines. MPI comes first, because its launchers may run
// in a Slurm step.
var places = []struct {
	engine, rank, size string
	of                 func(env map[string]string, p *Place)
}{
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", func(env map[string]string, p *Place) {
		p.OneMachine = env["OMPI_COMM_WORLD_LOCAL_SIZE"] == env["OMPI_COMM_WORLD_SIZE"]
		p.Job = jobName("mpi", env["PMIX_NAMESPACE"], env["OMPI_MCA_ess_base_jobid"])
	}},
	{"PMI", "PMI_RANK", "PMI_SIZE", func(env map[string]string, p *Place) {
		p.OneMachine = env["MPI_LOCALNRANKS"] != "" && env["MPI_LOCALNRANKS"] == env["PMI_SIZE"]
		if p.Job = jobName("pmi", env["PMI_JOBID"]); env["SLURM_JOB_ID"] != "" {
			slurmStep(env, p)
		}
	}},
	{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", slurmStep},
	{"Kubernetes", "JOB_COMPLETION_INDEX", PartsVariable, func(env map[string]string, p *Place) {
		p.Job = strings.TrimSuffix(env["HOSTNAME"], "-"+env["JOB_COMPLETION_INDEX"])
	}},
}

func slurmStep(env map[string]string, p *Place) {
	p.Job = jobName("slurm", env["SLURM_JOB_ID"])
	if step := env["SLURM_STEP_ID"]; step != "" && p.Job != "" {
		p.Job += "." + step
	}
	nodes := env["SLURM_STEP_NODELIST"]
	if nodes == "" {
		nodes = env["SLURM_JOB_NODELIST"]
	}
	p.Host = firstNode(nodes)
	p.OneMachine = env["SLURM_STEP_NUM_NODES"] == "1" || env["SLURM_STEP_NUM_NODES"] == "" && env["SLURM_JOB_NUM_NODES"] == "1"
}

// jobName returns the first id that is set, after the name of its engine.
func jobName(engine string, ids ...string) string {
	for _, id := range ids {
		if id != "" {
			return engine + "-" + strings.Map(func(r rune) rune {
				if strings.ContainsRune("/\\:@ ", r) {
					return '-'
				}
				return r
			}, id)
		}
	}
	return ""
}

// Detect returns the place of a process with an environment. It fails with
// [ErrNoPlace] if the environment has none.
func Detect(env map[string]string) (Place, error) {
	if task := env["SLURM_ARRAY_TASK_ID"]; task != "" && (env["SLURM_NTASKS"] == "" || env["SLURM_NTASKS"] == "1") {
		return Place{}, errors.New("the tasks of a Slurm array start at different times: use srun in one job")
	}
	for _, e := range places {
		if env[e.rank] == "" {
			continue
		}
		if env[e.size] == "" {
			return Place{}, fmt.Errorf("%s is set, but %s, the number of parts, is not", e.rank, e.size)
		}
		rank, errRank := strconv.Atoi(env[e.rank])
		size, errSize := strconv.Atoi(env[e.size])
		if errRank != nil || errSize != nil || rank < 0 || rank >= size {
			return Place{}, fmt.Errorf("%s=%q and %s=%q are not a rank from 0 and a number of ranks", e.rank, env[e.rank], e.size, env[e.size])
		}
		p := Place{Number: rank + 1, Of: size, Engine: e.engine}
		e.of(env, &p)
		return p, nil
	}
	return Place{}, ErrNoPlace
}

// firstNode returns the first host of a Slurm node list such as "a,b" or "gpu[03-08,12]-x,login".
func firstNode(list string) string {
	before, rest, bracket := strings.Cut(list, "[")
	if comma := strings.IndexByte(before, ','); comma >= 0 {
		return before[:comma]
	}
	if !bracket {
		return before
	}
	numbers, after, _ := strings.Cut(rest, "]")
	first := strings.FieldsFunc(numbers, func(r rune) bool { return r == '-' || r == ',' })
	after, _, _ = strings.Cut(after, ",")
	if len(first) == 0 || strings.Contains(after, "[") {
		return ""
	}
	return before + first[0] + after
}
