package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ids keeps the tokens of a prompt.
type ids []uint64

func (p *ids) AddText(s string)  { panic("text: " + s) }
func (p *ids) AddToken(t uint64) { *p = append(*p, t) }
func (p *ids) Len() int          { return len(*p) }

func TestReadTokenIDs(t *testing.T) {
	for array, want := range map[string]ids{
		`[]`:                   nil,
		`[ ]`:                  nil,
		`[7]`:                  {7},
		`[0,4294967295]`:       {0, 4294967295},
		"[ 1 ,\t2,\n 30 ,4\r]": {1, 2, 30, 4},
	} {
		var got ids
		if err := (parameter{"prompt", raw(array)}).readTokenIDs(&got); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %v %v", array, got, err)
		}
	}
	for array, at := range map[string]int{
		`[-1]`: 0, `[1.0]`: 0, `[1e3]`: 0, `[4294967296]`: 0, `[99999999999999999999999]`: 0, `["1"]`: 0, `[1,"a"]`: 1,
		`[1,2,]`: 2, `[1,,2]`: 1, `[1 2]`: 0, `[007]`: 0, `[1,2,null]`: 2, `[,1]`: 0,
	} {
		var got ids
		err := (parameter{"prompt", raw(array)}).readTokenIDs(&got)
		if want := fmt.Sprintf("prompt[%d] is not a token id", at); err == nil || !strings.HasPrefix(err.message, want) {
			t.Errorf("%s: %v, want %s", array, err, want)
		}
	}
}

// Cutting the ids out of a body does not change what it decodes to, wherever they
// are and whatever looks like them.
func TestDecodeBodyAgreesWithTheLibrary(t *testing.T) {
	for _, body := range []string{
		`{"prompt":[1,2],"max_tokens":3}`, `{ "max_tokens" : 3 , "prompt" : [ 1 , 2 ] }`, `{"prompt":[1,2],"prompt":"text"}`,
		`{"prompt":"text","prompt":[1,2]}`, `{"x":{"prompt":[1,2]},"prompt":[3]}`, `{"x":{"prompt":[1,2]},"prompt":[]}`, `{"x":{"prompt":[1,2]}}`,
		`{"x":"prompt","y":[1,2],"prompt":[3]}`, `{"x":"\"prompt\":[1,2]","prompt":[3]}`, `{"x":"\\","prompt":[3]}`, `{"prompt":[1,"]"]}`,
		`{"prompt":[1,[2]]}`, `{"prompt":[[1,2]]}`, `{"prompt":["a"]}`, `{"prompt":[]}`, `{"prompt":"a"}`, `{"prompt":null}`, `{"prompt":[1`, `{"prompt":`,
		`{"prompt"`, `{"prompt":[1]`, `{"prompt":[1]}}`, `[{"prompt":[1]}]`, `"prompt":[1]`, `{}`,
	} {
		var want wireRequest
		wantErr := bodyJSON.UnmarshalFromString(body, &want.members)
		got, gotErr := decodeBody([]byte(body), &completionAPI)
		if (gotErr == nil) != (wantErr == nil) || wantErr == nil && cmp.Diff(want.members, got.members) != "" {
			t.Errorf("%s: %v, want %v\n%s", body, gotErr, wantErr, cmp.Diff(want.members, got.members))
		}
	}
	_, ids, _ := cutTokenIDs([]byte(`{"model":"m","prompt": [1, 2] ,"n":1}`), "prompt")
	if string(ids) != `[1, 2]` {
		t.Errorf("cut: %s", ids)
	}
}
