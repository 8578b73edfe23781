// Package record turns requests into trace rows without keeping their text.
//
//	key, err := record.OpenKey("capture.key") // made once, kept secret
//	cfg := record.Config{Key: key}
//	call, err := record.NewReader(cfg).Read(record.Chat, body)
//	blocks := record.NewHasher(cfg).Hash(call)
//	turn := &record.Turn{ID: "1", Arrived: time.Now()}
//	record.NewSessions(1000).Join(turn, "", blocks, "a new session")
//	row := record.NewRows(cfg, start).Row(&record.Exchange{Turn: turn, Call: call, Blocks: blocks})
//
// Block ids are HMAC-SHA256 of prefixes, see [Hasher], and names of sessions and
// requests are those of their names. Without the key, nobody can find out whether a
// prompt has a known text. Two traces made with one key share ids.
package record
