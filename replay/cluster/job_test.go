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
		want Job
	}{
		"Slurm step":    {slurm, Job{Name: "slurm-17.0", Part: 3, Of: 4}},
		"one node":      {with(map[string]string{"SLURM_STEP_NUM_NODES": "1"}), Job{Name: "slurm-17.0", Part: 3, Of: 4, OneMachine: true}},
		"mpirun in it":  {with(map[string]string{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "a/b@1"}), Job{Name: "mpi-a-b-1", Part: 1, Of: 8}},
		"srun with PMI": {with(map[string]string{"PMI_RANK": "2", "PMI_SIZE": "4"}), Job{Name: "slurm-17.0", Part: 3, Of: 4}},
		"Kubernetes":    {map[string]string{"JOB_COMPLETION_INDEX": "0", "MOONTIDE_PARTS": "4", "HOSTNAME": "load-0"}, Job{Name: "load", Part: 1, Of: 4}},
	} {
		if got, err := Detect(test.env); err != nil || got != test.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, test.want)
		}
	}
	if _, err := Detect(map[string]string{"HOME": "/"}); !errors.Is(err, ErrNoJob) {
		t.Errorf("nothing: %v", err)
	}
	for name, env := range map[string]map[string]string{
		"no count":      {"JOB_COMPLETION_INDEX": "0"},
		"rank too high": {"PMI_RANK": "4", "PMI_SIZE": "4"},
		"not a number":  {"PMI_RANK": "x", "PMI_SIZE": "4"},
		"array":         {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "9", "SLURM_ARRAY_TASK_COUNT": "9", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
	} {
		if got, err := Detect(env); err == nil || errors.Is(err, ErrNoJob) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
