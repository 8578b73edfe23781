// Command slurm runs moontide as four processes under the launchers that start them on
// clusters, and checks what they report, also when one of them is killed. The script run
// starts Slurm and this.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	analysis "moontide/analyze/measure"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
)

const (
	ranks = 4
	kills = 5 // of each launcher
)

// launcher starts the ranks of a run.
type launcher struct {
	name     string
	commands func(args []string) []*exec.Cmd
	// rankVariable is in the environment of a rank.
	rankVariable string
}

var launchers = []launcher{
	{"srun", func(args []string) []*exec.Cmd {
		return []*exec.Cmd{exec.Command("srun", append([]string{fmt.Sprint("-N", ranks), fmt.Sprint("-n", ranks), "moontide"}, args...)...)}
	}, "SLURM_PROCID"},
	{"mpirun", func(args []string) []*exec.Cmd {
		return []*exec.Cmd{exec.Command("mpirun", append([]string{"--oversubscribe", "-n", strconv.Itoa(ranks), "moontide"}, args...)...)}
	}, "OMPI_COMM_WORLD_RANK"},
	{"pods", pods, "JOB_COMPLETION_INDEX"},
}

// pods returns commands with the environment of the pods of an Indexed Job. They share a
// volume, so that they find part 1 without its name.
func pods(args []string) (all []*exec.Cmd) {
	for i := range ranks {
		cmd := exec.Command("moontide", args...)
		cmd.Env = append(os.Environ(), fmt.Sprint("JOB_COMPLETION_INDEX=", i), fmt.Sprint("MOONTIDE_PARTS=", ranks), fmt.Sprint("HOSTNAME=load-", i))
		all = append(all, cmd)
	}
	return all
}

// failed counts the laws that do not hold.
var failed int

// check prints what a law says and whether it holds.
func check(launcher string, ok bool, law string, args ...any) {
	word := "ok"
	if !ok {
		word = "FAILED"
		failed++
	}
	log.Printf("%-6s %s: %s", word, launcher, fmt.Sprintf(law, args...))
}

func main() {
	log.SetFlags(log.Ltime)
	work := flag.String("work", "", "`FOLDER` for runs")
	flag.Parse()
	if err := checkAll(*work); err != nil {
		log.Fatal(err)
	}
	if failed > 0 {
		log.Fatalf("%d laws failed", failed)
	}
}

func checkAll(work string) error {
	alone, err := replay(filepath.Join(work, "alone"), func(args []string) []*exec.Cmd { return []*exec.Cmd{exec.Command("moontide", args...)} })
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(20, 0))
	for _, l := range launchers {
		if err := l.conversation(filepath.Join(work, l.name), alone); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		for i := range kills {
			rank, after := random.IntN(ranks), time.Duration(random.Float64()*8*float64(time.Second))
			if i == 0 {
				rank = 0
			}
			if err := l.kill(filepath.Join(work, fmt.Sprint(l.name, i)), rank, after); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
		}
	}
	return nil
}

