package cluster

import (
	"errors"
	"testing"
)

func TestDetect(t *testing.T) {
	slurm := map[string]string{"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "17", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "gpu[03-06,9]", "SLURM_STEP_NUM_NODES": "4"}
	with := func(more map[string]string) map[string]string {
		env := map[string]string{}
		for _, m := range []map[string]string{slurm, more} {
			for k, v := range m {
				env[k] = v
			}
		}
		return env
	}
	for name, test := range map[string]struct {
		env  map[string]string
		want Place
	}{
		"Slurm step":    {slurm, Place{Number: 3, Of: 4, Engine: "Slurm", Job: "slurm-17.0", Host: "gpu03"}},
		"one node":      {with(map[string]string{"SLURM_STEP_NUM_NODES": "1"}), Place{Number: 3, Of: 4, Engine: "Slurm", Job: "slurm-17.0", Host: "gpu03", OneMachine: true}},
		"mpirun in it":  {with(map[string]string{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "a/b@1"}), Place{Number: 1, Of: 8, Engine: "Open MPI", Job: "mpi-a-b-1"}},
		"srun with PMI": {with(map[string]string{"PMI_RANK": "2", "PMI_SIZE": "4"}), Place{Number: 3, Of: 4, Engine: "PMI", Job: "slurm-17.0", Host: "gpu03"}},
		"Kubernetes":    {map[string]string{"JOB_COMPLETION_INDEX": "0", "MOONTIDE_PARTS": "4", "HOSTNAME": "load-0"}, Place{Number: 1, Of: 4, Engine: "Kubernetes", Job: "load"}},
	} {
		if got, err := Detect(test.env); err != nil || got != test.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, test.want)
		}
	}
	if _, err := Detect(map[string]string{"HOME": "/"}); !errors.Is(err, ErrNoPlace) {
		t.Errorf("nothing: %v", err)
	}
	for name, env := range map[string]map[string]string{
		"no count":      {"JOB_COMPLETION_INDEX": "0"},
		"rank too high": {"PMI_RANK": "4", "PMI_SIZE": "4"},
		"not a number":  {"PMI_RANK": "x", "PMI_SIZE": "4"},
		"array":         {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "9", "SLURM_ARRAY_TASK_COUNT": "9", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
	} {
		if got, err := Detect(env); err == nil || errors.Is(err, ErrNoPlace) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestFirstNode(t *testing.T) {
	for list, want := range map[string]string{"": "", "a": "a", "a,b": "a", "n[1-4]": "n1", "n[07,9]x,m": "n07x", "m,n[1-2]": "m", "n[1-2]r[3-4]": ""} {
		if got := firstNode(list); got != want {
			t.Errorf("first of %q is %q, want %q", list, got, want)
		}
	}
}
