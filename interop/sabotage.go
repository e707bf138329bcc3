package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/interop/matrix"
	"github.com/goiwarp/iwarp/interop/powercut"
	"github.com/goiwarp/iwarp/interop/wire"
)

// A sabotage is a defect in what our end sends. It is planted only in the programs for the guest, and
// the captures of its cases must show it.
type sabotage struct {
	name    string
	file    string // of the module
	changes edits
	cases   []string
	shows   error // what the check of a capture must find
}

// sabotages lists all of them, each with cases that otherwise still work.
var sabotages = []sabotage{
	{
		name: "terminate", // layer and type exchanged
		file: "rdmap/terminate.go",
		changes: edits{{
			"b = binary.BigEndian.AppendUint16(b, uint16(t.Code))",
			"b = append(b, t.Code.Type()<<4|t.Code.Layer(), t.Code.Code())",
		}},
		cases: []string{"terminate/from-us/long-send/responder", "terminate/from-us/read-stag/responder"},
		shows: wire.ErrTerminate,
	},
	{
		name:    "solicited", // the bit is never sent
		file:    "rdmap/request.go",
		changes: edits{{"return sendOpcodes[r.Flags&(Solicited|Invalidating)]", "return sendOpcodes[r.Flags&Invalidating]"}},
		cases:   []string{"send/solicited/responder"},
		shows:   wire.ErrSends,
	},
	{
		name: "rtr", // by Read where the Reply names Write
		file: "rdmap/stream.go",
		changes: edits{{
			"\tdefault:\n\t\tr.Kind = KindWrite\n\t}\n\tr.quiet = true",
			"\tdefault:\n\t\tr.Kind = KindRead\n\t}\n\tr.quiet = true",
		}},
		cases: []string{"close/at-once/initiator", "revision/2/initiator"},
		shows: wire.ErrRTR,
	},
}

// wireSabotages lists their names.
func wireSabotages() []string {
	var names []string
	for _, s := range sabotages {
		names = append(names, s.name)
	}
	return names
}

// parseSabotages returns the sabotages of a comma-separated list. The list powercut.Honest has none.
func parseSabotages(list string) ([]sabotage, error) {
	if list == powercut.Honest {
		return nil, nil
	}
	var chosen []sabotage
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(sabotages, func(s sabotage) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no sabotage %q of what is sent, only %s, with commas between several", name, strings.Join(wireSabotages(), ", "))
		}
		chosen = append(chosen, sabotages[i])
	}
	return chosen, nil
}

// sabotageOf returns the planted defect that a case must show, nil if there is none.
func (l *lab) sabotageOf(c *matrix.Case) *sabotage {
	for i := range l.planted {
		if slices.Contains(l.planted[i].cases, c.Name) {
			return &l.planted[i]
		}
	}
	return nil
}

// judge reports whether the capture of a case shows the defect. The guest's result does not
// count: siw may refuse what we send, but need not.
func (s *sabotage) judge(capture error) (noticed bool, verdict string) {
	if errors.Is(capture, s.shows) {
		return true, fmt.Sprintf("noticed %q: %v", s.name, capture)
	}
	return false, fmt.Sprintf("FAILED: the sabotage %q was not noticed: %v", s.name, capture)
}

// plant writes changed copies of the files of the module, and an overlay that makes the Go command
// use them instead of the originals. It returns the overlay's file.
func plant(ctx context.Context, chosen []sabotage, dir string) (string, error) {
	root, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/goiwarp/iwarp")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for _, s := range chosen {
		original := filepath.Join(strings.TrimSpace(root), filepath.FromSlash(s.file))
		copied := filepath.Join(dir, s.name+".go")
		if err := errors.Join(copyFile(original, copied, 0o644), edit(copied, s.changes)); err != nil {
			return "", err
		}
		replace[original] = copied
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, b, 0o644)
}
