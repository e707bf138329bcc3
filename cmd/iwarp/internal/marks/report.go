package marks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrMissed is the error of a command that has missed a mark.
var ErrMissed = errors.New("not all targets are met")

// A Report is what a command prints.
type Report struct {
	Marks List     `json:"marks"`
	Notes []string `json:"notes"` // the numbers behind the marks
}

// Note adds a note.
func (r *Report) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Print writes the report, as JSON or as a table with the notes behind it. Its error is ErrMissed if a mark was missed.
func (r *Report) Print(w io.Writer, asJSON bool) error {
	if err := r.write(w, asJSON); err != nil {
		return err
	}
	if r.Marks.Missed() {
		return ErrMissed
	}
	return nil
}

func (r *Report) write(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	if err := r.Marks.Print(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, n := range r.Notes {
		fmt.Fprintln(w, n)
	}
	return nil
}