// against returns the evidence that is not VALID, without that of a busy machine.
func against(v analysis.Verdict) (texts []string) {
	for _, e := range v.Evidence {
		if e.Level != analysis.Valid && !strings.Contains(e.Text, "CPU was") {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// replay replays the sample conversation against two simulated engines with empty caches.
func replay(dir string, commands func(args []string) []*exec.Cmd, more ...string) (*analysis.Result, error) {
	endpoint, err := serve()
	if err != nil {
		return nil, err
	}
	defer endpoint.Close()
	j, err := launch(dir, commands, endpoint.URL, more...)
	if err != nil {
		return nil, err
	}
	for _, status := range j.wait() {
		if status != 0 && status != 3 { // 3 is INVALID
			return nil, fmt.Errorf("exit status %d: %s", status, j.said())
		}
	}
	r, err := experiment.Measure(experiment.MeasureConfig{}, dir)
	if err != nil {
		return nil, err
	}
	return r.Metrics, nil
}

// conversation checks that the ranks of a run report what one process does, and when they
// started.
func (l *launcher) conversation(dir string, alone *analysis.Result) error {
	r, err := replay(dir, l.commands, "--part", "auto")
	if err != nil {
		return err
	}
	rows := 0
	for _, p := range r.Parts {
		rows += p.Result.Completed
		check(l.name, p.BoundMS.Value <= 0.2, "the clock of a part is known within 0.2 ms: %.3f ms", p.BoundMS.Value)
	}
	check(l.name, len(r.Parts) == ranks && rows == alone.Completed && r.Completed == rows, "%d requests are sent once and completed, by %d parts: %d", alone.Completed, len(r.Parts), r.Completed)
	check(l.name, against(r.Verdict) == nil, "nothing but a busy machine is against the run: %s %v", r.Verdict.Level, against(r.Verdict))
	check(l.name, r.Cache.Prediction.Predicted == alone.Cache.Prediction.Predicted, "%d cached tokens are predicted, as for one process: %d", alone.Cache.Prediction.Predicted, r.Cache.Prediction.Predicted)
	return nil
}

// kill kills a rank of a run by SIGKILL: the others end within 10 s and name it, all
// records are whole, and the run is reported INVALID.
func (l *launcher) kill(dir string, rank int, after time.Duration) error {
	endpoint, err := serve()
	if err != nil {
		return err
	}
	defer endpoint.Close()
	j, err := launch(dir, l.commands, endpoint.URL, "--part", "auto")
	if err != nil {
		return err
	}
	process, err := findRank(l.rankVariable, rank, dir)
	if err != nil {
		return err
	}
	time.Sleep(after)
	if err := process.Kill(); err != nil {
		return err
	}
	begun := time.Now()
	statuses := j.wait()
	took, said := time.Since(begun), j.said()
	check(l.name, took <= 10*time.Second, "the others end within 10 s after rank %d was killed: %.1f s", rank, took.Seconds())
	named := strings.Contains(said, fmt.Sprintf("part %d of %d", rank+1, ranks)) || strings.Contains(said, fmt.Sprintf("process rank %d", rank))
	check(l.name, named && !slices.Contains(statuses, 0), "they name it, and none ends with exit status 0: %v", statuses)
	if !named {
		log.Print(said)
	}
	records := 0
	for i := range ranks {
		n, damaged, err := lines(filepath.Join(dir, fmt.Sprintf("part-%d", i+1)))
		if err != nil {
			return err
		}
		records += n
		check(l.name, damaged == 0, "the record of part %d is whole: %d damaged lines", i+1, damaged)
	}
	report := exec.Command("moontide", "report", dir)
	report.Run()
	status := report.ProcessState.ExitCode()
	check(l.name, status == 3 || records == 0 && status == 1, "the run is INVALID, or has no record: exit status %d, %d records", status, records)
	return nil
}

// lines returns the number of records of a part, and of damaged ones.
func lines(dir string) (records, damaged int, err error) {
	reader, err := runfile.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer reader.Close()
	for _, err := range reader.Records() {
		if err != nil {
			return records, 0, err
		}
		records++
	}
	damaged, _ = reader.Damaged()
	return records, damaged, nil
}

// serve starts two simulated engines with empty caches.
func serve() (experiment.Endpoint, error) {
	return experiment.StartEndpoint(exec.Command("moontide", "serve", "--listen", "127.0.0.1:0", "--json", "--until-input-ends", "--engines", "2"))
}

// job is a started run.
type job struct {
	commands []*exec.Cmd
	errors   string // file of what they say
}

// launch starts the replay of the sample conversation.
func launch(dir string, commands func(args []string) []*exec.Cmd, url string, more ...string) (*job, error) {
	j := &job{commands(append([]string{"replay", "traces/conversation.jsonl", "--url", url, "--out", dir}, more...)), dir + ".err"}
	said, err := os.OpenFile(j.errors, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer said.Close()
	for _, cmd := range j.commands {
		cmd.Stderr = said
		if err := cmd.Start(); err != nil {
			return nil, err
		}
	}
	return j, nil
}

func (j *job) said() string {
	text, _ := os.ReadFile(j.errors)
	return string(text)
}

// wait waits for all commands and returns the exit status of each.
func (j *job) wait() (statuses []int) {
	for _, cmd := range j.commands {
		cmd.Wait()
		statuses = append(statuses, cmd.ProcessState.ExitCode())
	}
	return statuses
}

// findRank returns the process of a rank of a run, which names its folder.
func findRank(variable string, rank int, dir string) (*os.Process, error) {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			program, _, _ := bytes.Cut(line, []byte{0})
			if bytes.HasSuffix(program, []byte("moontide")) && bytes.Contains(line, []byte(dir)) && bytes.Contains(append([]byte{0}, env...), fmt.Appendf(nil, "\x00%s=%d\x00", variable, rank)) {
				return os.FindProcess(pid)
			}
		}
	}
	return nil, errors.New("the rank was not found")
}
