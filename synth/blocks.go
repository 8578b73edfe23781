package synth

// BlockRun is a run of consecutive block ids.
type BlockRun struct {
	First  uint64
	Blocks int
}

// AppendIDs appends the ids of the run.
func (r BlockRun) AppendIDs(ids []uint64) []uint64 {
	for i := range uint64(r.Blocks) {
		ids = append(ids, r.First+i)
	}
	return ids
}
